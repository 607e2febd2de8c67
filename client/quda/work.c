/* Requests: bricks to whole fields, to the daemon, and back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "layout.h"
#include "say.h"
#include "setups.h"
#include "work.h"

enum { COLUMNS = 128, NUMBERS = 24 }; /* right-hand sides of a request; reals a site */

static size_t site_bytes(const qk_quda_job_t *job) {
  return (job->dtype == QUARK_F64 ? sizeof(double) : sizeof(float)) * NUMBERS;
}

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

/* A whole field on rank 0, between bricks and the daemon. */
typedef struct passage {
  const qk_quda_job_t *job;
  qk_quda_sites_t sites;
  void *room;        /* whole; of this process */
  const void *whole; /* room, or memory of the daemon */
} passage_t;

static void take_brick(void *arg, int rank, const void *brick) {
  passage_t *p = arg;
  int coord[4];
  qk_quda_grid_coord(rank, coord);
  qk_quda_to_whole(&p->job->shape, coord, p->sites, site_bytes(p->job), brick, p->room);
}

static void give_brick(void *arg, int rank, void *brick) {
  passage_t *p = arg;
  int coord[4];
  qk_quda_grid_coord(rank, coord);
  qk_quda_to_brick(&p->job->shape, coord, p->sites, site_bytes(p->job), p->whole, brick);
}

static void scale_brick(const qk_quda_job_t *job, void *brick) {
  const size_t n = qk_quda_local_sites(&job->shape, results(job)) * NUMBERS;
  double *d = brick;
  float *f = brick;
  if (job->factor == 1) return;
  for (size_t k = 0; k < n; k++)
    if (job->dtype == QUARK_F64)
      d[k] *= job->factor;
    else
      f[k] = (float)(job->factor * f[k]);
}

/* 0: the daemon has never room for so many, but may have for fewer. */
static uint64_t submit(const qk_quda_job_t *job, int n, size_t bytes) {
  quark_params_t params;
  quark_error_t err;
  uint64_t request, field_bytes;
  quark_params_init(&params);
  params.nrhs = (uint32_t)n;
  params.dtype = job->dtype;
  params.basis = job->basis;
  params.work = job->work;
  params.dagger = job->dagger;
  params.parity = job->parity;
  params.schur = job->schur;
  params.batch_only = job->work == QUARK_WORK_SOLVE; /* the same bits for any number of sources */
  if (job->work == QUARK_WORK_SOLVE) {
    params.tol = job->tol, params.tol_abs = job->tol_abs, params.tol_hq = job->tol_hq;
    if (job->max_iter) params.max_iter = job->max_iter;
  }
  for (double begun = qk_quda_now();;) {
    params.setup = qk_quda_setup(job->op);
    if (quark_submit(qk_quda_daemon(), &params, &request, &field_bytes, &err) == QUARK_OK) {
      if (qk_quda_setup_holds(job->op)) break;
      quark_release(qk_quda_daemon(), request, NULL);
      qk_quda_setup_lost(job->op);
      continue;
    }
    if (err.code == QUARK_UNSUPPORTED && params.batch_only) {
      params.batch_only = false;
      continue;
    }
    if (err.code == QUARK_TOO_LARGE && n > 1) return 0;
    if (err.code == QUARK_NOT_FOUND)
      err.retryable = true; /* another made it go: it is loaded again */
    if (err.code == QUARK_NOT_FOUND) qk_quda_setup_lost(job->op);
    qk_quda_again("submitting", &err, begun);
  }
  if (field_bytes != bytes)
    qk_quda_refuse("the daemon expects fields of %llu bytes, not %zu",
                   (unsigned long long)field_bytes, bytes);
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

/* The solution into p->whole. */
static void fetch(const qk_quda_job_t *job, uint64_t request, int rhs, size_t bytes, passage_t *p,
                  quark_view_t *view, qk_quda_outcome_t *outcome) {
  quark_error_t err;
  quark_result_t r;
  if (quark_wait(qk_quda_daemon(), request, (uint32_t)rhs, -1, &r, &err) != QUARK_OK)
    qk_quda_fail("waiting", &err);
  note_outcome(&r, outcome);
  p->whole = p->room;
  if (r.bytes == 0) {
    memset(p->room, 0, bytes);
    return;
  }
  if (quark_view_open(qk_quda_daemon(), request, (uint32_t)rhs, p->room, bytes, view, &err) !=
      QUARK_OK)
    qk_quda_fail("fetching a solution", &err);
  p->whole = view->data;
  if (!job->op->links->twist[0]) return;
  if (view->mapped) memcpy(p->room, view->data, bytes);
  p->whole = p->room;
  qk_quda_twist(&job->shape, p->sites, job->dtype, job->op->links->twist, true, 1, p->room);
}

/* False: so many are too many. */
static bool run_some(const qk_quda_job_t *job, int first, int n, qk_quda_outcome_t *outcome) {
  const bool speaks = qk_quda_rank() == 0;
  const size_t whole = qk_quda_whole_sites(&job->shape, results(job)) * site_bytes(job),
               brick = qk_quda_local_sites(&job->shape, results(job)) * site_bytes(job);
  passage_t in = {.job = job, .sites = sources(job), .room = speaks ? qk_quda_alloc(whole) : NULL};
  passage_t out = {.job = job, .sites = results(job), .room = in.room};
  quark_error_t err;
  uint64_t request = speaks ? submit(job, n, whole) : 0;
  qk_quda_broadcast(&request, sizeof request);
  for (int k = 0; request && k < n; k++) {
    qk_quda_gather(job->in[first + k], brick, take_brick, &in);
    if (!speaks) continue;
    qk_quda_twist(&job->shape, in.sites, job->dtype, job->op->links->twist, false, 1, in.room);
    if (quark_upload(qk_quda_daemon(), request, in.room, whole, &err) != QUARK_OK)
      qk_quda_fail("sending a source", &err);
  }
  for (int k = 0; request && k < n; k++) {
    quark_view_t view = {0};
    qk_quda_outcome_t seen;
    if (speaks) fetch(job, request, k, whole, &out, &view, &seen);
    qk_quda_scatter(job->out[first + k], brick, give_brick, &out);
    if (speaks) quark_view_close(&view);
    if (speaks) quark_ack(qk_quda_daemon(), request, k, NULL);
    qk_quda_broadcast(&seen, sizeof seen);
    scale_brick(job, job->out[first + k]);
    if (outcome) outcome[first + k] = seen;
  }
  if (speaks && request) quark_release(qk_quda_daemon(), request, NULL);
  free(in.room);
  return request != 0;
}

void qk_quda_run(const qk_quda_job_t *job, qk_quda_outcome_t *outcome) {
  static int most = COLUMNS; /* that the daemon has room for, as far as is known */
  for (int first = 0; first < job->n;) {
    const int n = job->n - first < most ? job->n - first : most;
    if (run_some(job, first, n, outcome))
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
