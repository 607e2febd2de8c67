/* What the caller has loaded, and the operator of a call. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "base/grid.h"
#include "base/layout.h"
#include "base/say.h"
#include "clover.h"
#include "connection.h"
#include "core.h"
#include "fields.h"
#include "links.h"
#include "setups.h"
#include "work.h"

enum { TERM = 72 }; /* doubles a site */

static quark_dtype_t dtype_of(bool single) {
  return single ? QUARK_F32 : QUARK_F64;
}

/* A_q = a + sum over planes of c[p] C_p on the sites, C of these links; kappa normalisation. */
typedef struct term {
  bool there;
  qk_quda_links_t *links; /* also held by `links` below if they are the same */
  double a, c[6];
  double *uploaded; /* the part of this rank, until it is verified; NULL: it was not, or is */
  /* It is none of the links: it stays as it is, divided by 2 kappa for the last call. */
  bool foreign;
  double *over, over_kappa;
  uint64_t over_digest;
  bool single; /* how exact it was given */
} term_t;

static struct {
  bool there;
  qk_quda_shape_t shape;
  qk_quda_links_t *links;
  term_t term;
} loaded;

/* ---- links ---- */

static void drop_links(qk_quda_links_t *links) {
  if (links != loaded.links && links != loaded.term.links) qk_quda_links_free(links);
}

void qk_quda_free_links(void) {
  qk_quda_links_t *links = loaded.links;
  loaded.links = NULL;
  loaded.there = false;
  drop_links(links);
}

/* n doubles from the caller's precision. */
static void widen(const void *from, bool single, size_t n, double *to) {
  const double *d = from;
  const float *f = from;
  for (size_t k = 0; k < n; k++) to[k] = single ? f[k] : d[k];
}

/* Bytes of the caller, copied if they are in the memory of a GPU: *room, which is to be freed. */
static const void *on_host(const void *data, bool device, size_t bytes, void **room) {
  *room = device ? qk_quda_alloc(bytes) : NULL;
  if (device) qk_quda_device_get(*room, data, bytes);
  return device ? *room : data;
}

static qk_quda_links_t *take_links(const qk_quda_given_t *given, char why[256]) {
  const size_t real = given->single ? sizeof(float) : sizeof(double),
               link = 18 * real * qk_quda_local_sites(&loaded.shape, QK_QUDA_ALL);
  const void *const *one = given->links, *mine[4];
  qk_quda_given_t host = *given;
  void *room[4] = {NULL, NULL, NULL, NULL};
  host.links = mine;
  if (given->milc) host.links = on_host(given->links, given->device, 4 * link, &room[0]);
  for (int mu = 0; !given->milc && mu < 4; mu++)
    mine[mu] = on_host(one[mu], given->device, link, &room[mu]);
  qk_quda_links_t *links = qk_quda_links_take(&loaded.shape, &host, why);
  for (int mu = 0; mu < 4; mu++) free(room[mu]);
  return links;
}

void qk_quda_load_links(const int local[4], const qk_quda_given_t *given) {
  static const int one[4] = {1, 1, 1, 1};
  char why[256];
  qk_quda_grid_init(one, NULL, NULL);
  for (int mu = 0; mu < 4; mu++)
    if (local[mu] < 2 || local[mu] % 2)
      qk_quda_refuse("X[%d] = %d: extents must be even", mu, local[mu]);
  qk_quda_free_links();
  memcpy(loaded.shape.local, local, sizeof loaded.shape.local);
  qk_quda_grid_dims(loaded.shape.grid);
  qk_quda_grid_coord(qk_quda_rank(), loaded.shape.coord);
  loaded.links = take_links(given, why);
  if (!loaded.links) qk_quda_refuse("loadGaugeQuda: %s", why);
  const double *hop = loaded.links->hop;
  qk_quda_log("loadGaugeQuda: links %016llx, hops %g,%g,%g,%g",
              (unsigned long long)loaded.links->digest, hop[0], hop[1], hop[2], hop[3]);
  loaded.there = true;
}

