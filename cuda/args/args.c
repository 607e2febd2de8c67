#include "cuda/args/args.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Number of fields, scalars and reductions of each operation, and its name. */
static const struct blas_row {
  const char *name;
  int fields, scalars, reductions;
} rows[QK_BLAS_COUNT] = {
#define X(name, fields, scalars, reductions, formula)                                              \
  [QK_BLAS_##name] = {#name, fields, scalars, reductions},
    QK_BLAS_TABLE(X)
#undef X
};

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

#define WRONG(...) (snprintf(text, QK_ARGS_TEXT, __VA_ARGS__), text)

const char *qk_args_misfit(const qk_spinor_t *f, char text[QK_ARGS_TEXT]) {
  const int tiles = (f->nrhs + QK_TILE - 1) / QK_TILE;
  if (f->data == NULL) return "data is missing";
  if ((unsigned)f->prec >= QK_PRECS) return WRONG("prec = %d: 0 to %d", (int)f->prec, QK_PRECS - 1);
  if (qk_prec_scaled(f->prec) && f->scale == NULL)
    return WRONG("scale is missing, prec = %d", (int)f->prec);
  if (qk_prec_scaled(f->prec) && f->ncomp != 12 && f->ncomp != QK_COLOUR_COMPONENTS)
    return WRONG("ncomp = %d: 12 or %d with prec = %d", f->ncomp, QK_COLOUR_COMPONENTS,
                 (int)f->prec);
  if (!qk_ncomp_fits(f->ncomp))
    return WRONG("ncomp = %d: a multiple of 4 or %d", f->ncomp, QK_COLOUR_COMPONENTS);
  if (f->nrhs < 1 || f->nrhs > QK_COLUMNS_MAX)
    return WRONG("nrhs = %d: 1 to %d", f->nrhs, QK_COLUMNS_MAX);
  if (f->inner < 0 || (f->inner > 1 && f->nsites % f->inner != 0))
    return WRONG("inner = %d: not a number of vectors of %lld sites", f->inner,
                 (long long)f->nsites);
  if (f->ntile != tiles && !(f->ntile == 0 && f->nrhs == 1))
    return WRONG("ntile = %d with nrhs = %d: %d%s", f->ntile, f->nrhs, tiles,
                 f->nrhs == 1 ? " or 0" : "");
  if (f->nsites < QK_TILE || f->nsites % QK_TILE != 0)
    return WRONG("nsites = %lld: a multiple of %d", (long long)f->nsites, QK_TILE);
  return NULL;
}

static qk_status_t spinor(qk_ops_ctx_t *ctx, const char *call, int i, const qk_spinor_t *f) {
  char text[QK_ARGS_TEXT];
  const char *misfit = qk_args_misfit(f, text);
  return misfit == NULL ? QK_OK : BAD("%s: field %d: %s", call, i, misfit);
}

/* For methods that colour vectors do not have. */
static qk_status_t not_colours(qk_ops_ctx_t *ctx, const char *call, const qk_spinor_t *f) {
  if (f->ncomp == QK_COLOUR_COMPONENTS)
    return BAD("%s: ncomp = %d: not for colour vectors", call, f->ncomp);
  return QK_OK;
}

static qk_status_t same_shape(qk_ops_ctx_t *ctx, const char *call, int i, const qk_spinor_t *f,
                              const qk_spinor_t *g, bool any_prec) {
  if (f->nrhs != g->nrhs || f->ntile != g->ntile || f->nsites != g->nsites)
    return BAD("%s: field %d: nrhs, ntile, nsites = %d, %d, %lld: %d, %d, %lld as the first", call,
               i, f->nrhs, f->ntile, (long long)f->nsites, g->nrhs, g->ntile, (long long)g->nsites);
  if (f->ncomp != g->ncomp)
    return BAD("%s: field %d: ncomp = %d: %d as the first", call, i, f->ncomp, g->ncomp);
  if (f->prec != g->prec && !any_prec)
    return BAD("%s: field %d: prec = %d: %d as the first", call, i, (int)f->prec, (int)g->prec);
  return QK_OK;
}

/* In half beside single. */
static bool is_narrow(const qk_spinor_t *f, const qk_spinor_t *beside) {
  return qk_prec_scaled(f->prec) && qk_prec_bytes(beside->prec) == (int)sizeof(float);
}

qk_status_t qk_args_blas(qk_ops_ctx_t *ctx, const qk_blas_args_t *args) {
  if (args->op <= QK_BLAS_NONE || args->op >= QK_BLAS_COUNT)
    return BAD("blas: op = %d: 1 to %d", (int)args->op, QK_BLAS_COUNT - 1);
  const struct blas_row *row = &rows[args->op];
  bool mixed = args->op == QK_BLAS_COPY || args->op == QK_BLAS_ADD;
  for (int i = 0; i < row->fields; i++) {
    qk_status_t status = spinor(ctx, row->name, i, &args->f[i]);
    if (status == QK_OK) status = same_shape(ctx, row->name, i, &args->f[i], &args->f[0], mixed);
    if (status != QK_OK) return status;
  }
  for (int i = 0; i < row->scalars; i++)
    if (args->c[i] == NULL) return BAD("%s: scalar %d is missing", row->name, i);
  if (row->reductions > 0 && args->red == NULL) return BAD("%s: red is missing", row->name);
  return QK_OK;
}

qk_status_t qk_args_multi(qk_ops_ctx_t *ctx, const qk_multi_args_t *args, int dot) {
  const char *call = dot ? "multi_dot" : "multi_axpy";
  const bool narrow = !dot && args->n > 0 && is_narrow(&args->f[0], &args->y);
  if (args->n < 0 || args->n > QK_MULTI_MAX)
    return BAD("%s: n = %d: 0 to %d", call, args->n, QK_MULTI_MAX);
  qk_status_t status = spinor(ctx, call, -1, &args->y);
  for (int k = 0; status == QK_OK && k < args->n; k++) {
    status = spinor(ctx, call, k, &args->f[k]);
    if (status == QK_OK) status = same_shape(ctx, call, k, &args->f[k], &args->y, narrow);
    if (status == QK_OK) status = same_shape(ctx, call, k, &args->f[k], &args->f[0], false);
  }
  if (status != QK_OK) return status;
  if (dot && args->red == NULL) return BAD("%s: red is missing", call);
  if (!dot && args->c == NULL) return BAD("%s: c is missing", call);
  return QK_OK;
}

qk_status_t qk_args_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t *args) {
  if (args->n < 0 || args->n >= QK_GCR_MAX)
    return BAD("gcr_step: n = %d: 0 to %d", args->n, QK_GCR_MAX - 1);
  if (args->dots == NULL) return BAD("gcr_step: dots is missing");
  const qk_spinor_t *more[] = {&args->x, &args->next};
  qk_status_t status = spinor(ctx, "gcr_step", -1, &args->r);
  if (status == QK_OK) status = not_colours(ctx, "gcr_step", &args->r);
  for (int i = 0; status == QK_OK && i < 2; i++) {
    if (more[i]->data == NULL) continue;
    const bool narrow = args->x.data == NULL && is_narrow(more[i], &args->r);
    status = spinor(ctx, "gcr_step", -1, more[i]);
    if (status == QK_OK) status = same_shape(ctx, "gcr_step", -1, more[i], &args->r, narrow);
  }
  for (int k = 0; status == QK_OK && k <= args->n; k++) {
    if (args->norm2[k] == NULL) return BAD("gcr_step: norm2[%d] is missing", k);
    status = spinor(ctx, "gcr_step", k, &args->w[k]);
    if (status == QK_OK) status = same_shape(ctx, "gcr_step", k, &args->w[k], &args->r, false);
    if (status != QK_OK || args->x.data == NULL) continue;
    status = spinor(ctx, "gcr_step", k, &args->z[k]);
    if (status == QK_OK) status = same_shape(ctx, "gcr_step", k, &args->z[k], &args->r, false);
  }
  return status;
}

