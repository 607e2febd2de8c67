/*
 * mg_grid.h: the grid of ranks that multigrid wants.
 *
 * A hierarchy has the aggregates of the whole lattice (qk_mg_params_complete), and is the same on
 * any number of ranks, if these carry it: on each level every rank has an even number of aggregates
 * in each direction. Of the grids that do, the one with least surface is taken (comm.h). Where none
 * does, or the one that is given does not, aggregates are those next to it that the ranks can have;
 * of such grids the one whose hierarchy is nearest to that of the whole lattice is taken.
 *
 * Pure: of the lattice, the number of ranks, what is given of the parameters, and the backend.
 */
#ifndef QK_ENGINE_SETUP_MG_GRID_H
#define QK_ENGINE_SETUP_MG_GRID_H

#include "daemon/engine/multigrid/multigrid.h"

enum { QK_MG_GRID_WHY = 256, QK_MG_GRID_ADVICE = 64 }; /* bytes of texts */

/* How far the hierarchy that ranks on `grid` can have is from that of the whole lattice: 0, they
 * carry it; else the sum over levels and directions of |ln(b/B)| in millionths, of their aggregates
 * b and those B of the whole lattice, 1 where a level is missing. INT64_MAX: they have no
 * multigrid. The entries of grid must divide the extents into parts as comm.h has it. */
int64_t qk_mg_grid_misfit(const int dims[4], const int grid[4], const qk_mg_params_t *given,
                          const qk_tuning_t *tuning);

/* grid: entries that are 0 are chosen, the others kept. The fit: what became of the hierarchy. why:
 * in words, for people; "" on one rank. Both may be NULL. QK_BAD_GEOMETRY as
 * qk_comm_choose_grid. */
typedef enum qk_mg_grid_fit {
  QK_MG_GRID_CARRIES, /* the hierarchy of the whole lattice */
  QK_MG_GRID_NEAR,    /* another one */
  QK_MG_GRID_NONE     /* none: multigrid is not possible here */
} qk_mg_grid_fit_t;
qk_status_t qk_mg_choose_grid(int size, const int dims[4], const qk_mg_params_t *given,
                              const qk_tuning_t *tuning, int grid[4], qk_mg_grid_fit_t *fit,
                              char why[QK_MG_GRID_WHY], qk_err_t *err);
/* How many of `most` ranks would carry the hierarchy of the whole lattice: "4 ranks as 1x1x1x4",
 * "one rank"; "": it has none. */
void qk_mg_grid_advise(int most, const int dims[4], const qk_mg_params_t *given,
                       const qk_tuning_t *tuning, char text[QK_MG_GRID_ADVICE]);

#endif
