/* options.c - what a zone can be told to be, memory of the caller's, and what can be asked of it. */
#include "zones.h"

#include <sys/mman.h>

/* ---- options ---- */

static void wrong_options_are_refused(void **state) {
    (void)state;
    static char buffer[4096];
    const huddle_zone_options_t *wrong[] = {
        OPTIONS(.flags = 1u << 30),
        OPTIONS(.flags = HUDDLE_ZONE_FIXED),
        OPTIONS(.min_align = 3),
        OPTIONS(.min_align = 8192),
        OPTIONS(.chunk_min = 100),
        OPTIONS(.chunk_min = (size_t)2 << 20),
        OPTIONS(.chunk_max = 4095),
        OPTIONS(.chunk_max = ((size_t)1 << 20) + 1),
        OPTIONS(.chunk_min = 65536, .chunk_max = 4096),
        OPTIONS(.large_min = 4095),
        OPTIONS(.large_min = (256 << 10) + 1),
        OPTIONS(.limit = SIZE_MAX),
        OPTIONS(.flags = HUDDLE_ZONE_SHARED, .buffer = buffer, .buffer_bytes = sizeof buffer),
        &(huddle_zone_options_t){.struct_size = 0},
        &(huddle_zone_options_t){.struct_size = 8},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) FAILS(huddle_zone_open(wrong[i]), EINVAL);
    FAILS(huddle_zone_init(buffer, 1023, NULL), EINVAL);
    FAILS(huddle_zone_init(buffer, sizeof buffer, OPTIONS(.flags = HUDDLE_ZONE_SHARED)), EINVAL);
}

/* A program that was compiled when the structure ended with `flags` and `min_align`. */
static void an_older_options_structure_is_understood(void **state) {
    (void)state;
    huddle_zone_options_t o = {.flags = HUDDLE_ZONE_ZERO, .limit = 1, .on_oom = (bool (*)(huddle_zone_t *, size_t, void *))1};
    o.struct_size = offsetof(huddle_zone_options_t, chunk_min);
    huddle_zone_t *z = open_zone(&o);
    assert_true(is_all_zero(huddle_zone_alloc(z, 5000), 5000));
    assert_int_equal(stats_of(z).limit, 0);
    close_zone(z);
}

static void minimal_alignment_holds_for_every_allocation(void **state) {
    (void)state;
    for (unsigned align = 1; align <= 4096; align *= 2) {
        huddle_zone_t *z = open_zone(OPTIONS(.min_align = align));
        for (size_t n = 0; n < 200; n += 3) {
            char *p = huddle_zone_alloc(z, n), *q = huddle_zone_zalloc(z, n), *r = huddle_zone_realloc(z, NULL, 0, n);
            assert_true(p != NULL && q != NULL && r != NULL);
            assert_int_equal(((uintptr_t)p | (uintptr_t)q | (uintptr_t)r) & (align - 1), 0);
            memset(p, 1, n);
        }
        if (align < 16) {
            char *p = huddle_zone_alloc(z, align), *q = huddle_zone_alloc(z, align);
            assert_ptr_equal(q, p + align);
        }
        close_zone(z);
    }
}

static void the_limit_is_exact(void **state) {
    (void)state;
    for (size_t limit = 16; limit < 3000000; limit = limit * 5 / 2 / 16 * 16) {
        huddle_zone_t *z = open_zone(OPTIONS(.limit = limit, .name = "limited"));
        size_t sum = 0, n = 16 + limit / 100 / 16 * 16;
        while (sum + n <= limit) {
            assert_non_null(huddle_zone_alloc(z, n));
            sum += n;
        }
        FAILS(huddle_zone_alloc(z, n), ENOMEM);
        FAILS(huddle_zone_alloc(z, limit), ENOMEM);
        if (sum < limit) assert_non_null(huddle_zone_alloc(z, limit - sum));
        FAILS(huddle_zone_alloc(z, 1), ENOMEM);
        FAILS(huddle_zone_packed(z, 17), ENOMEM);
        assert_int_equal(stats_of(z).used_bytes, limit);
        assert_int_equal(huddle_zone_reset(z), 0);
        assert_non_null(huddle_zone_alloc(z, limit));
        FAILS(huddle_zone_alloc(z, 1), ENOMEM);
        close_zone(z);
    }
}

