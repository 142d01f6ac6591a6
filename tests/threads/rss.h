/* rss.h - resident bytes of the process, asked for without allocating; steps of several threads. */
#ifndef TESTS_THREADS_RSS_H
#define TESTS_THREADS_RSS_H

#include <fcntl.h>
#include <pthread.h>

#include "allocator.h"

static inline size_t resident_bytes(void) {
    char text[200] = "";
    int d = open("/proc/self/statm", O_RDONLY);
    EXPECT(d >= 0 && read(d, text, sizeof text - 1) > 0);
    close(d);
    unsigned long pages = 0;
    EXPECT(sscanf(text, "%*u %lu", &pages) == 1);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static inline struct huddle_stats statistics(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    return s;
}

static inline void run_thread(void *(*f)(void *), void *argument) {
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, f, argument) == 0 && pthread_join(id, NULL) == 0);
}

#endif
