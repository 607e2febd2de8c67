#include "daemon/front/wire/data_thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/front/wire/parts.h"

enum { BURST = 16 };               /* messages received at a time */
enum { READ_BACK = QK_CHUNK_MAX }; /* bytes of a field, likewise, for its checksum */
enum { ZEROS = 16 << 20 };         /* likewise, of a run of zeros */

static const uint64_t NO_MEMORY_REST = 10000000; /* nanoseconds */

/* ---- receiving ------------------------------------------------------------------------------- */

/* The next message, decoded, into p. False: nothing to read. */
static bool receive(qk_data_thread_t *thread, qk_parcel_t *p) {
  zmq_msg_init(&p->msg);
  p->takes_room = true;
  p->peer.thread = (uint8_t)thread->index;
  if (!qk_parts_receive(thread->socket, &thread->rest, &p->peer, &p->msg, &p->whole)) return false;
  p->endless = thread->rest;
  /* parts beyond the first have been thrown away: an empty message is as wrong */
  p->status = qk_frame_decode(zmq_msg_data(&p->msg), p->whole ? zmq_msg_size(&p->msg) : 0,
                              &p->frame, &p->payload, &p->fault);
  return true;
}

static qk_parcel_t *create(qk_parcel_kind_t kind) {
  qk_parcel_t *p = qk_calloc(1, sizeof *p);
  if (!p) return NULL;
  qk_link_init(&p->link);
  p->kind = kind;
  return p;
}

static void destroy(qk_parcel_t *p) {
  qk_link_remove(&p->link);
  if (p->takes_room) zmq_msg_close(&p->msg);
  qk_free(p);
}

