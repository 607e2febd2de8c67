/* What to change where a plan does not fit: each proposal is planned, and told only if it fits. */
#include <stdio.h>
#include <string.h>

#include "daemon/engine/setup/mg_grid.h"
#include "daemon/engine/setup/plan.h"

enum { DEVICES_MOST = 64 }; /* times as many as there are */

/* Proposals so far, in words. */
typedef struct advice {
  int64_t free;
  char *text;
  size_t size;
} advice_t;

/* Without what is left out first where memory is short. True: it fits, and is told. */
static bool propose(advice_t *a, const qk_plan_input_t *input, const char *what, int number,
                    const char *unit) {
  qk_plan_input_t in = *input;
  qk_plan_t plan;
  qk_mg_params_t mg;
  in.compact = true;
  in.staging = 0;
  in.single_rhs = false;
  if (in.mg != NULL) {
    mg = *in.mg;
    if (mg.together == 0) mg.together = QK_TILE;
    mg.level[0].ntest = mg.level[0].nvec;
    in.mg = &mg;
  }
  qk_plan_make(&in, &plan);
  if (qk_plan_needed(&plan) > a->free) return false;
  const size_t n = strlen(a->text);
  char words[48];
  if (number > 0)
    snprintf(words, sizeof words, "%s%d%s", what, number, unit);
  else
    snprintf(words, sizeof words, "%s", what);
  snprintf(a->text + n, a->size - n, "%s%s would need %.4g GB%s", n > 0 ? ", " : "", words,
           1e-9 * (double)qk_plan_needed(&plan), unit[0] ? " on each" : "");
  return true;
}

static void propose_vectors(advice_t *a, const qk_plan_input_t *input, const qk_mg_params_t *given,
                            const qk_tuning_t *tuning) {
  qk_plan_input_t in = *input;
  qk_mg_params_t mg = *given;
  qk_err_t err = {0};
  if (input->mg->level[0].nvec <= QK_MG_VECTORS_FEW) return;
  mg.level[0].nvec = QK_MG_VECTORS_FEW;
  if (qk_mg_params_complete(in.geom, tuning, &mg, &err) != QK_OK) return;
  in.mg = &mg;
  propose(a, &in, "mg-vectors = ", QK_MG_VECTORS_FEW, "");
}

static void propose_half(advice_t *a, const qk_plan_input_t *input) {
  qk_plan_input_t in = *input;
  qk_action_params_t params = *input->params;
  if (qk_prec_scaled(input->inner)) return;
  if (input->mg == NULL && input->inner != QK_DOUBLE) params.want[input->inner] = false;
  params.want[QK_HALF] = true;
  in.params = &params;
  in.inner = QK_HALF;
  propose(a, &in, "precision = half", 0, "");
}

/* As lay_out does it (loaded.c). */
static qk_status_t choose_grid(const qk_plan_input_t *input, const qk_mg_params_t *given,
                               const qk_tuning_t *tuning, int n, int grid[4], qk_err_t *err) {
  const int *dims = input->geom->global;
  return input->mg != NULL ? qk_mg_choose_grid(n, dims, given, tuning, grid, NULL, NULL, err)
                           : qk_comm_choose_grid(n, dims, NULL, NULL, grid, err);
}

/* The first part of the lattice cut for n devices is as large as the others. */
static bool propose_devices(advice_t *a, const qk_plan_input_t *input, const qk_mg_params_t *given,
                            const qk_tuning_t *tuning, int n) {
  static const int first[4] = {0, 0, 0, 0};
  qk_plan_input_t in = *input;
  qk_geom_t geom;
  qk_mg_params_t mg;
  qk_err_t err = {0};
  int grid[4] = {0};
  if (choose_grid(input, given, tuning, n, grid, &err) != QK_OK) return false;
  if (qk_geom_part(input->geom->global, grid, first, &geom, &err) != QK_OK) return false;
  geom.ncomp = input->geom->ncomp;
  in.geom = &geom;
  if (input->mg != NULL) {
    mg = *given;
    if (qk_mg_params_complete(&geom, tuning, &mg, &err) != QK_OK) return false;
    in.mg = &mg;
  }
  return propose(a, &in, "", n, " devices");
}

void qk_plan_advise(const qk_plan_input_t *input, const qk_mg_params_t *given,
                    const qk_tuning_t *tuning, int64_t free, int ranks, char *text, size_t size) {
  advice_t a = {free, text, size};
  qk_plan_input_t in = *input;
  text[0] = '\0';
  if (in.nslot == 0) in.nslot = 1;
  if (in.mg != NULL) propose_vectors(&a, &in, given, tuning);
  propose_half(&a, &in);
  for (int n = 2; n <= DEVICES_MOST; n *= 2)
    if (propose_devices(&a, &in, given, tuning, n * ranks)) return;
}
