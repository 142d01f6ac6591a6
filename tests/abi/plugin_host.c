/* A C program that opens a C++ plugin: the C++ run-time enters a process in which huddle has long been working. The
 * first argument is the plugin (operators.cc), which is opened, run and closed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    for (int i = 0; i < 1000; i++) free(malloc((size_t)i));
    if (argc < 2 || dlsym(RTLD_DEFAULT, "_ZNSt9bad_allocD1Ev") != NULL) {
        printf("the C++ run-time is here already\n");
        return 1;
    }
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    int (*run)(void) = (int (*)(void))dlsym(plugin, "run_all");
    int failed = run == NULL ? 1 : run();
    return dlclose(plugin) != 0 || failed != 0;
}
