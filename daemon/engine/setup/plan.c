#include "daemon/engine/setup/plan.h"

#include <stdio.h>

#include "daemon/base/assert.h"
#include "daemon/engine/lattice/halo.h"
#include "daemon/engine/setup/deflate.h"
#include "proto/limits.h"

/* Links of a site in double on the host, and a clover term. */
enum { LINK_SITE_BYTES = 4 * 18 * 8, TERM_SITE_BYTES = 72 * 8 };
/* At most at the same time; each is rounded up. */
enum { WORK_FIELDS = 16 };
/* Buffers that are worth more than the single-RHS solver: without any, slots wait for fields. */
enum { STAGING_FEW = 2 };
/* Of an application of an M that connects all sites: like its argument; of one column in double. */
enum { DENSE_FIELDS = 6, DENSE_SINGLE = 2 };
enum { PARTS_FIELDS = 3 }; /* source, result, room (serve/works.c) */

static int64_t wire_site_bytes(const qk_geom_t *geom) {
  return qk_geom_wire_reals(geom) * (int64_t)sizeof(double);
}

/* A block of eight sources that are made, twice (source.c). */
static int64_t source_site_bytes(const qk_geom_t *geom) {
  return 2 * QK_TILE * 2 * geom->ncomp * (int64_t)sizeof(double);
}

static const char *const NAMES[QK_PLAN_SHARES] = {
    [QK_PLAN_OPERATOR] = "operator", [QK_PLAN_PROLONGATORS] = "prolongators",
    [QK_PLAN_MATRICES] = "matrices", [QK_PLAN_DEFLATION] = "deflation",
    [QK_PLAN_CYCLE] = "cycle",       [QK_PLAN_SOLVER] = "solver",
    [QK_PLAN_SINGLE_RHS] = "lone",   [QK_PLAN_TRANSFER] = "transfer",
};

const char *qk_plan_name(qk_plan_share_t share) {
  return NAMES[share];
}

static int64_t field(const qk_geom_t *geom, qk_prec_t prec, int nrhs, qk_subset_t subset) {
  return (int64_t)qk_field_bytes(geom, prec, nrhs, subset);
}

static int64_t max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* ---- the finest level ------------------------------------------------------------------------ */

/* Where the device is the host: of a term that is given, while the operator is made. */
static int64_t given_bytes(const qk_plan_input_t *in) {
  const bool given = qk_values_action(&in->params->values)->has_term;
  return in->on_host && given ? in->geom->local_volume * TERM_SITE_BYTES : 0;
}

static int64_t operator_bytes(const qk_plan_input_t *in, bool making) {
  return qk_action_bytes(in->action, in->ops, &in->geom->lat, in->params, making);
}

/* T in precisions that only a setup reads (keep_local of operator.h); T and T^-1 take the same. */
static int64_t unread_bytes(const qk_plan_input_t *in) {
  int64_t bytes = 0;
  for (int p = 0; p < QK_PRECS && in->action->bytes && in->action->apart; p++) {
    qk_action_params_t one = *in->params;
    if (p == QK_DOUBLE || !one.want[p]) continue;
    if (in->mg && (qk_prec_t)p == in->mg->level[0].smoother_prec) continue;
    for (int q = 0; q < QK_PRECS; q++) one.want[q] = q == p;
    bytes += in->action->bytes(in->ops, &in->geom->lat, &one, false) / 2;
  }
  return bytes;
}

/* T^-1 in double, which rests while null vectors in turns make a hierarchy. */
static int64_t resting_bytes(const qk_plan_input_t *in) {
  qk_action_params_t one = *in->params;
  if (in->mg->together <= 0 || !in->action->bytes || !in->action->apart) return 0;
  for (int q = 0; q < QK_PRECS; q++) one.want[q] = q == QK_DOUBLE;
  return in->action->bytes(in->ops, &in->geom->lat, &one, false) / 2;
}

static int slices_of(const qk_plan_input_t *in) {
  return qk_action_slices(in->action, &in->params->values);
}

