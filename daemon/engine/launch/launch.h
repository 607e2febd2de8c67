/*
 * launch.h: what a program on ranks and devices does before it works.
 */
#ifndef QK_ENGINE_LAUNCH_H
#define QK_ENGINE_LAUNCH_H

#include <stdbool.h>

#include "cuda/ops.h"
#include "daemon/comm/comm.h"
#include "proto/limits.h"

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

/* The engines that serve a setup, which one this is, and what devices they have. */
typedef struct qk_launch_place {
  int32_t replicas, replica;
  int32_t ndevices; /* 0: as they are numbered */
  uint32_t device[QK_DEVICES_MAX];
  bool bind; /* to the NUMA node of the device, or to a share of the cores (numa.h) */
} qk_launch_place_t;

/* Which GPU of this host a rank opens; of `count` of them. local: its number among the `size` ranks
 * of its engine on this host. QK_NO_DEVICE: the host has too few for all replicas, or not that
 * one. Pure. */
qk_status_t qk_launch_ordinal(const qk_launch_place_t *place, int local, int size, int count,
                              int *ordinal, qk_err_t *err);

/* Opens this rank's device: a GPU on all ranks, or the CPU on all. The caller closes *ctx.
 * QK_NO_DEVICE, QK_UNSUPPORTED (ops.h), QK_DEVICE_ERROR, QK_NO_MEMORY. Collective. place NULL: the
 * one of its number on the host, without binding. */
qk_status_t qk_launch_device(qk_comm_t *comm, const char *backend, const qk_launch_place_t *place,
                             const qk_ops_t **ops, qk_ops_ctx_t **ctx, qk_err_t *err);

#endif