/* ---- the clover term ---- */

void qk_quda_free_clover(void) {
  qk_quda_links_t *links = loaded.term.links;
  free(loaded.term.uploaded);
  free(loaded.term.over);
  loaded.term = (term_t){0};
  drop_links(links);
}

/* Largest deviation that rounding makes, over the largest element: a term is sums of some hundred
 * products. */
static double rounding(bool single) {
  return 64 * (single ? 0x1p-24 : 0x1p-53);
}

/* False: it is not a + c C of the loaded links. */
static bool recognise(bool single, const double *term) {
  const qk_quda_links_t *u = loaded.links;
  qk_quda_samples_t *samples = qk_quda_clover_samples(u, term);
  bool split = false;
  double c[2], off;
  for (int mu = 0; mu < 4; mu++) split = split || u->hop[mu] != 1;
  off = qk_quda_clover_fit(samples, split, &loaded.term.a, c);
  if (!split && !(off <= rounding(single)))
    off = qk_quda_clover_fit(samples, true, &loaded.term.a, c);
  free(samples);
  for (int p = 0; p < 6; p++) loaded.term.c[p] = c[p / 3];
  if (!(off <= rounding(single)))
    qk_quda_log("loadCloverQuda: the term is not a + c C, C made of the loaded links: it is off by "
                "%.3g of its largest element, the limit is %.3g",
                off, rounding(single));
  return off <= rounding(single);
}

/* From now on the term is sent as it is. */
static void leave_as_it_is(term_t *term) {
  term->foreign = true;
  qk_quda_log("loadCloverQuda: the term goes to the daemon as it is");
}

/* The sum over ranks of the digest of their parts. */
static uint64_t digest_of(const double *term) {
  const qk_quda_shape_t *shape = &loaded.shape;
  const size_t nx = (size_t)shape->local[0];
  uint64_t digest = 0, *site = qk_quda_alloc(nx * sizeof *site);
  for (size_t row = 0; row < qk_quda_rows(shape); row++) {
    int at[4];
    const uint64_t first = qk_quda_row_begin(shape, row, at);
    for (size_t x = 0; x < nx; x++) site[x] = first + x;
    quark_clover_digest(term + row * nx * TERM, QUARK_F64, site, nx, &digest);
  }
  free(site);
  qk_quda_sum_whole(&digest, 1);
  return digest;
}

/* The term of a call with this kappa: T of M = T - H / 2. */
static void divide(term_t *term, double kappa) {
  const size_t n = qk_quda_local_sites(&loaded.shape, QK_QUDA_ALL);
  if (term->over && term->over_kappa == kappa) return;
  if (!term->over) term->over = qk_quda_alloc(n * TERM * sizeof *term->over);
  for (size_t k = 0; k < n * TERM; k++) term->over[k] = term->uploaded[k] / (2 * kappa);
  term->over_kappa = kappa;
  term->over_digest = digest_of(term->over);
}

/* The caller's brick as a part of doubles. */
static double *read_term(bool single, const void *term) {
  const qk_quda_move_t move = {.shape = loaded.shape,
                               .sites = QK_QUDA_ALL,
                               .reals = TERM,
                               .brick_dtype = dtype_of(single),
                               .part_dtype = QUARK_F64,
                               .factor = 1};
  const size_t rows = qk_quda_rows(&loaded.shape);
  double *part = qk_quda_alloc(rows * qk_quda_row_bytes(&move));
  qk_quda_rows_to_part(&move, 0, rows, term, part);
  return part;
}

