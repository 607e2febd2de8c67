/* Requests: bricks to the daemon, and back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "base/grid.h"
#include "base/layout.h"
#include "base/say.h"
#include "base/threads.h"
#include "connection.h"
#include "fields.h"
#include "setups.h"
#include "work.h"

enum { COLUMNS = 128, NUMBERS = 24 }; /* right-hand sides of a request; reals a site */
enum { CHUNK = 1 << 20 };             /* bytes that a thread puts in order at a time */

static qk_quda_sites_t results(const qk_quda_job_t *job) {
  return job->parity == QUARK_PARITY_ALL    ? QK_QUDA_ALL
         : job->parity == QUARK_PARITY_EVEN ? QK_QUDA_EVEN
                                            : QK_QUDA_ODD;
}

static qk_quda_sites_t sources(const qk_quda_job_t *job) {
  const qk_quda_sites_t out = results(job);
  const bool hops = job->work == QUARK_WORK_HOP || job->work == QUARK_WORK_DIAG_INVERSE_HOP;
  if (!hops || out == QK_QUDA_ALL) return out;
  return out == QK_QUDA_EVEN ? QK_QUDA_ODD : QK_QUDA_EVEN;
}

/* QUARK_QUDA_WIRE: what is solved goes in single precision. */
static quark_dtype_t wire_of(const qk_quda_job_t *job) {
  const char *wish = qk_quda_setting("WIRE");
  if (wish && strcmp(wish, "f32") != 0)
    qk_quda_refuse("QUARK_QUDA_WIRE = %.60s: must be f32, or not set", wish);
  return wish && job->work == QUARK_WORK_SOLVE ? QUARK_F32 : job->dtype;
}

static qk_quda_move_t move_of(const qk_quda_job_t *job, qk_quda_sites_t sites, bool results) {
  return (qk_quda_move_t){.shape = job->shape,
                          .sites = sites,
                          .in_order = job->in_order,
                          .reals = NUMBERS,
                          .brick_dtype = job->dtype,
                          .part_dtype = wire_of(job),
                          .twist = job->op->links->twist,
                          .conjugate = results,
                          .factor = results ? job->factor : 1};
}

static size_t part_bytes_of(const qk_quda_move_t *move) {
  return qk_quda_rows(&move->shape) * qk_quda_row_bytes(move);
}

/* ---- a request of rank 0 ---- */

static void describe(const qk_quda_job_t *job, int n, quark_params_t *params) {
  quark_params_init(params);
  params->nrhs = (uint32_t)n;
  params->dtype = wire_of(job);
  params->basis = job->basis;
  params->work = job->work;
  params->dagger = job->dagger;
  params->parity = job->parity;
  params->schur = job->schur;
  if (job->op->mu < 0) params->flavour = -1;
  params->batch_only = job->work == QUARK_WORK_SOLVE; /* the same bits for any number of sources */
  if (job->work == QUARK_WORK_SOLVE) {
    params->tol = job->tol, params->tol_abs = job->tol_abs, params->tol_hq = job->tol_hq;
    if (job->max_iter) params->max_iter = job->max_iter;
  }
}

/* 0: the daemon has never room for so many, but may have for fewer. */
static uint64_t submit(const qk_quda_job_t *job, int n, size_t part_bytes) {
  quark_params_t params;
  quark_error_t err;
  uint64_t request, field_bytes;
  describe(job, n, &params);
  for (double begun = qk_quda_now();;) {
    params.setup = qk_quda_setup(job->op);
    const bool joins = qk_quda_joins();
    for (int mu = 0; mu < 4; mu++) params.grid[mu] = joins ? (uint32_t)job->shape.grid[mu] : 0;
    params.part = joins ? (int32_t)qk_quda_part(&job->shape) : -1;
    if (quark_submit(qk_quda_daemon(), &params, &request, &field_bytes, &err) == QUARK_OK) {
      if (qk_quda_setup_holds(job->op)) break;
      quark_release(qk_quda_daemon(), request, NULL);
      qk_quda_setup_lost(job->op);
      continue;
    }
    if (err.code == QUARK_UNSUPPORTED && (params.batch_only || joins)) {
      if (!params.batch_only) qk_quda_joins_not(); /* both are tried; then this one again */
      params.batch_only = !params.batch_only && job->work == QUARK_WORK_SOLVE;
      continue;
    }
    if (err.code == QUARK_TOO_LARGE && n > 1) return 0;
    if (err.code == QUARK_NOT_FOUND)
      err.retryable = true; /* another made it go: it is loaded again */
    if (err.code == QUARK_NOT_FOUND) qk_quda_setup_lost(job->op);
    qk_quda_again("submitting", &err, begun);
  }
  if (!qk_quda_joins()) part_bytes *= (size_t)qk_quda_ranks();
  if (field_bytes != part_bytes)
    qk_quda_refuse("the daemon expects fields of %llu bytes, not %zu",
                   (unsigned long long)field_bytes, part_bytes);
  return request;
}

