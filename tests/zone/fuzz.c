/* fuzz.c - operations on zones as the bytes of an input say: for libFuzzer; or, with a main of its own (FUZZ_REPLAY), over
 * inputs that a generator makes. */
#include "allocator.h"
#include "model.h"

struct input {
    struct source source;
    const uint8_t *data;
    size_t n, used;
};

/* One or more bytes for each number, zero when there are no more. */
static size_t next(struct source *s, size_t n) {
    struct input *in = (struct input *)s;
    size_t value = 0;
    for (size_t most = n - 1; most != 0; most >>= 8) value = value << 8 | (in->used < in->n ? in->data[in->used++] : 0);
    return value % n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static bool is_started;
    if (!is_started) allocator_start();
    is_started = true;
    struct input in = {{next}, data, n, 0};
    model_run(&in.source, n / 4);
    return 0;
}

#ifdef FUZZ_REPLAY
int main(void) {
    static uint8_t data[4000];
    for (uint64_t input = 0; input < 200; input++) {
        uint64_t state = input;
        size_t n = random_below(&state, sizeof data);
        for (size_t i = 0; i < n; i++) data[i] = (uint8_t)random_next(&state);
        LLVMFuzzerTestOneInput(data, n);
    }
    return 0;
}
#endif
