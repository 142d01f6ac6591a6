#include "zone/tools.h"

uint8_t tool_state;

/* AddressSanitizer's run-time, if the program has it. */
void __asan_poison_memory_region(void const volatile *p, size_t n) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *p, size_t n) __attribute__((weak));

/* Valgrind's client requests, as its manual gives them (Valgrind core, "The client request mechanism"; memcheck's
 * requests are numbered from 'M', 'C'). Without Valgrind they do nothing. */
enum {
    REQUEST_IS_RUNNING = 0x1001,
    REQUEST_NO_ACCESS = 0x4d430000,
    REQUEST_UNDEFINED,
    REQUEST_DEFINED,
};

static uintptr_t request(uintptr_t number, uintptr_t a, uintptr_t b) {
    volatile uintptr_t block[6] = {number, a, b, 0, 0, 0};
#if defined(__x86_64__)
    uintptr_t result = 0;
    __asm__ volatile(
        "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
        : "+d"(result)
        : "a"(block)
        : "cc", "memory");
    return result;
#elif defined(__aarch64__)
    register uintptr_t x3 __asm__("x3") = 0;
    register const volatile uintptr_t *x4 __asm__("x4") = block;
    __asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\torr x10, x10, x10"
                     : "+r"(x3)
                     : "r"(x4)
                     : "cc", "memory");
    return x3;
#endif
}

void tool_init(void) {
    if (relaxed_load(&tool_state) != TOOL_UNKNOWN) return;
    enum tool found = TOOL_NONE;
    if (__asan_poison_memory_region != NULL && __asan_unpoison_memory_region != NULL) found = TOOL_ASAN;
    else if (request(REQUEST_IS_RUNNING, 0, 0) != 0) found = TOOL_VALGRIND;
    relaxed_store(&tool_state, (uint8_t)found);
}

void tool_forbid_slow(const void *p, size_t n) {
    if (relaxed_load(&tool_state) == TOOL_ASAN) __asan_poison_memory_region(p, n);
    else request(REQUEST_NO_ACCESS, (uintptr_t)p, n);
}

void tool_allow_slow(const void *p, size_t n, bool is_defined) {
    if (relaxed_load(&tool_state) == TOOL_ASAN) __asan_unpoison_memory_region(p, n);
    else request(is_defined ? REQUEST_DEFINED : REQUEST_UNDEFINED, (uintptr_t)p, n);
}
