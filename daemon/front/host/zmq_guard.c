#include "daemon/front/host/zmq_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

static atomic_bool guarded;

void qk_zmq_guard(void) {
  atomic_store(&guarded, true);
}

/* libzmq names its threads before they poll. */
static bool is_libzmq(void) {
  static _Thread_local enum { UNKNOWN, YES, NO } answer;
  char name[16];
  if (answer == UNKNOWN) {
    const bool named = pthread_getname_np(pthread_self(), name, sizeof name) == 0;
    answer = named && strncmp(name, "ZMQ", 3) == 0 ? YES : NO;
  }
  return answer == YES;
}

/* If libzmq reads from the socket, the event has EPOLLIN, and reading shows the end. If not, the
 * system reports the end repeatedly until libzmq reads: the pause keeps that from using a whole
 * core. */
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
  static const struct timespec pause = {.tv_nsec = 1000000};
  const int n = epoll_pwait(epoll, events, most, timeout, NULL);
  int kept = 0;
  if (n <= 0 || !atomic_load(&guarded) || !is_libzmq()) return n;
  for (int i = 0; i < n; i++) {
    events[i].events &= ~(uint32_t)(EPOLLERR | EPOLLHUP);
    if (events[i].events) events[kept++] = events[i];
  }
  if (kept == 0) nanosleep(&pause, NULL);
  return kept;
}
