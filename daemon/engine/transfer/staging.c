#include "daemon/engine/transfer/staging.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/launch/launch.h"
#include "daemon/engine/transfer/copy_threads.h"

enum {
  BUFFERS_MAX = 3 * QK_STAGING_MAX,
  PIECE_BYTES = 4 << 20,
  AT_ONCE = 2 /* buffers of each direction that are there from the beginning */
};
_Static_assert(QK_PINNED_PIECE % PIECE_BYTES == 0, "no copy crosses the edge of a piece");

typedef enum buffer_state {
  COMING, /* its pinned memory is not ready */
  FREE,
  MOVING,   /* between shared and pinned memory */
  STANDING, /* where its copy begins: in pinned memory, or on the device */
  COPYING,  /* between the two */
  DONE
} buffer_state_t;

struct qk_buffer {
  buffer_state_t state;
  bool out, dropped;
  void *host, *device; /* a local vector in double each */
  qk_move_t move;
  qk_err_t err; /* DONE: what has gone wrong */
};

struct qk_staging {
  const qk_device_t *dev;
  qk_wire_t *wire;
  qk_copy_threads_t *mover;
  qk_pinned_t *pinned; /* borrowed: the buffers from pinned_first on */
  int pinned_first;
  int in, n; /* the first `in` of n are in, the others out */
  qk_buffer_t buffer[BUFFERS_MAX];
  int coming[BUFFERS_MAX]; /* the order in which buffers get pinned memory ... */
  int joined;              /* ... and how many of them have it on all ranks */
};

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t make_buffers(qk_staging_t *stage) {
  const qk_device_t *dev = stage->dev;
  const size_t bytes = qk_wire_part_bytes(stage->wire, true);
  qk_status_t status = QK_OK;
  for (int i = 0; i < stage->n && status == QK_OK; i++) {
    qk_buffer_t *b = &stage->buffer[i];
    b->out = i >= stage->in;
    b->move.segment.fd = -1;
    status = dev->ops->alloc(dev->ctx, bytes, &b->device);
  }
  return status;
}

/* Both directions in proportion to their numbers, one of each first. */
static void put_in_order(qk_staging_t *stage) {
  const int nin = stage->in, nout = stage->n - nin;
  for (int in = 0, out = 0; in + out < stage->n;) {
    const bool next_in = in < nin && (out == nout || in * nout <= out * nin);
    stage->coming[in + out] = next_in ? in : nin + out;
    in += next_in;
    out += !next_in;
  }
}

/* The first `ready` of those that come are free. */
static void join(qk_staging_t *stage, int ready) {
  for (; stage->joined < ready; stage->joined++) {
    const int i = stage->coming[stage->joined];
    stage->buffer[i].host = qk_pinned_buffer(stage->pinned, stage->pinned_first + stage->joined);
    stage->buffer[i].state = FREE;
  }
}

/* As many as are needed for a few of each direction; the others are not waited for. */
static void join_first(qk_staging_t *stage) {
  const int nout = stage->n - stage->in;
  int want[2] = {stage->in < AT_ONCE ? stage->in : AT_ONCE, nout < AT_ONCE ? nout : AT_ONCE};
  int first = 0;
  while (want[false] > 0 || want[true] > 0) want[stage->buffer[stage->coming[first++]].out]--;
  if (first == 0) return;
  qk_pinned_await(stage->pinned, stage->pinned_first + first);
  join(stage, first);
}

/* Those that have become ready on all ranks. */
static qk_status_t join_others(qk_staging_t *stage) {
  if (stage->joined == stage->n) return QK_OK;
  int ready = qk_pinned_ready(stage->pinned) - stage->pinned_first;
  double least = -(double)(ready < stage->n ? ready : stage->n);
  const qk_status_t status = qk_comm_max(stage->dev->geom->comm, &least, 1);
  if (status == QK_OK) join(stage, (int)-least);
  return status;
}

qk_status_t qk_staging_create(const qk_device_t *dev, qk_wire_t *wire, qk_pinned_t *pinned,
                              int first, int in, int out, qk_staging_t **stage, qk_err_t *err) {
  qk_staging_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status =
      s != NULL ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory for staging buffers");
  QK_ASSERT(in >= 0 && out >= 0 && in + out <= BUFFERS_MAX);
  if (s != NULL) {
    s->dev = dev;
    s->wire = wire;
    s->pinned = pinned;
    s->pinned_first = first;
    if (qk_wire_is_local(wire)) {
      s->in = in;
      s->n = in + out;
    }
    put_in_order(s);
    status = qk_device_explain(dev, make_buffers(s), err);
    if (status == QK_OK && s->n > 0)
      status =
          qk_copy_threads_create(wire, qk_launch_spare_threads(dev->geom->comm), &s->mover, err);
    if (status == QK_OK) join_first(s);
  }
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status != QK_OK) {
    qk_staging_destroy(s);
    return status;
  }
  *stage = s;
  return QK_OK;
}

