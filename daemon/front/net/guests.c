#include "daemon/front/net/guests.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <zmq.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/host/tcp.h"
#include "daemon/front/net/net.h"

enum { RESERVE_MIN = 8, RESERVE_MAX = 256, LOOKED_AT = 256, EVENTS_A_TURN = 1024, EVENT_BYTES = 6 };
enum { PLENTY = 64 }; /* connections: more than come while the monitors rest */

static const double LOOK =
    1; /* seconds between two counts of descriptors, and two lines of the log */

/* Bytes that a connection may send without saying anything: twice what waits in its queue while the
 * front stands still, and what beats of its heart come to in a second. */
static const uint64_t UNHEARD_CONTROL = 2 * QK_CONTROL_RCVHWM * QK_CONTROL_MAX,
                      UNHEARD_DATA = 2 * QK_DATA_HWM * QK_FRAME_MAX;
static const uint64_t BEATS = 64;

typedef struct guest {
  bool there, heard;
  bool spoke; /* since it was last measured */
  qk_door_t door;
  uint64_t cookie;
  uint64_t base;  /* bytes received that have been heard, at least */
  qk_peer_t peer; /* once it was heard */
} guest_t;

struct qk_guests {
  qk_net_t *net;
  int doors; /* that are watched */
  void *monitor[QK_DOORS];
  qk_zsock_t sock[QK_DOORS];
  int handles; /* that are not closed yet */
  guest_t *at; /* by descriptor */
  int size, count, most;
  int top; /* descriptors so far are below it */
  double looked_at, told_at;
  int closed; /* since the last line of the log */
};

/* How much speaks for closing it. */
typedef enum rank { CLIENT, STRANGER, SILENT } rank_t;

/* ---- descriptors --------------------------------------------------------------------------- */

static int count_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  int n = 0;
  if (!dir) return RESERVE_MAX;
  while (readdir(dir)) n++;
  closedir(dir);
  return n;
}

/* How many connections there may be. */
static void look(qk_guests_t *g) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const int all = limit.rlim_cur < 1 << 30 ? (int)limit.rlim_cur : 1 << 30;
  const int others = count_descriptors() - g->count;
  const int part = all / 16;
  const int reserve = part < RESERVE_MIN ? RESERVE_MIN : part > RESERVE_MAX ? RESERVE_MAX : part;
  /* a data thread has a segment open only now and then */
  g->most = all - others - reserve - g->net->ndata;
}

static uint64_t cookie_of(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size);
  return cookie;
}

/* ---- who goes ------------------------------------------------------------------------------ */

static rank_t rank_of(const qk_guests_t *g, const guest_t *guest) {
  const qk_sessions_t *sessions = &g->net->service->sessions;
  if (!guest->heard) return SILENT;
  const qk_session_t *s = guest->door == QK_DOOR_CONTROL
                              ? qk_session_by_control(sessions, &guest->peer)
                              : qk_session_by_data(sessions, &guest->peer);
  return s ? CLIENT : STRANGER;
}

/* Of LOOKED_AT places at random, or of all where there are no more, one of the highest rank; -1:
 * the newcomer alone is no client. Those who came together sit side by side: a row of places would
 * show clients only, or nobody. */
static int pick(const qk_guests_t *g, int newcomer) {
  uint64_t random = 0;
  int found = -1;
  rank_t best = STRANGER;
  if (g->top == 0 || getrandom(&random, sizeof random, 0) < 0) return -1;
  for (int i = 0; i < g->top && i < LOOKED_AT; i++) {
    random = g->top > LOOKED_AT ? random * 6364136223846793005 + 1442695040888963407
                                : random + (1ull << 32);
    const int fd = (int)((random >> 32) % (uint64_t)g->top);
    if (fd == newcomer || !g->at[fd].there) continue;
    const rank_t rank = rank_of(g, &g->at[fd]);
    if (rank < best || (found >= 0 && rank == best)) continue;
    found = fd;
    best = rank;
  }
  return found;
}

