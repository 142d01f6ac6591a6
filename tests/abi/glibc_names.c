/* What glibc's malloc has beyond the standard: its other names, and its questions and controls. */
#include "abi.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void __libc_free(void *block);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);

enum { GIVERS = 14, TAKERS = 7 };

/* A block of n bytes from each entry point that gives one, in turn. */
static void *give(int entry, size_t n) {
    void *p = NULL;
    switch (entry) {
    case 0: return malloc(n);
    case 1: return calloc(1, n);
    case 2: return realloc(NULL, n);
    case 3: return reallocarray(NULL, n, 1);
    case 4: return aligned_alloc(64, n);
    case 5: return posix_memalign(&p, 64, n) == 0 ? p : NULL;
    case 6: return valloc(n);
    case 7: return pvalloc(n);
    case 8: return FIND(__libc_malloc)(n);
    case 9: return FIND(__libc_calloc)(n, 1);
    case 10: return FIND(__libc_realloc)(NULL, n);
    case 11: return FIND(__libc_memalign)(64, n);
    case 12: return FIND(__libc_valloc)(n);
    default: return FIND(__libc_pvalloc)(n);
    }
}

/* And one that takes it back. The sized ones want what the block was asked for with. */
static void take(int entry, void *p, size_t n, int giver) {
    __typeof__(free_sized) *sized = FIND(free_sized);
    __typeof__(free_aligned_sized) *aligned_sized = FIND(free_aligned_sized);
    __typeof__(cfree) *by_cfree = FIND(cfree);
    bool aligned = giver == 4 || giver == 5 || giver == 11;
    switch (entry) {
    case 0: free(p); break;
    case 1: FIND(__libc_free)(p); break;
    case 2: by_cfree != NULL ? by_cfree(p) : free(p); break;
    case 3: free(realloc(p, n * 2)); break;
    case 4: free(FIND(__libc_realloc)(p, n / 2 + 1)); break;
    case 5: sized != NULL && giver <= 3 ? sized(p, n) : free(p); break;
    default: aligned_sized != NULL && aligned ? aligned_sized(p, 64, n) : free(p);
    }
}

static void every_giver_goes_with_every_taker(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 16, 48, 100, 5000, 32768, 32769, 200000, 3 * MIB};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        for (int giver = 0; giver < GIVERS; giver++) {
            for (int taker = 0; taker < TAKERS; taker++) {
                void *p = give(giver, sizes[s]), *other = malloc(sizes[s]);
                assert_non_null(p);
                fill(p, malloc_usable_size(p), 1);
                fill(other, malloc_usable_size(other), 2);
                assert_true(is_filled(p, malloc_usable_size(p), 1));
                take(taker, p, sizes[s], giver);
                assert_true(is_filled(other, malloc_usable_size(other), 2));
                free(other);
            }
        }
    }
}

static void huddle_has_the_names_of_C23(void **state) {
    (void)state;
    if (!is_on_huddle()) skip();
    assert_non_null(FIND(free_sized));
    assert_non_null(FIND(free_aligned_sized));
    assert_non_null(FIND(cfree));
}

static void mallinfo2_grows_by_what_is_allocated_and_falls_by_what_is_freed(void **state) {
    (void)state;
    static void *blocks[6000];
    size_t sum = 0;
    mallinfo2();
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (size_t i = 0; i < COUNT(blocks); i++) {
        assert_non_null(blocks[i] = malloc(i % 3 == 0 ? 40 : i * 3));
        sum += malloc_usable_size(blocks[i]);
    }
    size_t grown = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    assert_true(grown >= sum);
    assert_true(grown <= sum + sum / 2);
    for (size_t i = 0; i < COUNT(blocks); i++) free(blocks[i]);
    size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    assert_true(after < before + sum / 20);
}

/* huddle counts blocks, not what they cost. */
static void mallinfo2_is_exact(void **state) {
    (void)state;
    if (!is_on_huddle()) skip();
    static const size_t sizes[] = {1, 100, 5000, 40000, 300000, 5 * MIB};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_t before = mallinfo2().uordblks;
        void *p = malloc(sizes[s]);
        assert_int_equal(mallinfo2().uordblks - before, malloc_usable_size(p));
        free(p);
        assert_int_equal(mallinfo2().uordblks, before);
    }
    assert_true(mallinfo2().arena + mallinfo2().hblkhd >= mallinfo2().uordblks);
}