void qk_staging_destroy(qk_staging_t *stage) {
  if (stage == NULL) return;
  const qk_device_t *dev = stage->dev;
  qk_copy_threads_destroy(stage->mover);
  for (int i = 0; i < stage->n; i++) {
    qk_buffer_t *b = &stage->buffer[i];
    qk_segment_close(&b->move.segment);
    if (b->device != NULL) dev->ops->free(dev->ctx, b->device);
  }
  qk_free(stage);
}

/* ---- queries --------------------------------------------------------------------------------- */

static qk_buffer_t *find_free(const qk_staging_t *stage, bool out) {
  for (int i = 0; i < stage->n; i++) {
    const qk_buffer_t *b = &stage->buffer[i];
    if (b->out == out && b->state == FREE) return (qk_buffer_t *)b;
  }
  return NULL;
}

bool qk_staging_exists(const qk_staging_t *stage) {
  return stage->n > 0;
}

static int count_free(const qk_staging_t *stage, bool out) {
  int n = 0;
  for (int i = 0; i < stage->n; i++)
    n += stage->buffer[i].out == out && stage->buffer[i].state == FREE;
  return n;
}

int qk_staging_vacant(const qk_staging_t *stage) {
  return count_free(stage, false);
}

int qk_staging_room(const qk_staging_t *stage) {
  return count_free(stage, true);
}

bool qk_buffer_done(const qk_buffer_t *buffer) {
  return buffer->state == DONE;
}

/* ---- moving on ------------------------------------------------------------------------------- */

/* A device has an engine for copies in each direction: what comes does not wait for what goes. */
static int queue_of(bool out) {
  return out ? 2 : 1;
}

/* Bytes [at, end), in pieces: a device makes copies one by one, and halos must not stand behind
 * whole fields. */
static qk_status_t copy_span(const qk_staging_t *stage, const qk_buffer_t *b, size_t at,
                             size_t end) {
  const qk_device_t *dev = stage->dev;
  const qk_copy_t kind = b->out ? QK_COPY_TO_HOST : QK_COPY_TO_DEVICE;
  char *to = b->out ? b->host : b->device, *from = b->out ? b->device : b->host;
  qk_status_t status = QK_OK;
  for (size_t n; at < end && status == QK_OK; at += n) {
    n = PIECE_BYTES - at % PIECE_BYTES;
    if (n > end - at) n = end - at;
    status = dev->ops->copy(dev->ctx, to + at, from + at, n, kind, queue_of(b->out));
  }
  return status;
}

static qk_status_t zero_span(const qk_staging_t *stage, const qk_buffer_t *b, size_t at,
                             size_t end) {
  const qk_device_t *dev = stage->dev;
  if (at == end) return QK_OK;
  return dev->ops->zero(dev->ctx, (char *)b->device + at, end - at, queue_of(b->out));
}

/* What has come, and zeros beside it. */
static qk_status_t copy(const qk_staging_t *stage, const qk_buffer_t *b) {
  const qk_segment_t *segment = &b->move.segment;
  const size_t vector = qk_wire_vector_bytes(stage->wire, segment->is_double);
  const size_t bytes = qk_wire_part_bytes(stage->wire, segment->is_double);
  qk_status_t status = QK_OK;
  for (size_t v = 0; v * vector < bytes && status == QK_OK; v++) {
    size_t at, n;
    qk_segment_span(stage->wire, segment, (int)v, &at, &n);
    const size_t edge[] = {v * vector, at, at + n, (v + 1) * vector};
    for (int k = 0; k < 3 && status == QK_OK; k++)
      status = (k == 1 ? copy_span : zero_span)(stage, b, edge[k], edge[k + 1]);
  }
  return status;
}

static void start_move(qk_staging_t *stage, qk_buffer_t *b) {
  b->state = MOVING;
  b->move.part = b->host;
  b->move.write = b->out;
  qk_copy_threads_start(stage->mover, &b->move);
}

