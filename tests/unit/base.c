/* base.c - size classes, copying, options. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/copy.h"
#include "base/options.h"
#include "base/size_class.h"
#include "inside.h"

/* ---- size classes ---- */

static void size_class_of_every_size_is_the_smallest_that_fits(void **state) {
    (void)state;
    for (size_t n = 0; n <= CELL_MAX; n++) {
        unsigned class = size_class_of(n);
        assert_true(class < CLASS_COUNT);
        assert_true(size_class_bytes(class) >= n);
        assert_true(class == 0 || size_class_bytes(class - 1) < n);
    }
}

static void size_class_bytes_grow_in_multiples_of_a_grain(void **state) {
    (void)state;
    assert_int_equal(size_class_bytes(0), GRAIN_BYTES);
    assert_int_equal(size_class_bytes(CLASS_COUNT - 1), CELL_MAX);
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        assert_int_equal(size_class_bytes(class) % GRAIN_BYTES, 0);
        size_t most = max_size(LINEAR_MAX, 2 * size_class_bytes(class));
        assert_in_range(size_class_bytes_at_most(class), size_class_bytes(class), most);
        assert_true(class == 0 || size_class_bytes(class) > size_class_bytes(class - 1));
        assert_int_equal(size_class_of(size_class_bytes(class)), class);
    }
}

static void size_class_wastes_at_most_an_eighth(void **state) {
    (void)state;
    for (size_t n = LINEAR_MAX + 1; n <= CELL_MAX; n++) {
        size_t waste = size_class_bytes(size_class_of(n)) - n;
        assert_true(waste * 8 <= n);
    }
    for (size_t n = 1; n <= LINEAR_MAX; n++) assert_true(size_class_bytes(size_class_of(n)) - n < GRAIN_BYTES);
}

static void size_rounded_up_to_an_alignment_gets_the_smallest_multiple_that_fits(void **state) {
    (void)state;
    for (size_t alignment = 1; alignment <= CELL_MAX; alignment *= 2) {
        for (size_t n = 0; n <= CELL_MAX; n = n < 600 ? n + 1 : n + 37) {
            unsigned class = size_class_of(round_up(max_size(n, 1), alignment));
            assert_true(class < CLASS_COUNT);
            assert_true(size_class_bytes(class) >= n && size_class_bytes(class) % alignment == 0);
            for (unsigned c = size_class_of(n); c < class; c++) assert_true(size_class_bytes(c) % alignment != 0);
        }
    }
}

/* ---- copying ---- */

enum { ROOM = 8192 };

static void copy_block_copies_its_bytes_and_no_others(void **state) {
    (void)state;
    static unsigned char from[ROOM] __attribute__((aligned(16))), to[ROOM] __attribute__((aligned(16)));
    for (size_t i = 0; i < ROOM; i++) from[i] = (unsigned char)(i * 7 + i / 251);
    for (size_t n = 0; n <= ROOM - 64; n += n < 1100 ? 16 : 496) {
        memset(to, 0xee, sizeof to);
        copy_block(to + 16, from + 32, n);
        assert_memory_equal(to + 16, from + 32, n);
        for (size_t i = 0; i < 16; i++) assert_true(to[i] == 0xee && to[16 + n + i] == 0xee);
    }
}

static void zero_block_zeroes_its_bytes_and_no_others(void **state) {
    (void)state;
    static unsigned char to[ROOM] __attribute__((aligned(16)));
    for (size_t n = 0; n <= ROOM - 64; n += n < 1100 ? 16 : 496) {
        memset(to, 0xee, sizeof to);
        zero_block(to + 16, n);
        assert_true(is_all_zero(to + 16, n));
        for (size_t i = 0; i < 16; i++) assert_true(to[i] == 0xee && to[16 + n + i] == 0xee);
    }
}

/* ---- options ---- */

static size_t reports;
static char last_part[100], last_problem[100];

static void note(const char *part, size_t length, const char *problem) {
    reports++;
    snprintf(last_part, sizeof last_part, "%.*s", (int)length, part);
    snprintf(last_problem, sizeof last_problem, "%s", problem);
}

static int restore_options(void **state) {
    (void)state;
    options = (struct options){
#define NUMBER(key, initial, least, most, when, help) .key = (initial),
#define CHOICE(key, words, when, help) .key = 0,
#define TEXT(key, size, when, help) .key = "",
#include "base/options.def"
#undef NUMBER
#undef CHOICE
#undef TEXT
    };
    reports = 0;
    last_part[0] = last_problem[0] = '\0';
    return 0;
}

static const char *set(const char *key, const char *value, enum option_when now) {
    return option_set(key, strlen(key), value, strlen(value), now);
}