static void mallinfo_says_the_same_in_ints(void **state) {
    (void)state;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo m = mallinfo();
#pragma GCC diagnostic pop
    struct mallinfo2 m2 = mallinfo2();
    assert_int_equal((size_t)m.uordblks, m2.uordblks);
    assert_int_equal((size_t)m.fordblks, m2.fordblks);
}

/* Reads the text as XML in so far as tags must be closed in order and attributes quoted. */
static bool is_balanced_xml(const char *text) {
    const char *open[64];
    size_t lengths[64], depth = 0;
    for (const char *c = strchr(text, '<'); c != NULL; c = strchr(c, '<')) {
        const char *end = strchr(c, '>');
        bool closes = *++c == '/';
        if (end == NULL) return false;
        const char *name = c + (closes ? 1 : 0);
        size_t length = strcspn(name, " \t\n/>"), quotes = 0;
        for (const char *q = name; q < end; q++) quotes += *q == '"';
        if (length == 0 || quotes % 2 != 0) return false;
        if (closes) {
            if (depth == 0 || lengths[--depth] != length || strncmp(open[depth], name, length) != 0) return false;
        } else if (*c != '?' && *c != '!' && end[-1] != '/') {
            if (depth == COUNT(open)) return false;
            open[depth] = name;
            lengths[depth++] = length;
        }
        c = end;
    }
    return depth == 0;
}

static void malloc_info_writes_XML(void **state) {
    (void)state;
    static char text[1 << 20];
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(malloc_info(0, file), 0);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(n > 0 && n < sizeof text - 1);
    assert_true(strncmp(text, "<malloc", 7) == 0 || strncmp(text, "<?xml", 5) == 0);
    assert_true(is_balanced_xml(text));
}

static void malloc_info_refuses_options(void **state) {
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    errno = 0;
    int result = malloc_info(1, file);
    assert_true(result == EINVAL || (result == -1 && errno == EINVAL));
    assert_int_equal(ftell(file), 0);
    fclose(file);
}

static void malloc_stats_writes_to_standard_error(void **state) {
    (void)state;
    char name[] = "/tmp/huddle_malloc_stats_XXXXXX";
    int file = mkstemp(name), saved = dup(2);
    assert_true(file >= 0 && saved >= 0);
    unlink(name);
    fflush(stderr);
    dup2(file, 2);
    malloc_stats();
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    off_t length = lseek(file, 0, SEEK_END);
    close(file);
    assert_true(length > 0);
}

static void malloc_trim_says_whether_memory_was_given_back(void **state) {
    (void)state;
    enum { BLOCKS = 20000 };
    static void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_non_null(blocks[i] = malloc(1000));
        memset(blocks[i], 1, 1000);
    }
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    errno = 77;
    assert_int_equal(malloc_trim(0), 1);
    for (int i = 0; i < 3; i++) {
        int again = malloc_trim(0);
        assert_true(again == 0 || again == 1);
    }
    assert_int_equal(errno, 77);
}

static void mallopt_accepts_what_glibc_knows(void **state) {
    (void)state;
    assert_int_equal(mallopt(M_MMAP_THRESHOLD, 256 * 1024), 1);
    assert_int_equal(mallopt(M_TRIM_THRESHOLD, 256 * 1024), 1);
    assert_int_equal(mallopt(M_TOP_PAD, 64 * 1024), 1);
    assert_int_equal(mallopt(M_MMAP_MAX, 1000), 1);
    assert_int_equal(mallopt(M_MXFAST, 64), 1);
    assert_int_equal(mallopt(M_ARENA_MAX, 2), 1);
    assert_int_equal(mallopt(M_ARENA_TEST, 2), 1);
    assert_int_equal(mallopt(M_PERTURB, 0), 1);
    assert_int_equal(mallopt(M_CHECK_ACTION, 3), 1);
    void *p = malloc(1000);
    assert_non_null(p);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(every_giver_goes_with_every_taker),
        cmocka_unit_test(huddle_has_the_names_of_C23),
        cmocka_unit_test(mallinfo2_grows_by_what_is_allocated_and_falls_by_what_is_freed),
        cmocka_unit_test(mallinfo2_is_exact),
        cmocka_unit_test(mallinfo_says_the_same_in_ints),
        cmocka_unit_test(malloc_info_writes_XML),
        cmocka_unit_test(malloc_info_refuses_options),
        cmocka_unit_test(malloc_stats_writes_to_standard_error),
        cmocka_unit_test(malloc_trim_says_whether_memory_was_given_back),
        cmocka_unit_test(mallopt_accepts_what_glibc_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