/* How it ended. What did not converge is the caller's to judge. */
static void note_outcome(const quark_result_t *r, qk_quda_outcome_t *out) {
  if (r->status != QUARK_OK && r->status != QUARK_NOT_CONVERGED && r->status != QUARK_BREAKDOWN) {
    quark_error_t err = {.code = r->status, .retryable = quark_code_retryable(r->status)};
    memcpy(err.text, r->text, sizeof r->text);
    qk_quda_fail("right-hand side", &err);
  }
  if (r->status != QUARK_OK)
    qk_quda_note("right-hand side %u: %s: %s", r->rhs, quark_code_name(r->status), r->text);
  *out = (qk_quda_outcome_t){.converged = r->status == QUARK_OK,
                             .residual = r->true_residual,
                             .hq_residual = r->hq_residual,
                             .iterations = r->iterations};
}

static void wait_for(uint64_t request, int rhs, quark_result_t *result) {
  quark_error_t err;
  if (quark_wait(qk_quda_daemon(), request, (uint32_t)rhs, -1, result, &err) != QUARK_OK)
    qk_quda_fail("waiting", &err);
}

/* ---- rows, by threads ---- */

typedef struct rows {
  const qk_quda_move_t *move;
  size_t first, end, pieces;
  const void *from; /* a brick; or a part, from row first on, or NULL */
  void *to;
  bool to_part;
  bool *written; /* to_part: of each row, false as long as it is zero; NULL: not known */
} rows_t;

/* Rows of zeros are not written where they are zero: those pages take no memory, and are not read
 * by the daemon. */
static void write_rows(const rows_t *r, size_t first, size_t end) {
  const size_t bytes = qk_quda_row_bytes(r->move);
  for (size_t row = first; row < end; row++) {
    if (!r->written[row] && qk_quda_row_is_zero(r->move, row, r->from)) continue;
    r->written[row] = true;
    qk_quda_rows_to_part(r->move, row, row + 1, r->from, (char *)r->to + row * bytes);
  }
}

static void move_rows(void *arg, size_t piece) {
  const rows_t *r = arg;
  const size_t n = r->end - r->first, first = piece * n / r->pieces,
               end = (piece + 1) * n / r->pieces, at = first * qk_quda_row_bytes(r->move);
  if (r->written)
    write_rows(r, first, end);
  else if (r->to_part)
    qk_quda_rows_to_part(r->move, r->first + first, r->first + end, r->from, (char *)r->to + at);
  else
    qk_quda_rows_to_brick(r->move, r->first + first, r->first + end,
                          r->from ? (const char *)r->from + at : NULL, r->to);
}

static rows_t all_rows(const qk_quda_move_t *move, bool to_part, const void *from, void *to) {
  return (rows_t){.move = move,
                  .end = qk_quda_rows(&move->shape),
                  .pieces = 4 * qk_quda_threads(),
                  .from = from,
                  .to = to,
                  .to_part = to_part};
}

/* ---- bricks in the memory of a GPU ---- */

/* Sources or results of the caller. Those of a GPU pass through memory of this process. */
typedef struct bricks {
  void *const *at;
  bool device;
  size_t bytes;  /* of a brick */
  void *room[2]; /* device: column k in room[k % 2] */
} bricks_t;

static bricks_t bricks_of(const qk_quda_move_t *move, void *const *at, bool device) {
  const size_t real = move->brick_dtype == QUARK_F64 ? sizeof(double) : sizeof(float);
  bricks_t b = {.at = at,
                .device = device,
                .bytes = qk_quda_local_sites(&move->shape, move->sites) * move->reals * real};
  for (int k = 0; device && k < 2; k++) b.room[k] = qk_quda_alloc(b.bytes);
  return b;
}