static void assert_value(const char *key, const char *value) {
    char text[300];
    assert_true(option_get(key, text, sizeof text));
    assert_string_equal(text, value);
}

static void options_have_their_defaults(void **state) {
    (void)state;
    size_t count;
    const struct option_info *table = option_table(&count);
    assert_int_equal(count, OPTION_MAX);
    for (size_t i = 0; i < count; i++) {
        char text[20] = "";
        if (table[i].words != NULL) snprintf(text, strcspn(table[i].words, "|") + 1, "%s", table[i].words);
        else if (table[i].size == 0) snprintf(text, sizeof text, "%u", table[i].initial);
        assert_value(table[i].key, text);
        assert_true(strlen(table[i].help) > 10);
    }
}

static void options_take_the_ends_of_their_range_and_nothing_beyond(void **state) {
    (void)state;
    size_t count;
    const struct option_info *table = option_table(&count);
    for (size_t i = 0; i < count; i++) {
        char least[20], most[20], beyond[20];
        if (table[i].size != 0 || table[i].words != NULL) continue;
        snprintf(least, sizeof least, "%u", table[i].least);
        snprintf(most, sizeof most, "%u", table[i].most);
        snprintf(beyond, sizeof beyond, "%llu", (unsigned long long)table[i].most + 1);
        assert_null(set(table[i].key, least, OPTION_START));
        assert_value(table[i].key, least);
        assert_null(set(table[i].key, most, OPTION_START));
        assert_value(table[i].key, most);
        assert_non_null(set(table[i].key, beyond, OPTION_START));
        if (table[i].least != 0) assert_non_null(set(table[i].key, "0", OPTION_START));
        assert_value(table[i].key, most);
    }
}

static void options_choices_take_their_words_and_nothing_else(void **state) {
    (void)state;
    size_t count, seen = 0;
    const struct option_info *table = option_table(&count);
    for (size_t i = 0; i < count; i++) {
        const char *word = table[i].words;
        if (word == NULL) continue;
        for (size_t n; *word != '\0'; word += n + (word[n] == '|')) {
            char text[40];
            n = strcspn(word, "|");
            assert_in_range(n, 1, sizeof text - 2);
            snprintf(text, n + 1, "%s", word);
            assert_null(set(table[i].key, text, OPTION_START));
            assert_value(table[i].key, text);
            assert_string_equal(option_set(table[i].key, strlen(table[i].key), text, n - 1, OPTION_START), "no such value");
            text[n] = 'x';
            text[n + 1] = '\0';
            assert_string_equal(set(table[i].key, text, OPTION_START), "no such value");
            seen++;
        }
        assert_non_null(set(table[i].key, "", OPTION_START));
        assert_non_null(set(table[i].key, "0", OPTION_START));
        assert_non_null(set(table[i].key, table[i].words, OPTION_START));
        char got[8];
        assert_false(option_get(table[i].key, got, 1));
    }
    assert_in_range(seen, 2, 100);
}

static void options_text_is_kept_as_far_as_there_is_room(void **state) {
    (void)state;
    size_t count;
    const struct option_info *table = option_table(&count);
    for (size_t i = 0; i < count; i++) {
        char text[1000];
        if (table[i].size == 0) continue;
        assert_true(table[i].size < sizeof text);
        memset(text, 'x', sizeof text);
        text[table[i].size] = '\0';
        assert_string_equal(set(table[i].key, text, OPTION_START), "value too long");
        assert_value(table[i].key, "");
        text[table[i].size - 1] = '\0';
        assert_null(set(table[i].key, text, OPTION_START));
        char got[1000];
        assert_false(option_get(table[i].key, got, table[i].size - 1));
        assert_true(option_get(table[i].key, got, table[i].size));
        assert_string_equal(got, text);
    }
}

static void options_of_the_start_cannot_be_set_later(void **state) {
    (void)state;
    size_t count;
    const struct option_info *table = option_table(&count);
    for (size_t i = 0; i < count; i++) {
        char word[40] = "";
        if (table[i].words != NULL) snprintf(word, strcspn(table[i].words, "|") + 1, "%s", table[i].words);
        const char *value = table[i].words != NULL ? word : table[i].size != 0 ? "text" : table[i].least != 0 ? "1" : "0";
        if (table[i].when == OPTION_START)
            assert_string_equal(set(table[i].key, value, OPTION_ANY), "can only be set at start-up");
        else assert_null(set(table[i].key, value, OPTION_ANY));
        assert_null(set(table[i].key, value, OPTION_START));
    }
}

