/* musl_smoke.c - a static program on musl: threads, blocks of every kind, fork beside a busy thread, and that it is huddle
 * that serves it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "huddle/huddle.h"

static void *work(void *argument) {
    for (size_t n = 1; n < 2000; n++) {
        unsigned char *p = malloc(n * 7);
        if (p == NULL) _exit(3);
        memset(p, 1, n * 7);
        p = realloc(p, n * 50);
        if (p == NULL || p[n * 7 - 1] != 1) _exit(4);
        free(p);
    }
    return argument;
}

int main(void) {
    pthread_t threads[4];
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 4; i++)
            if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    }
    for (int round = 0; round < 50; round++) {
        if (pthread_create(&threads[0], NULL, work, NULL) != 0) return 1;
        pid_t pid = fork();
        if (pid == 0) _exit(work(NULL) == NULL ? 0 : 5);
        int status = -1;
        if (waitpid(pid, &status, 0) != pid || status != 0) return 6;
        pthread_join(threads[0], NULL);
    }
    void *p = malloc(100);
    struct huddle_stats s = {.struct_size = sizeof s};
    if (!huddle_owns(p) || !huddle_stats(&s)) return 7;
    printf("%zu heaps, %zu live bytes\n", s.heaps, s.live_bytes);
    free(p);
    return s.heaps == 1 ? 0 : 8;
}
