/* network.c: how fast bytes go round within this machine, and keys (checks.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <zmq.h>

#include "client/cli/solving.h"
#include "client/selftest/checks.h"

enum { PIECE = 1 << 20, PIECES = 256, WAIT_SECONDS = 10, WAIT_MS = 5000 };
static const double SLOW = 300e6; /* bytes/s */

/* ---- bandwidth ---- */

static bool send_all(int fd, const char *data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL);
    if (n <= 0) return false;
    data += n;
    bytes -= (size_t)n;
  }
  return true;
}

static void *send_pieces(void *arg) {
  const int fd = *(const int *)arg;
  char *piece = calloc(1, PIECE);
  for (int i = 0; piece && i < PIECES && send_all(fd, piece, PIECE); i++) {
  }
  free(piece);
  shutdown(fd, SHUT_WR);
  return NULL;
}

/* What comes until the other side ends, or errno. */
static double receive(int fd, int *cause) {
  char *piece = malloc(PIECE);
  double bytes = 0;
  ssize_t n = 1;
  while (piece && (n = recv(fd, piece, PIECE, 0)) > 0) bytes += (double)n;
  *cause = !piece ? ENOMEM : n < 0 ? errno : bytes < (double)PIECE * PIECES ? EPIPE : 0;
  free(piece);
  return bytes;
}

/* Bytes a second from one descriptor to the other, which are closed; or 0, and *cause. */
static double measure(int from, int to, int *cause) {
  const struct timeval wait = {.tv_sec = WAIT_SECONDS};
  pthread_t thread;
  setsockopt(from, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  const double begun = ctl_seconds();
  double bytes = 0;
  *cause = pthread_create(&thread, NULL, send_pieces, &from);
  if (*cause == 0) {
    bytes = receive(to, cause);
    if (*cause) shutdown(to, SHUT_RDWR);
    pthread_join(thread, NULL);
  }
  close(from);
  close(to);
  return *cause ? 0 : bytes / (ctl_seconds() - begun);
}

/* Two ends of a TCP connection over the loopback interface. */
static int connect_loopback(int end[2]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof at;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  end[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  end[1] = -1;
  struct sockaddr *address = (struct sockaddr *)&at;
  if (server >= 0 && end[0] >= 0 && bind(server, address, n) == 0 && listen(server, 1) == 0 &&
      getsockname(server, address, &n) == 0 && connect(end[0], address, n) == 0)
    end[1] = accept(server, NULL, NULL);
  const int cause = end[1] >= 0 ? 0 : errno;
  if (server >= 0) close(server);
  if (cause && end[0] >= 0) close(end[0]);
  return cause;
}

static void tell(ctl_checks_t *checks, const char *name, double rate, int cause) {
  if (cause) {
    ctl_checks_add(checks, "network", CTL_FAILED, NULL,
                   "clients of this machine connect this way: see what keeps it from them (a "
                   "network namespace without lo, a firewall, seccomp)",
                   "%s: %s", name, strerror(cause));
    return;
  }
  ctl_checks_add(checks, "network", rate < SLOW ? CTL_WARNING : CTL_OK,
                 json_pack("{s:s, s:f}", "way", name, "bytes_per_second", rate),
                 rate < SLOW ? "is the machine busy, or are its processors limited?" : NULL,
                 "%s: %.1f GB/s", name, rate / 1e9);
}

void ctl_check_network(const ctl_selftest_options_t *test, ctl_checks_t *checks) {
  int end[2], cause = connect_loopback(end);
  (void)test;
  double rate = cause ? 0 : measure(end[0], end[1], &cause);
  tell(checks, "TCP over the loopback interface", rate, cause);
  checks->no_loopback = cause != 0;
  cause = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) == 0 ? 0 : errno;
  rate = cause ? 0 : measure(end[0], end[1], &cause);
  tell(checks, "local socket", rate, cause);
}

/* ---- keys ---- */

static bool set_text(void *socket, int option, const char *value) {
  return zmq_setsockopt(socket, option, value, strlen(value)) == 0;
}

/* A message from one key to another over an encrypted connection. */
static bool exchange(void *server, void *client) {
  char public[QK_KEY_TEXT], secret[QK_KEY_TEXT], own[QK_KEY_TEXT], own_secret[QK_KEY_TEXT];
  char endpoint[256], got[8] = "";
  size_t n = sizeof endpoint;
  const int yes = 1, wait = WAIT_MS, linger = 0;
  if (zmq_curve_keypair(public, secret) != 0 || zmq_curve_keypair(own, own_secret) != 0)
    return false;
  zmq_setsockopt(server, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(client, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(server, ZMQ_RCVTIMEO, &wait, sizeof wait);
  return zmq_setsockopt(server, ZMQ_CURVE_SERVER, &yes, sizeof yes) == 0 &&
         set_text(server, ZMQ_CURVE_SECRETKEY, secret) &&
         set_text(client, ZMQ_CURVE_SERVERKEY, public) &&
         set_text(client, ZMQ_CURVE_PUBLICKEY, own) &&
         set_text(client, ZMQ_CURVE_SECRETKEY, own_secret) &&
         zmq_bind(server, "tcp://127.0.0.1:*") == 0 &&
         zmq_getsockopt(server, ZMQ_LAST_ENDPOINT, endpoint, &n) == 0 &&
         zmq_connect(client, endpoint) == 0 && zmq_send(client, "quark", 5, 0) == 5 &&
         zmq_recv(server, got, sizeof got, 0) == 5 && memcmp(got, "quark", 5) == 0;
}

void ctl_check_keys(const ctl_selftest_options_t *test, ctl_checks_t *checks) {
  (void)test;
  if (checks->no_loopback) return;
  if (!zmq_has("curve")) {
    ctl_checks_add(checks, "keys", CTL_WARNING, NULL,
                   "install a libzmq with CURVE if quarkd is to listen beyond this machine",
                   "this libzmq was built without CURVE: connections cannot be encrypted");
    return;
  }
  void *context = zmq_ctx_new();
  void *server = zmq_socket(context, ZMQ_PAIR), *client = zmq_socket(context, ZMQ_PAIR);
  const bool went = server && client && exchange(server, client);
  const int cause = errno;
  if (server) zmq_close(server);
  if (client) zmq_close(client);
  zmq_ctx_term(context);
  if (went)
    ctl_checks_add(checks, "keys", CTL_OK, NULL, NULL,
                   "a message went over an encrypted connection");
  else
    ctl_checks_add(checks, "keys", CTL_FAILED, NULL,
                   "see the network above; else reinstall libzmq and libsodium",
                   "no message went over an encrypted connection: %s", zmq_strerror(cause));
}
