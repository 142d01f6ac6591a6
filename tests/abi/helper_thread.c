/* The helper thread: it is there when much free memory is kept and the program does nothing, gives the memory back, and goes. Run with
 * a small purge_ms; with helper=0 as the argument "none", where there must be no thread and memory stays. */
#include "abi.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 4000, BLOCKS = 64 * 1024 * 1024 / BLOCK, ROUNDS = 6, START_MS = 2000, WAIT_MS = 12000 };

static void *blocks[BLOCKS];
static bool is_off;

/* Resident KiB of this process. */
static long resident(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A file of the thread called huddle, or NULL when there is no such thread. */
static FILE *open_helper(const char *file) {
    DIR *tasks = opendir("/proc/self/task");
    FILE *found = NULL;
    for (struct dirent *e; tasks != NULL && found == NULL && (e = readdir(tasks)) != NULL;) {
        char path[600], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f == NULL) continue;
        bool is_helper = fgets(name, sizeof name, f) != NULL && strcmp(name, "huddle\n") == 0;
        fclose(f);
        snprintf(path, sizeof path, "/proc/self/task/%s/%s", e->d_name, file);
        if (is_helper) found = fopen(path, "r");
    }
    closedir(tasks);
    return found;
}

static bool has_helper(void) {
    FILE *f = open_helper("comm");
    if (f != NULL) fclose(f);
    return f != NULL;
}

/* Frees and allocates the same again and again, so that much is kept for the next time. */
static void saw(void) {
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BLOCK);
            assert_non_null(blocks[i]);
            memset(blocks[i], 1, BLOCK);
        }
        for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    }
}

/* Whether it is there, or comes: under load a new thread may take a while until it has its name. */
static bool waits_for_its_start(void) {
    for (int ms = 0; ms < START_MS && !has_helper(); ms++) usleep(1000);
    return has_helper();
}

static bool waits_for_its_end(void) {
    for (int ms = 0; ms < WAIT_MS && has_helper(); ms += 20) usleep(20000);
    return !has_helper();
}

static void helper_gives_memory_back_and_ends(void **state) {
    (void)state;
    assert_false(has_helper());
    long before = resident();
    saw();
    assert_true(is_off ? !has_helper() : waits_for_its_start());
    assert_true(waits_for_its_end());
    if (is_off) assert_true(resident() - before > 32 * 1024);
    else assert_true(resident() - before < 64 * 1024 / 5);
}

static void helper_blocks_every_signal(void **state) {
    (void)state;
    if (is_off) return;
    if (TEST_IS_EMULATED) skip(); /* the emulator needs some signals itself */
    saw();
    assert_true(waits_for_its_start());
    FILE *f = open_helper("status");
    assert_non_null(f);
    char line[256];
    unsigned long blocked = 0;
    while (fgets(line, sizeof line, f) != NULL) sscanf(line, "SigBlk: %lx", &blocked);
    fclose(f);
    for (int s = 1; s < 65; s++)
        if (s != SIGKILL && s != SIGSTOP) assert_true(blocked >> (s - 1) & 1);
    assert_true(waits_for_its_end());
}

/* What `child` returns in a child of this process. */
static int status_of(int (*child)(void)) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int child_starts_without_one(void) {
    if (has_helper()) return 1;
    saw();
    if (is_off ? has_helper() : !waits_for_its_start()) return 2;
    return waits_for_its_end() ? 0 : 3;
}

static void helper_is_absent_in_a_child_until_needed(void **state) {
    (void)state;
    if (TEST_IS_EMULATED) skip(); /* qemu 7.2 ends a child of a process with threads that starts one */
    saw();
    assert_int_equal(status_of(child_starts_without_one), 0);
    assert_true(waits_for_its_end());
}

static int drops_its_rights(void) {
    saw();
    if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
    return waits_for_its_end() ? 0 : 2;
}

static void helper_does_not_keep_rights_that_the_program_gave_up(void **state) {
    (void)state;
    if (geteuid() != 0 || TEST_IS_EMULATED) skip();
    assert_int_equal(status_of(drops_its_rights), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(helper_gives_memory_back_and_ends),
        cmocka_unit_test(helper_blocks_every_signal),
        cmocka_unit_test(helper_is_absent_in_a_child_until_needed),
        cmocka_unit_test(helper_does_not_keep_rights_that_the_program_gave_up),
    };
    is_off = argc > 1 && strcmp(argv[1], "none") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