qk_status_t qk_args_gram(qk_ops_ctx_t *ctx, const qk_gram_args_t *args) {
  if (args->n < 1 || args->n > QK_GRAM_MAX)
    return BAD("gram_solve: n = %d: 1 to %d", args->n, QK_GRAM_MAX);
  if (args->nrhs < 1 || args->nrhs > QK_MAX_RHS)
    return BAD("gram_solve: nrhs = %d: 1 to %d", args->nrhs, QK_MAX_RHS);
  if (args->dots == NULL || args->y == NULL) return BAD("gram_solve: dots or y is missing");
  return QK_OK;
}

qk_status_t qk_args_space(qk_ops_ctx_t *ctx, const qk_space_args_t *args, int step) {
  const char *call = step ? "space_step" : "space_dots";
  if (args->n < 1 || args->n > QK_GRAM_MAX)
    return BAD("%s: n = %d: 1 to %d", call, args->n, QK_GRAM_MAX);
  qk_status_t status = QK_OK;
  for (int i = 0; status == QK_OK && i <= args->n + (step ? 1 : 0); i++) {
    const qk_spinor_t *f = i <= args->n ? &args->v[i] : &args->x;
    status = spinor(ctx, call, i, f);
    if (status == QK_OK) status = not_colours(ctx, call, f);
    if (status == QK_OK) status = same_shape(ctx, call, i, f, &args->v[0], false);
    for (int k = 0; step && status == QK_OK && k < i; k++)
      if (args->v[k].data == f->data) status = BAD("%s: field %d: is field %d", call, i, k);
  }
  if (status != QK_OK) return status;
  if (step ? args->y == NULL : args->dots == NULL)
    return BAD("%s: %s is missing", call, step ? "y" : "dots");
  return QK_OK;
}

