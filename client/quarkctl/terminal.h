/*
 * terminal.h: the whole screen of the terminal on stdout, keys from stdin. The terminal is given back as it was on every
 * way out: ctl_terminal_close, a signal that ends or stops the process, a crash.
 */
#ifndef QUARKCTL_TERMINAL_H
#define QUARKCTL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* What ctl_terminal_wait returns instead of a key. */
enum { CTL_TIME_IS_OVER = -1, CTL_RESIZED = -2, CTL_NO_TERMINAL = -3 };

/* Once in a process. False: stdout is no terminal. */
bool ctl_terminal_open(void);
void ctl_terminal_close(void);
void ctl_terminal_size(int *rows, int *columns);
/* Instead of what is shown now. Lines that are too long are cut, not wrapped. */
void ctl_terminal_show(const char *text);
/* The next key; or, after at most so many seconds, one of the above. CTL_RESIZED also where the process was stopped and goes
 * on: what was shown is to be shown again. */
int ctl_terminal_wait(double seconds);

#endif
