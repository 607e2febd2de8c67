#include "daemon/engine/eigen/lanczos.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/chebyshev.h"
#include "daemon/engine/eigen/lanczos_impl.h"
#include "daemon/engine/eigen/lanczos_params.h"
#include "daemon/engine/eigen/lanczos_rotate.h"

enum {
  B = QK_EIGEN_BLOCK,
  TOP_BLOCKS = 8, /* for the largest eigenvalue */
  WINDOWS = 4,    /* changes of the window at most */
  PATIENCE = 3    /* restarts without gain */
};
static const double inside = 1.2, outside = 6; /* window over the largest eigenvalue wanted */
static const double first_window = 0.03;       /* of the top */
static const double margin = 1.05;             /* of the top, over what was found of it */
static const double far = 4;                   /* over the top: no eigenvalue is there */
static const double gain = 0.7;                /* in the worst error that counts as such */
static const double same[] = {1e-7, 1e-4};     /* eigenvalues so close may be one */
static const double least_window = 1e-3;       /* of the top: the Laplacian has eigenvalues of 0 */

static const char reason[] = ": eight or more vectors have one eigenvalue, as on links without "
                             "disorder; those are not found in blocks of eight";

typedef struct qk_lanczos lanczos_t;

/* ---- the projected operator ------------------------------------------------------------------ */

/* The leading n x n part of h, to q (lda n). */
static void set_projected(lanczos_t *l, int n) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++)
      l->q[(size_t)j * (size_t)n + (size_t)i] =
          i >= j ? conj(l->h[(size_t)i * (size_t)l->m + (size_t)j]) : 0;
}

/* Of n eigenvectors in q the one of the largest eigenvalue first. */
static void turn_round(lanczos_t *l, int n) {
  for (int j = 0; j < n / 2; j++) {
    double complex *a = l->q + (size_t)j * (size_t)n, *b = l->q + (size_t)(n - 1 - j) * (size_t)n;
    double value = l->theta[j];
    l->theta[j] = l->theta[n - 1 - j];
    l->theta[n - 1 - j] = value;
    for (int i = 0; i < n; i++) {
      double complex z = a[i];
      a[i] = b[i];
      b[i] = z;
    }
  }
}

/* column: what the basis has of f(A) v_b. */
static qk_status_t make_next(lanczos_t *l, int b, int order, double complex *column,
                             double complex r[B * B]) {
  qk_lanczos_basis_t *k = &l->k;
  qk_field_t *w = k->v[b + 1];
  qk_status_t status = order == 0
                           ? qk_lanczos_basis_apply(k, w, k->v[b])
                           : qk_lanczos_basis_filter(k, l->p.window, l->p.top, order, w, k->v[b]);
  if (status) return status;
  status = qk_lanczos_basis_project(k, b + 1, w, column);
  return status ? status : qk_lanczos_basis_normalise(k, b + 1, w, r);
}

/* A new block after block b: v_{b+1} r = f(A) v_b - what the basis has of it. order 0: A itself. */
static qk_status_t advance(lanczos_t *l, int b, int order, double complex r[B * B]) {
  double complex *column = qk_calloc((size_t)(b + 1) * B * B, sizeof *column);
  if (!column) return QK_NO_MEMORY;
  qk_status_t status = make_next(l, b, order, column, r);
  for (int i = 0; i < (b + 1) * B; i++)
    for (int j = 0; j < B; j++)
      l->h[(size_t)(b * B + j) * (size_t)l->m + (size_t)i] = column[i * B + j];
  qk_free(column);
  return status;
}

/* The Ritz vectors of nblock blocks, which q has as eigenvectors, the last of which has given r;
 * |f(A) v - theta v| of each goes to report. */
static void take_ritz(lanczos_t *l, int nblock, const double complex r[B * B]) {
  const int n = nblock * B;
  turn_round(l, n);
  for (int j = 0; j < n; j++) {
    const double complex *tail = l->q + (size_t)(j + 1) * (size_t)n - B;
    double sum = 0;
    for (int i = 0; i < B; i++) {
      double complex z = 0;
      for (int c = i; c < B; c++) z += r[i * B + c] * tail[c];
      sum += creal(z * conj(z));
    }
    l->report[j] = sqrt(sum);
  }
}

