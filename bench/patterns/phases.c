/* phases.c - does memory grow when a program changes its ways?
 *
 * `phases COUNT [MBYTES]`: in each of COUNT phases blocks of other sizes (around 24, 400, 80, 3000, 50 ... bytes) are
 * allocated until MBYTES (40) MB are live; then four of five die in no order, and the next phase begins beside what is
 * left of all, of which the oldest half dies then. What counts is the peak of resident memory. Prints milliseconds per
 * phase. */
#include "bench.h"

enum { AROUND = 8 };

struct block {
    struct block *next;
    size_t n;
};

static struct block *new_block(size_t around, uint64_t random) {
    size_t n = around / 2 + below(random, around) + sizeof(struct block);
    struct block *b = checked(malloc(n));
    memset((char *)b + sizeof *b, 1, n - sizeof *b);
    b->n = n;
    return b;
}

int main(int count, char **argument) {
    static const size_t around[AROUND] = {24, 400, 80, 3000, 50, 1200, 150, 9000};
    size_t phases = number(count, argument, 1, 0), most = number(count, argument, 2, 40) * 1000 * 1000;
    if (phases == 0 || most == 0) usage("phases COUNT [MBYTES]");
    uint64_t state = 1;
    struct block *kept = NULL;
    size_t live = 0;
    double begin = now();
    for (size_t phase = 0; phase < phases; phase++) {
        struct block *list = NULL, *next, **end = &list;
        while (live < most) {
            struct block *b = new_block(around[phase % AROUND], next_random(&state));
            live += b->n;
            b->next = list;
            if (list == NULL) end = &b->next;
            list = b;
        }
        *end = kept; /* older ones behind */
        kept = NULL;
        struct block **last = &kept;
        for (struct block *b = list; b != NULL; b = next) {
            next = b->next;
            if (next_random(&state) % 5 == 0) {
                *last = b;
                last = &b->next;
                continue;
            }
            live -= b->n;
            free(b);
        }
        *last = NULL;
    }
    printf("phases %.3f ms/phase\n", (now() - begin) / (double)phases * 1e3);
    return 0;
}
