#include "daemon/engine/modes/zero_modes.h"

#include <math.h>

/* Errors above this part of |m| leave the sign of a zero mode, and what is none, unknown. */
static const double most = 0.1;

/* If the first vector above zero modes is one of a pair, h and -h, of which the other was counted
 * as a zero mode, the errors of both are what they are apart. */
qk_zero_modes_t qk_zero_modes_find(const double *number, int n, double mass, double error) {
  const double m = fabs(mass);
  double last = m; /* the largest |h| of a zero mode, with its error */
  qk_zero_modes_t found = {0};
  for (int i = 0; i < n; i++) {
    const double h = number[2 * i], off = 2 * (number[2 * i + 1] + error);
    if (!(off < most * m) || fabs(h) < m - off) return (qk_zero_modes_t){0};
    if (fabs(h) > m + off) {
      found.known = fabs(h) > last + off;
      break;
    }
    last = fmax(last, fabs(h) + off);
    *(h * mass > 0 ? &found.plus : &found.minus) += 1;
  }
  return found.known ? found : (qk_zero_modes_t){0};
}