static qk_status_t ritz(lanczos_t *l, int nblock, const double complex r[B * B]) {
  set_projected(l, nblock * B);
  const qk_status_t status = qk_hermitian_eigen(l->k.dev->geom->comm, nblock * B, l->q, l->theta);
  if (!status) take_ritz(l, nblock, r);
  return status;
}

/* Extends the basis from its first block to `nblock` blocks by A itself. */
static qk_status_t extend(lanczos_t *l, int nblock) {
  double complex r[B * B] = {0};
  qk_status_t status = QK_OK;
  for (int b = 0; b < nblock && !status; b++) status = advance(l, b, 0, r);
  return status ? status : ritz(l, nblock, r);
}

/* The basis was rotated: it becomes its first `keep` blocks and the block that was made last. */
static void take_kept(lanczos_t *l) {
  qk_lanczos_basis_t *k = &l->k;
  qk_field_t *last = k->v[k->nblock];
  k->v[k->nblock] = k->v[l->keep];
  k->v[l->keep] = last;
  memset(l->h, 0, (size_t)l->m * (size_t)l->m * sizeof *l->h);
  for (int i = 0; i < l->keep * B; i++) l->h[(size_t)i * (size_t)l->m + (size_t)i] = l->theta[i];
}

/* ---- the spectrum's ends --------------------------------------------------------------------- */

static qk_status_t first_block(lanczos_t *l) {
  double complex r[B * B];
  qk_status_t status = qk_lanczos_basis_random(&l->k, l->k.v[0], NULL);
  return status ? status : qk_lanczos_basis_normalise(&l->k, 0, l->k.v[0], r);
}

static qk_status_t find_top(lanczos_t *l) {
  int nblock = l->k.nblock < TOP_BLOCKS ? l->k.nblock : TOP_BLOCKS;
  qk_status_t status = extend(l, nblock);
  if (!status) l->p.top = margin * (l->theta[0] + l->report[0]);
  return status;
}

static void sort(double *v, int n) {
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && v[j] < v[j - 1]; j--) {
      double x = v[j];
      v[j] = v[j - 1];
      v[j - 1] = x;
    }
}

/* Rayleigh quotients of A. Within a basis they have too much of high modes: it is its polynomial
 * that tells eigenvalues there. */
static qk_status_t quotients(lanczos_t *l, double *value) {
  const qk_chebyshev_params_t p = {l->p.order, l->p.window, l->p.top};
  qk_status_t status = QK_OK;
  for (int i = 0; l->p.within && i < l->keep * B; i++)
    value[i] = qk_chebyshev_inverse(&p, l->theta[i]);
  for (int b = 0; !l->p.within && b < l->keep && !status; b++)
    status = qk_lanczos_basis_rayleigh(&l->k, l->k.v[b], value + b * B);
  return status;
}

/* Modes above `top` grow in the polynomial as those below the window do, and where the largest
 * eigenvalue was measured too low it is they that converge. Then the top becomes one above them,
 * and all begins anew. value: Rayleigh quotients of vectors that have converged, the wanted ones
 * first; where a space is exhausted some have no norm of 1, and say nothing. */
static qk_status_t raise_top(lanczos_t *l, const double *value, bool *raised) {
  double highest = 0;
  for (int i = 0; i < l->p.n; i++)
    if (value[i] < far * l->p.top) highest = fmax(highest, value[i]);
  *raised = highest > l->p.top;
  if (!*raised) return QK_OK;
  l->p.top = margin * margin * highest;
  if (!l->fixed_window) l->p.window = first_window * l->p.top;
  l->windows = 0;
  return first_block(l);
}

/* Checks whether the window suits the eigenvalues found. If not, it sets a better one and folds
 * the Ritz vectors, which the caller has rotated to the front, into one block to start from.
 * value: their Rayleigh quotients, which it sorts. */
static qk_status_t move_window(lanczos_t *l, double *value, bool *moved) {
  qk_lanczos_basis_t *k = &l->k;
  *moved = false;
  sort(value, l->keep * B);
  double last = value[l->p.n - 1];
  if (!isfinite(last)) return QK_BREAKDOWN;
  if (l->p.kind == QK_LANCZOS_LAPLACIAN) last = fmax(last, least_window * l->p.top);
  if (l->p.window >= inside * last && l->p.window <= outside * last) return QK_OK;
  l->p.window = fmin(2.5 * last, 0.5 * l->p.top);
  l->p.order = 0;
  *moved = true;
  int n = l->keep * B;
  memset(l->q, 0, (size_t)n * B * sizeof *l->q);
  for (int i = 0; i < n; i++) l->q[(i % B) * n + i] = 1;
  double complex r[B * B];
  const qk_status_t status = qk_lanczos_rotate(k, l->keep, B, l->q, n);
  return status ? status : qk_lanczos_basis_normalise(k, 0, k->v[0], r);
}