void qk_quda_load_clover(double coefficient, bool single, bool device, const void *term) {
  if (!loaded.there) qk_quda_refuse("loadCloverQuda: no links are loaded");
  qk_quda_free_clover();
  loaded.term.there = true;
  loaded.term.links = loaded.links;
  if (!term) {
    static const int plane[6][2] = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
    loaded.term.a = 1;
    for (int p = 0; p < 6; p++) {
      const double m = loaded.links->hop[plane[p][0]], n = loaded.links->hop[plane[p][1]];
      loaded.term.c[p] = 2 * coefficient * m * m * n * n;
    }
    return;
  }
  const char *wish = qk_quda_setting("CLOVER");
  if (wish && strcmp(wish, "upload") != 0)
    qk_quda_refuse("QUARK_QUDA_CLOVER = %.60s: must be upload, or not set", wish);
  void *room;
  const size_t bytes = qk_quda_local_sites(&loaded.shape, QK_QUDA_ALL) * TERM *
                       (single ? sizeof(float) : sizeof(double));
  loaded.term.uploaded = read_term(single, on_host(term, device, bytes, &room));
  free(room);
  loaded.term.single = single;
  if (wish || !recognise(single, loaded.term.uploaded)) leave_as_it_is(&loaded.term);
}

/* ---- the operator of a call ---- */

/* quarkd's twisted action has neither weights nor a clover term of the program. */
static void check_twist(const qk_quda_call_t *call) {
  const double *h = loaded.links->hop;
  const term_t *term = &loaded.term;
  for (int mu = 0; mu < 4; mu++)
    if (h[mu] != 1)
      qk_quda_refuse("a twist (mu = %g) is served on isotropic links alone, these have the hop "
                     "weight %g in direction %d",
                     call->mu, h[mu], mu);
  if (call->clover && (term->foreign || term->uploaded))
    qk_quda_refuse("a twist (mu = %g) is served with a clover term that loadCloverQuda computes, "
                   "not with one of the program",
                   call->mu);
}

static void operator_of(const qk_quda_call_t *call, qk_quda_operator_t *op) {
  if (!loaded.there) qk_quda_refuse("no links are loaded (loadGaugeQuda)");
  if (call->clover && !loaded.term.there)
    qk_quda_refuse("no clover term is loaded (loadCloverQuda)");
  if (!(call->kappa > 0)) qk_quda_refuse("kappa = %.17g: must be above 0", call->kappa);
  *op = (qk_quda_operator_t){.links = loaded.links, .kappa = call->kappa, .mu = call->mu};
  term_t *term = &loaded.term;
  const double *h = loaded.links->hop, sum = h[0] + h[1] + h[2] + h[3];
  if (call->clover && !qk_quda_links_same(loaded.links, term->links))
    qk_quda_refuse(
        "the clover term was made of links with the digest %016llx, the loaded ones have "
        "%016llx",
        (unsigned long long)term->links->digest, (unsigned long long)loaded.links->digest);
  for (int p = 0; p < 6; p++) op->plane[p] = 1;
  if (call->mu != 0) check_twist(call);
  if (call->clover && term->foreign) {
    divide(term, call->kappa);
    op->term = term->over;
    op->term_digest = term->over_digest;
    return;
  }
  op->mass = (call->clover ? term->a : 1) / (2 * call->kappa) - sum;
  if (!call->clover || term->c[3] == 0) return;
  op->csw = term->c[3] / (2 * call->kappa);
  for (int p = 0; p < 6; p++) op->plane[p] = term->c[p] / term->c[3];
}

static uint64_t global_site(size_t in_part) {
  const size_t nx = (size_t)loaded.shape.local[0];
  int at[4];
  return qk_quda_row_begin(&loaded.shape, in_part / nx, at) + in_part % nx;
}

/* A term that was recognised by some of its sites is that of the daemon on all of them: both are
 * applied to noise. */
