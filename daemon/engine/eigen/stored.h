/*
 * stored.h: eigenvectors that were made before, as who makes an operator of them sees them: filled
 * in where files are known (setup/deflate.h).
 */
#ifndef QK_ENGINE_STORED_H
#define QK_ENGINE_STORED_H

#include "daemon/engine/eigen/lanczos.h"

typedef struct qk_stored {
  void *self;
  /* The n vectors of gamma_5 M of lowest modulus, or a few more, in double, with residuals of at
   * most `residual`. Destroy *eigen with qk_eigen_destroy. Collective. Errors: those of
   * eigen_file.h; QK_NOT_FOUND: also fewer or others than these. */
  qk_status_t (*read)(void *self, qk_operator_t *op, int n, double residual, qk_eigen_t **eigen,
                      qk_err_t *err);
} qk_stored_t;

#endif