/* Of all precisions that the operator holds. */
static int64_t operator_faces(const qk_plan_input_t *in) {
  int64_t bytes = 0;
  for (int p = 0; p < QK_PRECS; p++) {
    int columns = in->nslot * slices_of(in);
    if (p == QK_DOUBLE && slices_of(in) > 1 && columns < QK_PROPAGATOR_COLUMNS)
      columns = QK_PROPAGATOR_COLUMNS;
    if (in->params->want[p])
      bytes += qk_halo_bytes(in->geom, (qk_prec_t)p, columns, qk_action_faces(in->action));
  }
  return bytes;
}

/* That of the fields of the solvers: with all vectors and slices of a right-hand side. */
static qk_geom_t geom_of_fields(const qk_plan_input_t *in) {
  qk_geom_t geom = *in->geom;
  geom.inner = in->vectors;
  geom.ls = slices_of(in);
  return geom;
}

/* CG on Mhat itself, or on its square (solver.c: system_operator). */
static bool plain_cg(const qk_plan_input_t *in) {
  const bool squares = in->action->squares && in->deflate == 0;
  return in->method == QK_SOLVER_CG && (in->action->adjoint == QK_ADJOINT_ANTI || squares);
}

/* The sites of the system (operator.h). */
static qk_subset_t system_of(const qk_plan_input_t *in) {
  return qk_values_action(&in->params->values)->is_dense ? QK_FULL : QK_EVEN;
}

/* Fields of the system that a method keeps, beside r and xi. */
static int64_t method_bytes(const qk_plan_input_t *in, const qk_geom_t *geom, int nslot) {
  const int64_t inner = field(geom, in->inner, nslot, system_of(in));
  if (plain_cg(in)) return (in->action->adjoint == QK_ADJOINT_ANTI ? 1 : 2) * inner;
  if (in->method != QK_SOLVER_GCR) return (in->method == QK_SOLVER_CG ? 3 : 4) * inner;
  return 2 * in->gcr_keep * inner;
}

static bool wide_correction(const qk_plan_input_t *in) {
  return qk_prec_scaled(in->inner) && in->method == QK_SOLVER_GCR;
}

/* Sources and solutions have four dimensions. */
static int64_t outer_full(const qk_geom_t *geom) {
  qk_geom_t outer = *geom;
  outer.ls = 1;
  return field(&outer, QK_DOUBLE, 1, QK_FULL);
}

/* Right-hand sides that begin, are updated or end together. */
static int beside_of(const qk_geom_t *geom, int nslot) {
  const int together = geom->ls > 1 ? 1 : QK_RHS_TOGETHER;
  return nslot < together ? nslot : together;
}

/* In double for each slot: source, and half a solution. Beside them a whole solution, which has the
 * half of an only slot, or one for each that is checked together. In the inner precision: the
 * block. geom: of the operator that it solves with. */
static int64_t solver_bytes(const qk_plan_input_t *in, const qk_geom_t *geom, int nslot) {
  const int64_t full = field(geom, QK_DOUBLE, 1, QK_FULL);
  const int64_t half = field(geom, QK_DOUBLE, 1, system_of(in));
  const int64_t inner = field(geom, in->inner, nslot, system_of(in));
  const int64_t xi = wide_correction(in) ? field(geom, QK_SINGLE, nslot, system_of(in)) : inner;
  const bool shares_full = nslot == 1 && geom->inner <= 1;
  const bool alone = in->compact || geom->inner > 1 || in->deflate > 0 || system_of(in) == QK_FULL;
  return nslot * (outer_full(geom) + half) - (shares_full ? half : 0) +
         (alone ? 1 : beside_of(geom, nslot)) * full + inner + xi + method_bytes(in, geom, nslot);
}

/* The same (below) where M connects all sites. */
static int64_t dense_work(const qk_plan_input_t *in, const qk_geom_t *geom, int nslot, int beside) {
  const int64_t full = field(geom, QK_DOUBLE, 1, QK_FULL);
  const int64_t applying = DENSE_FIELDS * field(geom, in->inner, nslot, QK_FULL);
  return max((2 * beside + 2 + DENSE_FIELDS) * full, applying) + DENSE_SINGLE * full;
}