struct out_of_memory {
    size_t asked;
    int times;
    huddle_zone_t *spare;
};

static bool close_spare(huddle_zone_t *z, size_t n, void *arg) {
    struct out_of_memory *o = arg;
    o->asked = n;
    o->times++;
    if (o->spare == NULL) return false;
    assert_int_equal(huddle_zone_reset(z), 0);
    o->spare = NULL;
    return true;
}

static void the_hook_is_asked_and_may_help(void **state) {
    (void)state;
    struct out_of_memory o = {0, 0, (huddle_zone_t *)&o};
    huddle_zone_t *z = open_zone(OPTIONS(.limit = 1000, .on_oom = close_spare, .arg = &o));
    take(z, 900);
    assert_non_null(huddle_zone_alloc(z, 500));
    assert_true(o.times == 1 && o.asked == 500);
    FAILS(huddle_zone_alloc(z, 900), ENOMEM);
    assert_int_equal(o.times, 2);
    volatile size_t impossible = SIZE_MAX;
    FAILS(huddle_zone_alloc(z, impossible), ENOMEM);
    assert_int_equal(o.times, 3);
    o.spare = z;
    FAILS(huddle_zone_calloc(z, impossible, 2), ENOMEM); /* asked once, though it says yes */
    assert_int_equal(o.times, 4);
    close_zone(z);
}

struct roots {
    size_t ranges, bytes, added;
};

static void note_chunk(huddle_zone_t *z, void *start, size_t n, bool is_added, void *arg) {
    struct roots *r = arg;
    assert_true(z != NULL && start != NULL && n != 0);
    r->ranges += is_added ? 1 : (size_t)-1;
    r->bytes += is_added ? n : -n;
    r->added += is_added;
}

static void chunks_come_and_go_by_name(void **state) {
    (void)state;
    struct roots r = {0, 0, 0};
    huddle_zone_t *z = open_zone(OPTIONS(.on_chunk = note_chunk, .arg = &r));
    for (int i = 0; i < 1000; i++) take(z, 1000);
    take(z, 2000000);
    assert_int_equal(stats_of(z).large_objects, 1);
    assert_true(r.bytes >= 3000000 && r.ranges == stats_of(z).chunks + 1);
    assert_int_equal(huddle_zone_reset(z), 0);
    assert_int_equal(r.ranges, stats_of(z).chunks);
    huddle_zone_trim(z, 0);
    assert_int_equal(r.ranges, 1);
    take(z, 10000);
    close_zone(z);
    assert_true(r.ranges == 0 && r.bytes == 0 && r.added > 3);
    z = open_zone(OPTIONS(.on_chunk = note_chunk, .arg = &r, .flags = HUDDLE_ZONE_SHARED));
    take(z, 100);
    assert_int_equal(r.ranges, 1);
    close_zone(z);
    assert_true(r.ranges == 0 && r.bytes == 0);
}

static void zero_zones_are_zero_whatever_was_there(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(OPTIONS(.flags = HUDDLE_ZONE_ZERO));
    for (int round = 0; round < 4; round++) {
        huddle_zone_mark_t m = huddle_zone_mark(z);
        for (size_t n = 1; n < 20000; n += 1 + n / 20) {
            char *p = huddle_zone_alloc(z, n), *q = huddle_zone_packed(z, n), *r = huddle_zone_aligned(z, 256, n);
            assert_true(is_all_zero(p, n) && is_all_zero(q, n) && is_all_zero(r, n));
            memset(p, 0xff, n);
            memset(q, 0xff, n);
            memset(r, 0xff, n);
            assert_true(huddle_zone_extend(z, r, n, n / 2));
            assert_true(!huddle_zone_extend(z, r, n / 2, n) || is_all_zero(r + n / 2, n - n / 2));
            if (n % 3 == 0) huddle_zone_pop(z, r, n);
        }
        char *large = huddle_zone_alloc(z, 600000);
        assert_true(is_all_zero(large, 600000));
        memset(large, 0xff, 600000);
        if (round % 2 == 0) assert_int_equal(huddle_zone_rewind(z, m), 0);
        else assert_int_equal(huddle_zone_reset(z), 0);
    }
    close_zone(z);
}

