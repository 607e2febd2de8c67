#include "client/quarkctl/terminal.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Signal handlers need these, so they cannot be in a struct of the caller. */
static struct termios before;
static bool has_keys; /* stdin is a terminal */
static volatile sig_atomic_t is_open, is_stale;

/* Enter: alternate screen, no cursor, no wrapping. Leave: the opposite. */
static const char ENTER[] = "\033[?1049h\033[?25l\033[?7l";
static const char LEAVE[] = "\033[?7h\033[?25h\033[?1049l";

/* put, enter and ctl_terminal_close are safe in a signal handler. */
static void put(const char *text, size_t n) {
  for (ssize_t done = 0, w; done < (ssize_t)n; done += w) {
    w = write(STDOUT_FILENO, text + done, n - (size_t)done);
    if (w < 0 && errno == EINTR) w = 0;
    if (w < 0) return;
  }
}

static void enter(void) {
  struct termios raw = before;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (has_keys) tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  put(ENTER, sizeof ENTER - 1);
  is_open = 1;
}

void ctl_terminal_close(void) {
  if (!is_open) return;
  is_open = 0;
  put(LEAVE, sizeof LEAVE - 1);
  if (has_keys) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

static void on_end(int number) {
  ctl_terminal_close();
  raise(number); /* SA_RESETHAND: as if it had not been caught */
}

static void on_stop(int number) {
  const int kept = errno;
  (void)number;
  ctl_terminal_close();
  raise(SIGSTOP);
  enter();
  is_stale = 1;
  errno = kept;
}

static void on_resize(int number) {
  (void)number;
  is_stale = 1;
}

static void catch_signals(void) {
  static const int ends[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGPIPE,
                             SIGSEGV, SIGABRT, SIGBUS, SIGFPE,  SIGILL};
  struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) sigaction(ends[i], &action, NULL);
  action = (struct sigaction){.sa_handler = on_stop};
  sigaction(SIGTSTP, &action, NULL);
  action.sa_handler = on_resize;
  sigaction(SIGWINCH, &action, NULL);
}

bool ctl_terminal_open(void) {
  if (!isatty(STDOUT_FILENO)) return false;
  has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
  catch_signals();
  atexit(ctl_terminal_close);
  enter();
  return true;
}

void ctl_terminal_size(int *rows, int *columns) {
  struct winsize size;
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
  *rows = known ? size.ws_row : 24;
  *columns = known ? size.ws_col : 80;
}

void ctl_terminal_show(const char *text) {
  put("\033[H", 3);
  for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
    put(text, (size_t)(end - text));
    put("\033[K\n", 4);
  }
  put(text, strlen(text)); /* the last line has no newline: the screen must not scroll */
  put("\033[J", 3);
}

int ctl_terminal_wait(double seconds) {
  struct pollfd input = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};
  const struct timespec limit = {.tv_sec = (time_t)seconds,
                                 .tv_nsec = (long)(fmod(seconds, 1) * 1e9)};
  /* SIGWINCH and SIGTSTP are delivered only in ppoll, so none is missed between the check of
   * is_stale and the wait. */
  sigset_t blocked, kept;
  unsigned char key = 0;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGWINCH);
  sigaddset(&blocked, SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &blocked, &kept);
  const int n = is_stale ? -1 : ppoll(&input, 1, &limit, &kept);
  pthread_sigmask(SIG_SETMASK, &kept, NULL);
  if (is_stale) {
    is_stale = 0;
    return CTL_RESIZED;
  }
  if (n == 0) return CTL_TIME_IS_OVER;
  if (n < 0) return errno == EINTR ? CTL_RESIZED : CTL_NO_TERMINAL;
  return read(STDIN_FILENO, &key, 1) == 1 ? key : CTL_NO_TERMINAL;
}