static void verify(const qk_quda_operator_t *op) {
  term_t *term = &loaded.term;
  if (!term->uploaded || term->foreign) return;
  const size_t sites = qk_quda_local_sites(&loaded.shape, QK_QUDA_ALL), bytes = 24 * sizeof(double);
  double complex *noise = qk_quda_alloc(sites * bytes), *result = qk_quda_alloc(sites * bytes),
                 *expected = qk_quda_alloc(sites * bytes);
  uint64_t x = 0x9e3779b97f4a7c15U + (uint64_t)qk_quda_rank();
  for (size_t k = 0; k < 12 * sites; k++) {
    static const double complex z4[4] = {1, I, -1, -I};
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    noise[k] = z4[x >> 62];
  }
  void *in = noise, *out = result;
  const qk_quda_job_t job = {.op = op,
                             .shape = loaded.shape,
                             .work = QUARK_WORK_DIAG,
                             .dtype = QUARK_F64,
                             .in_order = true,
                             .factor = 1,
                             .n = 1,
                             .in = &in,
                             .out = &out};
  qk_quda_run(&job, NULL);
  qk_quda_clover_apply(term->uploaded, sites, noise, expected);
  double largest = 0, worst[2] = {0, 0}; /* over the limit; the last site, of ranks that have it */
  size_t at = 0;
  for (size_t k = 0; k < sites * TERM; k++) largest = fmax(largest, fabs(term->uploaded[k]));
  qk_quda_max(&largest, 1);
  for (size_t k = 0; k < 12 * sites; k++) {
    const double off =
        cabs(expected[k] - 2 * op->kappa * result[k]) / (6 * rounding(term->single) * largest);
    if (!(off <= worst[0])) worst[0] = isnan(off) ? INFINITY : off, at = k / 12;
  }
  const double mine = worst[0];
  qk_quda_max(worst, 1);
  if (mine == worst[0]) worst[1] = (double)global_site(at);
  qk_quda_max(worst + 1, 1);
  if (worst[0] <= 1) {
    qk_quda_log("loadCloverQuda: mass %.15g, csw %.15g; on all sites", op->mass, op->csw);
    free(term->uploaded);
    term->uploaded = NULL;
  } else {
    qk_quda_log("loadCloverQuda: the term fits to the loaded links, but not on site %.0f: off by "
                "%.3g of what rounding allows",
                worst[1], worst[0]);
    leave_as_it_is(term);
  }
  free(noise);
  free(result);
  free(expected);
}

/* The operator of a call, with a term that is verified. */
static void verified_operator_of(const qk_quda_call_t *call, qk_quda_operator_t *op) {
  operator_of(call, op);
  if (!call->clover) return;
  verify(op);
  operator_of(call, op); /* a term that was found not to be that of the links is now foreign */
}

void qk_quda_prepare(const qk_quda_call_t *call) {
  qk_quda_operator_t op;
  verified_operator_of(call, &op);
  qk_quda_joins(); /* all ranks connect */
  qk_quda_ticket_t nothing = {0};
  if (qk_quda_rank() != 0) {
    qk_quda_attend(&op, &nothing);
    return;
  }
  qk_quda_setup(&op);
  qk_quda_dismiss(&nothing);
}

/* ---- solves ---- */

/* x = unit y where y is the solution of the job, in its normalisation. */
static double unit_of(const qk_quda_call_t *call) {
  const double k2 = 2 * call->kappa;
  if (!call->pc) return call->norm == QK_QUDA_KAPPA ? 1 / k2 : 1;
  const double c = call->norm == QK_QUDA_KAPPA ? 1 : call->norm == QK_QUDA_MASS ? k2 * k2 : k2;
  return call->asymmetric ? c / k2 : c;
}

static qk_quda_job_t job_of(const qk_quda_call_t *call, const qk_quda_operator_t *op) {
  const double unit = unit_of(call);
  qk_quda_job_t job = {.op = op,
                       .shape = loaded.shape,
                       .work = QUARK_WORK_SOLVE,
                       .dagger = call->dagger,
                       .basis = call->basis,
                       .dtype = dtype_of(call->single),
                       .factor = unit,
                       .n = call->n,
                       .max_iter = call->max_iter > 0 ? (uint64_t)call->max_iter : 0};
  if (call->pc) {
    job.parity = call->odd ? QUARK_PARITY_ODD : QUARK_PARITY_EVEN;
    job.schur = call->asymmetric ? QUARK_SCHUR_ASYMMETRIC : QUARK_SCHUR_SYMMETRIC;
  }
  job.tol = call->relative ? call->tol : 0;
  job.tol_abs = call->absolute ? call->tol : 0;
  job.tol_hq = call->heavy ? call->tol_hq * unit : 0;
  if (!(job.tol >= 0 && job.tol_abs >= 0 && job.tol_hq >= 0 &&
        job.tol + job.tol_abs + job.tol_hq > 0))
    qk_quda_refuse("tol = %g, tol_hq = %g with residual type%s%s%s: no residual is asked for",
                   call->tol, call->tol_hq, call->relative ? " L2_RELATIVE" : "",
                   call->absolute ? " L2_ABSOLUTE" : "", call->heavy ? " HEAVY_QUARK" : "");
  return job;
}

