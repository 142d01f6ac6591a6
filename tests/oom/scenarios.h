/* scenarios.h - things a program does to the allocator while the system refuses memory.
 *
 * A scenario goes on after every NULL: whatever it did get is written to, and must be the same at the end. After it the
 * refusing ends; then everything that lives is checked and freed, and all that a program can ask for must be served
 * again. */
#ifndef TESTS_OOM_SCENARIOS_H
#define TESTS_OOM_SCENARIOS_H

struct scenario {
    const char *name;
    void (*run)(void);
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

/* Runs the scenario, then ends the refusing and checks. Returns the system calls that the scenario made; exits when
 * something is wrong. */
unsigned long scenario_play(const struct scenario *s);

#endif
