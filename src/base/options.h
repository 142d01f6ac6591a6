/* options.h - the values of all options, and the parser of "key=value,key=value".
 *
 * Read once at start-up from HUDDLE_OPTIONS; afterwards only those that options.def marks ANY change, each with one
 * relaxed store of a word (reader and writer need no order). This file does not decide what an option means. */
#ifndef HUDDLE_BASE_OPTIONS_H
#define HUDDLE_BASE_OPTIONS_H

#include "base/base.h"

struct options {
#define NUMBER(key, initial, least, most, when, help) uint32_t key;
#define CHOICE(key, words, when, help) uint32_t key;
#define TEXT(key, size, when, help) char key[size];
#include "base/options.def"
#undef NUMBER
#undef CHOICE
#undef TEXT
};

extern struct options options;

enum option_when { OPTION_START, OPTION_ANY };

/* The words of the option foreign. */
enum { FOREIGN_LIBC, FOREIGN_ABORT, FOREIGN_IGNORE };

/* What a key is, for listings. `words` is NULL for all but choices, `size` is 0 for all but texts. */
struct option_info {
    const char *key;
    const char *help;
    const char *words;
    uint32_t initial, least, most;
    size_t size;
    enum option_when when;
};

enum { OPTION_MAX = 12 + HUDDLE_AUDIT };

/* All options in the order of options.def, and their number. */
const struct option_info *option_table(size_t *count);

/* Called for each wrong part of an option string: `part` of `length` bytes is what stands there. */
typedef void option_report(const char *part, size_t length, const char *problem);

/* Reads "key=value,..." into `options`. A wrong part is reported and skipped; the value it would have set stays. */
void options_parse(const char *text, option_report *report);

/* Sets one option. Returns NULL, or what is wrong. */
const char *option_set(const char *key, size_t key_length, const char *value, size_t value_length, enum option_when now);

/* Writes the value of `key` as text. Returns false for an unknown key or when `size` bytes do not hold it. */
bool option_get(const char *key, char *value, size_t size);

#endif
