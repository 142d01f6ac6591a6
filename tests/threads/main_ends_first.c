/* main_ends_first.c - main leaves by pthread_exit while others go on; the process ends with the last thread, well. */
#include "rss.h"

static char *of_main[200];
static pthread_t main_thread;

static void *go_on(void *number) {
    pthread_barrier_t *step = number;
    pthread_barrier_wait(step);
    EXPECT(pthread_join(main_thread, NULL) == 0);
    for (size_t i = 0; i < 200; i++) {
        EXPECT(of_main[i][0] == (char)i);
        release(of_main[i]);
    }
    for (size_t i = 0; i < 10000; i++) release(reallocate(allocate(i), i * 3 + 1));
    huddle_trim(0);
    fflush(NULL);
    return NULL;
}

int main(void) {
    static pthread_barrier_t step;
    allocator_start();
    main_thread = pthread_self();
    EXPECT(pthread_barrier_init(&step, NULL, 2) == 0);
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, go_on, &step) == 0 && pthread_detach(id) == 0);
    for (size_t i = 0; i < 200; i++) {
        of_main[i] = allocate(i * 20 + 1);
        of_main[i][0] = (char)i;
    }
    pthread_barrier_wait(&step);
    pthread_exit(NULL);
}
