#include "cuda/args/mg_setup_args.h"

#include <string.h>

#include "cuda/args/hop_args.h"
#include "cuda/args/mg_args.h"

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

/* Coarse lattices may be two sites wide where they are split. */
static qk_status_t lattice(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat) {
  qk_lattice_t whole = *lat;
  memset(whole.split, 0, sizeof whole.split);
  const char *why = qk_lattice_misfit(&whole);
  return why == NULL ? QK_OK : BAD("%s: %s", call, why);
}

/* Matrices of n x n (any n if it is 0) in ndir directions (1 or 8 if it is 0), of a precision up to
 * `coarsest`. */
static qk_status_t links(qk_ops_ctx_t *ctx, const char *call, const char *name,
                         const qk_coarse_links_t *m, int n, int ndir, qk_prec_t coarsest) {
  if (m->data == NULL) return BAD("%s: %s has no data", call, name);
  if ((unsigned)m->prec > coarsest)
    return BAD("%s: %s: precision %d: 0 (double) to %d", call, name, (int)m->prec, (int)coarsest);
  if (m->n < 4 || m->n > QK_MG_N_MAX || m->n % 4 != 0)
    return BAD("%s: %s: n = %d: a multiple of 4 from 4 to %d", call, name, m->n, QK_MG_N_MAX);
  if (n != 0 && m->n != n) return BAD("%s: %s: n = %d: %d", call, name, m->n, n);
  if (ndir == 0 && m->ndir != 1 && m->ndir != 8)
    return BAD("%s: %s: ndir = %d: 1 or 8", call, name, m->ndir);
  if (ndir != 0 && m->ndir != ndir) return BAD("%s: %s: ndir = %d: %d", call, name, m->ndir, ndir);
  return QK_OK;
}

static qk_status_t aggregates(qk_ops_ctx_t *ctx, const char *call, const qk_aggregates_t *agg) {
  qk_status_t status = lattice(ctx, call, &agg->fine);
  if (status == QK_OK) status = lattice(ctx, call, &agg->coarse);
  if (status != QK_OK) return status;
  for (int mu = 0; mu < 4; mu++)
    if (agg->block[mu] < 1 || agg->block[mu] * (int64_t)agg->coarse.l[mu] != agg->fine.l[mu])
      return BAD("%s: block[%d] = %d: %d aggregates of it are not the extent %d", call, mu,
                 agg->block[mu], agg->coarse.l[mu], agg->fine.l[mu]);
  return QK_OK;
}

/* A block of columns of the fine lattice, precision up to `coarsest`. */
static qk_status_t columns(qk_ops_ctx_t *ctx, const char *call, const char *name,
                           const qk_lattice_t *lat, const qk_spinor_t *v, qk_prec_t coarsest) {
  if (v->data == NULL) return BAD("%s: %s has no data", call, name);
  if ((unsigned)v->prec > coarsest)
    return BAD("%s: %s: precision %d: 0 (double) to %d", call, name, (int)v->prec, (int)coarsest);
  if (v->subset != QK_FULL || v->nsites != 2 * (int64_t)lat->vcb)
    return BAD("%s: %s: %lld sites: a full field of %lld", call, name, (long long)v->nsites,
               2 * (long long)lat->vcb);
  if (v->inner != 0 && v->inner != 1)
    return BAD("%s: %s: inner = %d: 0 or 1, one vector a RHS", call, name, v->inner);
  if (v->nrhs < 1 || v->nrhs > QK_MG_NVEC_MAX)
    return BAD("%s: %s: nrhs = %d: 1 to %d", call, name, v->nrhs, QK_MG_NVEC_MAX);
  if (v->ntile != (v->nrhs + QK_TILE - 1) / QK_TILE)
    return BAD("%s: %s: ntile = %d: tiles of columns are wanted", call, name, v->ntile);
  if (v->ncomp < 4 || v->ncomp % 4 != 0)
    return BAD("%s: %s: ncomp = %d: a multiple of 4", call, name, v->ncomp);
  return QK_OK;
}

