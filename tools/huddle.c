/* huddle.c - the command huddle(1): runs programs on the library, lists its options, prints layouts.
 *
 * `huddle run` changes two environment variables and replaces itself by the command, so the command's exit status and
 * signals are its own. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <huddle/huddle.h>

#include "base/options.h"
#include "layout.h"

enum { EXIT_USAGE = 2, EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

static const char help[] =
    "usage: huddle run [-o KEY=VALUE]... [--stats[=FILE]] [--] COMMAND [ARG...]\n"
    "       huddle options\n"
    "       huddle layout [--encoding NAME] [--placement side|inrun] [--csv]\n"
    "       huddle --version | --help\n"
    "\n"
    "run        runs COMMAND with huddle as its memory allocator\n"
    "  -o KEY=VALUE     sets an option (several: KEY=VALUE,KEY=VALUE), after those in HUDDLE_OPTIONS\n"
    "  --stats[=FILE]   appends a report in JSON to FILE, or to standard error, when the program ends\n"
    "options    lists the options: KEY=DEFAULT, values, when it can be set, meaning\n"
    "layout     prints what each encoding of a run's free cells costs for each size class\n"
    "  --encoding NAME  of this one only: bytemap, bitmap, u8, u16, p12, p10\n"
    "  --placement side   in huddle's runs, which have it beside them (default)\n"
    "  --placement inrun  inside the run, as Mozilla bug 1980047 has it; there is no bytemap\n"
    "  --csv            as comma-separated values\n"
    "\n"
    "Exit status of run: that of COMMAND; 127 when it is not found, 126 when it cannot be run, 125 when\n"
    "libhuddle.so is not found, 2 for a wrong option.\n";

PRINTF(2, 3) static void __attribute__((noreturn)) fail(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("huddle: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(status);
}

/* A new string "a" + "b" + "c". */
static char *join(const char *a, const char *b, const char *c) {
    size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    char *s = malloc(size);
    if (s == NULL) fail(EXIT_OWN_FAILURE, "out of memory");
    snprintf(s, size, "%s%s%s", a, b, c);
    return s;
}

static void set_environment(const char *name, const char *value) {
    if (setenv(name, value, 1) != 0) fail(EXIT_OWN_FAILURE, "%s: %s", name, strerror(errno));
}

/* A string in which a comma or white space would end an option or a path has no way to be quoted. */
static void refuse(int status, const char *what, const char *text, const char *characters) {
    if (strpbrk(text, characters) != NULL)
        fail(status, "%s: '%s' may not contain any of '%s'", what, text, characters);
}

/* The library: beside this command (build tree), or where it was installed relative to it. */
static char *find_library(void) {
    char directory[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);
    if (length <= 0) fail(EXIT_OWN_FAILURE, "/proc/self/exe: %s", strerror(errno));
    directory[length] = '\0';
    *strrchr(directory, '/') = '\0';
    const char *const names[] = {"libhuddle.so.0", "libhuddle.so"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = join(directory, "/", names[i]);
        if (access(path, R_OK) == 0) return path;
        free(path);
    }
    /* The directory is free of links, so each leading ".." takes away its last name. */
    const char *relative = HUDDLE_LIBRARY_FROM_COMMAND;
    while (strncmp(relative, "../", 3) == 0 && strrchr(directory, '/') != NULL) {
        *strrchr(directory, '/') = '\0';
        relative += 3;
    }
    char *path = join(directory, "/", relative);
    if (access(path, R_OK) != 0)
        fail(EXIT_OWN_FAILURE, "libhuddle.so.0 is neither beside this command nor at %s", path);
    return path;
}

static const char *wrong_options; /* the argument that is being checked, for report_option */

static void report_option(const char *part, size_t length, const char *problem) {
    if (length == strlen(wrong_options)) fail(EXIT_USAGE, "-o %s: %s", wrong_options, problem);
    fail(EXIT_USAGE, "-o %s: %s: '%.*s'", wrong_options, problem, (int)length, part);
}

/* Appends "key=value" (or several with commas between) to HUDDLE_OPTIONS after checking it. */
static void add_options(const char *text) {
    if (*text == '\0') fail(EXIT_USAGE, "-o: KEY=VALUE is missing");
    wrong_options = text;
    options_parse(text, report_option);
    const char *present = getenv("HUDDLE_OPTIONS");
    char *all = present != NULL && *present != '\0' ? join(present, ",", text) : join(text, "", "");
    set_environment("HUDDLE_OPTIONS", all);
    free(all);
}

/* `file` is "-" for standard error. The program may change its directory before it ends. */
static void add_stats(const char *file) {
    if (*file == '\0') fail(EXIT_USAGE, "--stats=: FILE is missing");
    refuse(EXIT_USAGE, "--stats", file, ",");
    char *path;
    if (*file == '/' || strcmp(file, "-") == 0) {
        path = join(file, "", "");
    } else {
        char directory[PATH_MAX];
        if (getcwd(directory, sizeof directory) == NULL)
            fail(EXIT_OWN_FAILURE, "--stats: current directory: %s", strerror(errno));
        refuse(EXIT_USAGE, "--stats", directory, ",");
        path = join(directory, "/", file);
    }
    char *option = join("stats=", path, "");
    add_options(option);
    free(option);
    free(path);
}