static size_t local_numbers(const qk_quda_call_t *call) {
  return 24 * qk_quda_local_sites(&loaded.shape, call->pc ? QK_QUDA_EVEN : QK_QUDA_ALL);
}

/* The relative residual that is asked for, of b: an absolute one is relative to |b|. */
static double target_of(const qk_quda_job_t *job, const double *zero, const double *b) {
  const double norm = job->tol_abs > 0 ? qk_quda_difference(job, zero, b) : 0,
               relative = job->tol > 0 ? job->tol : INFINITY,
               absolute = norm > 0 ? job->tol_abs / norm : INFINITY,
               target = fmin(relative, absolute);
  return job->tol > 0 || norm > 0 ? target : 1e-12;
}

/* M^+ M x = b as two solves, in double, and again for what is left of b: the error of the first
 * solve is multiplied by the condition of M. */
static void solve_squared(const qk_quda_call_t *call, const qk_quda_job_t *job, const double *b,
                          double *x, qk_quda_outcome_t *outcome) {
  enum { ROUNDS = 6 };
  const size_t n = local_numbers(call);
  double *r = qk_quda_alloc(n * sizeof *r), *y = qk_quda_alloc(n * sizeof *y),
         *z = qk_quda_alloc(n * sizeof *z), last = INFINITY;
  void *in, *out;
  qk_quda_job_t one = *job;
  one.dtype = QUARK_F64, one.n = 1, one.in = &in, one.out = &out;
  memset(x, 0, n * sizeof *x);
  const double target = target_of(&one, x, b);
  one.tol = fmin(target, 0.5), one.tol_abs = 0;
  memcpy(r, b, n * sizeof *r);
  *outcome = (qk_quda_outcome_t){.residual = 1, .hq_residual = NAN};
  for (int round = 0; round < ROUNDS && outcome->residual > target; round++) {
    qk_quda_outcome_t o[2];
    one.work = QUARK_WORK_SOLVE, one.factor = job->factor;
    one.dagger = !job->dagger, in = r, out = y;
    qk_quda_run(&one, &o[0]);
    one.dagger = job->dagger, in = y, out = z;
    qk_quda_run(&one, &o[1]);
    for (size_t k = 0; k < n; k++) x[k] += z[k];
    one.work = call->pc ? QUARK_WORK_SCHUR : QUARK_WORK_M, one.factor = 1 / job->factor;
    in = x, out = y;
    qk_quda_run(&one, NULL);
    one.dagger = !job->dagger, in = y, out = z;
    qk_quda_run(&one, NULL);
    for (size_t k = 0; k < n; k++) r[k] = b[k] - z[k];
    outcome->residual = qk_quda_difference(&one, b, z);
    outcome->iterations += o[0].iterations + o[1].iterations;
    if (!(outcome->residual < 0.5 * last)) break;
    last = outcome->residual;
  }
  outcome->converged = outcome->residual <= target;
  free(r);
  free(y);
  free(z);
}