/* ---- the iteration --------------------------------------------------------------------------- */

static int converged(const lanczos_t *l) {
  int n = 0;
  while (n < l->p.n && l->theta[n] > 1 && l->report[n] <= 0.25 * l->p.tol * l->theta[n]) n++;
  return n;
}

/* Whether the errors of the wanted vectors have ceased to fall. */
static bool stagnates(lanczos_t *l) {
  double worst = 0;
  for (int i = 0; i < l->p.n; i++) worst = fmax(worst, l->report[i] / fabs(l->theta[i]));
  l->since++;
  if (l->best == 0 || worst < gain * l->best) {
    l->best = worst;
    l->since = 0;
  }
  return l->since >= PATIENCE;
}

/* Whether so many Ritz values have one eigenvalue that there may be more of it than the eight that
 * a Krylov space of blocks has: then it does not end, or mixes eigenvectors of h and -h. */
static bool is_degenerate(const lanczos_t *l) {
  int run = 1;
  for (int i = 1; i < l->keep * B && run < B; i++)
    run = l->theta[i] >= l->theta[i - 1] * (1 - same[l->k.prec]) ? run + 1 : 1;
  return run >= B;
}

static void clear_projection(lanczos_t *l) {
  memset(l->h, 0, (size_t)l->m * (size_t)l->m * sizeof *l->h);
}

/* The next extension, from block `from` on. */
static void begin_extension(lanczos_t *l, int from) {
  l->p.order = l->fixed_order ? l->fixed_order : qk_lanczos_order(l->p.window, l->p.top);
  l->from = l->at = from;
  l->stage = EXTEND;
}

static qk_status_t begin(lanczos_t *l) {
  qk_status_t status = first_block(l);
  if (!status && l->p.top == 0) {
    status = find_top(l);
    clear_projection(l);
  }
  if (status) return status;
  if (!l->fixed_window && !(l->p.within && l->p.window > 0)) l->p.window = first_window * l->p.top;
  begin_extension(l, 0);
  return QK_OK;
}

/* The space is full, its Ritz vectors are known. */
static void end_extension(lanczos_t *l) {
  l->done = converged(l);
  l->degenerate = is_degenerate(l);
  l->ends = l->done == l->p.n || stagnates(l);
  l->unit = 0;
  l->stage = ROTATE;
}

/* Looks at what the vectors that are kept are of. anew: the basis begins with another first block,
 * and is not to end. */
static qk_status_t look_at_kept(lanczos_t *l, bool *anew) {
  const bool given = l->p.within || l->p.kind == QK_LANCZOS_LAPLACIAN; /* the top */
  const bool check = l->ends && !given;
  const bool search = !l->ends && !l->fixed_window && l->windows < WINDOWS;
  double value[QK_LANCZOS_SPACE];
  *anew = false;
  if (!check && !search) return QK_OK;
  qk_status_t status = quotients(l, value);
  if (status) return status;
  if (check) return raise_top(l, value, anew);
  status = move_window(l, value, anew);
  l->windows = *anew ? l->windows + 1 : WINDOWS;
  return status;
}

/* From the `keep` blocks of Ritz vectors at the front of the basis. */
static qk_status_t restart(lanczos_t *l) {
  bool anew = false;
  take_kept(l);
  l->restarts++;
  const bool out = l->restarts >= l->p.restarts;
  const qk_status_t status = out ? QK_OK : look_at_kept(l, &anew);
  if (status) return status;
  if (out || (l->ends && !anew)) {
    qk_lanczos_begin_vectors(l);
    return QK_OK;
  }
  if (anew) {
    l->best = 0;
    clear_projection(l);
  }
  begin_extension(l, anew ? 0 : l->keep);
  return QK_OK;
}