static void secure_zones_leave_nothing(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(OPTIONS(.flags = HUDDLE_ZONE_SECURE, .name = "secret"));
    huddle_zone_mark_t m = huddle_zone_mark(z);
    char *p = take(z, 3000);
    assert_int_equal(huddle_zone_rewind(z, m), 0);
    assert_true(is_all_zero(huddle_zone_alloc(z, 3000), 3000));
    memset(p, 0xff, 3000);
    assert_int_equal(huddle_zone_reset(z), 0);
    p = huddle_zone_alloc(z, 3000);
    assert_true(is_all_zero(p, 3000));
    memset(p, 0xff, 3000);
    close_zone(z);
    assert_true(TEST_UNDER_ASAN || is_all_zero(p, 3000)); /* its chunk rests */
}

/* A flag of the mapping that the address lies in, as /proc/self/smaps has it. */
static bool has_flag(const void *address, const char *flag) {
    FILE *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    char line[512];
    bool is_inside = false, is_found = false;
    while (fgets(line, sizeof line, f) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) is_inside = start <= (uintptr_t)address && (uintptr_t)address < end;
        if (is_inside && strncmp(line, "VmFlags:", 8) == 0) is_found = strstr(line, flag) != NULL;
    }
    fclose(f);
    return is_found;
}

static void mappings_have_their_flags(void **state) {
    (void)state;
    if (TEST_IS_EMULATED) skip();
    huddle_zone_t *plain = open_zone(NULL);
    huddle_zone_t *secret = open_zone(OPTIONS(.flags = HUDDLE_ZONE_NODUMP)), *huge = open_zone(OPTIONS(.flags = HUDDLE_ZONE_HUGE));
    for (size_t n = 10; n < 5000000; n *= 7) {
        char *p = take(secret, n), *q = take(huge, n), *r = take(plain, n);
        assert_true(has_flag(p, " dd") && has_flag(p + n - 1, " dd"));
        assert_false(has_flag(r, " dd"));
        assert_true(access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0 || has_flag(q, " hg"));
        assert_false(has_flag(r, " hg"));
        assert_true(huddle_zone_of(p + n - 1) == secret && huddle_zone_of(q) == huge);
    }
    assert_int_equal(huddle_zone_reset(secret), 0);
    take(secret, 10);
    close_zone(secret);
    close_zone(huge);
    close_zone(plain);
}

/* ---- memory of the caller's ---- */

static void fixed_zones_never_ask_the_system(void **state) {
    (void)state;
    static char memory[100000];
    size_t calls = system_calls();
    for (size_t shift = 0; shift < 64; shift += 7) {
        huddle_zone_t *z = huddle_zone_init(memory + shift, 50000, OPTIONS(.flags = HUDDLE_ZONE_FIXED));
        assert_non_null(z);
        size_t sum = 0;
        for (char *p; (p = huddle_zone_alloc(z, 1000)) != NULL; sum += 1000) {
            assert_true(p >= memory + shift && p + 1000 <= memory + shift + 50000);
            assert_int_equal((uintptr_t)p % 16, 0);
            memset(p, 1, 1000);
            assert_true(huddle_zone_contains(z, p) && huddle_zone_of(p) == NULL);
        }
        assert_int_equal(errno, ENOMEM);
        assert_true(sum >= 48000);
        FAILS(huddle_zone_alloc(z, 400000), ENOMEM);
        assert_int_equal(huddle_zone_reset(z), 0);
        assert_non_null(huddle_zone_alloc(z, 40000));
        FAILS(huddle_zone_alloc(z, 40000), ENOMEM);
        close_zone(z);
        IS_ERROR(huddle_zone_close(z), EBADF);
    }
    assert_int_equal(system_calls(), calls);
}

static void memory_of_the_caller_is_used_first(void **state) {
    (void)state;
    static char memory[8192], buffer[5000];
    huddle_zone_t *zones[] = {huddle_zone_init(memory + 1, sizeof memory - 1, NULL),
                              open_zone(OPTIONS(.buffer = buffer + 3, .buffer_bytes = sizeof buffer - 3))};
    char *starts[] = {memory, buffer}, *ends[] = {memory + sizeof memory, buffer + sizeof buffer};
    for (int i = 0; i < 2; i++) {
        for (int round = 0; round < 2; round++) {
            char *p = take(zones[i], 3000);
            assert_true(p > starts[i] && p + 3000 <= ends[i]);
            for (int k = 0; k < 1000; k++) p = take(zones[i], 500);
            assert_false(p > starts[i] && p < ends[i]);
            assert_int_equal(huddle_zone_reset(zones[i]), 0);
        }
        close_zone(zones[i]);
    }
}

