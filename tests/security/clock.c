/* A wall clock that is set while quarkd runs: CLOCK_REALTIME plus the seconds that the file
 * QK_CLOCK holds. For LD_PRELOAD. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
  char text[32] = "";
  const char *path = getenv("QK_CLOCK");
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) close(fd);
  return n > 0 ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int failed = real(clock, t);
  if (!failed && clock == CLOCK_REALTIME) t->tv_sec += shift();
  return failed;
}
