/* The functions of huddle/huddle.h, from a program's side. */
#include "abi.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#include "huddle/huddle.h"

static __typeof__(huddle_version) *version;
static __typeof__(huddle_usable_size) *usable_size;
static __typeof__(huddle_owns) *owns;
static __typeof__(huddle_stats) *stats;
static __typeof__(huddle_trim) *trim;
static __typeof__(huddle_option_get) *option_get;
static __typeof__(huddle_option_set) *option_set;

static void version_is_the_header_s(void **state) {
    (void)state;
    assert_string_equal(version(), HUDDLE_VERSION_STRING);
}

static const size_t sizes[] = {0, 1, 16, 48, 100, 1000, 32768, 32769, 300000, 3 * MIB, 20 * MIB};

static void usable_size_and_owns_know_blocks(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        char *p = malloc(sizes[s]);
        assert_non_null(p);
        size_t usable = malloc_usable_size(p);
        assert_int_equal(usable_size(p), usable);
        assert_true(owns(p) && owns(p + usable - 1) && owns(p + usable / 2));
        for (size_t inside = 1; inside < usable; inside = inside * 2 + 1) assert_int_equal(usable_size(p + inside), 0);
        assert_int_equal(usable_size(p - 1), 0);
        free(p);
        assert_int_equal(usable_size(opaque(p)), 0);
    }
}

static void usable_size_and_owns_answer_for_any_64_bits(void **state) {
    (void)state;
    static int in_data;
    int on_stack;
    assert_false(owns(NULL) || owns(&in_data) || owns(&on_stack) || owns((void *)owns));
    void *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mapped != MAP_FAILED);
    assert_false(owns(mapped));
    assert_int_equal(usable_size(mapped), 0);
    assert_int_equal(usable_size(&in_data), 0);
    assert_int_equal(usable_size(&on_stack), 0);
    munmap(mapped, 1 << 20);
    assert_false(owns(mapped));

    uintptr_t block = (uintptr_t)malloc(100), random = 88172645463325252u;
    for (unsigned bit = 0; bit < 64; bit++) {
        uintptr_t one = (uintptr_t)1 << bit;
        const uintptr_t junk[] = {one, one - 1, ~one, -one, one | 0x10, one | 0x7fff0000, (uintptr_t)&on_stack ^ one};
        for (size_t i = 0; i < COUNT(junk); i++) {
            usable_size((void *)junk[i]);
            owns((void *)junk[i]);
        }
        if (bit >= 47) { /* no address of a program */
            assert_false(owns((void *)one));
            assert_int_equal(usable_size((void *)one), 0);
            assert_false(owns((void *)(block ^ one))); /* a tag is not looked through */
            assert_int_equal(usable_size((void *)(block ^ one)), 0);
        }
    }
    for (int i = 0; i < 2000000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        uintptr_t address = i % 2 == 0 ? random : random & (((uintptr_t)1 << 47) - 1);
        if (!owns((void *)address)) assert_int_equal(usable_size((void *)address), 0);
    }
    free((void *)block);
}

/* All of a range around a block, so that guard pages, metadata and what is not yet used are asked for too. */
static void usable_size_and_owns_answer_near_blocks(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        char *p = malloc(sizes[s]);
        for (ptrdiff_t away = -(ptrdiff_t)(8 * MIB); away < (ptrdiff_t)(8 * MIB); away += 1008)
            if (away != 0 && usable_size(p + away) != 0) assert_true(owns(p + away));
        free(p);
    }
}

static void stats_fill_in_as_much_as_the_caller_has_room_for(void **state) {
    (void)state;
    enum { LEAST = offsetof(struct huddle_stats, live_blocks) + sizeof(size_t) };
    static struct huddle_stats s, before;
    for (size_t size = 0; size <= sizeof s; size += 4) {
        memset(&s, 0x5a, sizeof s);
        s.struct_size = size;
        before = s;
        bool filled = stats(&s);
        assert_int_equal(filled, size >= LEAST);
        size_t beyond = filled ? size : 0;
        assert_memory_equal((const char *)&s + beyond, (const char *)&before + beyond, sizeof s - beyond);
        if (filled) assert_true(s.live_blocks > 0 && s.live_bytes >= s.live_blocks * 16 && s.live_blocks < 100000);
    }
    /* A later version's longer struct: what is unknown stays. */
    static struct {
        struct huddle_stats known;
        char later[100];
    } longer;
    memset(&longer, 0x5a, sizeof longer);
    longer.known.struct_size = sizeof longer;
    assert_true(stats(&longer.known));
    for (size_t i = 0; i < sizeof longer.later; i++) assert_true(longer.later[i] == 0x5a || longer.later[i] == 0);
}