static qk_status_t rotate(lanczos_t *l) {
  const int n = l->k.nblock;
  bool over = false;
  const qk_status_t status =
      qk_lanczos_rotate_some(&l->k, n, l->keep * B, l->q, n * B, &l->unit, &over);
  return status || !over ? status : restart(l);
}

/* The dense problem of a large space is solved beside what else there is to do. */
static qk_status_t extend_by_one(lanczos_t *l) {
  const int n = l->k.nblock * B;
  qk_status_t status = advance(l, l->at, l->p.order, l->last);
  l->at++;
  if (status || l->at < l->k.nblock) return status;
  if (n > QK_HERMITIAN_LARGE) {
    set_projected(l, n);
    l->stage = DENSE;
    return qk_hermitian_begin(l->k.dev->geom->comm, n, l->q, &l->dense);
  }
  status = ritz(l, l->k.nblock, l->last);
  if (!status) end_extension(l);
  return status;
}

static qk_status_t await_dense(lanczos_t *l) {
  const int n = l->k.nblock * B;
  bool over = false;
  const qk_status_t status =
      qk_hermitian_poll(l->k.dev->geom->comm, &l->dense, n, l->q, n, l->theta, &over);
  if (status || !over) return status;
  take_ritz(l, l->k.nblock, l->last);
  end_extension(l);
  return QK_OK;
}

void qk_eigen_destroy(qk_eigen_t *eigen) {
  if (!eigen) return;
  for (int b = eigen->nblock - 1; b >= 0; b--) qk_field_destroy(eigen->block[b]);
  qk_free(eigen->flat);
  qk_free(eigen);
}

static qk_status_t reserve(lanczos_t *l, qk_operator_t *op, qk_work_t *work) {
  size_t m = (size_t)l->p.space;
  l->m = l->p.space;
  l->keep = qk_lanczos_round_up(l->p.n) / B + QK_LANCZOS_EXTRA - 1;
  l->h = qk_calloc(m * m, sizeof *l->h);
  l->q = qk_calloc(m * m, sizeof *l->q);
  l->theta = qk_calloc(m, sizeof *l->theta);
  l->report = qk_calloc(m, sizeof *l->report);
  qk_status_t status = qk_lanczos_basis_init(&l->k, op, work, &l->p);
  return l->h && l->q && l->theta && l->report ? status : QK_NO_MEMORY;
}

qk_hermitian_job_t *qk_lanczos_take_dense(qk_lanczos_t *l) {
  qk_hermitian_job_t *job = l->dense;
  l->dense = NULL;
  return job;
}

void qk_lanczos_destroy(qk_lanczos_t *l) {
  if (!l) return;
  qk_hermitian_drop(l->dense);
  if (l->k.dev) qk_lanczos_basis_fini(&l->k);
  qk_free(l->report);
  qk_free(l->theta);
  qk_free(l->q);
  qk_free(l->h);
  qk_free(l);
}

static qk_status_t fail(const lanczos_t *l, qk_status_t status, qk_err_t *err) {
  return qk_fail(err, status, "%d eigenvectors after %d restarts: %s%s", l->p.n, l->restarts,
                 qk_status_text(status), l->degenerate ? reason : "");
}

qk_status_t qk_lanczos_create(qk_operator_t *op, qk_work_t *work, const qk_lanczos_params_t *params,
                              qk_lanczos_t **lanczos, qk_err_t *err) {
  qk_comm_t *comm = op->dev->geom->comm;
  qk_lanczos_params_t p = *params;
  qk_status_t status = qk_lanczos_complete(op->dev->geom, &p, err);
  if (status) return status;
  lanczos_t *l = qk_calloc(1, sizeof *l);
  if (l) {
    l->p = p;
    l->fixed_window = p.window > 0 && !p.within;
    l->fixed_order = p.order;
  }
  status = qk_comm_agree(comm, l ? reserve(l, op, work) : QK_NO_MEMORY, NULL);
  if (!status) {
    *lanczos = l;
    return QK_OK;
  }
  qk_lanczos_destroy(l);
  return qk_fail(err, status, "%d eigenvectors: %s", p.n, qk_status_text(status));
}

