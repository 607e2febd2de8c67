/*
 * kept.h: eigenvectors in host memory, each rank its part of them, as a file has them.
 */
#ifndef QK_ENGINE_KEPT_H
#define QK_ENGINE_KEPT_H

#include "daemon/engine/checkpoint/eigen_file.h"
#include "daemon/engine/modes/order.h"

typedef struct qk_kept {
  char name[QK_EIGEN_NAME_MAX + 1], file[QK_PATH_MAX + 1]; /* "": it has none */
  qk_eigen_header_t h;                                     /* of the file: complete */
  float *part[QK_EIGEN_FILE_BLOCKS];
  double *number; /* eigenvalue and residual of each, of a Laplacian [t][n] */
  int restarts;
  int64_t applications; /* that they took */
  qk_operator_t *op;    /* of compressed vectors, which take it to be expanded; borrowed */
} qk_kept_t;

/* Memory for vectors of this header under the name and with the file of the order. Collective.
 * QK_NO_MEMORY says how much. */
qk_status_t qk_kept_create(const qk_geom_t *geom, const qk_eigen_order_t *order,
                           const qk_eigen_header_t *h, qk_kept_t **kept, qk_err_t *err);
void qk_kept_destroy(qk_kept_t *kept);                               /* NULL-safe */
int64_t qk_kept_bytes(const qk_geom_t *geom, const qk_kept_t *kept); /* of all ranks */
bool qk_kept_is_of(const qk_kept_t *kept, const qk_eigen_problem_t *problem);

/* Vector n: slice or flavour `vector` of it; of a Laplacian in spin `spin` on time slice t, -1: on
 * each its own. */
typedef struct qk_kept_pick {
  int n, vector, t, spin;
} qk_kept_pick_t;

/* Into a full field of one right-hand side of one vector; 0 on sites that it has none on.
 * Collective. QK_BAD_ARGUMENT names what is beyond. */
qk_status_t qk_kept_vector(const qk_kept_t *kept, const qk_kept_pick_t *pick,
                           const qk_field_t *field, qk_err_t *err);

#endif
