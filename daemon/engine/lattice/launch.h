/*
 * launch.h: what a program on ranks and devices does before it works.
 */
#ifndef QK_ENGINE_LAUNCH_H
#define QK_ENGINE_LAUNCH_H

#include <stdbool.h>

#include "cuda/ops.h"
#include "daemon/comm/comm.h"

/* Whether mpirun or srun has started this process. */
bool qk_launch_by_mpi(void);

/* kind: "self", "mpi", or "auto": MPI if a launcher of MPI programs started this process. MPI
 * may remove its arguments from argc and argv. Errors: QK_COMM_ERROR, QK_UNSUPPORTED.
 * Collective. */
qk_status_t qk_launch_comm(const char *kind, int *argc, char ***argv, qk_comm_t **comm,
                           qk_err_t *err);

/* Ranks of one host share its cores, unless the environment says how many threads each has or the
 * launcher has bound them. */
void qk_launch_threads(const qk_comm_t *comm);
/* How many threads a rank may have beside its solver: half of its share of the cores, 1 to 8. */
int qk_launch_spare_threads(const qk_comm_t *comm);

/* Opens this rank's device: a GPU on all ranks, or the CPU on all. The caller closes *ctx.
 * QK_NO_DEVICE, QK_UNSUPPORTED (ops.h), QK_DEVICE_ERROR, QK_NO_MEMORY. Collective. */
qk_status_t qk_launch_device(qk_comm_t *comm, const char *backend, const qk_ops_t **ops,
                             qk_ops_ctx_t **ctx, qk_err_t *err);

#endif