/* Its work fields; what is not reserved at the same time shares their room. While slots begin or
 * are updated: two halves in double for each contiguous column, or for one; beside them the right-
 * hand side, where the source has fewer dimensions, and an odd half inside the operator; or b - M x
 * of the final check, and as much for measures of parities and of heavy quarks, or for an operator
 * on several vectors. While a compressed eigenvector is made whole (modes/expand.h): three halves
 * of its polynomial, and what an application of M^+ M takes. In five dimensions, when a slot ends:
 * two fields of twelve columns that sums are made of. In an application an odd half (with M^+ an
 * even one, too), or in half with a preconditioner both sides of it in single. An operator on
 * several vectors has one half more, and a sweep of multigrid over them three halves
 * (cycle_vectors.h), or four. */
static int64_t solver_work(const qk_plan_input_t *in, const qk_geom_t *geom, int nslot,
                           bool compact) {
  const int64_t full = field(geom, QK_DOUBLE, 1, QK_FULL);
  const int64_t half = field(geom, QK_DOUBLE, 1, QK_EVEN);
  const int64_t inner = field(geom, in->inner, nslot, QK_EVEN);
  const int64_t single = field(geom, QK_SINGLE, nslot, QK_EVEN);
  const int beside = beside_of(geom, nslot);
  const int more = geom->inner > 1;
  if (system_of(in) == QK_FULL) return dense_work(in, geom, nslot, compact ? 1 : beside);
  int64_t beneath = (1 + more) * half;
  if (in->deflate > 0) { /* a correction; beside it all that makes it, and M^+ in single */
    const int64_t one = field(geom, QK_SINGLE, 1, QK_EVEN);
    const int polynomial = in->deflate_cut.n > 0 ? 4 : 0;
    beneath = half + max(beneath, (3 + 2 + polynomial + more) * one);
  }
  const bool five = geom->ls > 1;
  const int measured = five ? (QK_TILE + geom->ls) / geom->ls : 0; /* two tiles of columns */
  const int64_t updating = 2 * (compact ? 1 : beside) * half +
                           max(five ? full + beneath : beneath, (five ? 1 : 2) * full);
  const int64_t ending = five ? 2 * field(geom, QK_DOUBLE, measured, QK_FULL) : 0;
  const bool adjoint = in->method == QK_SOLVER_CG && !five && !plain_cg(in);
  int64_t applying = (adjoint ? 2 : 1) * inner + more * inner;
  if (wide_correction(in))
    applying = in->mg ? (3 + more) * single : max((1 + more) * inner, single);
  if (more && in->mg) {
    const qk_prec_t prec = in->mg->level[0].smoother_prec;
    const bool fits = qk_prec_bytes(prec) <= qk_prec_bytes(in->inner);
    applying = max(applying, (fits ? 3 : 4) * field(geom, prec, nslot, QK_EVEN));
  }
  const int64_t expanding = (3 + 2 + more) * half;
  return max(max(updating, expanding), max(ending, applying));
}

/* ---- multigrid ------------------------------------------------------------------------------- */

static int smoother_fields(const qk_mg_level_params_t *p) {
  const int steps = (int)max(0, max(p->pre, p->post));
  switch (p->smoother.kind) {
  case QK_SMOOTHER_CAGCR:
  case QK_SMOOTHER_POLYNOMIAL:
    return steps < 4 ? steps : 4;
  case QK_SMOOTHER_SCHWARZ:
    return 3;
  default:
    return 1;
  }
}

/* Halves of a field that one application keeps on level l; `top`: the level that it begins on,
 * where what it is applied to is the solver's. */
static int64_t cycle_halves(const qk_mg_params_t *mg, int l, bool top) {
  const qk_mg_level_params_t *p = &mg->level[l];
  const bool last = l == mg->nlevel - 1;
  int64_t n = last ? 0 : 1 + smoother_fields(p); /* residual, and work of the smoother */
  if (top) return n + 1;                         /* odd sites */
  const int kept = p->iterations < QK_GCR_MAX ? p->iterations : QK_GCR_MAX;
  return n + 2 * kept + 1 + 4 + 1; /* directions, r, source and solution, odd sites */
}

