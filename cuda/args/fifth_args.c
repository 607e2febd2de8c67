#include "cuda/args/fifth_args.h"

#include "cuda/args/args.h"

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

static qk_status_t slices(qk_ops_ctx_t *ctx, const char *name, int n) {
  return n >= 1 && n <= QK_LS_MAX ? QK_OK : BAD("fifth_mix: %s = %d: 1 to %d", name, n, QK_LS_MAX);
}

/* nrhs right-hand sides of n columns, like `in`. */
static qk_status_t field(qk_ops_ctx_t *ctx, const char *name, const qk_spinor_t *f, int n, int nrhs,
                         const qk_spinor_t *in) {
  char text[QK_ARGS_TEXT];
  const char *misfit = qk_args_misfit(f, text);
  if (misfit) return BAD("fifth_mix: %s: %s", name, misfit);
  if (f->ncomp != 12) return BAD("fifth_mix: %s: ncomp = %d: 12", name, f->ncomp);
  if (f->inner > 1) return BAD("fifth_mix: %s: inner = %d: 0 or 1", name, f->inner);
  if (f->nrhs != nrhs * n)
    return BAD("fifth_mix: %s: nrhs = %d: %d right-hand sides of %d columns", name, f->nrhs, nrhs,
               n);
  if (f->prec != in->prec || f->nsites != in->nsites || f->subset != in->subset)
    return BAD("fifth_mix: %s: prec, nsites, subset = %d, %lld, %d: %d, %lld, %d as in", name,
               (int)f->prec, (long long)f->nsites, (int)f->subset, (int)in->prec,
               (long long)in->nsites, (int)in->subset);
  if (f->ntile == 0 && qk_prec_scaled(f->prec))
    return BAD("fifth_mix: %s: ntile = 0 with prec = %d: not in half", name, (int)f->prec);
  return QK_OK;
}

qk_status_t qk_args_fifth_mix(qk_ops_ctx_t *ctx, const qk_fifth_mix_args_t *a) {
  qk_status_t status = slices(ctx, "to", a->to);
  if (status == QK_OK) status = slices(ctx, "from", a->from);
  if (status != QK_OK) return status;
  const int nrhs = a->in.nrhs / a->from;
  if (a->matrix == NULL) return BAD("fifth_mix: matrix is missing");
  status = field(ctx, "in", &a->in, a->from, nrhs, &a->in);
  if (status == QK_OK) status = field(ctx, "out", &a->out, a->to, nrhs, &a->in);
  if (status == QK_OK && a->x.data) status = field(ctx, "x", &a->x, a->to, nrhs, &a->in);
  if (status != QK_OK) return status;
  if (a->x.data == NULL && a->c_x != 0) return BAD("fifth_mix: x is missing, c_x = %g", a->c_x);
  if (a->out.data == a->in.data && a->to != a->from)
    return BAD("fifth_mix: out is in, to = %d, from = %d: must be the same", a->to, a->from);
  return QK_OK;
}

qk_status_t qk_args_fifth_sum(qk_ops_ctx_t *ctx, const qk_fifth_sum_args_t *a) {
  if (a->red == NULL) return BAD("fifth_sum: red is missing");
  if (a->ls < 1 || a->ls > QK_LS_MAX) return BAD("fifth_sum: ls = %d: 1 to %d", a->ls, QK_LS_MAX);
  if (a->columns < 1 || a->columns > QK_COLUMNS_MAX || a->columns % a->ls != 0)
    return BAD("fifth_sum: columns = %d: a multiple of ls = %d, 1 to %d", a->columns, a->ls,
               QK_COLUMNS_MAX);
  if (a->n < 1 || a->n > QK_MULTI_MAX) return BAD("fifth_sum: n = %d: 1 to %d", a->n, QK_MULTI_MAX);
  return QK_OK;
}
