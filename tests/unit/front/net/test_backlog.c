/* backlog.h, with the two ends of a socket. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/front/net/backlog.h"

enum { REPORT = 20000 };

static void fill(int fd) {
  static const char bytes[4096];
  while (write(fd, bytes, sizeof bytes) > 0) continue;
}

static void drain(int fd) {
  char bytes[4096];
  while (read(fd, bytes, sizeof bytes) > 0) continue;
}

/* Reports until one is left out. */
static int count(qk_backlog_t *b, int fd, double now) {
  int n = 0;
  while (n < 1000 && qk_backlog_add(b, fd, 7, REPORT, now)) n++;
  return n;
}

static void open_pair(int pair[2]) {
  cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
}

Test(backlog, who_reads_is_never_left_out) {
  int pair[2];
  qk_backlog_t b = {0};
  open_pair(pair);
  cr_assert_eq(count(&b, pair[0], 100), 1000);
  cr_assert_eq(count(&b, -1, 100), 1000, "nothing is known of that peer");
  close(pair[0]);
  close(pair[1]);
  cr_assert_eq(count(&b, pair[0], 100), 1000, "libzmq will say that it has gone");
  qk_backlog_fini(&b);
  cr_assert_eq(qk_mem_bytes(), 0);
}

Test(backlog, who_does_not_read_owes_a_mebibyte) {
  int pair[2], other[2];
  qk_backlog_t b = {0};
  open_pair(pair);
  open_pair(other);
  fill(pair[0]);
  cr_assert_eq(count(&b, pair[0], 100), QK_BACKLOG_BYTES / REPORT);
  cr_assert_eq(count(&b, pair[0], 1000), 0, "time alone pays nothing");
  cr_assert_eq(count(&b, other[0], 1000), 1000);
  drain(pair[1]);
  cr_assert_eq(count(&b, pair[0], 1000.5), 0);
  cr_assert_eq(count(&b, pair[0], 1000 + 1.01 * QK_BACKLOG_QUIET), 1000);
  qk_backlog_fini(&b);
}

Test(backlog, who_reads_a_little_now_and_then_owes_as_much) {
  int pair[2], n = 0;
  qk_backlog_t b = {0};
  open_pair(pair);
  for (int i = 0; i < 100; i++) {
    fill(pair[0]);
    n += qk_backlog_add(&b, pair[0], 7, REPORT, 100 + 0.1 * i);
    drain(pair[1]);
    n += qk_backlog_add(&b, pair[0], 7, REPORT, 100.05 + 0.1 * i);
  }
  cr_assert_eq(n, QK_BACKLOG_BYTES / REPORT);
  qk_backlog_fini(&b);
}

Test(backlog, the_next_one_with_a_descriptor_owes_nothing) {
  int pair[2];
  qk_backlog_t b = {0};
  open_pair(pair);
  fill(pair[0]);
  cr_assert_eq(count(&b, pair[0], 100), QK_BACKLOG_BYTES / REPORT);
  cr_assert(qk_backlog_add(&b, pair[0], 8, REPORT, 100));
  qk_backlog_fini(&b);
}
