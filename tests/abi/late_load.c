/* libhuddle.so opened late, beside glibc's malloc, 50 times and closed again. The first argument is the library; the
 * others are libraries with thread-local storage of their own (tls_filler.c), which are opened before. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "huddle/huddle.h"

static void *(*their_malloc)(size_t size);
static void *(*their_realloc)(void *block, size_t size);
static void (*their_free)(void *block);
static __typeof__(huddle_owns) *owns;

static void fail(const char *what, const char *detail) {
    printf("%s: %s\n", what, detail == NULL ? "" : detail);
    exit(1);
}

static void *symbol(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (address == NULL) fail(name, dlerror());
    return address;
}

/* Allocates, resizes and frees; the blocks are huddle's and hold what is written to them. */
static void *work(void *argument) {
    void *blocks[500];
    for (size_t i = 0; i < 500; i++) {
        blocks[i] = their_malloc(i * i % 70000);
        if (blocks[i] == NULL || !owns(blocks[i])) fail("malloc", "not huddle's");
        memset(blocks[i], (int)i, i * i % 70000);
    }
    for (size_t i = 0; i < 500; i++) {
        unsigned char *b = blocks[i];
        size_t n = i * i % 70000;
        if (n > 0 && (b[0] != (unsigned char)i || b[n - 1] != (unsigned char)i)) fail("content", "lost");
        b = their_realloc(b, n + 1000);
        if (n > 0 && (b[0] != (unsigned char)i || b[n - 1] != (unsigned char)i)) fail("content", "lost in realloc");
        their_free(b);
    }
    return argument;
}

static void load_and_unload(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fail("dlopen", dlerror());
    their_malloc = (void *(*)(size_t))symbol(library, "malloc");
    their_realloc = (void *(*)(void *, size_t))symbol(library, "realloc");
    their_free = (void (*)(void *))symbol(library, "free");
    owns = (__typeof__(owns))symbol(library, "huddle_owns");
    void *own = malloc(100);
    if (owns(own)) fail("malloc", "the program's own malloc has become huddle's");
    work(NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) fail("pthread_create", NULL);
    pthread_join(thread, NULL);
    free(own);
    if (dlclose(library) != 0) fail("dlclose", dlerror());
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    for (int i = 2; i < argc; i++) {
        void *filler = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (filler == NULL) fail(argv[i], dlerror());
        int *(*address)(void) = (int *(*)(void))symbol(filler, "filler_address");
        *address() = i;
    }
    for (int i = 0; i < 50; i++) {
        load_and_unload(argv[1]);
        free(malloc(1000));
    }
    printf("opened and closed 50 times\n");
    return 0;
}
