/*
 * grid.h: the grid of ranks of a setup. Where its solver can be multigrid it is the one that
 * mg_grid.h chooses, else that of least surface.
 */
#ifndef QK_ENGINE_SETUP_GRID_H
#define QK_ENGINE_SETUP_GRID_H

#include "daemon/engine/setup/load.h"
#include "daemon/engine/setup/mg_grid.h"

/* grid: load->grid with all entries. why: in words, "" for one rank. Rank 0 logs an hierarchy that
 * is not the one of the whole lattice. QK_BAD_GEOMETRY as qk_comm_choose_grid. */
qk_status_t qk_grid_choose(const qk_comm_t *comm, const qk_load_t *load, const qk_tuning_t *tuning,
                           const int dims[4], int grid[4], char why[QK_MG_GRID_WHY], qk_err_t *err);

/* Adds to the text of a QK_BAD_GEOMETRY of multigrid on several ranks how many would have it. */
void qk_grid_advise(const qk_comm_t *comm, const qk_load_t *load, const qk_tuning_t *tuning,
                    const int dims[4], qk_err_t *err);

#endif
