/*
 * eigens_job.h: an EIGEN on its way, as eigens.c and eigens_file.c share it. Private to them.
 *
 * The stages: READ (a file that is there), TAKE (vectors of a client), ITERATE, SAVE (a state),
 * COLLECT (into host memory), WRITE (the vectors). Of compressed vectors: ITERATE to those of the
 * basis, CUT (they become orthonormal in its blocks), BASE (their copy into host memory), ITERATE
 * in its space, REFINE, COLLECT, WRITE. LEAVE, after a cancel, and AWAIT, of the next one after an
 * abandon: until the thread of a dense problem has ended, whose memory counts until then.
 */
#ifndef QK_ENGINE_EIGENS_JOB_H
#define QK_ENGINE_EIGENS_JOB_H

#include "daemon/engine/modes/eigens.h"
#include "daemon/engine/modes/given.h"
#include "daemon/engine/modes/slices.h"

typedef enum qk_eigens_stage {
  IDLE,
  AWAIT,
  LEAVE,
  READ,
  TAKE,
  ITERATE,
  SAVE,
  CUT,
  BASE,
  REFINE,
  COLLECT,
  WRITE
} qk_eigens_stage_t;

typedef struct qk_eigens_job {
  qk_eigens_stage_t stage;
  qk_eigen_order_t order;
  double since;
  qk_lanczos_params_t params;
  qk_given_t *given;     /* of vectors of a client */
  qk_slices_t *slices;   /* of a Laplacian */
  qk_lanczos_t *lanczos; /* of the others */
  double saved, cost;    /* when its state was written last; seconds that took */
  qk_work_t *work;
  qk_eigen_t *eigen;
  qk_coherent_t *basis;     /* of compressed vectors: there is one, beside `made` ... */
  qk_coherent_pass_t *pass; /* ... the making of it ... */
  qk_chebyshev_params_t smoother;
  double guess;                /* ... and where the window of its iteration begins */
  qk_compressed_t *compressed; /* it has the basis */
  qk_eigen_reader_t *reader;
  qk_eigen_writer_t *writer;
  qk_eigen_header_t h; /* of the file that is read or written */
  const double *number;
  float *part; /* of a block */
  int block;   /* the next one */
  int64_t applications_before;
  qk_kept_t *made;
  qk_eigens_progress_t told;    /* LEAVE: how far it was */
  char unwritten[QK_EIGEN_WHY]; /* why the file is not written; "": nothing is wrong with it */
} qk_eigens_job_t;

struct qk_eigens {
  qk_loaded_t *setup;
  qk_wire_t *wire;
  qk_eigens_job_t job;
  bool left;                 /* a computation was given up: its dense problem may still run ... */
  qk_hermitian_job_t *dense; /* ... on rank 0 */
  qk_kept_t *kept[QK_EIGEN_NAMES_MAX];
};

static inline qk_comm_t *qk_eigens_comm(const qk_eigens_t *s) {
  return s->setup->geom.comm;
}

static inline bool qk_eigens_is_first(const qk_eigens_t *s) {
  return qk_comm_rank(qk_eigens_comm(s)) == 0;
}

static inline bool qk_eigens_loses_process(qk_status_t status) {
  return status == QK_DEVICE_ERROR || status == QK_COMM_ERROR;
}

static inline bool qk_eigens_is_given(const qk_eigens_t *s) {
  return qk_eigen_is_given(&s->job.order.problem);
}

static inline bool qk_eigens_is_compressed(const qk_eigens_t *s) {
  return qk_eigen_is_compressed(&s->job.order.problem);
}

static inline bool qk_eigens_is_laplacian(const qk_eigens_t *s) {
  return qk_eigen_is_laplacian(&s->job.order.problem);
}

#endif