qk_status_t qk_lanczos_step(qk_lanczos_t *l, qk_err_t *err) {
  const qk_status_t status = l->stage == BEGIN    ? begin(l)
                             : l->stage == EXTEND ? extend_by_one(l)
                             : l->stage == DENSE  ? await_dense(l)
                             : l->stage == ROTATE ? rotate(l)
                                                  : qk_lanczos_step_vectors(l);
  return status ? fail(l, status, err) : QK_OK;
}

qk_lanczos_news_t qk_lanczos_news(const qk_lanczos_t *l) {
  return (qk_lanczos_news_t){.over = l->stage == OVER,
                             .restarted = l->stage == EXTEND && l->at == l->from && l->restarts > 0,
                             .restarts = l->restarts,
                             .converged = l->done};
}

void qk_lanczos_state(const qk_lanczos_t *l, qk_lanczos_state_t *state, const double **theta) {
  *state = (qk_lanczos_state_t){.window = l->p.window,
                                .top = l->p.top,
                                .best = l->best,
                                .order = l->p.order,
                                .since = l->since,
                                .restarts = l->restarts,
                                .windows = l->windows,
                                .done = l->done,
                                .randomised = l->k.randomised,
                                .nblock = l->from + 1};
  *theta = l->theta;
}

qk_field_t *qk_lanczos_block(qk_lanczos_t *l, int b) {
  return l->k.v[b];
}

int qk_lanczos_kept(const qk_lanczos_t *l) {
  return l->keep + 1;
}

const qk_lanczos_params_t *qk_lanczos_params(const qk_lanczos_t *l) {
  return &l->p;
}

qk_status_t qk_lanczos_resume(qk_lanczos_t *l, const qk_lanczos_state_t *state, const double *theta,
                              qk_err_t *err) {
  const int n = (state->nblock - 1) * B;
  if ((state->nblock != 1 && state->nblock != l->keep + 1) || state->order < 2 ||
      state->order % 2 != 0 || state->order > QK_LANCZOS_ORDER_MAX ||
      !(state->window > 0 && state->window < state->top))
    return qk_fail(err, QK_BAD_ARGUMENT, "state of %d blocks, order %d, window %g of %g",
                   state->nblock, state->order, state->window, state->top);
  l->p.window = state->window;
  l->p.top = state->top;
  l->best = state->best;
  l->since = state->since;
  l->restarts = state->restarts;
  l->windows = state->windows;
  l->done = state->done;
  l->k.randomised = state->randomised;
  clear_projection(l);
  for (int i = 0; i < n; i++) l->h[(size_t)i * (size_t)l->m + (size_t)i] = theta[i];
  begin_extension(l, state->nblock - 1);
  return QK_OK;
}

static qk_status_t find_vectors(qk_lanczos_t *l, qk_eigen_t **eigen) {
  *eigen = qk_calloc(1, sizeof **eigen);
  qk_status_t status = qk_comm_agree(l->k.dev->geom->comm, *eigen ? QK_OK : QK_NO_MEMORY, NULL);
  return status ? status : qk_lanczos_collect(l, *eigen);
}

qk_status_t qk_lanczos_vectors(qk_lanczos_t *l, qk_eigen_t **eigen, qk_err_t *err) {
  qk_eigen_t *e = NULL;
  const qk_status_t status = qk_comm_agree(l->k.dev->geom->comm, find_vectors(l, &e), NULL);
  if (status) {
    qk_eigen_destroy(e);
    return fail(l, status, err);
  }
  *eigen = e;
  if (e->n == l->p.n) return QK_OK;
  return qk_fail(err, QK_NOT_CONVERGED, "%d of %d eigenvectors after %d restarts%s", e->n, l->p.n,
                 l->restarts, l->degenerate ? reason : "");
}

qk_status_t qk_lanczos(qk_operator_t *op, qk_work_t *work, const qk_lanczos_params_t *params,
                       qk_progress_fn *progress, void *arg, qk_eigen_t **eigen, qk_err_t *err) {
  qk_lanczos_t *l;
  qk_status_t status = qk_lanczos_create(op, work, params, &l, err);
  if (status) return status;
  for (int before = 0; !status && l->stage != OVER; before = l->restarts) {
    status = qk_lanczos_step(l, err);
    if (!status && progress && l->restarts > before) progress(arg, "eigenvectors", l->done, l->p.n);
  }
  const qk_status_t found = status ? status : qk_lanczos_vectors(l, eigen, err);
  qk_lanczos_destroy(l);
  return found;
}