/* What a cycle from level l downwards works on. */
static qk_prec_t cycle_prec(const qk_mg_params_t *mg, int l) {
  return l == 0 ? mg->level[0].smoother_prec : QK_SINGLE;
}

/* Of a cycle that begins on level `top`: its work fields there ... */
static int64_t cycle_work(const qk_mg_params_t *mg, const qk_geom_t *geom, int top, int nrhs) {
  return cycle_halves(mg, top, true) * field(&geom[top], cycle_prec(mg, top), nrhs, QK_EVEN);
}

/* What brings fields of a level together that every rank has whole: two of them that all write
 * into, and a part, of a half at most. */
static int64_t gathering(const qk_geom_t *geom, int nrhs) {
  return geom->whole ? 5 * field(geom, QK_SINGLE, nrhs, QK_FULL) / 2 : 0;
}

/* ... and all others. */
static int64_t cycle_below(const qk_mg_params_t *mg, const qk_geom_t *geom, int top, int nrhs) {
  int64_t bytes = 0;
  for (int l = top; l < mg->nlevel; l++) {
    if (l > top)
      bytes += cycle_halves(mg, l, false) * field(&geom[l], cycle_prec(mg, l), nrhs, QK_EVEN);
    if (l > 0)
      bytes += qk_halo_bytes(&geom[l], QK_SINGLE, nrhs, geom[l].ncomp) + gathering(&geom[l], nrhs);
  }
  return bytes;
}

static int64_t transfer_bytes(const qk_ops_t *ops, const qk_geom_t *fine, const qk_geom_t *coarse,
                              const qk_mg_level_params_t *p) {
  qk_transfer_t t = {.agg = {.fine = fine->lat, .coarse = coarse->lat},
                     .prec = p->prolongator,
                     .ncomp = fine->ncomp,
                     .nvec = p->nvec};
  for (int mu = 0; mu < 4; mu++) t.agg.block[mu] = p->block[mu];
  return (int64_t)ops->transfer_bytes(&t);
}

static int64_t matrices(const qk_ops_t *ops, const qk_geom_t *geom, qk_prec_t prec, int ndir) {
  qk_coarse_links_t links = {.prec = prec, .n = geom->ncomp, .ndir = ndir};
  return (int64_t)ops->coarse_bytes(&geom->lat, &links);
}

/* How many flavours have matrices and deflation of their own. */
static int flavours(const qk_plan_input_t *in) {
  return qk_action_twist(in->action, &in->params->values) != 0 ? 2 : 1;
}

/* Yhat, A and A^-1, and Yhat in eight bits. */
static int64_t coarse_bytes(const qk_plan_input_t *in, const qk_geom_t *geom,
                            const qk_mg_level_params_t *p) {
  const qk_coarse_links_t links = {.prec = p->store, .n = geom->ncomp, .ndir = 8};
  const bool eight = p->smoother_bits == 8 && flavours(in) == 1;
  return flavours(in) *
             (matrices(in->ops, geom, p->store, 8) + 2 * matrices(in->ops, geom, p->store, 1)) +
         (eight ? (int64_t)in->ops->coarse_eight_bytes(&geom->lat, &links) : 0);
}

/* What comes and stays with the step from level l to l + 1. */
typedef struct step {
  int64_t prolongator, links;
  int64_t exact; /* matrices of level l + 1 in single, until the level below is there */
} step_t;

static step_t step_of(const qk_plan_input_t *in, const qk_geom_t *geom, int l) {
  const qk_geom_t *coarse = &geom[l + 1];
  const qk_mg_level_params_t *p = &in->mg->level[l];
  /* the vectors, and what they were made of in terms of them */
  step_t s = {transfer_bytes(in->ops, &geom[l], coarse, p) +
                  field(coarse, QK_SINGLE, p->ntest, QK_FULL) + gathering(coarse, p->ntest),
              coarse_bytes(in, coarse, &in->mg->level[l + 1]), 0};
  if (l + 2 < in->mg->nlevel)
    s.exact = matrices(in->ops, coarse, QK_SINGLE, 8) + matrices(in->ops, coarse, QK_SINGLE, 1);
  return s;
}

