/*
 * solver_range.c: sources and solutions near the ends of what a double holds.
 *
 * |b|^2 under- and overflows where b does not. A source like that is multiplied by the power of two
 * that makes its largest number about 1 before anything is computed, and the solution by its
 * inverse. What such a solution would lose in double is refused before it is solved, or where it is
 * known.
 */
#include <float.h>
#include <math.h>

#include "daemon/engine/krylov/solver_impl.h"
#include "daemon/engine/lattice/extent.h"

/* |b|^2 between these has lost nothing, and neither has any square of x or r that matters. */
static const double least_norm2 = 0x1p-900, most_norm2 = 0x1p900;
/* Powers of two that a double holds; those of larger exponents are two factors. */
enum { MOST_EXPONENT = 1000 };

static const double one[4][4][2] = {
    {{1, 0}}, {{0, 0}, {1, 0}}, {{0, 0}, {0, 0}, {1, 0}}, {{0, 0}, {0, 0}, {0, 0}, {1, 0}}};

static bool is_usual(double norm2) {
  return norm2 >= least_norm2 && norm2 <= most_norm2;
}

static void multiply(qk_solver_t *s, int i, const qk_field_t *f, int exponent) {
  if (exponent == 0) return;
  const double *factor = qk_solver_factor(s, i, ldexp(1, exponent));
  qk_solver_blas(s, QK_BLAS_SCALE, (qk_blas_args_t){.f = {f->v}, .c = {factor}});
}

void qk_system_scale(qk_solver_t *s, int i, const qk_field_t *f, int exponent) {
  int first = exponent;
  if (first > MOST_EXPONENT) first = MOST_EXPONENT;
  if (first < -MOST_EXPONENT) first = -MOST_EXPONENT;
  multiply(s, i, f, first);
  multiply(s, i, f, exponent - first);
}

/* Why a source of finite numbers cannot be solved for. */
static void judge(qk_solver_t *s, int i, const qk_extent_t *extent) {
  qk_slot_t *slot = &s->slot[i];
  const double norm = extent->largest * extent->norm;
  const double tol = qk_stop_first(&slot->stopping, norm);
  char place[QK_EXTENT_PLACE];
  qk_extent_place(s->system[i].b->dev->geom, extent, place);
  if (!isfinite(norm))
    qk_fail(&slot->why, QK_BAD_ARGUMENT,
            "the source is too large: its norm is over %.3g, and %.3g stands at %s; scale it down",
            DBL_MAX, extent->largest, place);
  else if (extent->largest > 0 && norm * tol < DBL_MIN)
    qk_fail(&slot->why, QK_BAD_ARGUMENT,
            "the source is too small: its norm is %.3g, its largest number %.3g at %s; with the "
            "tolerance %.3g a solution in double needs a norm of %.3g; scale it up",
            norm, extent->largest, place, tol, DBL_MIN / tol);
}

/* Sources and solutions are fields of the user's problem. */
static qk_work_t *outer_work(const qk_solver_t *s) {
  return s->op->outer ? s->op->base->work : s->work;
}

/* False where it could not be found. */
static bool find_extent(qk_solver_t *s, const qk_field_t *f, qk_extent_t *extent) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, qk_extent_find(outer_work(s), f, one, 1, extent));
  return qk_dev_ok(s->dev);
}

/* Of five dimensions, by its norm alone: by a power of two that leaves no number of any size
 * without its square. */
static void lift_five(qk_solver_t *s, int i, double norm2, int *exponent) {
  *exponent = norm2 < 1 ? -600 : 600;
  qk_system_scale(s, i, s->system[i].five, -*exponent);
}

/* Then: whether it can be solved for. Its solution has a norm, too. */
static void judge_five(qk_solver_t *s, int i, double norm2, int exponent) {
  static const double least = 1e-140, most = 1e140;
  qk_err_t *why = &s->slot[i].why;
  const double norm = ldexp(sqrt(norm2), exponent);
  if (!isfinite(norm2))
    qk_fail(why, QK_NAN_INPUT, "the source is NaN or Inf somewhere in five dimensions");
  else if (norm > most || (norm > 0 && norm < least))
    qk_fail(why, QK_BAD_ARGUMENT,
            "the norm of the source of five dimensions is %.3g: it must be within %g .. %g; scale "
            "it",
            norm, least, most);
}

/* An unusual source, by its numbers. */
static void lift(qk_solver_t *s, int i, double *norm2, int *exponent) {
  qk_extent_t extent;
  char place[QK_EXTENT_PLACE];
  if (s->system[i].five) {
    lift_five(s, i, *norm2, exponent);
    return;
  }
  if (!find_extent(s, s->system[i].b, &extent)) return;
  *norm2 = extent.finite ? 0 : NAN;
  if (!extent.finite) {
    qk_extent_place(s->system[i].b->dev->geom, &extent, place);
    qk_fail(&s->slot[i].why, QK_NAN_INPUT, "the source is NaN or Inf at %s", place);
    return;
  }
  if (extent.largest == 0) return;
  judge(s, i, &extent);
  frexp(extent.largest, exponent);
  qk_system_scale(s, i, s->system[i].b, -*exponent);
}

void qk_system_measure(qk_solver_t *s, const uint8_t *mask, double *norm2, int *exponent) {
  uint8_t again[QK_MAX_RHS] = {0};
  double lifted[QK_MAX_RHS];
  bool any = false;
  qk_system_source_norms(s, mask, norm2);
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i] || is_usual(norm2[i])) continue;
    lift(s, i, &norm2[i], &exponent[i]);
    again[i] = exponent[i] != 0;
    any = any || again[i];
  }
  if (!any) return;
  qk_system_source_norms(s, again, lifted);
  for (int i = 0; i < s->nslot; i++) {
    if (!again[i]) continue;
    norm2[i] = lifted[i];
    if (s->system[i].five) judge_five(s, i, norm2[i], exponent[i]);
  }
}

void qk_system_rescale(qk_solver_t *s, int i) {
  const qk_field_t *x = qk_system_source(&s->system[i]);
  qk_extent_t extent;
  char place[QK_EXTENT_PLACE];
  qk_system_scale(s, i, x, s->w[i].exponent);
  /* |x| > 2^400 |b| is beyond what any residual tells */
  if (s->w[i].exponent < 600 || s->system[i].five || !find_extent(s, x, &extent)) return;
  if (extent.finite && isfinite(extent.largest * extent.norm)) return;
  qk_extent_place(s->system[i].b->dev->geom, &extent, place);
  qk_fail(&s->slot[i].why, QK_BAD_ARGUMENT,
          "the source is too large: the solution is over %.3g at %s; scale it down", DBL_MAX,
          place);
}
