/* A library that takes room in the static thread-local storage, as huddle does. See late_load.c. */
static __thread int storage[24] __attribute__((tls_model("initial-exec")));

int *filler_address(void);

int *filler_address(void) {
    return storage;
}
