#include "cuda/args/project_args.h"

#include "cuda/args/args.h"

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

static qk_status_t one_rhs(qk_ops_ctx_t *ctx, const qk_project_args_t *args, int i) {
  const qk_spinor_t *f = &args->x[i].field;
  char text[QK_ARGS_TEXT];
  const char *misfit = qk_args_misfit(f, text);
  if (misfit != NULL) return BAD("project: x[%d]: %s", i, misfit);
  if (f->prec != QK_DOUBLE && f->prec != QK_SINGLE)
    return BAD("project: x[%d]: prec = %d: %d or %d", i, (int)f->prec, QK_DOUBLE, QK_SINGLE);
  if (f->prec != args->x[0].field.prec)
    return BAD("project: x[%d]: prec = %d: %d as the first", i, (int)f->prec,
               (int)args->x[0].field.prec);
  if (f->ncomp != 12) return BAD("project: x[%d]: ncomp = %d: 12", i, f->ncomp);
  if (f->subset != QK_FULL || f->nsites != 2 * (int64_t)args->lat.vcb)
    return BAD("project: x[%d]: subset, nsites = %d, %lld: %d, %lld", i, (int)f->subset,
               (long long)f->nsites, QK_FULL, 2 * (long long)args->lat.vcb);
  if (args->x[i].rhs < 0 || args->x[i].rhs >= f->nrhs)
    return BAD("project: x[%d]: rhs = %d: 0 to %d", i, args->x[i].rhs, f->nrhs - 1);
  return QK_OK;
}

qk_status_t qk_args_project(qk_ops_ctx_t *ctx, const qk_project_args_t *args) {
  if (args->nrhs < 1 || args->nrhs > QK_PROJECT_RHS)
    return BAD("project: nrhs = %d: 1 to %d", args->nrhs, QK_PROJECT_RHS);
  if (args->nblock < 1 || args->nblock > QK_PROJECT_BLOCKS)
    return BAD("project: nblock = %d: 1 to %d", args->nblock, QK_PROJECT_BLOCKS);
  if (args->t0 < 0 || args->nt < 1 || args->t0 > args->lat.l[3] - args->nt)
    return BAD("project: t0, nt = %d, %d: there are %d slices", args->t0, args->nt, args->lat.l[3]);
  if (args->work == NULL || args->out == NULL)
    return BAD("project: %s is missing", args->work == NULL ? "work" : "out");
  for (int b = 0; b < args->nblock; b++) {
    if (args->vectors[b] == NULL) return BAD("project: vectors[%d] is missing", b);
    if ((args->low[b] == NULL) != (args->low[0] == NULL))
      return BAD("project: low[%d]: all blocks have one, or none", b);
  }
  qk_status_t status = QK_OK;
  for (int i = 0; i < args->nrhs && status == QK_OK; i++) status = one_rhs(ctx, args, i);
  return status;
}
