/*
 * projector.h: solutions that leave as their products with eigenvectors of time slices
 * (SINK_PROJECT, distillation): tau[t][spin][m] = sum_x v_m(t,x)^+ x(t,x), by the kernel of
 * cuda/project_ops.h.
 *
 * Vectors are in host memory (kept.h). On a GPU those of one name are copied to the device where
 * its memory has room for all of them, and stay for the next projections until they are given
 * back; else they pass through it block by block. Of vectors in double both planes count.
 *
 * All calls are collective. verdict: of one right-hand side, the same on all ranks. A status: the
 * process cannot go on.
 */
#ifndef QK_ENGINE_PROJECTOR_H
#define QK_ENGINE_PROJECTOR_H

#include "daemon/engine/modes/kept.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/wire.h"

typedef struct qk_projector qk_projector_t;

/* What is wanted of a right-hand side: factor times matrix, on the spins, times its products with
 * the lowest `count` vectors of the name, as complex numbers of double or float. */
typedef struct qk_projection {
  const char *name;
  int count;
  bool is_double;
  double factor, matrix[4][4][2];
} qk_projection_t;

/* Room for so many local fields in double stays beside vectors on the device: what a contraction
 * takes. */
enum { QK_PROJECT_SPARE_FIELDS = 26 };

/* Borrows both. QK_NO_MEMORY. */
qk_status_t qk_projector_create(qk_loaded_t *setup, qk_wire_t *wire, qk_projector_t **projector,
                                qk_err_t *err);
void qk_projector_destroy(qk_projector_t *projector); /* NULL-safe */

/* kept: of that name; NULL: there are none.
 *
 * Before the solve: the vectors are there, and so is the memory that a projection cannot do
 * without. The object, of the name `out`, takes the result. verdict: QK_NOT_FOUND; QK_BAD_ARGUMENT:
 * other vectors or fewer, a name or size of `out`; QK_NO_MEMORY: of host or device, for the moment.
 */
qk_status_t qk_projector_open(qk_projector_t *projector, const qk_kept_t *kept,
                              const qk_projection_t *what, const char *out, qk_object_t *object,
                              qk_err_t *verdict, qk_err_t *err);

/* n <= QK_PROJECT_RHS solutions x (full, double, one right-hand side each, one vector), of one name
 * and count: the results go to their objects. A number has the same bits whatever the others are.
 */
qk_status_t qk_projector_run(qk_projector_t *projector, const qk_kept_t *kept, int n,
                             const qk_projection_t what[], const qk_field_t *const x[],
                             const qk_object_t *const object[], qk_err_t verdict[], qk_err_t *err);

/* Memory that is kept for the next projection: all of it goes; or the vectors on the device, unless
 * others would find `bytes` free beside them. True where something has gone. Not collective. */
bool qk_projector_rest(qk_projector_t *projector);
bool qk_projector_yield(qk_projector_t *projector, int64_t bytes);

#endif
