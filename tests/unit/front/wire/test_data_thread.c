/* A data thread between the loop and a peer: order of writes, memory that is not there, fields that
 * cannot be read. */
#include "daemon/front/wire/data_thread.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"

enum { FIELD = 24 << 20, CHUNK = 4096, MOST = 8 };

static qk_loop_t loop;
static qk_shm_space_t space;
static qk_data_thread_t data;
static void *zmq, *peer;
static uint8_t chunk[CHUNK];
/* What came back, and how much of that is waited for. */
static struct {
  qk_parcel_kind_t kind;
  const void *stream;
  qk_status_t status;
  qk_err_t err;
  qk_sent_t sent;
} got[MOST];
static int ngot, wanted;

static void take(void *arg, qk_data_thread_t *thread, qk_parcel_t *p) {
  (void)arg;
  cr_assert_lt(ngot, MOST);
  got[ngot].kind = p->kind;
  got[ngot].stream = p->chunk.stream;
  got[ngot].status = p->status;
  got[ngot].err = p->err;
  got[ngot].sent = p->sent;
  ngot++;
  qk_data_thread_done(thread, p, true, 1);
}

static bool on_turn(void *arg) {
  (void)arg;
  if (ngot >= wanted) qk_loop_stop(&loop);
  return false;
}

static void run_until(int n) {
  wanted = n;
  if (ngot < n) qk_loop_run(&loop);
}

static void begin(void) {
  qk_err_t err = {0};
  size_t size = sizeof data.endpoint;
  const int linger = 0;
  ngot = 0;
  qk_shm_space_init(&space, NULL);
  zmq = zmq_ctx_new();
  data = (qk_data_thread_t){.socket = zmq_socket(zmq, ZMQ_ROUTER)};
  zmq_setsockopt(data.socket, ZMQ_LINGER, &linger, sizeof linger);
  cr_assert_eq(zmq_bind(data.socket, "tcp://127.0.0.1:*"), 0);
  cr_assert_eq(zmq_getsockopt(data.socket, ZMQ_LAST_ENDPOINT, data.endpoint, &size), 0);
  peer = zmq_socket(zmq, ZMQ_DEALER);
  zmq_setsockopt(peer, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(peer, ZMQ_ROUTING_ID, "me", 2);
  cr_assert_eq(zmq_connect(peer, data.endpoint), 0);
  cr_assert_eq(qk_loop_init(&loop, on_turn, NULL, &err), QK_OK);
  cr_assert_eq(qk_data_thread_start(&data, &loop, true, take, NULL, &err), QK_OK, "%s", err.text);
}

static void end(void) {
  qk_fault_set(NULL);
  qk_data_thread_stop(&data);
  qk_loop_fini(&loop);
  zmq_close(data.socket);
  zmq_close(peer);
  zmq_ctx_term(zmq);
  cr_expect_eq(qk_mem_bytes(), 0);
}

TestSuite(data_thread, .init = begin, .fini = end);

/* A field of zeros, which is on its way. */
static qk_transfer_t *transfer_of(qk_shm_t **shm) {
  qk_err_t err = {0};
  cr_assert_eq(qk_shm_create(&space, FIELD, shm, &err), QK_OK, "%s", err.text);
  qk_transfer_t *t = qk_transfer_create(shm, false);
  qk_transfer_start(t, *shm);
  return t;
}

static void drop(qk_transfer_t *t, qk_shm_t *shm) {
  qk_transfer_leave(t);
  qk_shm_destroy(shm);
}

static qk_parcel_t *write_of(qk_transfer_t *t, uint64_t offset, const void *stream) {
  const qk_peer_t nobody = {.bytes = 0};
  const qk_frame_t frame = {.chunk_bytes = CHUNK};
  qk_parcel_t *p = qk_parcel_to_send(&nobody, &frame);
  p->kind = QK_PARCEL_WRITE;
  p->payload = chunk;
  p->chunk = (qk_chunk_t){.transfer = t, .offset = offset, .stream = stream};
  return p;
}

/* A field of which most has to be read back holds up no other, and its own chunks stay in order. */
Test(data_thread, writes_others_while_a_field_is_read_back) {
  qk_shm_t *large, *small;
  qk_transfer_t *a = transfer_of(&large), *b = transfer_of(&small);
  memset(chunk, 7, sizeof chunk);
  qk_transfer_start(a, large);
  pthread_mutex_lock(&data.lock);
  qk_list_append(&data.orders, &write_of(a, FIELD - 2 * CHUNK, a)->link);
  qk_list_append(&data.orders, &write_of(a, FIELD - CHUNK, a)->link);
  qk_list_append(&data.orders, &write_of(b, 0, b)->link);
  pthread_mutex_unlock(&data.lock);
  const uint64_t one = 1;
  cr_assert_eq(write(data.wakes_thread, &one, sizeof one), (ssize_t)sizeof one);
  run_until(3);
  cr_expect_eq(got[0].stream, b);
  cr_expect_eq(got[1].stream, a);
  cr_expect_eq(got[2].stream, a);
  for (int i = 0; i < 3; i++) cr_expect_eq(got[i].err.code, QK_OK, "%s", got[i].err.text);
  cr_expect_eq(qk_transfer_checksum(a), qk_checksum(qk_shm_data(large, NULL), FIELD));
  for (int i = 0; i < 2; i++) cr_assert(qk_transfer_finish(a));
  cr_assert(qk_transfer_finish(b));
  drop(a, large);
  drop(b, small);
}

/* A message that came while there was none is there when there is some. */
Test(data_thread, goes_on_when_there_is_memory) {
  const uint8_t junk[3] = "no";
  qk_fault_set("alloc:1+");
  cr_assert_eq(zmq_send(peer, junk, sizeof junk, 0), (int)sizeof junk);
  usleep(50000); /* it may have tried by then: nothing depends on that */
  qk_fault_set(NULL);
  run_until(1);
  cr_expect_eq(got[0].kind, QK_PARCEL_ARRIVED);
  cr_expect_eq(got[0].status, QK_TRUNCATED);
}

/* The loop is told why, and the peer gets the next one all the same. */
Test(data_thread, says_why_a_field_cannot_be_sent) {
  qk_shm_t *gone, *there;
  qk_transfer_t *a = transfer_of(&gone), *b = transfer_of(&there);
  const qk_peer_t to = {.id = "me", .bytes = 2};
  cr_assert_eq(zmq_send(peer, "hi", 2, 0), 2);
  run_until(1); /* it is known */
  snprintf(a->segment, sizeof a->segment, "/quarkd-none");
  for (int i = 0; i < 2; i++) {
    const qk_frame_t frame = {
        .kind = QK_FRAME_DOWNLOAD, .request = 1, .rhs = (uint32_t)i, .field_bytes = FIELD};
    qk_parcel_t *p = qk_parcel_to_send(&to, &frame);
    p->transfer = i == 0 ? a : b;
    p->until = CHUNK;
    qk_data_thread_order(&data, p);
  }
  run_until(3);
  const int bad = got[1].sent == QK_SENT ? 2 : 1;
  cr_expect_eq(got[bad].sent, QK_SENT_FAILED);
  cr_expect_eq(got[bad].err.code, QK_IO_ERROR);
  cr_expect(strstr(got[bad].err.text, "quarkd-none"), "%s", got[bad].err.text);
  cr_expect_eq(got[3 - bad].sent, QK_SENT);
  cr_assert(qk_transfer_finish(a));
  cr_assert(qk_transfer_finish(b));
  drop(a, gone);
  drop(b, there);
}
