#include "base/copy.h"

typedef uint64_t pair __attribute__((vector_size(16), may_alias));

/* From here the string instructions are as fast as anything, and start up fast enough. */
enum { STRING_INSTRUCTION_MIN = 1024 };

void copy_block(void *to, const void *from, size_t n) {
#if defined(__x86_64__)
    if (n >= STRING_INSTRUCTION_MIN) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
        return;
    }
#endif
    pair *t = to;
    const pair *f = from;
    for (size_t i = 0; i < n / sizeof(pair); i++) t[i] = f[i];
}

void zero_block(void *to, size_t n) {
#if defined(__x86_64__)
    if (n >= STRING_INSTRUCTION_MIN) {
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
        return;
    }
#endif
    pair *t = to;
    for (size_t i = 0; i < n / sizeof(pair); i++) t[i] = (pair){0, 0};
}

typedef uint64_t word __attribute__((aligned(1), may_alias));

void copy_bytes(void *to, const void *from, size_t n) {
#if defined(__x86_64__)
    if (n >= STRING_INSTRUCTION_MIN) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
        return;
    }
#endif
    char *t = to;
    const char *f = from;
    for (; n >= sizeof(word); n -= sizeof(word), t += sizeof(word), f += sizeof(word)) *(word *)t = *(const word *)f;
    for (; n != 0; n--) *t++ = *f++;
}

void zero_bytes(void *to, size_t n) {
#if defined(__x86_64__)
    if (n >= STRING_INSTRUCTION_MIN) {
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
        return;
    }
#endif
    char *t = to;
    for (; n >= sizeof(word); n -= sizeof(word), t += sizeof(word)) *(word *)t = 0;
    for (; n != 0; n--) *t++ = 0;
}