qk_status_t qk_args_orthonormalise(qk_ops_ctx_t *ctx, const qk_orthonormalise_args_t *a) {
  qk_status_t status = aggregates(ctx, "orthonormalise", &a->agg);
  if (status == QK_OK) status = columns(ctx, "orthonormalise", "v", &a->agg.fine, &a->v, QK_SINGLE);
  if (status == QK_OK && a->dependent == NULL) status = BAD("orthonormalise: dependent is missing");
  return status;
}

qk_status_t qk_args_principal(qk_ops_ctx_t *ctx, const qk_principal_args_t *a) {
  qk_status_t status = aggregates(ctx, "principal", &a->agg);
  if (status == QK_OK) status = columns(ctx, "principal", "v", &a->agg.fine, &a->v, QK_SINGLE);
  if (status != QK_OK) return status;
  if (a->v.nrhs % 2 != 0) return BAD("principal: v: nrhs = %d: an even number", a->v.nrhs);
  if (a->keep < 1 || a->keep > a->v.nrhs)
    return BAD("principal: keep = %d: 1 to %d columns", a->keep, a->v.nrhs);
  return QK_OK;
}

/* Columns of a field as rows or columns of the matrices of one chirality. */
static qk_status_t range(qk_ops_ctx_t *ctx, const char *name, int first, const qk_spinor_t *v,
                         int nvec) {
  if (first >= 0 && first <= nvec - v->nrhs) return QK_OK;
  return BAD("galerkin: %s: vectors %d to %d: of %d", name, first, first + v->nrhs - 1, nvec);
}

qk_status_t qk_args_galerkin(qk_ops_ctx_t *ctx, const qk_galerkin_args_t *a) {
  const char *call = "galerkin";
  const int n = a->inner.n;
  qk_status_t status = aggregates(ctx, call, &a->agg);
  if (status == QK_OK) status = columns(ctx, call, "v", &a->agg.fine, &a->v, QK_SINGLE);
  if (status == QK_OK) status = columns(ctx, call, "w", &a->agg.fine, &a->w, QK_SINGLE);
  if (status == QK_OK) status = links(ctx, call, "inner", &a->inner, 0, 1, QK_SINGLE);
  if (status == QK_OK && a->mu >= 0) status = links(ctx, call, "ahead", &a->ahead, n, 8, QK_SINGLE);
  if (status == QK_OK) status = range(ctx, "v", a->row0, &a->v, n / 2);
  if (status == QK_OK) status = range(ctx, "w", a->column0, &a->w, n / 2);
  if (status != QK_OK) return status;
  if (a->v.prec != QK_SINGLE || a->w.prec != QK_SINGLE)
    return BAD("%s: v, w: precision %d, %d: %d (single)", call, (int)a->v.prec, (int)a->w.prec,
               (int)QK_SINGLE);
  if (a->v.ncomp != a->w.ncomp)
    return BAD("%s: w: %d components: %d as v has", call, a->w.ncomp, a->v.ncomp);
  if (a->mu < -1 || a->mu > 3) return BAD("%s: mu = %d: -1 to 3", call, a->mu);
  if (a->chirality != 0 && a->chirality != 1)
    return BAD("%s: chirality = %d: 0 or 1", call, a->chirality);
  return QK_OK;
}

typedef struct matrices {
  const char *name;
  const qk_coarse_links_t *links; /* NULL: there are none */
  int ndir;
  qk_prec_t coarsest;
} matrices_t;

/* A lattice, and matrices on it that have one n. */
static qk_status_t lattice_and_links(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat,
                                     const matrices_t *m, int count) {
  qk_status_t status = lattice(ctx, call, lat);
  for (int i = 0; status == QK_OK && i < count; i++)
    if (m[i].links != NULL)
      status = links(ctx, call, m[i].name, m[i].links, i > 0 ? m[0].links->n : 0, m[i].ndir,
                     m[i].coarsest);
  return status;
}

