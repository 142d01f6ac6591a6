/* thread.h - a thread that libc does not know of, for work in the background.
 *
 * It may be started at any moment, also inside a free that libc makes under its own locks, which is why it is not
 * libc's. It has all signals blocked, so that no handler of the program runs in it, a stack of 32 KiB, and
 * thread-local storage in which the library's own variables exist and are zero. It must call nothing outside the
 * library. */
#ifndef HUDDLE_OS_THREAD_H
#define HUDDLE_OS_THREAD_H

#include "base/base.h"

/* Starts `run` in a thread with that name (15 bytes at most), if none runs. From then on os_is_threaded() is true.
 * Returns false when the one before has not ended, or the system refuses; that is no error. Callers hold a lock. */
bool os_thread_start(void (*run)(void), const char *name);

bool os_thread_is_running(void);

/* Whether the calling thread has another effective user or group than the process's first one: libc changes them in
 * the threads that it knows, so this thread would keep what the program has just given up. Also true where that cannot
 * be told and the user is root. */
bool os_thread_is_left_behind(void);

/* After a fork: the child has no such thread. */
void os_thread_forget(void);

void os_sleep_ms(uint64_t ms);

#endif
