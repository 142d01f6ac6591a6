/* zone_scratch.c - scratch zones: temporary memory without a malloc and a free, beside results that stay.
 *
 *     cc zone_scratch.c $(pkg-config --cflags --libs huddle) && ./a.out
 *
 * A function that needs temporary memory takes one of its thread's two scratch zones, notes a mark, and rewinds to it.
 * The zone that its result goes to may itself be a scratch zone of the caller's: it is named as a conflict, so that the
 * other one is taken. */
#include <errno.h>
#include <huddle/zone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bool right, const char *what) {
    if (right) return;
    fprintf(stderr, "zone_scratch: wrong: %s\n", what);
    exit(EXIT_FAILURE);
}

static size_t used_bytes(const huddle_zone_t *z) {
    huddle_zone_stats_t stats = {.struct_size = sizeof stats};
    check(huddle_zone_stats(z, &stats) == 0, "stats");
    return stats.used_bytes;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The words of the text, sorted, in the zone `result`. All else is gone on return. */
static char *sort_words(huddle_zone_t *result, const char *text) {
    huddle_zone_t *scratch = huddle_zone_scratch(&result, 1);
    check(scratch != NULL && scratch != result, "a scratch zone that is not the result's");
    huddle_zone_mark_t mark = huddle_zone_mark(scratch);
    check(mark.id != 0, "mark");

    char *copy = huddle_zone_strdup(scratch, text), *rest = NULL;
    char **words = huddle_new(scratch, char *, strlen(text) / 2 + 1);
    check(copy != NULL && words != NULL, "memory");
    size_t count = 0;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    qsort(words, count, sizeof words[0], compare_texts);

    check(huddle_zone_buf_begin(result) == 0, "a growing object");
    for (size_t i = 0; i < count; i++)
        check(huddle_zone_buf_appendf(result, "%s%s", i == 0 ? "" : " ", words[i]) == 0, "append");
    char *sorted = huddle_zone_buf_finish(result, NULL);
    check(sorted != NULL, "finish");

    check(huddle_zone_rewind(scratch, mark) == 0, "rewind");
    return sorted;
}

/* Whether two texts have the same words: needs two results of sort_words, and keeps neither. */
static bool has_same_words(const char *a, const char *b) {
    huddle_zone_t *scratch = huddle_zone_scratch(NULL, 0);
    check(scratch != NULL, "a scratch zone");
    huddle_zone_mark_t mark = huddle_zone_mark(scratch);
    check(mark.id != 0, "mark");
    bool is_same = strcmp(sort_words(scratch, a), sort_words(scratch, b)) == 0;
    check(huddle_zone_rewind(scratch, mark) == 0, "rewind");
    return is_same;
}

int main(void) {
    HUDDLE_ZONE_SCOPE(results);
    check(results != NULL, "open");
    char *sorted = sort_words(results, "the quick brown fox jumps over the lazy dog");
    printf("%s\n", sorted);
    check(strcmp(sorted, "brown dog fox jumps lazy over quick the the") == 0, "the sorted words");

    /* A thousand calls leave nothing in the scratch zones but a mark each. */
    huddle_zone_t *first = huddle_zone_scratch(NULL, 0), *second = huddle_zone_scratch(&first, 1);
    check(first != NULL && second != NULL && first != second, "two scratch zones");
    size_t before = used_bytes(first) + used_bytes(second);
    for (int i = 0; i < 1000; i++) {
        check(has_same_words("to be or not to be", "be be not or to to"), "the same words");
        check(!has_same_words("to be", "not to be"), "other words");
    }
    check(used_bytes(first) + used_bytes(second) <= before + 2 * 16, "all is rewound");

    /* There are two: with both as conflicts there is none. */
    huddle_zone_t *both[] = {first, second};
    check(huddle_zone_scratch(both, 2) == NULL && errno == EINVAL, "no third scratch zone");

    /* Marks nest, and an outer rewind makes inner ones stale. */
    huddle_zone_mark_t outer = huddle_zone_mark(first);
    check(outer.id != 0 && huddle_zone_alloc(first, 100) != NULL, "outer mark");
    huddle_zone_mark_t inner = huddle_zone_mark(first);
    check(inner.id != 0 && huddle_zone_rewind(first, outer) == 0, "rewind to the outer mark");
    check(huddle_zone_rewind(first, inner) == -1 && errno == EINVAL, "the inner mark is stale");
    puts("scratch zones: all checked");
    return EXIT_SUCCESS;
}
