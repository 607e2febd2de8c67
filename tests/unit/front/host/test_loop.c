/* loop.h: sockets that are flooded beside sockets that are not. */
#include "daemon/front/host/loop.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <time.h>
#include <zmq.h>

enum { FLOOD = 1000 };

typedef struct desk {
  qk_loop_t loop;
  qk_zsock_t sock[2]; /* [0] is flooded, [1] has one message */
  void *zmq, *out[2], *in[2];
  double share; /* of messages of [0] */
  bool wait;
  int read[2];        /* so far */
  int first, most;    /* of [0]: read when the other one was first heard; in one turn at most */
  int turns, at_once; /* at_once: read in this turn */
  double work;        /* seconds that each message of [0] takes */
} desk_t;

static void spend(double seconds) {
  struct timespec t;
  double begin = 0, now;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (begin == 0) begin = now;
  } while (now - begin < seconds);
}

static bool take(desk_t *d, int which) {
  char byte;
  if (zmq_recv(d->in[which], &byte, 1, ZMQ_DONTWAIT) < 0) return false;
  d->read[which]++;
  return true;
}

static void on_flood(void *arg) {
  desk_t *d = arg;
  do {
    if (!take(d, 0)) return;
    if (++d->at_once > d->most) d->most = d->at_once;
    if (d->work > 0) spend(d->work);
  } while (!qk_loop_is_enough(&d->loop, d->share, d->wait));
}

static void on_other(void *arg) {
  desk_t *d = arg;
  if (take(d, 1)) d->first = d->read[0];
}

static bool on_turn(void *arg) {
  desk_t *d = arg;
  d->turns++;
  d->at_once = 0;
  if (d->read[0] == FLOOD) qk_loop_stop(&d->loop);
  return false;
}

static void open_desk(desk_t *d) {
  static qk_readable_fn *const readable[] = {on_flood, on_other};
  const int any = 0;
  qk_err_t err = {0};
  *d = (desk_t){.share = 1, .first = -1};
  cr_assert_eq(qk_loop_init(&d->loop, on_turn, d, &err), QK_OK);
  d->zmq = zmq_ctx_new();
  for (int i = 0; i < 2; i++) {
    char endpoint[32];
    snprintf(endpoint, sizeof endpoint, "inproc://%d", i);
    d->in[i] = zmq_socket(d->zmq, ZMQ_PULL);
    d->out[i] = zmq_socket(d->zmq, ZMQ_PUSH);
    zmq_setsockopt(d->in[i], ZMQ_RCVHWM, &any, sizeof any);
    zmq_setsockopt(d->out[i], ZMQ_SNDHWM, &any, sizeof any);
    cr_assert_eq(zmq_bind(d->in[i], endpoint), 0);
    cr_assert_eq(zmq_connect(d->out[i], endpoint), 0);
    cr_assert_eq(qk_loop_attach(&d->loop, &d->sock[i], d->in[i], readable[i], d, &err), QK_OK);
  }
}

static void flood(desk_t *d) {
  for (int i = 0; i < FLOOD; i++) cr_assert_eq(zmq_send(d->out[0], "x", 1, ZMQ_DONTWAIT), 1);
  qk_loop_run(&d->loop);
  cr_assert_eq(d->read[0], FLOOD);
}

static void close_desk(desk_t *d) {
  for (int i = 0; i < 2; i++) qk_loop_detach(&d->sock[i], NULL);
  qk_loop_fini(&d->loop);
  for (int i = 0; i < 2; i++) {
    zmq_close(d->in[i]);
    zmq_close(d->out[i]);
  }
  zmq_ctx_term(d->zmq);
}

Test(loop, who_waits_beside_a_flood_comes_after_a_few) {
  desk_t d;
  open_desk(&d);
  cr_assert_eq(zmq_send(d.out[1], "x", 1, ZMQ_DONTWAIT), 1);
  flood(&d);
  cr_assert_leq(d.first, QK_LOOP_FEW, "%d messages went before", d.first);
  cr_assert_geq(d.first, 0);
  close_desk(&d);
}

Test(loop, what_else_waits_comes_after_a_few) {
  desk_t d;
  open_desk(&d);
  d.wait = true;
  flood(&d);
  cr_assert_eq(d.most, QK_LOOP_FEW);
  close_desk(&d);
}

Test(loop, a_flood_alone_has_the_turn) {
  desk_t d;
  open_desk(&d);
  flood(&d);
  cr_assert_gt(d.most, QK_LOOP_FEW);
  close_desk(&d);
}

/* Each message takes 0.3 ms, so that all of them would take 0.3 s of processor. */
Test(loop, messages_beyond_their_share_wait) {
  desk_t d;
  open_desk(&d);
  d.share = 0.25;
  d.work = 3e-4;
  const uint64_t begin = uv_hrtime();
  flood(&d);
  const double took = 1e-9 * (double)(uv_hrtime() - begin);
  cr_assert_geq(took, 3 * FLOOD * d.work, "%g s", took);
  cr_assert_leq(d.most, 2, "one after the other");
  close_desk(&d);
}

Test(loop, a_socket_that_rests_is_heard_again) {
  desk_t d;
  open_desk(&d);
  qk_loop_rest(&d.loop, &d.sock[0]);
  flood(&d);
  cr_assert_gt(d.turns, 0);
  close_desk(&d);
}