static void solve_squares(const qk_quda_call_t *call, const qk_quda_job_t *job, void **x, void **b,
                          qk_quda_outcome_t *outcome) {
  const size_t n = local_numbers(call);
  double *wide_b = qk_quda_alloc(n * sizeof *wide_b), *wide_x = qk_quda_alloc(n * sizeof *wide_x);
  if (call->heavy)
    qk_quda_refuse("MATDAG_MAT and MATPCDAG_MATPC solutions are not served to "
                   "HEAVY_QUARK_RESIDUAL");
  const size_t bytes = n * (call->single ? sizeof(float) : sizeof(double));
  void *made = call->out_device ? qk_quda_alloc(bytes) : NULL;
  for (int k = 0; k < call->n; k++) {
    void *room, *to = made ? made : x[k];
    double *d = to;
    float *f = to;
    widen(on_host(b[k], call->in_device, bytes, &room), call->single, n, wide_b);
    free(room);
    solve_squared(call, job, wide_b, wide_x, &outcome[k]);
    for (size_t i = 0; i < n; i++)
      if (call->single)
        f[i] = (float)wide_x[i];
      else
        d[i] = wide_x[i];
    if (made) qk_quda_device_put(x[k], made, bytes);
  }
  free(made);
  free(wide_b);
  free(wide_x);
}

void qk_quda_solve(const qk_quda_call_t *call, void **x, void **b, qk_quda_outcome_t *outcome,
                   double *secs, double *flops) {
  const double begun = qk_quda_now();
  qk_quda_operator_t op;
  verified_operator_of(call, &op);
  qk_quda_job_t job = job_of(call, &op);
  if (call->squared) {
    solve_squares(call, &job, x, b, outcome);
  } else {
    job.in = b, job.out = x;
    job.in_device = call->in_device, job.out_device = call->out_device;
    qk_quda_run(&job, outcome);
  }
  *flops = 0;
  for (int k = 0; k < call->n; k++) {
    /* two applications of M an iteration, of 1824 operations a site */
    *flops += 3648.0 * (double)outcome[k].iterations *
              (double)qk_quda_whole_sites(&loaded.shape, QK_QUDA_ALL);
    if (!call->squared) outcome[k].hq_residual /= unit_of(call);
  }
  *secs = fmax(qk_quda_now() - begun, 1e-9);
}

/* ---- the operator and its parts ---- */

void qk_quda_apply(const qk_quda_call_t *call, qk_quda_part_t part, bool odd, void **out,
                   void **in) {
  const double k2 = 2 * call->kappa;
  qk_quda_operator_t op;
  verified_operator_of(call, &op);
  qk_quda_job_t job = {.op = &op,
                       .shape = loaded.shape,
                       .dagger = call->dagger,
                       .basis = call->basis,
                       .dtype = dtype_of(call->single),
                       .factor = 1,
                       .n = call->n,
                       .in = in,
                       .out = out,
                       .in_device = call->in_device,
                       .out_device = call->out_device};
  if (part != QK_QUDA_M || call->pc)
    job.parity = (part == QK_QUDA_M ? call->odd : odd) ? QUARK_PARITY_ODD : QUARK_PARITY_EVEN;
  if (part == QK_QUDA_M) {
    job.work = call->pc ? QUARK_WORK_SCHUR : QUARK_WORK_M;
    if (call->pc) job.schur = call->asymmetric ? QUARK_SCHUR_ASYMMETRIC : QUARK_SCHUR_SYMMETRIC;
    job.factor = 1 / unit_of(call);
  } else if (part == QK_QUDA_HOP) {
    const bool diag = call->clover || call->mu != 0;
    job.work = diag ? QUARK_WORK_DIAG_INVERSE_HOP : QUARK_WORK_HOP;
    job.factor = diag ? 1 / k2 : 1;
  } else {
    job.work = part == QK_QUDA_DIAG ? QUARK_WORK_DIAG : QUARK_WORK_DIAG_INVERSE;
    job.factor = part == QK_QUDA_DIAG ? k2 : 1 / k2;
  }
  if (!call->squared) {
    qk_quda_run(&job, NULL);
    return;
  }
  qk_quda_run(&job, NULL); /* M, then M^+ in place */
  job.dagger = !job.dagger;
  job.in = out;
  job.in_device = call->out_device;
  qk_quda_run(&job, NULL);
}
