#include <huddle/huddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    void *p = malloc(1), *q = strdup("allocated inside libc");
    int right = strcmp(huddle_version(), HUDDLE_VERSION_STRING) == 0 && huddle_owns(p) && huddle_owns(q);
    puts(right ? "malloc is huddle's" : "malloc is not huddle's");
    free(p);
    free(q);
    return !right;
}