static void make_free(qk_buffer_t *b) {
  qk_segment_close(&b->move.segment);
  b->state = FREE;
  b->dropped = false;
  b->err = (qk_err_t){0};
}

static void settle(qk_buffer_t *b) {
  b->state = DONE;
  if (b->dropped) make_free(b);
}

static bool any_copying(const qk_staging_t *stage, bool out) {
  for (int i = 0; i < stage->n; i++)
    if (stage->buffer[i].state == COPYING && stage->buffer[i].out == out) return true;
  return false;
}

/* busy[out]: whether copies in that direction have something to do yet, on any rank. */
static qk_status_t find_busy(qk_staging_t *stage, uint64_t busy[2]) {
  const qk_device_t *dev = stage->dev;
  qk_status_t status = QK_OK;
  for (int out = 0; out < 2 && status == QK_OK; out++) {
    bool idle = true;
    status = dev->ops->queue_idle(dev->ctx, queue_of(out), &idle);
    busy[out] = !idle;
  }
  if (status != QK_OK || qk_comm_size(dev->geom->comm) == 1) return status;
  return qk_comm_sum_u64(dev->geom->comm, busy, 2);
}

static qk_status_t await(qk_staging_t *stage) {
  const qk_device_t *dev = stage->dev;
  qk_status_t status = QK_OK;
  for (int out = 0; out < 2 && status == QK_OK; out++)
    if (any_copying(stage, out)) status = dev->ops->queue_sync(dev->ctx, queue_of(out));
  return status;
}

static qk_status_t end_copies(qk_staging_t *stage, bool wait) {
  uint64_t busy[2] = {0};
  if (!any_copying(stage, false) && !any_copying(stage, true)) return QK_OK;
  qk_status_t status = wait ? await(stage) : find_busy(stage, busy);
  for (int i = 0; i < stage->n && status == QK_OK; i++) {
    qk_buffer_t *b = &stage->buffer[i];
    if (b->state != COPYING || busy[b->out]) continue;
    if (b->out)
      start_move(stage, b);
    else
      settle(b);
  }
  return status;
}

/* late[i]: on how many ranks buffer i is on the move. */
static qk_status_t find_late(qk_staging_t *stage, uint64_t late[], bool *any) {
  qk_comm_t *comm = stage->dev->geom->comm;
  *any = false;
  for (int i = 0; i < stage->n; i++) {
    const qk_buffer_t *b = &stage->buffer[i];
    late[i] = b->state == MOVING && !qk_copy_threads_done(stage->mover, &b->move);
    *any = *any || b->state == MOVING;
  }
  return *any && qk_comm_size(comm) > 1 ? qk_comm_sum_u64(comm, late, stage->n) : QK_OK;
}

static qk_status_t end_move(qk_staging_t *stage, qk_buffer_t *b) {
  const qk_device_t *dev = stage->dev;
  b->err = b->move.err;
  qk_status_t status = qk_comm_agree(dev->geom->comm, b->err.code, &b->err);
  if (status >= QK_DEVICE_MEMORY) return status;
  if (b->out || b->err.code != QK_OK) {
    settle(b);
    return QK_OK;
  }
  b->state = STANDING;
  return QK_OK;
}

qk_status_t qk_staging_poll(qk_staging_t *stage, bool wait, qk_err_t *err) {
  uint64_t late[BUFFERS_MAX];
  bool any;
  qk_status_t status = join_others(stage);
  if (status == QK_OK) status = end_copies(stage, wait);
  if (status == QK_OK) status = find_late(stage, late, &any);
  for (int i = 0; i < stage->n && status == QK_OK && any; i++)
    if (stage->buffer[i].state == MOVING && late[i] == 0)
      status = end_move(stage, &stage->buffer[i]);
  return qk_device_explain(stage->dev, status, err);
}

qk_status_t qk_staging_copy(qk_staging_t *stage, qk_err_t *err) {
  const qk_device_t *dev = stage->dev;
  qk_status_t status = QK_OK;
  /* else a queue would not be idle between them */
  const bool begins[2] = {!any_copying(stage, false), !any_copying(stage, true)};
  for (int i = 0; i < stage->n && status == QK_OK; i++) {
    qk_buffer_t *b = &stage->buffer[i];
    if (b->state != STANDING || !begins[b->out]) continue;
    status = copy(stage, b);
    b->state = COPYING;
  }
  return qk_device_explain(dev, status, err);
}