static void forget(qk_guests_t *g, int fd) {
  g->at[fd].there = false;
  g->count--;
}

static void show_out(qk_guests_t *g, int fd) {
  if (cookie_of(fd) == g->at[fd].cookie) shutdown(fd, SHUT_RDWR);
  forget(g, fd);
}

static void make_room(qk_guests_t *g, int fd) {
  show_out(g, fd);
  g->closed++;
}

static void tell(qk_guests_t *g, double now) {
  if (g->closed == 0 || now - g->told_at < LOOK) return;
  qk_warn("guests",
          "%d connections closed, all without a session: there are descriptors for %d (ulimit -Hn "
          "raises it)",
          g->closed, g->most);
  g->closed = 0;
  g->told_at = now;
}

/* ---- who sends without end ----------------------------------------------------------------- */

/* libzmq keeps the parts of a message until its last one comes, and has no limit for them. */
static void measure(qk_guests_t *g, int fd, bool beat) {
  guest_t *guest = &g->at[fd];
  const uint64_t now = qk_tcp_read(fd);
  if (guest->spoke) guest->base = now;
  guest->spoke = false;
  if (beat) guest->base += BEATS;
  if (now <= guest->base + (guest->door == QK_DOOR_CONTROL ? UNHEARD_CONTROL : UNHEARD_DATA))
    return;
  qk_warn("guests", "connection closed: it sent %llu bytes without the end of a message",
          (unsigned long long)(now - guest->base));
  show_out(g, fd);
}

/* ---- who comes and goes -------------------------------------------------------------------- */

static void on_accepted(qk_guests_t *g, qk_door_t door, int fd) {
  if (fd < 0) return;
  guest_t *all = qk_grow(g->at, &g->size, fd + 1, sizeof *all);
  if (!all) return;
  g->at = all;
  if (!g->at[fd].there) g->count++;
  if (fd >= g->top) g->top = fd + 1;
  g->at[fd] = (guest_t){.there = true, .door = door, .cookie = cookie_of(fd)};
  if (g->count <= g->most) return;
  const int other = pick(g, fd);
  make_room(g, other >= 0 ? other : fd);
}

static void on_disconnected(qk_guests_t *g, qk_door_t door, int fd) {
  if (fd < 0 || fd >= g->size || !g->at[fd].there || g->at[fd].door != door) return;
  if (g->at[fd].heard) qk_peers_gone(g->net, door, &g->at[fd].peer);
  forget(g, fd);
}

/* False: there is no event. */
static bool read_event(qk_guests_t *g, qk_door_t door) {
  uint8_t event[EVENT_BYTES], address[1];
  uint16_t what;
  uint32_t value;
  const int n = zmq_recv(g->monitor[door], event, sizeof event, ZMQ_DONTWAIT);
  if (n < 0) return false;
  zmq_recv(g->monitor[door], address, sizeof address, ZMQ_DONTWAIT);
  if (n != EVENT_BYTES) return true;
  memcpy(&what, event, sizeof what);
  memcpy(&value, event + sizeof what, sizeof value);
  if (what == ZMQ_EVENT_ACCEPTED) on_accepted(g, door, (int)value);
  if (what == ZMQ_EVENT_DISCONNECTED) on_disconnected(g, door, (int)value);
  return true;
}

bool qk_guests_catch_up(qk_guests_t *g) {
  bool all = true;
  for (int door = 0; g && door < g->doors; door++) {
    int i = 0;
    while (i < EVENTS_A_TURN && read_event(g, door)) i++;
    all = all && i < EVENTS_A_TURN;
  }
  return all;
}

/* Who comes and goes again and again does not turn the loop each time. But where there may be few
 * more each of them counts. */
static void on_events(void *arg) {
  qk_guests_t *g = arg;
  qk_guests_catch_up(g);
  if (g->count + PLENTY > g->most) return;
  for (int door = 0; door < g->doors; door++) qk_loop_rest(g->net->service->loop, &g->sock[door]);
}

