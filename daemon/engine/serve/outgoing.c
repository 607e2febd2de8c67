#include "daemon/engine/serve/outgoing.h"

#include <float.h>
#include <math.h>

#include "daemon/engine/lattice/gamma_basis.h"

/* What a type holds, and what one says to those who asked for it. */
typedef struct range {
  const char *name, *other;
  double least, most; /* least: with all its digits */
} range_t;

static const range_t single = {"f32", "ask for f64, or ", FLT_MIN, FLT_MAX};
static const range_t dbl = {"f64", "", DBL_MIN, DBL_MAX};

/* Whether the norm alone tells that no number is lost: there are fewer than 2^36, and another basis
 * adds two of them at most. */
static bool fits(const range_t *range, double norm2, double factor) {
  const double norm = sqrt(norm2) * fabs(factor);
  return norm2 > 0x1p-900 && norm2 < 0x1p900 && norm > range->least * 0x1p20 &&
         norm < range->most / 2;
}

static void judge(const range_t *range, const qk_geom_t *geom, const qk_extent_t *e,
                  qk_err_t *verdict) {
  const double norm = e->largest * e->norm;
  char place[QK_EXTENT_PLACE];
  qk_extent_place(geom, e, place);
  if (!e->finite)
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the solution is too large: over %.3g at %s; scale the source down", DBL_MAX, place);
  else if (e->largest > range->most || !isfinite(norm))
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the solution is too large for %s: %.3g at %s, at most %.3g; %sscale the source down",
            range->name, e->largest, place, range->most, range->other);
  else if (norm < range->least * sqrt(24 * (double)geom->volume))
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the solution is too small for %s: at most %.3g, at %s, and %s has all its digits from "
            "%.3g on; %sscale the source up",
            range->name, e->largest, place, range->name, range->least, range->other);
}

qk_status_t qk_outgoing_check(qk_work_t *work, const qk_fill_t *fill, const qk_field_t *x,
                              double norm2, double *norm_x, qk_err_t *verdict) {
  const range_t *range = fill->is_double ? &dbl : &single;
  double basis[4][4][2];
  qk_extent_t e;
  *norm_x = sqrt(norm2);
  if (fits(range, norm2, fill->factor)) return QK_OK;
  qk_gamma_basis_export(fill->basis, basis);
  qk_status_t status = qk_extent_find(work, x, basis, fill->factor, &e);
  if (status != QK_OK) return status;
  if (e.finite) *norm_x = e.largest * e.norm / fabs(fill->factor);
  if (fill->shm_out[0] != '\0' && (!e.finite || e.largest > 0))
    judge(range, x->dev->geom, &e, verdict);
  return QK_OK;
}