/* Field i of all: x, p and r in turn. */
static const qk_spinor_t *shift_field(const qk_shift_args_t *args, int i) {
  if (i < args->n) return &args->x[i];
  return i < 2 * args->n ? &args->p[i - args->n] : &args->r[i - 2 * args->n];
}

qk_status_t qk_args_shift(qk_ops_ctx_t *ctx, const qk_shift_args_t *args) {
  const char *call = "shift_step";
  if (args->n < 1 || args->n > QK_SHIFTS_MAX)
    return BAD("%s: n = %d: 1 to %d", call, args->n, QK_SHIFTS_MAX);
  if (args->nr < 1 || args->nr > QK_SHIFT_RESIDUALS)
    return BAD("%s: nr = %d: 1 to %d", call, args->nr, QK_SHIFT_RESIDUALS);
  qk_status_t status = QK_OK;
  for (int i = 0; status == QK_OK && i < 2 * args->n + args->nr; i++) {
    const qk_spinor_t *f = shift_field(args, i);
    status = spinor(ctx, call, i, f);
    if (status == QK_OK) status = same_shape(ctx, call, i, f, &args->x[0], true);
    if (status == QK_OK && i >= args->n)
      status = same_shape(ctx, call, i, f, &args->p[0], false);
    else if (status == QK_OK && f->prec != QK_DOUBLE)
      status = BAD("%s: field %d: prec = %d: double (%d)", call, i, (int)f->prec, QK_DOUBLE);
    for (int k = 0; status == QK_OK && k < i; k++)
      if (shift_field(args, k)->data == f->data)
        status = BAD("%s: field %d: is field %d", call, i, k);
  }
  if (status != QK_OK) return status;
  if (qk_prec_scaled(args->p[0].prec))
    return BAD("%s: prec = %d: double (%d) or single (%d)", call, (int)args->p[0].prec, QK_DOUBLE,
               QK_SINGLE);
  return args->c == NULL ? BAD("%s: c is missing", call) : QK_OK;
}

qk_status_t qk_args_site_ratios(qk_ops_ctx_t *ctx, const qk_site_ratios_args_t *args) {
  const char *call = "site_ratios";
  qk_status_t status = spinor(ctx, call, 0, &args->r);
  if (status == QK_OK) status = spinor(ctx, call, 1, &args->x);
  if (status == QK_OK) status = same_shape(ctx, call, 1, &args->x, &args->r, false);
  if (status != QK_OK) return status;
  if (args->x.prec != QK_DOUBLE && args->x.prec != QK_SINGLE)
    return BAD("%s: prec = %d: double (%d) or single (%d)", call, (int)args->x.prec, QK_DOUBLE,
               QK_SINGLE);
  return args->red == NULL ? BAD("%s: red is missing", call) : QK_OK;
}

static qk_status_t one_rhs(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat,
                           const qk_spinor_t *f, int rhs) {
  qk_status_t status = spinor(ctx, call, 0, f);
  if (status != QK_OK) return status;
  if (f->ncomp != 12 && f->ncomp != QK_COLOUR_COMPONENTS)
    return BAD("%s: ncomp = %d: 12 or %d", call, f->ncomp, QK_COLOUR_COMPONENTS);
  if (f->subset != QK_FULL || f->nsites != 2 * (int64_t)lat->vcb)
    return BAD("%s: subset, nsites = %d, %lld: %d, %lld", call, (int)f->subset,
               (long long)f->nsites, QK_FULL, 2 * (long long)lat->vcb);
  if (rhs < 0 || rhs >= f->nrhs) return BAD("%s: rhs = %d: 0 to %d", call, rhs, f->nrhs - 1);
  return QK_OK;
}

