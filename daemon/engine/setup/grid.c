#include "daemon/engine/setup/grid.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/engine/setup/actions.h"

/* Whether the solver is multigrid, or may become it. */
static bool may_be_multigrid(const qk_load_t *load) {
  if (load->solver != QK_SOLVER_AUTO) return load->solver == QK_SOLVER_MG;
  return load->inner != QK_DOUBLE && !qk_load_deflates(load) &&
         qk_action_allows(qk_action_of(&load->values), "mg");
}

static const char *plain_why(int size, const int grid[4]) {
  if (size == 1) return "";
  for (int mu = 0; mu < 4; mu++)
    if (grid[mu] > 0) return "as given";
  return "least surface";
}

qk_status_t qk_grid_choose(const qk_comm_t *comm, const qk_load_t *load, const qk_tuning_t *tuning,
                           const int dims[4], int grid[4], char why[QK_MG_GRID_WHY],
                           qk_err_t *err) {
  const int size = qk_comm_size(comm);
  qk_mg_grid_fit_t fit;
  for (int mu = 0; mu < 4; mu++) grid[mu] = load->grid[mu];
  if (!may_be_multigrid(load)) {
    snprintf(why, QK_MG_GRID_WHY, "%s", plain_why(size, grid));
    return qk_comm_choose_grid(size, dims, NULL, NULL, grid, err);
  }
  const qk_status_t status = qk_mg_choose_grid(size, dims, &load->mg, tuning, grid, &fit, why, err);
  if (status == QK_OK && fit == QK_MG_GRID_NEAR && qk_comm_rank(comm) == 0)
    qk_warn("setup", "grid %dx%dx%dx%d: %s", grid[0], grid[1], grid[2], grid[3], why);
  return status;
}

void qk_grid_advise(const qk_comm_t *comm, const qk_load_t *load, const qk_tuning_t *tuning,
                    const int dims[4], qk_err_t *err) {
  char advice[QK_MG_GRID_ADVICE];
  const size_t n = strlen(err->text);
  if (qk_comm_size(comm) == 1 || err->code != QK_BAD_GEOMETRY) return;
  qk_mg_grid_advise(qk_comm_size(comm), dims, &load->mg, tuning, advice);
  if (advice[0] != '\0')
    snprintf(err->text + n, sizeof err->text - n, "; %s would have multigrid", advice);
}