/* The next parcel that has arrived; NULL: none, or no memory for it (*starved). */
static qk_parcel_t *arrival(qk_data_thread_t *thread, bool *starved) {
  qk_parcel_t *p = create(QK_PARCEL_ARRIVED);
  *starved = !p;
  if (!p || receive(thread, p)) return p;
  destroy(p);
  return NULL;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* True: the checksum lacks still more of what comes before, and it goes on. */
static bool is_behind(qk_transfer_t *transfer, uint64_t offset) {
  bool more;
  qk_err_t err = {0}; /* tells whoever reads or writes next */
  return !atomic_load(&transfer->over) &&
         qk_transfer_catch_up(transfer, offset, READ_BACK, &more, &err) == QK_OK && more;
}

/* A part of the run. True: it goes on. */
static bool write_zeros(qk_parcel_t *p) {
  const uint64_t left = p->frame.offset + p->frame.chunk_bytes - p->chunk.offset;
  const uint64_t n = left < ZEROS ? left : ZEROS;
  const qk_status_t s = qk_transfer_zero(p->chunk.transfer, n, p->chunk.offset, &p->err);
  p->chunk.offset += n;
  return s == QK_OK && n < left;
}

/* True: it goes on. */
static bool write_payload(qk_parcel_t *p) {
  const uint32_t skip = p->chunk.skip;
  if (is_behind(p->chunk.transfer, p->chunk.offset)) return true;
  if (p->frame.kind == QK_FRAME_UPLOAD_ZERO) return write_zeros(p);
  const bool block = skip == 0 && qk_frame_is_block(&p->frame);
  qk_transfer_write(p->chunk.transfer, p->payload + skip, p->frame.chunk_bytes - skip,
                    p->chunk.offset, block ? &p->frame.chunk_checksum : NULL, &p->err);
  return false;
}

/* Something has to follow the routing id: clients that are bound take no notice of this. */
static void end_message(qk_data_thread_t *thread) {
  uint8_t header[QK_FRAME_HEADER];
  qk_frame_fault_t fault;
  qk_frame_t frame = {.kind = QK_FRAME_BOUND};
  QK_ASSERT(qk_frame_encode(&frame, NULL, header, &fault) == QK_OK);
  zmq_send(thread->socket, header, sizeof header, ZMQ_DONTWAIT);
}

/* The next bytes of the field, and its checksum at the end of it. */
static qk_status_t read_chunk(qk_transfer_t *t, qk_frame_t *frame, uint8_t *payload,
                              qk_err_t *err) {
  const qk_status_t s = qk_transfer_read(t, payload, frame->chunk_bytes, frame->offset,
                                         qk_frame_is_block(frame), &frame->chunk_checksum, err);
  if (s == QK_OK && qk_frame_is_last(frame)) frame->field_checksum = qk_transfer_checksum(t);
  return s;
}

/* frame with its payload, the next bytes of the transfer if there is one. */
static qk_sent_t send_frame(qk_data_thread_t *thread, qk_parcel_t *p, qk_frame_t *frame) {
  qk_frame_fault_t fault;
  zmq_msg_t msg;
  qk_sent_t sent = QK_SENT_GONE;
  if (zmq_msg_init_size(&msg, QK_FRAME_HEADER + frame->chunk_bytes) != 0) return QK_SENT_FULL;
  /* first whether the peer takes one, as this is tried every few milliseconds while it does not */
  if (zmq_send(thread->socket, p->peer.id, p->peer.bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    if (zmq_errno() != EHOSTUNREACH) sent = QK_SENT_FULL;
    zmq_msg_close(&msg);
    return sent;
  }
  uint8_t *bytes = zmq_msg_data(&msg), *payload = bytes + QK_FRAME_HEADER;
  if (!p->transfer) {
    frame->chunk_checksum = qk_checksum(payload, 0);
  } else if (read_chunk(p->transfer, frame, payload, &p->err) != QK_OK) {
    zmq_msg_close(&msg);
    end_message(thread);
    return p->err.code == QK_NO_MEMORY ? QK_SENT_FULL : QK_SENT_FAILED;
  }
  QK_ASSERT(qk_frame_encode_summed(frame, bytes, &fault) == QK_OK);
  if (zmq_msg_send(&msg, thread->socket, ZMQ_DONTWAIT) >= 0) return QK_SENT;
  zmq_msg_close(&msg);
  return sent;
}

/* Sends one chunk. True: there is more, and it goes on. */
static bool send_some(qk_data_thread_t *thread, qk_parcel_t *p) {
  qk_frame_t frame = p->frame;
  if (p->transfer) {
    if (atomic_load(&p->transfer->over) || atomic_load(&p->transfer->stop)) return false;
    if (is_behind(p->transfer, p->at)) return true;
    const uint64_t left = p->until - p->at, block = QK_CHUNK_MAX - p->at % QK_CHUNK_MAX;
    frame.offset = p->at;
    frame.chunk_bytes = (uint32_t)(left < block ? left : block);
  }
  p->sent = send_frame(thread, p, &frame);
  if (p->sent == QK_SENT) p->at += frame.chunk_bytes;
  return p->sent == QK_SENT && p->at < p->until;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void wake(int event) {
  const uint64_t one = 1;
  const ssize_t n = write(event, &one, sizeof one);
  (void)n; /* a full counter is readable already */
}

static void sleep_ended(int event) {
  uint64_t count;
  const ssize_t n = read(event, &count, sizeof count);
  (void)n; /* EAGAIN: it was a socket */
}

/* All of one list to the end of another. */
static void move_all(qk_link_t *from, qk_link_t *to) {
  while (!qk_link_alone(from)) qk_list_append(to, from->next);
}

static uint64_t clock_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sort(qk_data_thread_t *thread, qk_link_t *orders) {
  while (!qk_link_alone(orders)) {
    qk_parcel_t *p = QK_HOLDER(orders->next, qk_parcel_t, link);
    qk_list_append(p->kind == QK_PARCEL_WRITE ? &thread->writing : &thread->outgoing, &p->link);
  }
}

/* Whether chunks of the same stream are in the list. */
static bool has_stream(const qk_link_t *list, const void *stream) {
  for (const qk_link_t *l = list->next; l != list; l = l->next)
    if (QK_HOLDER(l, const qk_parcel_t, link)->chunk.stream == stream) return true;
  return false;
}

/* All that can be written, and a part of what has to be read back before others can. */
static void write_round(qk_data_thread_t *thread, qk_link_t *news) {
  qk_link_t round;
  qk_link_init(&round);
  move_all(&thread->writing, &round);
  while (!qk_link_alone(&round)) {
    qk_parcel_t *p = QK_HOLDER(round.next, qk_parcel_t, link);
    const bool waits = has_stream(&thread->writing, p->chunk.stream) || write_payload(p);
    qk_list_append(waits ? &thread->writing : news, &p->link);
  }
}

/* One chunk of each parcel that is to be sent. */
static void send_round(qk_data_thread_t *thread, qk_link_t *news) {
  qk_link_t round;
  qk_link_init(&round);
  move_all(&thread->outgoing, &round);
  while (!qk_link_alone(&round)) {
    qk_parcel_t *p = QK_HOLDER(round.next, qk_parcel_t, link);
    qk_list_append(send_some(thread, p) ? &thread->outgoing : news, &p->link);
  }
}

/* How many there were. */
static int receive_some(qk_data_thread_t *thread, int room, qk_link_t *news, qk_rest_t *rest) {
  const uint64_t before = clock_of(CLOCK_THREAD_CPUTIME_ID);
  qk_parcel_t *p;
  bool starved = false;
  int n = 0;
  while (n < room && n < BURST && (p = arrival(thread, &starved)) != NULL) {
    qk_list_append(news, &p->link);
    n++;
  }
  const uint64_t spent = clock_of(CLOCK_THREAD_CPUTIME_ID) - before;
  qk_link_t *l = news->prev;
  for (int i = 0; i < n; i++, l = l->prev)
    QK_HOLDER(l, qk_parcel_t, link)->cost = spent / (uint64_t)n;
  if (starved) qk_rest_begin(rest, clock_of(CLOCK_MONOTONIC), NO_MEMORY_REST);
  return n;
}

/* Tells the loop, and takes its orders. False: it is the end. */
static bool exchange(qk_data_thread_t *thread, qk_link_t *news, qk_link_t *orders, int received,
                     int *room, qk_rest_t *rest) {
  const bool tell = !qk_link_alone(news);
  pthread_mutex_lock(&thread->lock);
  thread->room -= received;
  *room = thread->room;
  qk_rest_owe(rest, thread->debt);
  thread->debt = 0;
  move_all(news, &thread->news);
  move_all(&thread->orders, orders);
  const bool stop = thread->stop;
  pthread_mutex_unlock(&thread->lock);
  if (tell) uv_async_send(&thread->wakes_loop);
  return !stop;
}

static void *run(void *arg) {
  qk_data_thread_t *thread = arg;
  qk_link_t news, orders;
  qk_rest_t rest = {0};
  int room = 0, received = 0;
  qk_link_init(&news);
  qk_link_init(&orders);
  while (exchange(thread, &news, &orders, received, &room, &rest)) {
    sort(thread, &orders);
    const bool reads = room > 0 && !qk_rest_is_on(&rest, clock_of(CLOCK_MONOTONIC));
    const bool busy = !qk_link_alone(&thread->writing) || !qk_link_alone(&thread->outgoing);
    zmq_pollitem_t item[] = {{.fd = thread->wakes_thread, .events = ZMQ_POLLIN},
                             {.socket = thread->socket, .events = ZMQ_POLLIN}};
    zmq_poll(item, reads ? 2 : 1, busy ? 0 : !reads && room > 0 ? 1 : -1);
    sleep_ended(thread->wakes_thread);
    write_round(thread, &news);
    send_round(thread, &news);
    received = reads ? receive_some(thread, room, &news, &rest) : 0;
  }
  move_all(&orders, &thread->outgoing);
  return NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void take_some(qk_data_thread_t *thread) {
  while (!qk_link_alone(&thread->taken) && !qk_loop_time_is_up(thread->loop)) {
    qk_parcel_t *p = QK_HOLDER(thread->taken.next, qk_parcel_t, link);
    qk_link_remove(&p->link);
    thread->sending -= p->kind == QK_PARCEL_SEND && p->transfer;
    thread->take(thread->arg, thread, p);
  }
}

void qk_data_thread_collect(qk_data_thread_t *thread) {
  pthread_mutex_lock(&thread->lock);
  move_all(&thread->news, &thread->taken);
  pthread_mutex_unlock(&thread->lock);
}

static void on_news(uv_async_t *async) {
  qk_data_thread_t *thread = async->data;
  qk_data_thread_collect(thread);
  qk_loop_share(thread->loop);
  take_some(thread);
  if (!qk_link_alone(&thread->taken)) uv_async_send(&thread->wakes_loop);
}

/* Without a thread. */
static void on_readable(void *arg) {
  qk_data_thread_t *thread = arg;
  bool starved;
  for (qk_parcel_t *p; (p = arrival(thread, &starved)) != NULL;) {
    thread->room--;
    thread->share = 1;
    thread->take(thread->arg, thread, p);
    if (qk_loop_is_enough(thread->loop, thread->share, false)) return;
  }
  if (starved) qk_loop_rest(thread->loop, &thread->sock);
}

qk_parcel_t *qk_parcel_to_send(const qk_peer_t *peer, const qk_frame_t *frame) {
  qk_parcel_t *p = create(QK_PARCEL_SEND);
  if (!p) return NULL;
  p->peer = *peer;
  p->frame = *frame;
  return p;
}

void qk_parcel_answer(qk_parcel_t *p, const qk_frame_t *frame) {
  p->kind = QK_PARCEL_SEND;
  p->frame = *frame;
}

void qk_data_thread_order(qk_data_thread_t *thread, qk_parcel_t *p) {
  thread->sending += p->kind == QK_PARCEL_SEND && p->transfer;
  if (thread->threaded) {
    pthread_mutex_lock(&thread->lock);
    qk_list_append(&thread->orders, &p->link);
    pthread_mutex_unlock(&thread->lock);
    wake(thread->wakes_thread);
    return;
  }
  while (p->kind == QK_PARCEL_WRITE ? write_payload(p) : send_some(thread, p)) continue;
  thread->sending -= p->kind == QK_PARCEL_SEND && p->transfer;
  thread->take(thread->arg, thread, p);
}

void qk_data_thread_done(qk_data_thread_t *thread, qk_parcel_t *p, bool work, double share) {
  const bool arrived = p->takes_room;
  const uint64_t debt = arrived && !work ? (uint64_t)((double)p->cost / share) : 0;
  destroy(p);
  if (!arrived) return;
  if (!work) thread->share = share;
  pthread_mutex_lock(&thread->lock);
  const bool full = thread->room++ == 0;
  thread->debt += debt;
  pthread_mutex_unlock(&thread->lock);
  if (full && thread->threaded) wake(thread->wakes_thread);
}

qk_status_t qk_data_thread_start(qk_data_thread_t *thread, qk_loop_t *loop, bool threaded,
                                 qk_data_thread_fn *take, void *arg, qk_err_t *err) {
  thread->loop = loop;
  thread->take = take;
  thread->arg = arg;
  thread->room = QK_DATA_ROOM;
  qk_link_init(&thread->taken);
  qk_link_init(&thread->outgoing);
  qk_link_init(&thread->writing);
  qk_link_init(&thread->orders);
  qk_link_init(&thread->news);
  pthread_mutex_init(&thread->lock, NULL);
  if (!threaded)
    return qk_loop_attach(loop, &thread->sock, thread->socket, on_readable, thread, err);
  thread->wakes_thread = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (thread->wakes_thread < 0) return qk_fail(err, QK_INTERNAL, "eventfd: %s", strerror(errno));
  uv_async_init(&loop->uv, &thread->wakes_loop, on_news);
  thread->wakes_loop.data = thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int e = pthread_create(&thread->handle, NULL, run, thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (e != 0) {
    close(thread->wakes_thread);
    return qk_fail(err, QK_INTERNAL, "data thread %d: %s", thread->index, strerror(e));
  }
  pthread_setname_np(thread->handle, "quarkd-data");
  thread->threaded = true;
  return QK_OK;
}

/* A parcel that nobody waits for any more. */
static void throw_away(qk_link_t *list) {
  while (!qk_link_alone(list)) {
    qk_parcel_t *p = QK_HOLDER(list->next, qk_parcel_t, link);
    if (p->kind == QK_PARCEL_WRITE) qk_transfer_finish(p->chunk.transfer);
    if (p->kind == QK_PARCEL_SEND && p->transfer) qk_transfer_finish(p->transfer);
    destroy(p);
  }
}

void qk_data_thread_stop(qk_data_thread_t *thread) {
  if (!thread->loop) return;
  if (thread->threaded) {
    pthread_mutex_lock(&thread->lock);
    thread->stop = true;
    pthread_mutex_unlock(&thread->lock);
    wake(thread->wakes_thread);
    pthread_join(thread->handle, NULL);
    close(thread->wakes_thread);
  } else {
    qk_loop_detach(&thread->sock, NULL);
  }
  throw_away(&thread->orders);
  throw_away(&thread->outgoing);
  throw_away(&thread->writing);
  throw_away(&thread->news);
  throw_away(&thread->taken);
  pthread_mutex_destroy(&thread->lock);
  thread->loop = NULL;
}
