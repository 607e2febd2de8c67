/*
 * grid.h: ranks. All functions are called by all ranks together.
 */
#ifndef QUARK_QUDA_GRID_H
#define QUARK_QUDA_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int (*qk_quda_map_t)(const int coord[4], void *arg);

void qk_quda_grid_comm(void *mpi_comm); /* MPI_Comm *, before the grid is made */
/* map NULL: t fastest. Once; later calls do nothing. */
void qk_quda_grid_init(const int dims[4], qk_quda_map_t map, void *arg);
bool qk_quda_grid_ready(void);
int qk_quda_rank(void); /* 0 until the grid is made */
int qk_quda_ranks(void);
void qk_quda_grid_dims(int dims[4]);
void qk_quda_grid_coord(int rank, int coord[4]);
/* From rank 0. Others sleep until it comes; so they do at a barrier. */
void qk_quda_broadcast(void *data, size_t bytes);
void qk_quda_barrier(void);
/* Over ranks, on all of them: sums modulo 2^64, which do not depend on an order; sums; maxima, of
 * which none may be NaN. */
void qk_quda_sum_whole(uint64_t *value, size_t n);
void qk_quda_sum(double *value, size_t n);
void qk_quda_max(double *value, size_t n);
/* Cores that this rank may use, divided by the ranks of its node that may use them, too; at least
 * 1. */
int qk_quda_cores(void);
/* Rank 0 gets the brick of each rank in turn; it is its own until take returns. */
typedef void (*qk_quda_take_t)(void *arg, int rank, const void *brick);
void qk_quda_gather(const void *brick, size_t bytes, qk_quda_take_t take, void *arg);
/* give fills the brick of each rank in turn, on rank 0. */
typedef void (*qk_quda_give_t)(void *arg, int rank, void *brick);
void qk_quda_scatter(void *brick, size_t bytes, qk_quda_give_t give, void *arg);
_Noreturn void qk_quda_abort(int code);

#endif