qk_status_t qk_args_rhs(qk_ops_ctx_t *ctx, const qk_rhs_args_t *args) {
  if (args->n < 1 || args->n > QK_RHS_TOGETHER)
    return BAD("rhs: n = %d: 1 to %d", args->n, QK_RHS_TOGETHER);
  for (int k = 0; k < args->n; k++) {
    if (args->wire[k] == NULL) return BAD("rhs: wire %d is missing", k);
    if ((uintptr_t)args->wire[k] % 16 != 0)
      return BAD("rhs: wire %d is not at a multiple of 16 bytes", k);
  }
  qk_status_t status = one_rhs(ctx, "rhs", &args->lat, &args->field, args->rhs);
  if (status != QK_OK) return status;
  if (args->rhs + args->n > args->field.nrhs)
    return BAD("rhs: n = %d: 1 to %d from rhs = %d on", args->n, args->field.nrhs - args->rhs,
               args->rhs);
  return QK_OK;
}

/* A block against fields of one RHS. */
static qk_status_t several_rhs(qk_ops_ctx_t *ctx, const char *call,
                               const qk_rhs_copy_args_t *args) {
  const bool into = args->from.nrhs == 1;
  const qk_spinor_t *block = into ? &args->to : &args->from,
                    *single_rhs = into ? &args->from : &args->to;
  const int more = block->nrhs - (into ? args->to_rhs : args->from_rhs);
  if (single_rhs->nrhs != 1 || single_rhs->ntile != 0 ||
      (single_rhs->prec != QK_DOUBLE && single_rhs->prec != QK_SINGLE))
    return BAD("%s: field %d: nrhs, ntile, prec = %d, %d, %d: 1, 0, double (%d) or single (%d)",
               call, into, single_rhs->nrhs, single_rhs->ntile, (int)single_rhs->prec, QK_DOUBLE,
               QK_SINGLE);
  if (args->n < 1 || args->n > QK_RHS_TOGETHER || args->n > more)
    return BAD("%s: n = %d: 1 to %d", call, args->n,
               more < QK_RHS_TOGETHER ? more : QK_RHS_TOGETHER);
  for (int k = 0; k < args->n; k++)
    if (args->single_rhs[k] == NULL) return BAD("%s: single_rhs[%d] is missing", call, k);
  return QK_OK;
}

/* Fields that are added to in place of `to`. */
static qk_status_t plus_rhs(qk_ops_ctx_t *ctx, const char *call, const qk_rhs_copy_args_t *args) {
  const qk_spinor_t *to = &args->to;
  const bool fits = args->add && to->nrhs == 1 && to->ntile == 0 && !qk_prec_scaled(to->prec);
  int given = 0;
  for (int k = 0; k < QK_RHS_TOGETHER; k++) given += args->plus[k] != NULL;
  if (given > 0 && !fits)
    return BAD("%s: plus: add, nrhs, ntile, prec = %d, %d, %d, %d: 1, 1, 0, not half", call,
               args->add, to->nrhs, to->ntile, (int)to->prec);
  for (int k = 0; given > 0 && k < (args->n > 1 ? args->n : 1); k++)
    if (args->plus[k] == NULL) return BAD("%s: plus[%d] is missing", call, k);
  return QK_OK;
}

qk_status_t qk_args_rhs_copy(qk_ops_ctx_t *ctx, const qk_rhs_copy_args_t *args) {
  const char *call = "rhs_copy";
  const qk_spinor_t *to = &args->to, *from = &args->from;
  qk_status_t status = spinor(ctx, call, 0, to);
  if (status == QK_OK) status = spinor(ctx, call, 1, from);
  if (status != QK_OK) return status;
  if (from->subset != to->subset || from->nsites != to->nsites || from->ncomp != to->ncomp)
    return BAD("%s: field 1: subset, nsites, ncomp = %d, %lld, %d: %d, %lld, %d as the first", call,
               (int)from->subset, (long long)from->nsites, from->ncomp, (int)to->subset,
               (long long)to->nsites, to->ncomp);
  if (args->to_rhs < 0 || args->to_rhs >= to->nrhs)
    return BAD("%s: to_rhs = %d: 0 to %d", call, args->to_rhs, to->nrhs - 1);
  if (args->from_rhs < 0 || args->from_rhs >= from->nrhs)
    return BAD("%s: from_rhs = %d: 0 to %d", call, args->from_rhs, from->nrhs - 1);
  if (args->n != 0 && args->n != 1) status = several_rhs(ctx, call, args);
  return status == QK_OK ? plus_rhs(ctx, call, args) : status;
}

