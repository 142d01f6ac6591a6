/* dlopen.c - a library opened with RTLD_DEEPBIND finds libc's malloc before ours: it would free our blocks with libc's
 * free, and hand us libc's blocks. So the flag is taken off (the option deepbind=1 leaves it on). Only in the shared
 * library. */
#include <dlfcn.h>

#include "api/api.h"
#include "base/options.h"

EXPORT void *dlopen(const char *file, int mode);
void *dlsym(void *handle, const char *name) __attribute__((weak));

typedef void *dlopen_function(const char *file, int mode);

static dlopen_function *next; /* relaxed: whoever looks it up finds the same */

static COLD dlopen_function *find_next(void) {
    dlopen_function *f = dlsym == NULL ? NULL : (dlopen_function *)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
    relaxed_store(&next, f);
    return f;
}

/* The call of the real one is a jump: dlopen looks at its return address to find out whose search path holds. */
void *dlopen(const char *file, int mode) {
    dlopen_function *f = relaxed_load(&next);
    if (f == NULL) f = find_next();
    if (f == NULL) return NULL;
    if (options.deepbind == 0) mode &= ~RTLD_DEEPBIND;
    return f(file, mode);
}
