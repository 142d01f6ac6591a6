#include "base/options.h"

#include "base/base.h"

struct options options = {
#define NUMBER(key, initial, least, most, when, help) .key = (initial),
#define CHOICE(key, words, when, help) .key = 0,
#define TEXT(key, size, when, help) .key = "",
#include "base/options.def"
#undef NUMBER
#undef CHOICE
#undef TEXT
};

static const struct option_info table[] = {
#define NUMBER(key, initial, least, most, when, help) {#key, help, NULL, initial, least, most, 0, OPTION_##when},
#define CHOICE(key, words, when, help) {#key, help, words, 0, 0, 0, 0, OPTION_##when},
#define TEXT(key, size, when, help) {#key, help, NULL, 0, 0, 0, size, OPTION_##when},
#include "base/options.def"
#undef NUMBER
#undef CHOICE
#undef TEXT
};

static const uint16_t offsets[] = {
#define NUMBER(key, initial, least, most, when, help) offsetof(struct options, key),
#define CHOICE(key, words, when, help) offsetof(struct options, key),
#define TEXT(key, size, when, help) offsetof(struct options, key),
#include "base/options.def"
#undef NUMBER
#undef CHOICE
#undef TEXT
};

enum { COUNT = sizeof table / sizeof table[0] };
_Static_assert((int)COUNT == (int)OPTION_MAX, "options.def and OPTION_MAX say how many options there are");

const struct option_info *option_table(size_t *count) {
    *count = COUNT;
    return table;
}

static bool is_key(const char *key, const char *text, size_t length) {
    size_t i = 0;
    while (i < length && key[i] != '\0' && key[i] == text[i]) i++;
    return i == length && key[i] == '\0';
}

static int find(const char *text, size_t length) {
    for (int i = 0; i < COUNT; i++)
        if (is_key(table[i].key, text, length)) return i;
    return -1;
}

static void *value_of(int i) {
    return (char *)&options + offsets[i];
}

static size_t word_length(const char *word) {
    size_t n = 0;
    while (word[n] != '\0' && word[n] != '|') n++;
    return n;
}

/* The word with this number of "a|b|c", or NULL. */
static const char *word_at(const char *words, uint32_t number) {
    while (number-- != 0) {
        words += word_length(words);
        if (*words++ == '\0') return NULL;
    }
    return words;
}

static bool find_word(const char *words, const char *text, size_t length, uint32_t *number) {
    const char *word;
    for (*number = 0; (word = word_at(words, *number)) != NULL; ++*number) {
        size_t same = 0;
        while (same < length && word[same] == text[same]) same++;
        if (same == length && word_length(word) == length) return true;
    }
    return false;
}

/* A decimal number of `length` digits, at most UINT32_MAX. */
static bool read_number(const char *text, size_t length, uint32_t *number) {
    uint64_t n = 0;
    if (length == 0 || length > 10) return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *number = (uint32_t)n;
    return n <= UINT32_MAX;
}

const char *option_set(const char *key, size_t key_length, const char *value, size_t value_length, enum option_when now) {
    int i = find(key, key_length);
    if (i < 0) return "no such option";
    const struct option_info *o = &table[i];
    if (now == OPTION_ANY && o->when == OPTION_START) return "can only be set at start-up";
    if (o->size != 0) {
        if (value_length >= o->size) return "value too long";
        char *to = value_of(i);
        for (size_t k = 0; k < value_length; k++) to[k] = value[k];
        to[value_length] = '\0';
        return NULL;
    }
    uint32_t n;
    if (o->words != NULL) {
        if (!find_word(o->words, value, value_length, &n)) return "no such value";
    } else {
        if (!read_number(value, value_length, &n)) return "value is not a number";
        if (n < o->least || n > o->most) return "value out of range";
    }
    relaxed_store((uint32_t *)value_of(i), n);
    return NULL;
}

void options_parse(const char *text, option_report *report) {
    while (*text != '\0') {
        size_t length = 0, equals = 0;
        while (text[length] != '\0' && text[length] != ',') length++;
        while (equals < length && text[equals] != '=') equals++;
        const char *problem = NULL;
        if (length == 0) {
            /* an empty part, as in "a=1,": nothing is meant */
        } else if (equals == length) {
            problem = find(text, length) < 0 ? "no such option" : "no value";
        } else {
            problem = option_set(text, equals, text + equals + 1, length - equals - 1, OPTION_START);
        }
        if (problem != NULL) report(text, length, problem);
        text += length;
        if (*text == ',') text++;
    }
}

bool option_get(const char *key, char *value, size_t size) {
    size_t length = 0;
    while (key[length] != '\0') length++;
    int i = find(key, length);
    if (i < 0) return false;
    char digits[12];
    const char *from = value_of(i);
    size_t n = 0;
    if (table[i].words != NULL) {
        from = word_at(table[i].words, relaxed_load((uint32_t *)value_of(i)));
        n = word_length(from);
    } else if (table[i].size == 0) {
        uint32_t number = relaxed_load((uint32_t *)value_of(i));
        char *d = digits + sizeof digits;
        do *--d = (char)('0' + number % 10);
        while ((number /= 10) != 0);
        from = d;
        n = (size_t)(digits + sizeof digits - d);
    } else {
        while (from[n] != '\0') n++;
    }
    if (n >= size) return false;
    for (size_t k = 0; k < n; k++) value[k] = from[k];
    value[n] = '\0';
    return true;
}
