/*
 * order.h: an EIGEN of the front as a plain struct, which rank 0 broadcasts (serve/round.h).
 */
#ifndef QK_ENGINE_ORDER_H
#define QK_ENGINE_ORDER_H

#include "daemon/engine/checkpoint/eigen_header.h"
#include "daemon/engine/gauge/link_smear.h"
#include "proto/limits.h"

typedef struct qk_eigen_order {
  uint64_t serial;
  char name[QK_EIGEN_NAME_MAX + 1];
  qk_eigen_problem_t problem;
  qk_link_smear_t links;             /* of a Laplacian; problem.links says the same in words */
  char memory[QK_SHM_NAME_MAX + 16]; /* of vectors that a client has sent (given.h); "": none */
  bool restore;
  char shm_out[QK_SHM_NAME_MAX + 1], file[QK_PATH_MAX + 1]; /* "": none */
} qk_eigen_order_t;

#endif