/* What a cycle of the slots has for itself; in only where r of the outer iteration will not do, and
 * out where its z will not. */
static int64_t slots_cycle_bytes(const qk_plan_input_t *in, const qk_geom_t *geom, int nrhs) {
  const qk_prec_t prec = in->mg->level[0].smoother_prec;
  const bool half_outside = qk_prec_scaled(in->inner), half_inside = qk_prec_scaled(prec);
  const int own = half_outside && !half_inside ? 2 : !half_outside && half_inside ? 1 : 0;
  return cycle_below(in->mg, geom, 0, nrhs) + own * field(&geom[0], prec, nrhs, QK_EVEN);
}

/* The most that is held while n null vectors of level l are made, and become part of a prolongator:
 * their relaxation; their images; orthonormal ones beside them as they were. */
static int64_t vectors_making(const qk_plan_input_t *in, const qk_geom_t *geom, int l, int n) {
  const qk_mg_level_params_t *p = &in->mg->level[l];
  const int64_t full = field(&geom[l], QK_SINGLE, n, QK_FULL);
  const int64_t even = field(&geom[l], QK_SINGLE, n, QK_EVEN);
  const int64_t low = field(&geom[l], l == 0 ? p->setup_prec : QK_SINGLE, n, QK_EVEN);
  const int64_t relaxing = full + even + 7 * low;
  const int64_t imaging = (l == 0 ? 2 : 3) * full + even + low;
  const int64_t leading = n > p->nvec ? field(&geom[l], QK_SINGLE, p->nvec, QK_FULL) : 0;
  const int64_t joining = 2 * full + leading + field(&geom[l + 1], QK_SINGLE, n, QK_FULL);
  return max(max(relaxing, imaging), joining);
}

/* While n of them are refined, beside both prolongators and the levels below: a right-hand side is
 * made of them; a cycle; they are reconstructed, and become part of the new prolongator. */
static int64_t vectors_refining(const qk_plan_input_t *in, const qk_geom_t *geom, int l, int n) {
  const int64_t full = field(&geom[l], QK_SINGLE, n, QK_FULL);
  const int64_t even = field(&geom[l], QK_SINGLE, n, QK_EVEN);
  const int64_t narrow = field(&geom[l], cycle_prec(in->mg, l), n, QK_EVEN);
  const int64_t some = field(&geom[l + 1], QK_SINGLE, n, QK_FULL);
  const int64_t cycle =
      cycle_work(in->mg, geom, l, n) + cycle_below(in->mg, geom, l, n) + 2 * narrow;
  return some + max(max(full + 2 * even, cycle), 2 * full + even);
}

/* The ranks' matrices beside those of the whole lattice, which has a half of them at most. */
static int64_t gathered(const qk_ops_t *ops, const qk_geom_t *geom) {
  return geom->whole ? matrices(ops, geom, QK_SINGLE, 8) / 2 : 0;
}

/* Peak memory, besides finer levels, while level l makes the next one (mg_setup.h): its vectors;
 * fields and matrices of the Galerkin products; a cycle that refines them. below: what stays of
 * this step and those below. */
static int64_t level_making(const qk_plan_input_t *in, const qk_geom_t *geom, int l,
                            const step_t *step, int64_t below) {
  const qk_mg_level_params_t *p = &in->mg->level[l];
  const bool turns = l == 0 && in->mg->together > 0 && in->mg->together < p->nvec;
  const int n = turns ? in->mg->together : p->nvec, tested = turns ? n : p->ntest;
  const int64_t galerkin =
      step->prolongator + step->links + 3 * field(&geom[l], QK_SINGLE, n, QK_FULL) +
      matrices(in->ops, &geom[l + 1], QK_SINGLE, 8) +
      3 * matrices(in->ops, &geom[l + 1], QK_SINGLE, 1) + gathered(in->ops, &geom[l + 1]);
  int64_t most = max(step->prolongator + vectors_making(in, geom, l, tested), galerkin);
  if (p->setup_passes > 0)
    most = max(most, below + step->prolongator + vectors_refining(in, geom, l, tested));
  return most;
}

