#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/lanczos_impl.h"
#include "daemon/engine/eigen/lanczos_params.h"
#include "daemon/engine/eigen/lanczos_rotate.h"

enum { B = QK_EIGEN_BLOCK };

typedef struct qk_lanczos lanczos_t;

/* Block b of the columns of q = V^+ A V, or V^+ H V, with the `keep` blocks V. */
static qk_status_t project(lanczos_t *l, int b) {
  qk_lanczos_basis_t *k = &l->k;
  const int n = l->keep * B;
  double complex *c = qk_malloc((size_t)n * B * sizeof *c);
  if (!c) return QK_NO_MEMORY;
  const qk_status_t made = qk_lanczos_basis_image(k, k->v[k->nblock], k->v[b]),
                    status = made ? made : qk_lanczos_basis_dots(k, l->keep, k->v[k->nblock], c);
  for (int i = 0; i < n && !status; i++)
    for (int j = 0; j < B; j++) l->q[(size_t)(b * B + j) * (size_t)n + (size_t)i] = c[i * B + j];
  qk_free(c);
  return status;
}

/* Columns of q and eigenvalues; h is not needed any more. */
static void sort_by_modulus(lanczos_t *l, int n) {
  int order[QK_LANCZOS_SPACE];
  double value[QK_LANCZOS_SPACE];
  memcpy(value, l->theta, (size_t)n * sizeof *value);
  for (int i = 0; i < n; i++) {
    int j = i;
    for (; j > 0 && fabs(value[i]) < fabs(value[order[j - 1]]); j--) order[j] = order[j - 1];
    order[j] = i;
  }
  for (int i = 0; i < n; i++) {
    l->theta[i] = value[order[i]];
    memcpy(l->h + (size_t)i * (size_t)n, l->q + (size_t)order[i] * (size_t)n,
           (size_t)n * sizeof *l->q);
  }
  double complex *sorted = l->h;
  l->h = l->q;
  l->q = sorted;
}

void qk_lanczos_begin_vectors(qk_lanczos_t *l) {
  l->at = 0;
  l->stage = l->p.within ? OVER : IMAGES;
}

/* q has the eigenvectors, theta their values. */
static void begin_turn(lanczos_t *l) {
  if (l->p.kind == QK_LANCZOS_GAMMA5) sort_by_modulus(l, l->keep * B);
  l->unit = 0;
  l->stage = TURN;
}

static qk_status_t image(lanczos_t *l) {
  qk_comm_t *comm = l->k.dev->geom->comm;
  const int n = l->keep * B;
  qk_status_t status = project(l, l->at++);
  if (status || l->at < l->keep) return status;
  if (n > QK_HERMITIAN_LARGE) {
    l->stage = RITZ;
    return qk_hermitian_begin(comm, n, l->q, &l->dense);
  }
  status = qk_hermitian_eigen(comm, n, l->q, l->theta);
  if (!status) begin_turn(l);
  return status;
}

static qk_status_t await_dense(lanczos_t *l) {
  const int n = l->keep * B;
  bool over = false;
  const qk_status_t status =
      qk_hermitian_poll(l->k.dev->geom->comm, &l->dense, n, l->q, n, l->theta, &over);
  if (!status && over) begin_turn(l);
  return status;
}

static qk_status_t turn(lanczos_t *l) {
  const int n = l->keep * B;
  bool over = false;
  const qk_status_t status = qk_lanczos_rotate_some(&l->k, l->keep, n, l->q, n, &l->unit, &over);
  if (status || !over) return status;
  l->at = 0;
  l->stage = MEASURE;
  return QK_OK;
}

static qk_status_t measure(lanczos_t *l) {
  qk_lanczos_basis_t *k = &l->k;
  const int b = l->at++;
  if (l->at == l->keep) l->stage = OVER;
  return qk_lanczos_basis_residual(k, k->v[b], k->v[k->nblock], l->theta + b * B,
                                   l->report + b * B);
}

/* Eigenvectors of A in the space of the `keep` blocks, lowest first; their values go to theta. */
qk_status_t qk_lanczos_step_vectors(qk_lanczos_t *l) {
  return l->stage == IMAGES    ? image(l)
         : l->stage == RITZ    ? await_dense(l)
         : l->stage == TURN    ? turn(l)
         : l->stage == MEASURE ? measure(l)
                               : QK_OK;
}

/* Within a basis: of a polynomial of A. What lies above the top is none of the lowest. */
static bool is_good(const lanczos_t *l, int i, double limit) {
  if (l->p.within) return i < l->done;
  return l->report[i] <= l->p.accept * limit && fabs(l->theta[i]) <= limit &&
         (l->p.kind != QK_LANCZOS_NORMAL || l->theta[i] > 0);
}

/* What q chooses, to the front. first: it is the first `count` vectors, and all that is to be done
 * is to empty the rest of their last block. */
static qk_status_t choose(lanczos_t *l, int count, bool first) {
  qk_lanczos_basis_t *k = &l->k;
  const int n = l->keep * B;
  double complex unit[B * B] = {0};
  if (!first) return qk_lanczos_rotate(k, l->keep, n, l->q, n);
  for (int i = 0; i < count % B; i++) unit[i * B + i] = 1;
  return count % B ? qk_lanczos_rotate_block(k, k->v[count / B], unit) : QK_OK;
}

/* The wanted vectors that are good, to the front, and out of the basis. */
qk_status_t qk_lanczos_collect(qk_lanczos_t *l, qk_eigen_t *e) {
  qk_lanczos_basis_t *k = &l->k;
  bool first = true;
  const double limit = /* of A, of H */
      l->p.kind == QK_LANCZOS_GAMMA5 ? sqrt(l->p.top) : l->p.top;
  const int n = l->keep * B;
  memset(l->q, 0, (size_t)n * (size_t)n * sizeof *l->q);
  for (int i = 0; i < n && e->n < l->p.n; i++) {
    if (!is_good(l, i, limit)) continue;
    first = first && i == e->n;
    l->q[(size_t)e->n * (size_t)n + (size_t)i] = 1;
    e->value[e->n] = l->theta[i];
    e->residual[e->n] = l->report[i];
    e->n++;
  }
  const qk_status_t status = choose(l, e->n, first);
  if (status) return status;
  e->nblock = qk_lanczos_round_up(e->n) / B;
  for (int b = 0; b < e->nblock; b++) {
    e->block[b] = k->v[b];
    k->v[b] = NULL;
  }
  e->flat = k->flat;
  k->flat = NULL;
  e->window = l->p.window;
  e->top = l->p.top;
  e->order = l->p.order;
  e->restarts = l->restarts;
  return QK_OK;
}
