/* pairs.c - 8 threads allocate and free 64 bytes, a million times each: nothing that they would wait for each other for. */
#include <pthread.h>

#include "allocator.h"

static void *pairs(void *unused) {
    for (size_t i = 0; i < 1000000; i++) release(allocate(64));
    return unused;
}

int main(void) {
    pthread_t ids[8];
    allocator_start();
    for (size_t i = 0; i < 8; i++) EXPECT(pthread_create(&ids[i], NULL, pairs, NULL) == 0);
    for (size_t i = 0; i < 8; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    return 0;
}