/* A solve that checks the hierarchy, or teaches the smoother. */
static int64_t checking(const qk_plan_input_t *in, const qk_geom_t *geom) {
  const int64_t learned = in->mg->level[0].smoother.kind == QK_SMOOTHER_POLYNOMIAL
                              ? QK_LEARNED * field(&geom[0], cycle_prec(in->mg, 0), 1, QK_EVEN)
                              : 0;
  return solver_bytes(in, &geom[0], 1) + solver_work(in, &geom[0], 1, false) +
         cycle_work(in->mg, geom, 0, 1) + cycle_below(in->mg, geom, 0, 1) + learned;
}

static void add_multigrid(const qk_plan_input_t *in, qk_plan_t *plan) {
  const int steps = in->mg->nlevel - 1;
  qk_geom_t geom[QK_MG_LEVELS_MAX];
  step_t step[QK_MG_LEVELS_MAX];
  qk_err_t err = {0};
  const int64_t op = plan->share[QK_PLAN_OPERATOR] + unread_bytes(in);
  int64_t below = 0, above = op - resting_bytes(in);
  geom[0] = *in->geom;
  for (int l = 0; l < steps; l++) {
    qk_status_t fits = qk_mg_lay_level(in->mg, l, &geom[l], NULL, &geom[l + 1], &err);
    QK_ASSERT(fits == QK_OK); /* complete parameters */
    step[l] = step_of(in, geom, l);
    plan->share[QK_PLAN_PROLONGATORS] += step[l].prolongator;
    plan->share[QK_PLAN_MATRICES] += step[l].links;
    below += step[l].prolongator + step[l].links;
  }
  for (int l = 0; l < steps; l++) {
    const int64_t exact = l > 0 ? step[l - 1].exact : 0;
    plan->setup = max(plan->setup, above + exact + level_making(in, geom, l, &step[l], below));
    above += step[l].prolongator + step[l].links;
    below -= step[l].prolongator + step[l].links;
  }
  if (in->mg->deflate > 0)
    plan->share[QK_PLAN_DEFLATION] =
        flavours(in) * 2 * qk_deflation_bytes(&geom[steps], QK_EVEN, QK_SINGLE, in->mg->deflate);
  plan->setup =
      max(plan->setup, op + plan->share[QK_PLAN_PROLONGATORS] + plan->share[QK_PLAN_MATRICES] +
                           plan->share[QK_PLAN_DEFLATION] + checking(in, geom));
  plan->cycle_work = cycle_work(in->mg, geom, 0, in->nslot);
  plan->share[QK_PLAN_CYCLE] = plan->cycle_work + slots_cycle_bytes(in, geom, in->nslot);
  if (plan->single_rhs) plan->share[QK_PLAN_SINGLE_RHS] += slots_cycle_bytes(in, geom, 1);
}

/* The low modes that solves begin with; while they are made there are no solvers. */
static void add_deflation(const qk_plan_input_t *in, const qk_geom_t *geom, qk_plan_t *plan) {
  const bool twist = in->vectors <= 1 && flavours(in) > 1; /* of the operator itself */
  if (in->deflate == 0) return;
  plan->share[QK_PLAN_DEFLATION] =
      qk_deflate_bytes(geom, in->deflate, &in->deflate_cut, plan->deflate_store, twist);
  plan->setup = max(plan->setup, plan->share[QK_PLAN_OPERATOR] + unread_bytes(in) +
                                     qk_deflate_making(geom, in->deflate, &in->deflate_cut,
                                                       plan->deflate_store, twist));
}

