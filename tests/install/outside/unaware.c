/* Calls no malloc of its own and names nothing of huddle: what allocates is libc. Looks itself up to see whose it is.
 * */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

bool huddle_owns(const void *address) __attribute__((weak));

int main(void) {
    bool (*owns)(const void *) = huddle_owns;
    if (owns == NULL) *(void **)&owns = dlsym(RTLD_DEFAULT, "huddle_owns");
    char *p = strdup("allocated inside libc");
    bool right = owns != NULL && owns(p);
    puts(right ? "malloc is huddle's" : "malloc is not huddle's");
    return !right;
}
