/*
 * grid.h: ranks. All functions are called by all ranks together.
 */
#ifndef QUARK_QUDA_GRID_H
#define QUARK_QUDA_GRID_H

#include <stddef.h>

typedef int (*qk_quda_map_t)(const int coord[4], void *arg);

void qk_quda_grid_comm(void *mpi_comm); /* MPI_Comm *, before the grid is made */
/* map NULL: t fastest. Once; later calls do nothing. */
void qk_quda_grid_init(const int dims[4], qk_quda_map_t map, void *arg);
int qk_quda_rank(void);
int qk_quda_ranks(void);
void qk_quda_grid_dims(int dims[4]);
void qk_quda_grid_coord(int rank, int coord[4]);
void qk_quda_broadcast(void *data, size_t bytes); /* from rank 0 */
/* Rank 0 gets the brick of each rank in turn; it is its own until take returns. */
typedef void (*qk_quda_take_t)(void *arg, int rank, const void *brick);
void qk_quda_gather(const void *brick, size_t bytes, qk_quda_take_t take, void *arg);
/* give fills the brick of each rank in turn, on rank 0. */
typedef void (*qk_quda_give_t)(void *arg, int rank, void *brick);
void qk_quda_scatter(void *brick, size_t bytes, qk_quda_give_t give, void *arg);
_Noreturn void qk_quda_abort(int code);

#endif
