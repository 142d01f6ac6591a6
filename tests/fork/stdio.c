/* stdio.c - eight threads allocate, one reads long lines, which allocates under the stream's lock, and one flushes all streams,
 * which waits for that one under the lock of their list; the process forks all the while. Fork takes the list's lock
 * after the allocator's: whoever has not taken it first himself waits in a circle, ended by the alarm. */
#include "allocator.h"

#include <pthread.h>
#include <sys/wait.h>

enum { BUSY = 8 };

static bool is_over; /* atomic */
static char path[] = "/tmp/huddle_fork_stdio.XXXXXX";
static const size_t lines[] = {70000, 1500000};

static void *allocate_and_free(void *number) {
    unsigned n = (unsigned)(uintptr_t)number + 1;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *p[20];
        for (size_t i = 0; i < 20; i++) {
            n = n * 1103515245 + 12345;
            p[i] = allocate(n >> 16 & (i == 0 ? 0x1ffff : 0xfff));
        }
        for (size_t i = 0; i < 20; i++) release(p[i]);
    }
    return NULL;
}

static void read_lines(void) {
    FILE *f = fopen(path, "r");
    EXPECT(f != NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *line = NULL;
        size_t room = 0;
        EXPECT(getdelim(&line, &room, '\n', f) == (ssize_t)lines[i] + 1);
        EXPECT(line[0] == 'x' && line[lines[i] - 1] == 'x' && line[lines[i]] == '\n');
        free(line);
    }
    fclose(f);
}

static void *keep_reading(void *unused) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) read_lines();
    return unused;
}

static void *keep_flushing(void *unused) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) fflush(NULL);
    return unused;
}

static void write_lines(void) {
    FILE *f = fdopen(mkstemp(path), "w");
    EXPECT(f != NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        for (size_t k = 0; k < lines[i]; k++) putc('x', f);
        putc('\n', f);
    }
    EXPECT(fclose(f) == 0);
}

int main(int argc, char **argv) {
    size_t forks = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
    allocator_start();
    alarm(280);
    write_lines();
    pthread_t ids[BUSY + 2];
    for (unsigned i = 0; i < BUSY; i++)
        EXPECT(pthread_create(&ids[i], NULL, allocate_and_free, (void *)(uintptr_t)i) == 0);
    EXPECT(pthread_create(&ids[BUSY], NULL, keep_reading, NULL) == 0);
    EXPECT(pthread_create(&ids[BUSY + 1], NULL, keep_flushing, NULL) == 0);
    for (size_t i = 0; i < forks; i++) {
        pid_t pid = fork();
        EXPECT(pid >= 0);
        if (pid == 0) {
            alarm(60);
            if (i % 10 == 0) read_lines();
            release(allocate(100000));
            release(allocate(100));
            fflush(NULL);
            _exit(0);
        }
        int status = -1;
        EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < BUSY + 2; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    unlink(path);
    printf("%zu forks\n", forks);
    return 0;
}