static void trim_gives_back_all_but_what_is_kept(void **state) {
    (void)state;
    static struct huddle_stats s;
    for (int i = 0; i < 3; i++) {
        void *p = malloc(3 * MIB);
        memset(p, 1, 3 * MIB);
        free(p);
    }
    trim(0);
    s.struct_size = sizeof s;
    assert_true(stats(&s));
    assert_true(s.dirty_bytes < MIB);
    assert_int_equal(trim(SIZE_MAX), 0);
}

static void options_are_read_back(void **state) {
    (void)state;
    char value[300];
#define NUMBER(key, initial, least, most, when, help) \
    assert_true(option_get(#key, value, sizeof value) && value[0] >= '0' && value[0] <= '9');
#define CHOICE(key, words, when, help) assert_true(option_get(#key, value, sizeof value) && value[0] != '\0');
#define TEXT(key, size, when, help) assert_true(option_get(#key, value, sizeof value));
#include "../../src/base/options.def"
#undef NUMBER
#undef CHOICE
#undef TEXT
    assert_false(option_get("nonsense", value, sizeof value));
    assert_false(option_get("", value, sizeof value));
    assert_false(option_get("purge_m", value, sizeof value));
    assert_false(option_get("purge_msx", value, sizeof value));
    assert_true(option_set("purge_ms", "12345"));
    memset(value, 'x', sizeof value);
    assert_true(option_get("purge_ms", value, 6));
    assert_string_equal(value, "12345");
    memset(value, 'x', sizeof value);
    assert_false(option_get("purge_ms", value, 5));
    assert_false(option_get("purge_ms", value, 0));
    assert_true(value[5] == 'x');
}

static void options_are_set_only_to_what_they_take(void **state) {
    (void)state;
    char value[300];
    assert_true(option_set("purge_ms", "777"));
    static const char *const wrong[] = {"",    "x",    "-1", "1x",         " 1",
                                        "1 ",  "1.5",  "+1", "4294967296", "99999999999999999999",
                                        "0x10"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_false(option_set("purge_ms", wrong[i]));
        assert_true(option_get("purge_ms", value, sizeof value));
        assert_string_equal(value, "777");
    }
    assert_true(option_set("purge_ms", "0") && option_set("purge_ms", "4294967295") && option_set("purge_ms", "1000"));
    assert_false(option_set("lanes", "2")); /* only at start-up */
    assert_false(option_set("page_size", "4096"));
    assert_false(option_set("stats", "-"));
    assert_false(option_set("nonsense", "1"));
    assert_false(option_set("", "1"));
    assert_false(option_set("shuffle", "2"));
}

static void the_functions_leave_errno(void **state) {
    (void)state;
    static struct huddle_stats s = {.struct_size = sizeof s};
    char value[10];
    errno = 77;
    stats(&s);
    trim(0);
    usable_size((void *)1);
    owns((void *)1);
    option_get("nonsense", value, sizeof value);
    option_set("nonsense", "1");
    FIND(huddle_good_size)(SIZE_MAX);
    assert_int_equal(errno, 77);
}

static void stats_json_says_when_writing_failed(void **state) {
    (void)state;
    assert_false(FIND(huddle_stats_json)(-1));
}

int main(void) {
    version = FIND(huddle_version);
    usable_size = FIND(huddle_usable_size);
    owns = FIND(huddle_owns);
    stats = FIND(huddle_stats);
    trim = FIND(huddle_trim);
    option_get = FIND(huddle_option_get);
    option_set = FIND(huddle_option_set);
    if (version == NULL) return 77;
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(version_is_the_header_s),
        cmocka_unit_test(usable_size_and_owns_know_blocks),
        cmocka_unit_test(usable_size_and_owns_answer_for_any_64_bits),
        cmocka_unit_test(usable_size_and_owns_answer_near_blocks),
        cmocka_unit_test(stats_fill_in_as_much_as_the_caller_has_room_for),
        cmocka_unit_test(trim_gives_back_all_but_what_is_kept),
        cmocka_unit_test(options_are_read_back),
        cmocka_unit_test(options_are_set_only_to_what_they_take),
        cmocka_unit_test(the_functions_leave_errno),
        cmocka_unit_test(stats_json_says_when_writing_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
