/* faulty.c - `faulty none|overflow|leak`: uses the heap from two threads, and has the fault. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *argument) {
    for (size_t n = 1; n < 2000; n++) free(malloc(n));
    return argument;
}

int main(int count, char **argument) {
    pthread_t thread;
    if (count != 2 || pthread_create(&thread, NULL, work, NULL) != 0) return 2;
    work(NULL);
    pthread_join(thread, NULL);
    char *volatile p = malloc(40);
    if (strcmp(argument[1], "overflow") == 0) p[40] = 1;
    if (strcmp(argument[1], "leak") == 0) p = malloc(77);
    if (strcmp(argument[1], "leak") == 0) p = NULL;
    free(p);
    puts("done");
    return 0;
}
