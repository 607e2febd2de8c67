/*
 * round.h: what rank 0 tells the other ranks, as plain structs made from the front's messages.
 *
 * All ranks work in rounds: first a head of fixed size is broadcast, then what the head announces.
 * Values are checked when the message is taken apart, all but those that need a geometry.
 */
#ifndef QK_ENGINE_ROUND_H
#define QK_ENGINE_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/ops.h"
#include "daemon/base/err.h"
#include "daemon/comm/comm.h"
#include "daemon/engine/colours/correlate_order.h"
#include "daemon/engine/krylov/solver.h"
#include "daemon/engine/lattice/gamma_basis.h"
#include "daemon/engine/mg_service/mg_service.h"
#include "daemon/engine/modes/order.h"
#include "daemon/engine/setup/load.h"
#include "daemon/engine/transfer/wire.h"
#include "proto/engine.pb-c.h"
#include "proto/fill_hint.h"
#include "proto/limits.h"

typedef struct qk_fill {
  uint64_t serial;
  int32_t entry;
  bool upload;             /* from shm_in; else by kind: */
  qk_source_kind_t source; /* HELD: sequential, through the solution in shm_in */
  int32_t site[4], spin, colour;
  int32_t component; /* of a doublet: 1 the upper flavour, -1 the lower, 0 both; else 1 */
  char vectors[QK_EIGEN_NAME_MAX + 1]; /* eigenvectors that the source is one of; "": it is not */
  int32_t vector, slice;
  uint64_t seed;
  int32_t mom[3], t_every;
  int32_t gamma;       /* sequential: of gamma.h */
  bool in_double;      /* shm_in; of an upload as is_double */
  qk_smearing_t smear; /* of the source */
  /* shm_out takes products with eigenvectors, the lowest so many of each slice
   * (modes/projector.h); "": the solution. */
  char project[QK_EIGEN_NAME_MAX + 1];
  int32_t project_count;
  char shm_in[QK_SHM_NAME_MAX + 1];
  qk_slab_t slab;                    /* of an upload */
  char shm_out[QK_SHM_NAME_MAX + 1]; /* empty: the solution goes nowhere */
  bool is_double;
  qk_gamma_basis_t basis;
  double factor;
  qk_stopping_t stopping; /* of factor times the solution */
  int64_t max_iter;
  bool batch_only; /* not for the single-RHS solver */
  bool five;       /* shm_out, and of an upload shm_in, have all slices of a fifth dimension */
  int32_t flavour; /* 1 or -1 */
  Quark__Work work;
  bool dagger;
  Quark__Parity parity,
      in_parity; /* of shm_out and the source (qk_fill_source_parity); of shm_in */
  Quark__Schur schur;
  qk_fill_hint_t hint;
  bool has_mass; /* solved for this one, from one Krylov space with those of its family */
  double mass;
  uint64_t family, block; /* of the same source; of those that are solved together */
  int32_t block_left;     /* how many more come soon */
} qk_fill_t;

/* What the solution is to be multiplied with before it leaves: from the DeGrand-Rossi basis to that
 * of the fill; a solve of the adjoint has solved for gamma_5 times the solution. */
void qk_fill_export(const qk_fill_t *fill, double matrix[4][4][2]);
qk_subset_t qk_fill_subset(Quark__Parity parity);
/* What stands in shm_in. */
qk_input_t qk_fill_input(const qk_fill_t *fill);
/* Where the source stands: where the result does, but for hops. Pure. */
Quark__Parity qk_fill_source_parity(Quark__Work work, Quark__Parity parity);

/* Rounds of EIGEN... are of WORK with eigenvectors begun, cancelled or dropped before it.
 * A round of CONTRACT is one of WORK with a contraction begun before it, one of REFRESH one of WORK
 * with multigrid refreshed before it. ADOPT: another front is there, and nothing of what the one
 * before asked for goes on. */
typedef enum qk_round_kind {
  QK_ROUND_WORK,
  QK_ROUND_LOAD,
  QK_ROUND_CONTRACT,
  QK_ROUND_EIGEN,
  QK_ROUND_EIGEN_CANCEL,
  QK_ROUND_EIGEN_DROP,
  QK_ROUND_REFRESH,
  QK_ROUND_ADOPT,
  QK_ROUND_STOP
} qk_round_kind_t;

typedef struct qk_round_head {
  qk_round_kind_t kind;
  qk_mg_order_t order; /* REFRESH */
  int32_t nfill, ncancel;
  bool blocks_go;   /* blocks of masses begin as they are, without those that have not come */
  bool eigen_rests; /* no step of eigenvectors in this round */
} qk_round_head_t;

typedef struct qk_round {
  qk_round_head_t head;
  qk_load_t load;
  qk_correlate_t correlate;
  qk_eigen_order_t eigen; /* of EIGEN_DROP the name alone */
  qk_fill_t fill[QK_INFLIGHT_MAX];
  int32_t cancel[QK_INFLIGHT_MAX]; /* entries */
} qk_round_t;

/* idle: no rank has an RHS in flight, and the others may sleep while they wait. Collective. */
qk_status_t qk_round_share(qk_comm_t *comm, qk_round_t *round, bool idle);

/* QK_BAD_ARGUMENT and QK_TOO_LARGE name field, value and limit, QK_UNSUPPORTED what the fields of
 * the action do not have; the result is unchanged. */
qk_status_t qk_fill_parse(const Quark__Engine__Fill *message, int entries,
                          const qk_action_row_t *action, qk_fill_t *fill, qk_err_t *err);
/* dims: extents of the lattice. */
qk_status_t qk_eigen_parse(const Quark__Engine__Eigen *message, const int dims[4],
                           const qk_action_row_t *action, qk_eigen_order_t *order, qk_err_t *err);
/* dims: extents of the lattice. */
qk_status_t qk_correlate_parse(const Quark__Engine__Contract *message, const uint32_t dims[4],
                               const qk_action_row_t *action, qk_correlate_t *correlate,
                               qk_err_t *err);

#endif