static void free_bricks(bricks_t *b) {
  free(b->room[0]);
  free(b->room[1]);
}

/* Where a brick is read or written. */
static void *brick_at(const bricks_t *b, size_t k) {
  return b->device ? b->room[k % 2] : b->at[k];
}
static void *source_at(const bricks_t *b, size_t k) {
  if (b->device) qk_quda_device_get(b->room[k % 2], b->at[k], b->bytes);
  return brick_at(b, k);
}
static void result_is_there(const bricks_t *b, size_t k) {
  if (b->device) qk_quda_device_put(b->at[k], b->room[k % 2], b->bytes);
}

/* ---- each rank its part ---- */

/* Memory that the daemon reads a column from. */
typedef struct outgoing {
  quark_buffer_t *buffer;
  void *data;
  bool *written;
} outgoing_t;

static bool make_outgoing(size_t bytes, size_t rows, outgoing_t *o) {
  if (quark_buffer_create(bytes, &o->buffer, &o->data, NULL) != QUARK_OK) return false;
  o->written = qk_quda_alloc(rows * sizeof *o->written);
  memset(o->written, 0, rows * sizeof *o->written);
  return true;
}

/* To a daemon on this machine: threads write each column into memory that it reads, one while it
 * takes the other. False: there is no such memory. */
static bool put_parts(const qk_quda_move_t *move, uint64_t request, const bricks_t *bricks, int n) {
  const size_t rows = qk_quda_rows(&move->shape), bytes = part_bytes_of(move);
  outgoing_t room[2] = {0};
  quark_error_t err;
  const bool there = make_outgoing(bytes, rows, &room[0]) && make_outgoing(bytes, rows, &room[1]);
  for (int k = 0; there && k < n; k++) {
    outgoing_t *o = &room[k % 2];
    if (quark_buffer_wait(o->buffer, -1, &err) != QUARK_OK) qk_quda_fail("sending a source", &err);
    rows_t r = all_rows(move, true, source_at(bricks, (size_t)k), o->data);
    r.written = o->written;
    qk_quda_parallel(move_rows, &r, r.pieces);
    if (quark_put(qk_quda_daemon(), request, (uint32_t)k, o->buffer, 0, &err) != QUARK_OK)
      qk_quda_fail("sending a source", &err);
  }
  for (int k = 0; k < 2; k++) {
    quark_buffer_destroy(room[k].buffer);
    free(room[k].written);
  }
  return there;
}

/* The stream of all parts, in chunks that stay in the cache: one is sent, the next put in order. */
static void send_parts(const qk_quda_move_t *move, uint64_t request, const bricks_t *bricks,
                       int n) {
  const size_t rows = qk_quda_rows(&move->shape), row_bytes = qk_quda_row_bytes(move);
  size_t step = CHUNK * qk_quda_threads() / row_bytes;
  if (step < 1) step = 1;
  if (step > rows) step = rows;
  const size_t chunks = (rows + step - 1) / step, all = (size_t)n * chunks;
  char *room[2] = {qk_quda_alloc(step * row_bytes), qk_quda_alloc(step * row_bytes)};
  rows_t chunk[2];
  const void *brick = NULL;
  quark_error_t err;
  for (size_t k = 0; k <= all; k++) {
    qk_quda_finish();
    if (k < all) {
      const size_t first = k % chunks * step, end = first + step < rows ? first + step : rows;
      if (first == 0) brick = source_at(bricks, k / chunks);
      chunk[k % 2] = (rows_t){.move = move,
                              .first = first,
                              .end = end,
                              .pieces = qk_quda_threads(),
                              .from = brick,
                              .to = room[k % 2],
                              .to_part = true};
      qk_quda_start(move_rows, &chunk[k % 2], chunk[k % 2].pieces);
    }
    if (k == 0) continue;
    const rows_t *ready = &chunk[(k - 1) % 2];
    if (quark_upload(qk_quda_daemon(), request, ready->to, (ready->end - ready->first) * row_bytes,
                     &err) != QUARK_OK)
      qk_quda_fail("sending a source", &err);
  }
  free(room[0]);
  free(room[1]);
}