/* What entering takes of them: kept once it was taken. */
static int64_t entering_bytes(const qk_plan_input_t *in) {
  const qk_values_t *values = &in->params->values;
  return in->action->entering
             ? in->action->entering(values) * field(in->geom, QK_DOUBLE, 1, QK_FULL)
             : 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The room that a cycle wants is there; the solvers take part of it, or more, or have their own if
 * their fields have several vectors. */
static void add_work(const qk_plan_input_t *in, const qk_geom_t *geom, qk_plan_t *plan) {
  const int64_t cycle = plan->cycle_work, fields = WORK_FIELDS * QK_WORK_ALIGNMENT;
  const bool apart = geom->inner > 1 && in->mg;
  plan->work = solver_work(in, geom, in->nslot, plan->compact);
  if (plan->single_rhs) plan->work = max(plan->work, solver_work(in, geom, 1, false));
  if (!apart) plan->work = max(plan->work, cycle);
  plan->work += fields;
  plan->cycle_work = apart ? cycle + fields : plan->work;
  plan->share[QK_PLAN_SOLVER] += apart ? plan->work + fields : plan->work - cycle;
}

void qk_plan_make(const qk_plan_input_t *in, qk_plan_t *plan) {
  const int half = (in->nslot + 1) / 2;
  const qk_geom_t geom = geom_of_fields(in);
  const int64_t vector = in->geom->local_volume * wire_site_bytes(in->geom);
  *plan = (qk_plan_t){.nslot = in->nslot,
                      .staging = in->staging < half ? in->staging : half,
                      .single_rhs = in->single_rhs && in->nslot > 1,
                      .compact = in->compact && in->nslot > 1,
                      .deflate_store = in->deflate_half ? QK_HALF : QK_SINGLE};
  plan->leaving = 2 * plan->staging < in->nslot ? 2 * plan->staging : in->nslot;
  plan->share[QK_PLAN_OPERATOR] = operator_bytes(in, false) - unread_bytes(in) + operator_faces(in);
  plan->share[QK_PLAN_SOLVER] = solver_bytes(in, &geom, in->nslot) + entering_bytes(in);
  if (plan->single_rhs) plan->share[QK_PLAN_SINGLE_RHS] = solver_bytes(in, &geom, 1);
  plan->share[QK_PLAN_TRANSFER] =
      (1 + plan->staging + plan->leaving) * vector * (in->vectors > 1 ? in->vectors : 1);
  plan->setup =
      plan->share[QK_PLAN_OPERATOR] + unread_bytes(in) + operator_bytes(in, true) + given_bytes(in);
  if (in->mg != NULL) add_multigrid(in, plan);
  add_deflation(in, &geom, plan);
  add_work(in, &geom, plan);
  for (int i = 0; i < QK_PLAN_SHARES; i++) plan->serving += plan->share[i];
  plan->setup = max(plan->setup, plan->serving);
  const bool parts = !in->no_parts && geom.ls <= 1;
  if (parts) plan->parts = PARTS_FIELDS * field(&geom, QK_DOUBLE, 1, QK_FULL);
  if (in->on_host)
    plan->host = in->geom->local_volume * (LINK_SITE_BYTES + source_site_bytes(in->geom)) +
                 plan->share[QK_PLAN_TRANSFER];
}

void qk_plan_short_links(const qk_ops_t *ops, const qk_lattice_t *lat, qk_action_params_t *params,
                         qk_plan_t *plan) {
  const int64_t before = (int64_t)ops->links_bytes(lat, QK_DOUBLE, params->link_reals[QK_DOUBLE]);
  params->link_reals[QK_DOUBLE] = 12;
  const int64_t less = before - (int64_t)ops->links_bytes(lat, QK_DOUBLE, 12);
  plan->share[QK_PLAN_OPERATOR] -= less;
  plan->serving -= less;
  plan->setup -= less;
}

static double gigabytes(int64_t bytes) {
  return 1e-9 * (double)bytes;
}

/* The most slots up to `most` that fit; 0: not even one. */
static int fitting(const qk_plan_input_t *input, int most, int64_t free, qk_plan_t *plan) {
  qk_plan_input_t in = *input;
  for (in.nslot = most; in.nslot > 0; in.nslot--) {
    qk_plan_make(&in, plan);
    if (qk_plan_needed(plan) <= free) break;
  }
  return in.nslot;
}

static qk_status_t refuse(const qk_plan_input_t *input, int64_t free, const qk_plan_t *plan,
                          qk_err_t *err) {
  char shares[256] = "", advice[96] = "one slot would not fit either";
  size_t n = 0;
  qk_plan_t other;
  for (int i = 0; i < QK_PLAN_SHARES; i++)
    if (plan->share[i] > 0)
      n += (size_t)snprintf(shares + n, sizeof shares - n, "%s%s %.3g", n > 0 ? ", " : "", NAMES[i],
                            gigabytes(plan->share[i]));
  if (fitting(input, plan->nslot - 1, free, &other) > 0)
    snprintf(advice, sizeof advice, "slots = %d would need %.4g GB", other.nslot,
             gigabytes(qk_plan_needed(&other)));
  return qk_fail(
      err, QK_DEVICE_MEMORY,
      "slots = %d need %.4g GB on each device (%s; during setup %.4g): %.4g are free; %s",
      plan->nslot, gigabytes(plan->serving + plan->host), shares, gigabytes(qk_plan_needed(plan)),
      gigabytes(free), advice);
}

/* A compact solver, if there is anything in it: where a setup wants more than serving takes there
 * is not. */
static void make_compact(qk_plan_input_t *in, qk_plan_t *plan) {
  const int64_t before = qk_plan_needed(plan);
  const bool asked_for = in->compact;
  in->compact = true;
  qk_plan_make(in, plan);
  if (qk_plan_needed(plan) < before) return;
  in->compact = asked_for;
  qk_plan_make(in, plan);
}

/* Halves the number of staging buffers until the plan fits, or as few as `least` are left. */
static void stage_less(qk_plan_input_t *in, int least, int64_t free, qk_plan_t *plan) {
  while (qk_plan_needed(plan) > free && plan->staging > least) {
    in->staging = plan->staging / 2 > least ? plan->staging / 2 : least;
    qk_plan_make(in, plan);
  }
}

qk_status_t qk_plan_fit(const qk_plan_input_t *input, int64_t free, qk_plan_t *plan,
                        qk_err_t *err) {
  const int most = QK_COLUMNS_MAX / slices_of(input);
  qk_plan_input_t in = *input;
  qk_plan_t made;
  if (in.nslot > most)
    return qk_fail(err, QK_BAD_ARGUMENT, "slots = %d: at most %d with Ls = %d", in.nslot, most,
                   slices_of(input));
  if (in.nslot == 0) { /* a slot is worth more than all but a few staging buffers */
    in.compact = true;
    in.single_rhs = false;
    in.staging = in.staging < STAGING_FEW ? in.staging : STAGING_FEW;
    const int wanted = most < QK_SLOTS_CHOSEN ? most : QK_SLOTS_CHOSEN;
    in.nslot = fitting(&in, wanted, free, &made);
    if (in.nslot == 0 && in.deflate > 0) {
      in.deflate_half = true;
      in.nslot = fitting(&in, wanted, free, &made);
    }
    in.compact = input->compact;
    in.single_rhs = input->single_rhs;
    in.staging = input->staging;
  }
  if (in.nslot == 0) in.nslot = 1;
  qk_plan_make(&in, &made);
  if (qk_plan_needed(&made) > free && in.deflate > 0) {
    in.deflate_half = true;
    qk_plan_make(&in, &made);
  }
  if (qk_plan_needed(&made) > free) {
    in.no_parts = true;
    qk_plan_make(&in, &made);
  }
  if (qk_plan_needed(&made) > free) make_compact(&in, &made);
  stage_less(&in, STAGING_FEW, free, &made);
  if (qk_plan_needed(&made) > free && in.single_rhs) {
    in.single_rhs = false;
    qk_plan_make(&in, &made);
  }
  stage_less(&in, 0, free, &made);
  if (qk_plan_needed(&made) > free) return refuse(&in, free, &made, err);
  *plan = made;
  return QK_OK;
}