/* ---- insight ---- */

static bool count_zone(huddle_zone_t *z, void *arg) {
    huddle_zone_t **wanted = arg;
    for (int i = 0; i < 4; i++)
        if (wanted[i] == z) wanted[i] = NULL;
    return true;
}

static bool stop(huddle_zone_t *z, void *arg) {
    (void)z;
    ++*(int *)arg;
    return false;
}

static void every_open_zone_is_found(void **state) {
    (void)state;
    huddle_zone_t *z[4] = {open_zone(NULL), open_zone(OPTIONS(.name = "n")), open_zone(OPTIONS(.flags = HUDDLE_ZONE_SHARED)),
                           open_zone(OPTIONS(.flags = HUDDLE_ZONE_NODUMP))};
    huddle_zone_t *wanted[4], *closed = open_zone(NULL);
    for (int i = 0; i < 4; i++) take(wanted[i] = z[i], 100000);
    close_zone(closed);
    huddle_zone_t *unwanted[4] = {closed, NULL, NULL, NULL};
    huddle_zone_foreach(count_zone, wanted);
    huddle_zone_foreach(count_zone, unwanted);
    int times = 0;
    huddle_zone_foreach(stop, &times);
    assert_int_equal(times, 1);
    for (int i = 0; i < 4; i++) {
        assert_null(wanted[i]);
        close_zone(z[i]);
    }
    assert_ptr_equal(unwanted[0], closed);
}

static bool add_range(void *start, size_t n, void *arg) {
    assert_non_null(start);
    *(size_t *)arg += n;
    return true;
}

static void what_is_handed_out_can_be_walked_and_asked_for(void **state) {
    (void)state;
    for (unsigned flags = 0; flags <= HUDDLE_ZONE_SHARED; flags += HUDDLE_ZONE_SHARED) {
        huddle_zone_t *z = open_zone(OPTIONS(.flags = flags, .name = "walked"));
        for (size_t n = 1; n < 2000000; n = n * 3 / 2 + 1) {
            char *p = take(z, n);
            assert_true(huddle_zone_of(p) == z && huddle_zone_of(p + n - 1) == z);
            assert_true(huddle_zone_contains(z, p) && huddle_zone_contains(z, p + n - 1));
            assert_false(huddle_zone_contains(z, (char *)&n));
        }
        size_t walked = 0;
        huddle_zone_walk(z, add_range, &walked);
        huddle_zone_stats_t s = stats_of(z);
        assert_int_equal(walked, s.used_bytes);
        assert_true(s.held_bytes >= s.used_bytes && s.large_objects != 0 && s.large_bytes < s.used_bytes);
        assert_string_equal(s.name, "walked");
        char *end = take(z, 1);
        assert_false(huddle_zone_contains(z, end + 16));
        close_zone(z);
        assert_null(huddle_zone_of(end));
    }
    static const uintptr_t wild[] = {0, 1, 0xffff, (uintptr_t)1 << 46, UINTPTR_MAX, UINTPTR_MAX << 47};
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) assert_null(huddle_zone_of((void *)wild[i]));
    void *block = allocate(100);
    assert_null(huddle_zone_of(block));
    release(block);
}

static void zone_memory_is_no_block(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    assert_int_equal(usable(take(z, 100)), 0);
    assert_int_equal(usable(take(z, 1000000)), 0);
    assert_true(statistics().zone_bytes >= 1000000);
    close_zone(z);
}

int main(void) {
    allocator_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(an_older_options_structure_is_understood),
        cmocka_unit_test(minimal_alignment_holds_for_every_allocation),
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(the_hook_is_asked_and_may_help),
        cmocka_unit_test(chunks_come_and_go_by_name),
        cmocka_unit_test(zero_zones_are_zero_whatever_was_there),
        cmocka_unit_test(secure_zones_leave_nothing),
        cmocka_unit_test(mappings_have_their_flags),
        cmocka_unit_test(fixed_zones_never_ask_the_system),
        cmocka_unit_test(memory_of_the_caller_is_used_first),
        cmocka_unit_test(every_open_zone_is_found),
        cmocka_unit_test(what_is_handed_out_can_be_walked_and_asked_for),
        cmocka_unit_test(zone_memory_is_no_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
