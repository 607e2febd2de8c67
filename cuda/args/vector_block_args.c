#include "cuda/args/vector_block_args.h"

#include <stdbool.h>

#include "cuda/args/args.h"

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

static qk_status_t spinor(qk_ops_ctx_t *ctx, const char *call, const char *name,
                          const qk_spinor_t *f) {
  char text[QK_ARGS_TEXT];
  const char *misfit = qk_args_misfit(f, text);
  return misfit == NULL ? QK_OK : BAD("%s: %s: %s", call, name, misfit);
}

static qk_status_t blocks(qk_ops_ctx_t *ctx, const char *call, const qk_basis_args_t *args) {
  const qk_spinor_t *first = &args->v[0];
  if (args->n < 1 || args->n > QK_BASIS_BLOCKS)
    return BAD("%s: n = %d: 1 to %d", call, args->n, QK_BASIS_BLOCKS);
  if (args->c == NULL) return BAD("%s: c is missing", call);
  for (int i = 0; i < args->n; i++) {
    const qk_spinor_t *f = &args->v[i];
    qk_status_t status = spinor(ctx, call, "v", f);
    if (status != QK_OK) return status;
    if (f->nrhs % QK_TILE != 0)
      return BAD("%s: v: nrhs = %d: a multiple of %d", call, f->nrhs, QK_TILE);
    if (f->nrhs != first->nrhs || f->nsites != first->nsites || f->ncomp != first->ncomp ||
        f->prec != first->prec)
      return BAD("%s: v[%d] is not of the shape and precision of the first", call, i);
  }
  return QK_OK;
}

qk_status_t qk_args_basis(qk_ops_ctx_t *ctx, const char *call, const qk_basis_args_t *args) {
  qk_status_t status = blocks(ctx, call, args);
  if (status == QK_OK) status = spinor(ctx, call, "y", &args->y);
  if (status != QK_OK) return status;
  const qk_spinor_t *v = &args->v[0], *y = &args->y;
  if (y->nsites != v->nsites || y->ncomp != v->ncomp)
    return BAD("%s: y: nsites, ncomp = %lld, %d: %lld, %d as v", call, (long long)y->nsites,
               y->ncomp, (long long)v->nsites, v->ncomp);
  if (qk_prec_scaled(y->prec) ||
      (y->prec != v->prec && !(qk_prec_scaled(v->prec) && y->prec == QK_SINGLE)))
    return BAD("%s: prec = %d of y with %d of v", call, (int)y->prec, (int)v->prec);
  return QK_OK;
}

/* What is added to a rotated block. */
static qk_status_t added(qk_ops_ctx_t *ctx, const qk_basis_args_t *args) {
  const qk_spinor_t *v = &args->v[0], *y = &args->y;
  const qk_status_t status = spinor(ctx, "basis_rotate", "y", y);
  if (status != QK_OK) return status;
  if (args->n != 1 || y->nrhs != v->nrhs || y->nsites != v->nsites || y->ncomp != v->ncomp ||
      y->prec != v->prec || y->data == v->data)
    return BAD("basis_rotate: y is another block like the only one of the basis");
  return QK_OK;
}

qk_status_t qk_args_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *args) {
  qk_status_t status = blocks(ctx, "basis_rotate", args);
  if (status != QK_OK) return status;
  int vectors = args->n * args->v[0].nrhs;
  if (vectors > QK_BASIS_MAX)
    return BAD("basis_rotate: %d vectors: at most %d", vectors, QK_BASIS_MAX);
  if (args->columns < 1 || args->columns > vectors)
    return BAD("basis_rotate: columns = %d: 1 to %d", args->columns, vectors);
  if (args->v[0].prec != QK_DOUBLE && args->v[0].prec != QK_SINGLE)
    return BAD("basis_rotate: prec = %d: 0 or 1", (int)args->v[0].prec);
  return args->y.data == NULL ? QK_OK : added(ctx, args);
}

qk_status_t qk_args_sites(qk_ops_ctx_t *ctx, const char *call, const qk_sites_args_t *args) {
  const qk_spinor_t *f = &args->field;
  qk_status_t status = spinor(ctx, call, "field", f);
  if (status != QK_OK) return status;
  int64_t sites = args->lat.vcb * (f->subset == QK_FULL ? (int64_t)2 : 1);
  if (f->nsites != sites)
    return BAD("%s: nsites = %lld: %lld", call, (long long)f->nsites, (long long)sites);
  if (f->prec != QK_SINGLE) return BAD("%s: prec = %d of the field: 1", call, (int)f->prec);
  if (args->prec != QK_SINGLE && args->prec != QK_HALF)
    return BAD("%s: prec = %d: 1 or 2", call, (int)args->prec);
  if (args->plain == NULL) return BAD("%s: plain is missing", call);
  if (args->first < 0 || args->n < 0 || args->first > sites - args->n)
    return BAD("%s: sites %lld to %lld: there are %lld", call, (long long)args->first,
               (long long)(args->first + args->n), (long long)sites);
  return QK_OK;
}