qk_status_t qk_args_coarse_close(qk_ops_ctx_t *ctx, const qk_coarse_close_args_t *a) {
  const char *call = "coarse_close";
  const matrices_t m[] = {{"inner", &a->inner, 1, QK_SINGLE},
                          {"diag", &a->diag, 1, QK_SINGLE},
                          {"ahead", a->ahead.data != NULL ? &a->ahead : NULL, 8, QK_SINGLE}};
  qk_status_t status = lattice_and_links(ctx, call, &a->lat, m, 3);
  for (int mu = 0; status == QK_OK && a->ahead.data != NULL && mu < 4; mu++)
    if (a->lat.split[mu] && a->ghost[mu] == NULL)
      status = BAD("%s: ghost[%d]: absent in a split direction", call, mu);
  return status;
}

qk_status_t qk_args_coarse_face(qk_ops_ctx_t *ctx, const qk_coarse_face_args_t *a) {
  const char *call = "coarse_face";
  const matrices_t ahead = {"ahead", &a->ahead, 8, QK_SINGLE};
  qk_status_t status = lattice_and_links(ctx, call, &a->lat, &ahead, 1);
  if (status != QK_OK) return status;
  if (a->mu < 0 || a->mu > 3) return BAD("%s: mu = %d: 0 to 3", call, a->mu);
  return a->to == NULL ? BAD("%s: to has no memory", call) : QK_OK;
}

qk_status_t qk_args_coarse_invert(qk_ops_ctx_t *ctx, const qk_coarse_invert_args_t *a) {
  const char *call = "coarse_invert";
  const matrices_t m[] = {{"diag", &a->diag, 1, QK_SINGLE}, {"inverse", &a->inverse, 1, QK_HALF}};
  qk_status_t status = lattice_and_links(ctx, call, &a->lat, m, 2);
  if (status == QK_OK && a->singular == NULL) status = BAD("%s: singular is missing", call);
  return status;
}

qk_status_t qk_args_coarse_times(qk_ops_ctx_t *ctx, const qk_coarse_times_args_t *a) {
  const char *call = "coarse_times";
  const matrices_t m[] = {{"in", &a->in, 0, QK_HALF},
                          {"out", &a->out, a->in.ndir, QK_HALF},
                          {"left", a->left.data != NULL ? &a->left : NULL, 1, QK_HALF}};
  qk_status_t status = lattice_and_links(ctx, call, &a->lat, m, 3);
  if (status == QK_OK && (a->out.data == a->in.data || a->out.data == a->left.data))
    status = BAD("%s: out: may not be in or left", call);
  if (status == QK_OK && a->twist != 0 && (a->left.data != NULL || a->in.ndir != 1))
    status = BAD("%s: twist = %g: 0 for products, and for in of %d directions", call, a->twist,
                 a->in.ndir);
  return status;
}

qk_status_t qk_args_coarse_eight(qk_ops_ctx_t *ctx, const qk_coarse_eight_args_t *a) {
  const char *call = "coarse_eight";
  const matrices_t m = {"links", &a->links, 0, QK_HALF};
  const qk_status_t status = lattice_and_links(ctx, call, &a->lat, &m, 1);
  if (status != QK_OK) return status;
  if (a->links.prec == QK_DOUBLE || a->links.n % 16 != 0)
    return BAD("%s: links: prec, n = %d, %d: 1 or 2, a multiple of 16", call, (int)a->links.prec,
               a->links.n);
  if (a->out == NULL) return BAD("%s: out has no memory", call);
  return QK_OK;
}

qk_status_t qk_args_coarse_copy(qk_ops_ctx_t *ctx, const qk_coarse_copy_args_t *a) {
  const char *call = "coarse copy";
  const int64_t sites = 2 * (int64_t)a->lat.vcb;
  const matrices_t plain = {"links", &a->links, 0, QK_HALF};
  qk_status_t status = lattice_and_links(ctx, call, &a->lat, &plain, 1);
  if (status != QK_OK) return status;
  if (a->plain == NULL) return BAD("%s: plain has no memory", call);
  if (a->first < 0 || a->n < 1 || a->n > sites - a->first)
    return BAD("%s: sites %lld to %lld: 0 to %lld", call, (long long)a->first,
               (long long)(a->first + a->n - 1), (long long)(sites - 1));
  return QK_OK;
}