void qk_guests_heard(qk_guests_t *g, qk_door_t door, int fd, const qk_peer_t *peer) {
  if (!g || fd < 0 || fd >= g->size) return;
  guest_t *guest = &g->at[fd];
  if (!guest->there || guest->door != door) return;
  guest->heard = guest->spoke = true;
  guest->peer = *peer;
}

int qk_guests_sessions(const qk_guests_t *g) {
  const int most = g ? g->most / 8 * 3 : QK_SESSIONS_MAX;
  return most > 1 ? most : 1;
}

void qk_guests_tick(qk_guests_t *g, double now) {
  if (!g) return;
  const bool beat = now - g->looked_at >= LOOK;
  tell(g, now);
  for (int fd = 0; fd < g->size; fd++)
    if (g->at[fd].there) measure(g, fd, beat);
  if (!beat) return;
  g->looked_at = now;
  look(g);
  for (int n = g->count - g->most, fd; n > 0 && (fd = pick(g, -1)) >= 0; n--) make_room(g, fd);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void *socket_of(const qk_net_t *net, qk_door_t door) {
  return door == QK_DOOR_CONTROL ? net->control : net->data[door - QK_DOOR_DATA].socket;
}

static bool watch(qk_guests_t *g, qk_door_t door) {
  const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED, linger = 0;
  const int any = 0; /* libzmq's thread must not wait for a front that stands still */
  qk_err_t err = {0};
  char endpoint[32];
  snprintf(endpoint, sizeof endpoint, "inproc://guests-%d", door);
  if (zmq_socket_monitor(socket_of(g->net, door), endpoint, events) != 0) return false;
  g->doors = door + 1;
  g->monitor[door] = zmq_socket(g->net->zmq, ZMQ_PAIR);
  return g->monitor[door] &&
         zmq_setsockopt(g->monitor[door], ZMQ_LINGER, &linger, sizeof linger) == 0 &&
         zmq_setsockopt(g->monitor[door], ZMQ_RCVHWM, &any, sizeof any) == 0 &&
         zmq_connect(g->monitor[door], endpoint) == 0 &&
         qk_loop_attach(g->net->service->loop, &g->sock[door], g->monitor[door], on_events, g,
                        &err) == QK_OK;
}

void qk_guests_open(qk_net_t *net, qk_guests_t **out) {
  qk_guests_t *g = qk_calloc(1, sizeof *g);
  if (g) {
    g->net = net;
    bool all = true;
    for (int door = 0; door < QK_DOOR_DATA + net->ndata && all; door++) all = watch(g, door);
    if (all) {
      look(g);
      *out = g;
      if (qk_guests_sessions(g) < net->service->settings->max_sessions)
        qk_info("guests",
                "max-sessions = %lld: there are descriptors for %d (ulimit -Hn raises it)",
                (long long)net->service->settings->max_sessions, qk_guests_sessions(g));
      return;
    }
    qk_guests_close(g);
  }
  qk_warn("guests", "connections cannot be watched: %s: a flood of them may take all descriptors",
          zmq_strerror(zmq_errno()));
}

static void free_guests(qk_guests_t *g) {
  qk_free(g->at);
  qk_free(g);
}

static void on_closed(uv_handle_t *handle) {
  qk_guests_t *g = handle->data;
  if (--g->handles == 0) free_guests(g);
}

void qk_guests_close(qk_guests_t *g) {
  if (!g) return;
  for (int door = 0; door < g->doors; door++) zmq_socket_monitor(socket_of(g->net, door), NULL, 0);
  for (int door = 0; door < g->doors; door++) g->handles += g->sock[door].attached;
  const bool none = g->handles == 0;
  for (int door = 0; door < g->doors; door++) {
    g->sock[door].poll.data = g;
    qk_loop_detach(&g->sock[door], on_closed);
    if (g->monitor[door]) zmq_close(g->monitor[door]);
  }
  if (none) free_guests(g);
}
