#include "daemon/engine/modes/zero_modes.h"

#include <math.h>

/* Errors above this part of |m| leave the sign of a zero mode, and what is none, unknown. */
static const double most = 0.1;

qk_zero_modes_t qk_zero_modes_find(const double *number, int n, double mass, double error) {
  const double m = fabs(mass);
  qk_zero_modes_t found = {0};
  for (int i = 0; i < n; i++) {
    const double h = number[2 * i], off = 2 * (number[2 * i + 1] + error);
    if (!(off < most * m) || fabs(h) < m - off) return (qk_zero_modes_t){0};
    found.known = fabs(h) > m + off;
    if (found.known) break;
    *(h * mass > 0 ? &found.plus : &found.minus) += 1;
  }
  return found.known ? found : (qk_zero_modes_t){0};
}