qk_status_t qk_args_source(qk_ops_ctx_t *ctx, const qk_source_args_t *args) {
  qk_status_t status = one_rhs(ctx, "source", &args->lat, &args->field, args->rhs);
  if (status != QK_OK) return status;
  if ((unsigned)args->kind > QK_SOURCE_HELD)
    return BAD("source: kind = %d: 0 to %d", (int)args->kind, QK_SOURCE_HELD);
  bool spread = args->kind != QK_SOURCE_POINT && args->kind != QK_SOURCE_WALL;
  int least = spread ? -1 : 0;
  const int spins = args->field.ncomp == QK_COLOUR_COMPONENTS ? 1 : 4;
  if (args->spin < least || args->spin >= spins)
    return BAD("source: spin = %d: %d to %d", args->spin, least, spins - 1);
  if (args->colour < least || args->colour > 2)
    return BAD("source: colour = %d: %d to 2", args->colour, least);
  for (int mu = args->kind == QK_SOURCE_POINT ? 0 : 3; mu < 4; mu++)
    if (args->site[mu] < least || args->site[mu] >= args->lat.global[mu])
      return BAD("source: site[%d] = %d: %d to %d", mu, args->site[mu], least,
                 args->lat.global[mu] - 1);
  for (int j = 0; j < 3; j++) {
    int most = args->kind == QK_SOURCE_POINT ? 0 : args->lat.global[j] - 1;
    if (args->mom[j] < -most || args->mom[j] > most)
      return BAD("source: mom[%d] = %d: %d to %d", j, args->mom[j], -most, most);
  }
  int most = spread && args->site[3] >= 0 ? args->lat.global[3] : 0;
  if (args->t_every < 0 || args->t_every > most)
    return BAD("source: t_every = %d: 0 to %d", args->t_every, most);
  return QK_OK;
}

qk_status_t qk_args_noise(qk_ops_ctx_t *ctx, const qk_noise_args_t *args) {
  const qk_spinor_t *f = &args->field;
  qk_status_t status = spinor(ctx, "noise", 0, f);
  if (status != QK_OK) return status;
  if (f->prec != QK_DOUBLE && f->prec != QK_SINGLE)
    return BAD("noise: prec = %d: double (%d) or single (%d)", (int)f->prec, QK_DOUBLE, QK_SINGLE);
  if (f->subset != QK_FULL || f->nsites != 2 * (int64_t)args->lat.vcb)
    return BAD("noise: subset, nsites = %d, %lld: %d, %lld", (int)f->subset, (long long)f->nsites,
               QK_FULL, 2 * (long long)args->lat.vcb);
  if (args->rhs < -1 || args->rhs >= f->nrhs)
    return BAD("noise: rhs = %d: -1 to %d", args->rhs, f->nrhs - 1);
  return QK_OK;
}

/* A propagator; `first`: the one whose precision it must have. */
static qk_status_t propagator(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const char *name,
                              const qk_spinor_t *f, const qk_spinor_t *first) {
  qk_status_t status = one_rhs(ctx, "contract", lat, f, 0);
  if (status != QK_OK) return status;
  if (f->nrhs != 12) return BAD("contract: %s: nrhs = %d: 12 columns", name, f->nrhs);
  if (f->prec != QK_DOUBLE && f->prec != QK_SINGLE)
    return BAD("contract: %s: prec = %d: %d or %d", name, (int)f->prec, QK_DOUBLE, QK_SINGLE);
  if (f->prec != first->prec)
    return BAD("contract: %s: prec = %d: %d as the first", name, (int)f->prec, (int)first->prec);
  return QK_OK;
}

qk_status_t qk_args_contract(qk_ops_ctx_t *ctx, const qk_contract_args_t *args) {
  if ((unsigned)args->hadron > QK_HADRON_DELTA)
    return BAD("contract: hadron = %d: 0 to %d", (int)args->hadron, QK_HADRON_DELTA);
  if (args->nmom < 1) return BAD("contract: nmom = %d: at least 1", args->nmom);
  if (args->phase == NULL || args->out == NULL)
    return BAD("contract: %s is missing", args->phase == NULL ? "phase" : "out");
  qk_status_t status = propagator(ctx, &args->lat, "a", &args->a, &args->a);
  if (status == QK_OK && args->hadron != QK_HADRON_DELTA)
    status = propagator(ctx, &args->lat, "b", &args->b, &args->a);
  return status;
}
