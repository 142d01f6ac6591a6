/* growth.c - what does a buffer cost that grows by realloc?
 *
 * `growth ROUNDS [MOST]`: in each round eight vectors grow in turn, by half, from 16 bytes to MOST (16 MiB), as
 * containers do; then eight texts are appended to, 48 bytes at a time, to 256 KiB. What is new is written, all is
 * checked. Prints milliseconds per round for each. */
#include "bench.h"

enum { BUFFERS = 8, APPENDED = 48, TEXT_BYTES = 256 << 10, STEP = 512 };

static size_t half_more(size_t n) {
    return n + n / 2;
}

static size_t some_more(size_t n) {
    return n + APPENDED;
}

/* Each STEP-th byte holds its place. */
static void write_from(char *p, size_t from, size_t to) {
    for (size_t i = (from + STEP - 1) / STEP * STEP; i < to; i += STEP) p[i] = (char)(i / STEP);
}

static void check(const char *p, size_t n) {
    for (size_t i = 0; i < n; i += STEP)
        if (p[i] != (char)(i / STEP)) fail("realloc did not keep the contents");
}

static double grow(size_t most, size_t (*next)(size_t)) {
    char *p[BUFFERS];
    double begin = now();
    for (int k = 0; k < BUFFERS; k++) {
        p[k] = checked(malloc(16));
        write_from(p[k], 0, 16);
    }
    size_t n = 16;
    for (size_t more = next(n); more <= most; n = more, more = next(n)) {
        for (int k = 0; k < BUFFERS; k++) {
            p[k] = checked(realloc(p[k], more));
            write_from(p[k], n, more);
        }
    }
    for (int k = 0; k < BUFFERS; k++) {
        check(p[k], n);
        free(p[k]);
    }
    return now() - begin;
}

int main(int count, char **argument) {
    size_t rounds = number(count, argument, 1, 0), most = number(count, argument, 2, 16 << 20);
    if (rounds == 0) usage("growth ROUNDS [MOST]");
    double vectors = 0, texts = 0;
    for (size_t i = 0; i < rounds; i++) {
        vectors += grow(most, half_more);
        texts += grow(TEXT_BYTES, some_more);
    }
    printf("growth_by_half %.3f ms\n", vectors / (double)rounds * 1e3);
    printf("growth_by_48 %.3f ms\n", texts / (double)rounds * 1e3);
    return 0;
}
