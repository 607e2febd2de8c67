/* How much of a connection has been read, while more arrives. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/front/host/tcp.h"

enum { PIECES = 20000, PIECE = 100 };

static atomic_bool over;

static void *send_pieces(void *arg) {
  static const char piece[PIECE];
  const int fd = *(const int *)arg;
  for (int i = 0; i < PIECES; i++) cr_assert_eq(send(fd, piece, PIECE, 0), PIECE);
  atomic_store(&over, true);
  return NULL;
}

/* Both ends of a connection. */
static void connect_two(int end[2]) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof here;
  const int door = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(bind(door, (struct sockaddr *)&here, sizeof here), 0);
  cr_assert_eq(listen(door, 1), 0);
  cr_assert_eq(getsockname(door, (struct sockaddr *)&here, &size), 0);
  end[0] = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(connect(end[0], (struct sockaddr *)&here, sizeof here), 0);
  end[1] = accept(door, NULL, NULL);
  cr_assert(end[1] >= 0);
  close(door);
}

/* What arrives between two looks must not count as less than nothing. */
Test(tcp, what_has_been_read_is_never_more_than_was_sent) {
  int end[2];
  char data[64 * PIECE];
  pthread_t sender;
  uint64_t most = 0, got = 0;
  connect_two(end);
  cr_assert_eq(qk_tcp_read(end[1]), 0);
  pthread_create(&sender, NULL, send_pieces, &end[0]);
  for (int i = 0; !atomic_load(&over); i++) {
    const uint64_t read_now = qk_tcp_read(end[1]);
    if (read_now > most) most = read_now;
    if (i % 64 > 0) continue;
    const ssize_t n = recv(end[1], data, sizeof data, MSG_DONTWAIT);
    if (n > 0) got += (uint64_t)n;
  }
  pthread_join(sender, NULL);
  cr_expect_leq(most, (uint64_t)PIECES * PIECE);
  for (ssize_t n; got < (uint64_t)PIECES * PIECE && (n = recv(end[1], data, sizeof data, 0)) > 0;)
    got += (uint64_t)n;
  cr_expect_eq(got, (uint64_t)PIECES * PIECE);
  cr_expect_eq(qk_tcp_read(end[1]), got);
  close(end[0]);
  cr_expect_eq(qk_tcp_read(-1), 0);
  close(end[1]);
}