/* A result on its way to the caller. */
typedef struct arrival {
  quark_view_t view;
  void *room; /* where there is no shared memory */
  rows_t rows;
} arrival_t;

static void leave(uint64_t request, int rhs, arrival_t *a, const bricks_t *bricks) {
  qk_quda_finish();
  quark_view_close(&a->view);
  quark_ack(qk_quda_daemon(), request, rhs, NULL);
  result_is_there(bricks, (size_t)rhs);
}

static void fetch_parts(const qk_quda_move_t *move, uint64_t request, const bricks_t *bricks, int n,
                        qk_quda_outcome_t *outcome) {
  const size_t bytes = part_bytes_of(move);
  arrival_t arrival[2] = {{.room = qk_quda_alloc(bytes)}, {.room = qk_quda_alloc(bytes)}};
  quark_error_t err;
  for (int k = 0; k < n; k++) {
    arrival_t *a = &arrival[k % 2];
    qk_quda_outcome_t seen;
    quark_result_t r;
    wait_for(request, k, &r);
    note_outcome(&r, &seen);
    if (r.bytes > 0 && quark_view_open(qk_quda_daemon(), request, (uint32_t)k, a->room, bytes,
                                       &a->view, &err) != QUARK_OK)
      qk_quda_fail("fetching a solution", &err);
    if (k > 0) leave(request, k - 1, &arrival[(k - 1) % 2], bricks);
    a->rows = all_rows(move, false, a->view.data, brick_at(bricks, (size_t)k));
    qk_quda_start(move_rows, &a->rows, a->rows.pieces);
    if (outcome) outcome[k] = seen;
  }
  if (n > 0) leave(request, n - 1, &arrival[(n - 1) % 2], bricks);
  free(arrival[0].room);
  free(arrival[1].room);
}

/* ---- through rank 0 ---- */

/* A whole field on rank 0. */
typedef struct passage {
  qk_quda_move_t move;
  void *room;        /* whole; of this process */
  const void *whole; /* room, or memory of the daemon; NULL: zeros */
} passage_t;

static void take_part(void *arg, int rank, const void *part) {
  passage_t *p = arg;
  qk_quda_grid_coord(rank, p->move.shape.coord);
  qk_quda_part_to_whole(&p->move, part, p->room);
}

static void give_part(void *arg, int rank, void *part) {
  passage_t *p = arg;
  qk_quda_grid_coord(rank, p->move.shape.coord);
  if (p->whole)
    qk_quda_whole_to_part(&p->move, p->whole, part);
  else
    memset(part, 0, part_bytes_of(&p->move));
}

static void send_gathered(const qk_quda_move_t *move, uint64_t request, const bricks_t *bricks,
                          int n, void *part, void *room) {
  const size_t bytes = part_bytes_of(move);
  passage_t p = {.move = *move, .room = room};
  quark_error_t err;
  for (int k = 0; k < n; k++) {
    rows_t rows = all_rows(move, true, source_at(bricks, (size_t)k), part);
    qk_quda_parallel(move_rows, &rows, rows.pieces);
    qk_quda_gather(part, bytes, take_part, &p);
    if (qk_quda_rank() == 0 && quark_upload(qk_quda_daemon(), request, room,
                                            bytes * (size_t)qk_quda_ranks(), &err) != QUARK_OK)
      qk_quda_fail("sending a source", &err);
  }
}

static void fetch_gathered(const qk_quda_move_t *move, uint64_t request, const bricks_t *bricks,
                           int n, void *part, void *room, qk_quda_outcome_t *outcome) {
  const size_t bytes = part_bytes_of(move);
  quark_error_t err;
  for (int k = 0; k < n; k++) {
    passage_t p = {.move = *move, .room = room};
    quark_view_t view = {0};
    qk_quda_outcome_t seen;
    if (qk_quda_rank() == 0) {
      quark_result_t r;
      wait_for(request, k, &r);
      note_outcome(&r, &seen);
      if (r.bytes > 0 && quark_view_open(qk_quda_daemon(), request, (uint32_t)k, room,
                                         bytes * (size_t)qk_quda_ranks(), &view, &err) != QUARK_OK)
        qk_quda_fail("fetching a solution", &err);
      p.whole = view.data;
    }
    qk_quda_scatter(part, bytes, give_part, &p);
    quark_view_close(&view);
    if (qk_quda_rank() == 0) quark_ack(qk_quda_daemon(), request, k, NULL);
    qk_quda_broadcast(&seen, sizeof seen);
    rows_t rows = all_rows(move, false, part, brick_at(bricks, (size_t)k));
    qk_quda_parallel(move_rows, &rows, rows.pieces);
    result_is_there(bricks, (size_t)k);
    if (outcome) outcome[k] = seen;
  }
}