static void add_preload(const char *library) {
    refuse(EXIT_OWN_FAILURE, "libhuddle.so", library, " :"); /* ld.so(8): LD_PRELOAD is separated by these */
    const char *present = getenv("LD_PRELOAD");
    char *all = present != NULL && *present != '\0' ? join(library, ":", present) : join(library, "", "");
    set_environment("LD_PRELOAD", all);
    free(all);
}

static int run(char **argument) {
    for (; *argument != NULL && **argument == '-'; argument++) {
        const char *a = *argument;
        if (strcmp(a, "--") == 0) {
            argument++;
            break;
        }
        if (strcmp(a, "--help") == 0) {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(a, "--stats") == 0) {
            add_stats("-");
        } else if (strncmp(a, "--stats=", 8) == 0) {
            add_stats(a + 8);
        } else if (strcmp(a, "-o") == 0) {
            if (*++argument == NULL) fail(EXIT_USAGE, "-o: KEY=VALUE is missing");
            add_options(*argument);
        } else if (strncmp(a, "-o", 2) == 0) {
            add_options(a + 2);
        } else {
            fail(EXIT_USAGE, "run: unknown option '%s' (see huddle --help)", a);
        }
    }
    if (*argument == NULL) fail(EXIT_USAGE, "run: COMMAND is missing (see huddle --help)");
    char *library = find_library();
    add_preload(library);
    free(library);
    execvp(argument[0], argument);
    fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %s", argument[0], strerror(errno));
}

static int list_options(void) {
    size_t count;
    const struct option_info *table = option_table(&count);
    printf("%-18s %-17s %-6s %s\n", "option", "values", "set", "meaning");
    for (size_t i = 0; i < count; i++) {
        const struct option_info *o = &table[i];
        char first[80], values[48];
        if (o->size != 0) {
            snprintf(first, sizeof first, "%s=", o->key);
            snprintf(values, sizeof values, "%zu bytes of text", o->size - 1);
        } else if (o->words != NULL) {
            snprintf(first, sizeof first, "%s=%.*s", o->key, (int)strcspn(o->words, "|"), o->words);
            snprintf(values, sizeof values, "%s", o->words);
        } else {
            snprintf(first, sizeof first, "%s=%u", o->key, o->initial);
            snprintf(values, sizeof values, "%u to %u", o->least, o->most);
        }
        printf("%-18s %-17s %-6s %s\n", first, values, o->when == OPTION_START ? "start" : "any", o->help);
    }
    return EXIT_SUCCESS;
}

/* The value of the option `name`, given as "NAME VALUE" or "NAME=VALUE"; NULL when it is another option. */
static const char *option_value(const char *name, char ***argument) {
    const char *a = **argument;
    size_t length = strlen(name);
    if (strncmp(a, name, length) != 0 || (a[length] != '=' && a[length] != '\0')) return NULL;
    if (a[length] == '=') return a + length + 1;
    if (*++*argument == NULL) fail(EXIT_USAGE, "layout: %s: a value is missing (see huddle --help)", name);
    return **argument;
}

static int layout(char **argument) {
    const char *encoding = NULL, *placement = "side", *value;
    bool as_csv = false;
    for (; *argument != NULL; argument++) {
        if ((value = option_value("--encoding", &argument)) != NULL) encoding = value;
        else if ((value = option_value("--placement", &argument)) != NULL) placement = value;
        else if (strcmp(*argument, "--csv") == 0) as_csv = true;
        else fail(EXIT_USAGE, "layout: unknown argument '%s' (see huddle --help)", *argument);
    }
    if (!layout_exists(NULL, placement)) fail(EXIT_USAGE, "layout: no such placement: '%s'", placement);
    if (!layout_exists(encoding, placement))
        fail(EXIT_USAGE, "layout: no such encoding with placement %s: '%s'", placement, encoding);
    layout_print(encoding, placement, as_csv);
    return EXIT_SUCCESS;
}

static int dispatch(int count, char **argument) {
    if (count < 2) fail(EXIT_USAGE, "what to do is missing (see huddle --help)");
    if (strcmp(argument[1], "run") == 0) return run(argument + 2);
    if (strcmp(argument[1], "layout") == 0) return layout(argument + 2);
    if (strcmp(argument[1], "--help") == 0) {
        fputs(help, stdout);
        return EXIT_SUCCESS;
    }
    bool options_wanted = strcmp(argument[1], "options") == 0;
    if (!options_wanted && strcmp(argument[1], "--version") != 0)
        fail(EXIT_USAGE, "unknown command '%s' (see huddle --help)", argument[1]);
    if (count > 2) fail(EXIT_USAGE, "%s: takes no arguments (see huddle --help)", argument[1]);
    if (options_wanted) return list_options();
    puts("huddle " HUDDLE_VERSION_STRING);
    return EXIT_SUCCESS;
}

int main(int count, char **argument) {
    int status = dispatch(count, argument);
    if (fflush(stdout) != 0 || ferror(stdout)) fail(EXIT_FAILURE, "standard output: %s", strerror(errno));
    return status;
}