static void options_parse_reports_each_wrong_part_and_keeps_the_rest(void **state) {
    static const struct {
        const char *text, *part, *problem; /* the last wrong part */
        size_t reports;
        unsigned lanes, purge_ms;
    } cases[] = {
        {"", "", "", 0, 0, 1000},
        {",", "", "", 0, 0, 1000},
        {",,,", "", "", 0, 0, 1000},
        {"lanes=2", "", "", 0, 2, 1000},
        {",lanes=2,,purge_ms=7,", "", "", 0, 2, 7},
        {"lanes=2,lanes=3", "", "", 0, 3, 1000},
        {"lanes=064", "", "", 0, 64, 1000},
        {"lanes=65", "lanes=65", "value out of range", 1, 0, 1000},
        {"lanes=2,lanes=65", "lanes=65", "value out of range", 1, 2, 1000},
        {"lanes", "lanes", "no value", 1, 0, 1000},
        {"lanes=", "lanes=", "value is not a number", 1, 0, 1000},
        {"lanes=-1", "lanes=-1", "value is not a number", 1, 0, 1000},
        {"lanes=+1", "lanes=+1", "value is not a number", 1, 0, 1000},
        {"lanes= 1", "lanes= 1", "value is not a number", 1, 0, 1000},
        {"lanes=1 ", "lanes=1 ", "value is not a number", 1, 0, 1000},
        {"lanes=0x1", "lanes=0x1", "value is not a number", 1, 0, 1000},
        {"lanes=1=1", "lanes=1=1", "value is not a number", 1, 0, 1000},
        {"lanes==1", "lanes==1", "value is not a number", 1, 0, 1000},
        {"purge_ms=4294967295", "", "", 0, 0, 4294967295},
        {"purge_ms=4294967296", "purge_ms=4294967296", "value is not a number", 1, 0, 1000},
        {"purge_ms=18446744073709551617", "purge_ms=18446744073709551617", "value is not a number", 1, 0, 1000},
        {"purge_ms=9999999999", "purge_ms=9999999999", "value is not a number", 1, 0, 1000},
        {"lane=1", "lane=1", "no such option", 1, 0, 1000},
        {"laness=1", "laness=1", "no such option", 1, 0, 1000},
        {"LANES=1", "LANES=1", "no such option", 1, 0, 1000},
        {" lanes=1", " lanes=1", "no such option", 1, 0, 1000},
        {"=", "=", "no such option", 1, 0, 1000},
        {"=1", "=1", "no such option", 1, 0, 1000},
        {"nonsense", "nonsense", "no such option", 1, 0, 1000},
        {"nonsense,lanes=2,x=1,purge_ms=a", "purge_ms=a", "value is not a number", 3, 2, 1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        restore_options(state);
        options_parse(cases[i].text, note);
        if (reports != cases[i].reports || options.lanes != cases[i].lanes || options.purge_ms != cases[i].purge_ms)
            fail_msg("\"%s\": %zu reports, lanes %u, purge_ms %u", cases[i].text, reports, options.lanes,
                     options.purge_ms);
        assert_string_equal(last_part, cases[i].part);
        assert_string_equal(last_problem, cases[i].problem);
    }
}

static void option_get_knows_keys_and_room(void **state) {
    (void)state;
    char text[5] = "----";
    assert_false(option_get("nonsense", text, sizeof text));
    assert_false(option_get("", text, sizeof text));
    assert_true(option_get("purge_ms", text, 5));
    assert_string_equal(text, "1000");
    assert_false(option_get("purge_ms", text, 4));
    assert_false(option_get("purge_ms", text, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_class_of_every_size_is_the_smallest_that_fits),
        cmocka_unit_test(size_class_bytes_grow_in_multiples_of_a_grain),
        cmocka_unit_test(size_class_wastes_at_most_an_eighth),
        cmocka_unit_test(size_rounded_up_to_an_alignment_gets_the_smallest_multiple_that_fits),
        cmocka_unit_test(copy_block_copies_its_bytes_and_no_others),
        cmocka_unit_test(zero_block_zeroes_its_bytes_and_no_others),
        cmocka_unit_test_setup(options_have_their_defaults, restore_options),
        cmocka_unit_test_setup(options_take_the_ends_of_their_range_and_nothing_beyond, restore_options),
        cmocka_unit_test_setup(options_choices_take_their_words_and_nothing_else, restore_options),
        cmocka_unit_test_setup(options_choices_take_their_words_and_nothing_else, restore_options),
        cmocka_unit_test_setup(options_text_is_kept_as_far_as_there_is_room, restore_options),
        cmocka_unit_test_setup(options_of_the_start_cannot_be_set_later, restore_options),
        cmocka_unit_test_setup(options_parse_reports_each_wrong_part_and_keeps_the_rest, restore_options),
        cmocka_unit_test_setup(option_get_knows_keys_and_room, restore_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