/* ---- requests ---- */

static void run_gathered(const qk_quda_move_t *in, const qk_quda_move_t *out, uint64_t request,
                         const bricks_t *from, const bricks_t *to, int n,
                         qk_quda_outcome_t *outcome) {
  const size_t bytes = part_bytes_of(in);
  void *part = qk_quda_alloc(bytes);
  void *room = qk_quda_rank() == 0 ? qk_quda_alloc(bytes * (size_t)qk_quda_ranks()) : NULL;
  send_gathered(in, request, from, n, part, room);
  fetch_gathered(out, request, to, n, part, room, outcome);
  free(part);
  free(room);
}

/* False: so many are too many. */
static bool run_some(const qk_quda_job_t *job, int first, int n, qk_quda_outcome_t *outcome) {
  const qk_quda_move_t in = move_of(job, sources(job), false),
                       out = move_of(job, results(job), true);
  const bool owner = qk_quda_rank() == 0;
  qk_quda_ticket_t ticket = {0};
  qk_quda_joins(); /* all ranks connect */
  if (owner) {
    const uint64_t request = submit(job, n, part_bytes_of(&in));
    if (request) qk_quda_ticket(request, qk_quda_joins(), &ticket);
    qk_quda_dismiss(&ticket);
  } else {
    qk_quda_attend(job->op, &ticket);
  }
  if (!ticket.request) return false;
  const uint64_t mine =
      owner || !ticket.joins ? ticket.request : qk_quda_join(&ticket, &job->shape);
  bricks_t from = bricks_of(&in, job->in + first, job->in_device),
           to = bricks_of(&out, job->out + first, job->out_device);
  if (ticket.joins || qk_quda_ranks() == 1) {
    if (!(quark_local(qk_quda_daemon()) && put_parts(&in, mine, &from, n)))
      send_parts(&in, mine, &from, n);
    fetch_parts(&out, mine, &to, n, outcome);
    qk_quda_barrier(); /* rank 0 ends the request for all */
  } else {
    run_gathered(&in, &out, ticket.request, &from, &to, n, outcome);
  }
  free_bricks(&from);
  free_bricks(&to);
  if (owner || ticket.joins) quark_release(qk_quda_daemon(), mine, NULL);
  return true;
}

void qk_quda_run(const qk_quda_job_t *job, qk_quda_outcome_t *outcome) {
  static int most = COLUMNS; /* that the daemon has room for, as far as is known */
  for (int first = 0; first < job->n;) {
    const int n = job->n - first < most ? job->n - first : most;
    if (run_some(job, first, n, outcome ? outcome + first : NULL))
      first += n;
    else
      most = n / 2;
  }
}

/* ---- norms over ranks ---- */

typedef struct norms {
  double of_a, of_difference;
} norms_t;

static void add_norms(void *arg, int rank, const void *brick) {
  norms_t *sum = arg;
  const norms_t *one = brick;
  (void)rank;
  sum->of_a += one->of_a;
  sum->of_difference += one->of_difference;
}

double qk_quda_difference(const qk_quda_job_t *job, const void *a, const void *b) {
  const size_t n = qk_quda_local_sites(&job->shape, results(job)) * NUMBERS;
  const double *u = a, *v = b;
  norms_t mine = {0}, sum = {0};
  for (size_t k = 0; k < n; k++) {
    mine.of_a += u[k] * u[k];
    mine.of_difference += (u[k] - v[k]) * (u[k] - v[k]);
  }
  qk_quda_gather(&mine, sizeof mine, add_norms, &sum);
  qk_quda_broadcast(&sum, sizeof sum);
  return sum.of_a > 0 ? sqrt(sum.of_difference / sum.of_a) : sqrt(sum.of_difference);
}