/* ---- in -------------------------------------------------------------------------------------- */

qk_status_t qk_staging_load(qk_staging_t *stage, const qk_input_t *input, qk_buffer_t **buffer,
                            qk_err_t *verdict, qk_err_t *err) {
  qk_buffer_t *b = find_free(stage, false);
  *buffer = NULL;
  if (b == NULL) return QK_OK;
  qk_status_t status = qk_segment_open_input(stage->wire, input, &b->move.segment, verdict);
  if (status >= QK_DEVICE_MEMORY) *err = *verdict;
  if (status != QK_OK) return status >= QK_DEVICE_MEMORY ? status : QK_OK;
  start_move(stage, b);
  *buffer = b;
  return QK_OK;
}

/* Of vector number `vector`. */
static qk_rhs_args_t column_args(const qk_staging_t *stage, int n, qk_buffer_t *const buffer[],
                                 const double matrix[4][4][2], double factor,
                                 const qk_field_t *field, int vector) {
  const bool is_double = buffer[0]->move.segment.is_double;
  const size_t at = vector * qk_wire_vector_bytes(stage->wire, is_double);
  qk_rhs_args_t args = {.lat = stage->dev->geom->lat,
                        .field = qk_field_vector(field, vector).v,
                        .n = n,
                        .is_double = is_double,
                        .factor = factor};
  for (int k = 0; k < n; k++) args.wire[k] = (char *)buffer[k]->device + at;
  memcpy(args.basis, matrix, sizeof args.basis);
  return args;
}

qk_status_t qk_staging_import(qk_staging_t *stage, int n, qk_buffer_t *const buffer[],
                              const double matrix[4][4][2], const qk_field_t *field, int rhs,
                              qk_err_t *verdict, qk_err_t *err) {
  const qk_device_t *dev = stage->dev;
  const bool is_double = buffer[0]->move.segment.is_double;
  qk_status_t status = QK_OK;
  *verdict = (qk_err_t){0};
  for (int k = 0; k < n; k++) {
    QK_ASSERT(buffer[k]->state == DONE && !buffer[k]->out);
    QK_ASSERT(buffer[k]->err.code != QK_OK || buffer[k]->move.segment.is_double == is_double);
    if (verdict->code == QK_OK) *verdict = buffer[k]->err;
  }
  for (int v = 0; v < qk_field_vectors(field) && status == QK_OK; v++) {
    if (verdict->code != QK_OK) break;
    qk_rhs_args_t args = column_args(stage, n, buffer, matrix, 1, field, v);
    args.rhs = rhs;
    status = dev->ops->rhs_import(dev->ctx, &args);
  }
  for (int k = 0; k < n; k++) make_free(buffer[k]);
  if (verdict->code != QK_OK) return QK_OK;
  /* what the next ones in these buffers wait for */
  if (status == QK_OK) status = dev->ops->queue_wait(dev->ctx, queue_of(false), 0);
  return qk_device_explain(dev, status, err);
}

void qk_buffer_drop(qk_buffer_t *buffer) {
  if (buffer == NULL) return;
  buffer->dropped = true;
  if (buffer->state == DONE) make_free(buffer);
}

/* ---- out ------------------------------------------------------------------------------------- */

qk_status_t qk_staging_store(qk_staging_t *stage, qk_segment_t *segment,
                             const double matrix[4][4][2], double factor, const qk_field_t *field,
                             qk_buffer_t **buffer, qk_err_t *err) {
  const qk_device_t *dev = stage->dev;
  qk_buffer_t *b = find_free(stage, true);
  QK_ASSERT(b != NULL);
  b->move.segment = *segment;
  segment->fd = -1;
  qk_status_t status = QK_OK;
  for (int v = 0; v < qk_field_vectors(field) && status == QK_OK; v++) {
    const qk_rhs_args_t args = column_args(stage, 1, &b, matrix, factor, field, v);
    status = dev->ops->rhs_export(dev->ctx, &args);
  }
  /* what its copy waits for: not for what is put on queue 0 before the copy begins */
  if (status == QK_OK) status = dev->ops->queue_wait(dev->ctx, queue_of(true), 0);
  b->state = STANDING;
  *buffer = b;
  return qk_device_explain(dev, status, err);
}

void qk_buffer_stored(qk_buffer_t *buffer, qk_err_t *verdict) {
  QK_ASSERT(buffer->state == DONE && buffer->out);
  *verdict = buffer->err;
  make_free(buffer);
}
