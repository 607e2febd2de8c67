/*
 * terminal.h: draws on the whole screen of the terminal (stdout) and reads keys (stdin).
 *
 * The terminal is restored in every case: by ctl_terminal_close, by a signal that ends or stops the
 * process, by a crash. For one thread.
 */
#ifndef QUARKCTL_TERMINAL_H
#define QUARKCTL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* What ctl_terminal_wait returns instead of a key. */
enum { CTL_TIME_IS_OVER = -1, CTL_RESIZED = -2, CTL_NO_TERMINAL = -3 };

/* To be called once in a process. False: stdout is no terminal. */
bool ctl_terminal_open(void);
void ctl_terminal_close(void);
void ctl_terminal_size(int *rows, int *columns);
/* Replaces the text on the screen. Lines that are too long are cut, not wrapped. */
void ctl_terminal_show(const char *text);
/* Waits for a key, at most so many seconds, and returns it or one of the above. After CTL_RESIZED
 * the caller shows its text again; it also comes when a stopped process goes on. */
int ctl_terminal_wait(double seconds);

#endif
