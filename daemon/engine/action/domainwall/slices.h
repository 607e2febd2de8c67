/*
 * slices.h: matrices between the slices of a fifth dimension, one for each chirality, on the host
 * and on a device (cuda/fifth_ops.h: fifth_mix).
 */
#ifndef QK_ENGINE_SLICES_H
#define QK_ENGINE_SLICES_H

#include <complex.h>

#include "daemon/engine/lattice/field.h"

/* [chirality +1, -1][row][column]; rows and columns up to QK_LS_MAX. */
typedef struct qk_slices {
  int rows, columns;
  double complex m[2][QK_LS_MAX][QK_LS_MAX];
} qk_slices_t;

/* On a device, in double and in single; NULL where it is not there. */
typedef struct qk_mix {
  int rows, columns;
  bool is_real;
  void *matrix[2];
} qk_mix_t;

/* out may not be a or b. */
void qk_slices_times(const qk_slices_t *a, const qk_slices_t *b, qk_slices_t *out);
void qk_slices_adjoint(const qk_slices_t *a, qk_slices_t *out);
/* QK_BREAKDOWN: a is singular to working precision. QK_NO_MEMORY. */
qk_status_t qk_slices_invert(const qk_slices_t *a, qk_slices_t *out);

/* QK_DEVICE_MEMORY; what was made is the caller's also then. Waits. */
qk_status_t qk_mix_create(const qk_device_t *dev, const qk_slices_t *a, qk_mix_t *mix);
void qk_mix_destroy(const qk_device_t *dev, qk_mix_t *mix);
int64_t qk_mix_bytes(int rows, int columns, bool is_real);

/* out = c_in mix in + c_x x at each site, of columns from first on. x: data NULL, and c_x 0; it may
 * be out, and so may in if the mix is square. A call of an iteration (device.h). */
void qk_mix_apply(const qk_device_t *dev, const qk_mix_t *mix, double c_in, qk_spinor_t in,
                  double c_x, qk_spinor_t x, qk_spinor_t out);

#endif
