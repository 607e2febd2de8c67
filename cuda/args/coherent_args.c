#include "cuda/args/coherent_args.h"

#include <stdbool.h>

#include "cuda/args/args.h"

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

/* A block of eight columns. */
static qk_status_t eight(qk_ops_ctx_t *ctx, const char *call, const char *name,
                         const qk_spinor_t *f) {
  char text[QK_ARGS_TEXT];
  const char *misfit = qk_args_misfit(f, text);
  if (misfit != NULL) return BAD("%s: %s: %s", call, name, misfit);
  if (f->nrhs != QK_TILE) return BAD("%s: %s: nrhs = %d: %d", call, name, f->nrhs, QK_TILE);
  return QK_OK;
}

static int vectors(const qk_spinor_t *f) {
  return f->inner > 1 ? f->inner : 1;
}

static bool alike(const qk_spinor_t *f, const qk_spinor_t *g) {
  return f->nsites == g->nsites && f->ncomp == g->ncomp && f->subset == g->subset &&
         vectors(f) == vectors(g);
}

static qk_status_t basis(qk_ops_ctx_t *ctx, const char *call, const qk_coherent_args_t *a) {
  if (a->n < 1 || a->n > QK_BASIS_BLOCKS)
    return BAD("%s: n = %d: 1 to %d", call, a->n, QK_BASIS_BLOCKS);
  for (int i = 0; i < a->n; i++) {
    const qk_status_t status = eight(ctx, call, "v", &a->v[i]);
    if (status != QK_OK) return status;
    if (!alike(&a->v[i], &a->y) || a->v[i].prec != a->v[0].prec)
      return BAD("%s: v[%d] is not of the shape of y, or of another precision than v[0]", call, i);
  }
  return QK_OK;
}

static qk_status_t sites(qk_ops_ctx_t *ctx, const char *call, const qk_coherent_args_t *a,
                         int64_t *aggregates) {
  *aggregates = 1;
  for (int mu = 0; mu < 4; mu++) {
    const int32_t l = a->lat.l[mu], b = a->block[mu];
    if (b < 1 || l % b != 0 || (mu == 0 && b % 2 != 0))
      return BAD("%s: block[%d] = %d: %sa divisor of %d", call, mu, b, mu == 0 ? "even and " : "",
                 l);
    *aggregates *= l / b;
  }
  const int64_t of_vector = a->lat.vcb * (a->y.subset == QK_FULL ? (int64_t)2 : 1);
  if (a->y.ncomp != 12) return BAD("%s: y: ncomp = %d: 12", call, a->y.ncomp);
  if (a->y.nsites == of_vector * vectors(&a->y)) return QK_OK;
  return BAD("%s: y: nsites = %lld: %lld of %d vectors", call, (long long)a->y.nsites,
             (long long)of_vector, vectors(&a->y));
}

qk_status_t qk_args_coherent(qk_ops_ctx_t *ctx, const char *call, const qk_coherent_args_t *a) {
  int64_t aggregates = 0;
  qk_status_t status = eight(ctx, call, "y", &a->y);
  if (status == QK_OK) status = eight(ctx, call, "c", &a->c);
  if (status == QK_OK) status = basis(ctx, call, a);
  if (status == QK_OK) status = sites(ctx, call, a, &aggregates);
  if (status != QK_OK) return status;
  const int64_t padded = (aggregates + QK_TILE - 1) / QK_TILE * QK_TILE;
  if (a->c.nsites != padded || a->c.ncomp < 2 * QK_TILE * a->n)
    return BAD("%s: c: nsites, ncomp = %lld, %d: %lld, %d or more", call, (long long)a->c.nsites,
               a->c.ncomp, (long long)padded, 2 * QK_TILE * a->n);
  const qk_prec_t prec = a->v[0].prec;
  if (a->y.prec != (prec == QK_DOUBLE ? QK_DOUBLE : QK_SINGLE) || a->c.prec != a->y.prec)
    return BAD("%s: prec = %d, %d of y, c with %d of v", call, (int)a->y.prec, (int)a->c.prec,
               (int)prec);
  return QK_OK;
}
