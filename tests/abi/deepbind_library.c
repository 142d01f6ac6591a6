/* What is opened with RTLD_DEEPBIND: its malloc and free are those that it was bound to. */
#include <stdlib.h>

void *library_malloc(size_t n);
void library_free(void *p);

void *library_malloc(size_t n) {
    return malloc(n);
}

void library_free(void *p) {
    free(p);
}
