/*
 * load.h: what is to be loaded: the front's LOAD as a plain struct, which rank 0 broadcasts.
 *
 * Values are checked when the message is taken apart, all but those that need a geometry.
 */
#ifndef QK_ENGINE_LOAD_H
#define QK_ENGINE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/ops.h"
#include "daemon/base/err.h"
#include "daemon/engine/launch/launch.h"
#include "daemon/engine/multigrid/multigrid.h"
#include "proto/action/fix_text.h"
#include "proto/action/operator_text.h"
#include "proto/choices.h"
#include "proto/engine.pb-c.h"
#include "proto/limits.h"

typedef struct qk_load {
  char gauge[QK_PATH_MAX + 1];
  qk_backend_t backend;
  qk_solver_choice_t solver;
  int32_t dims[4];    /* all 0: the file states them */
  int32_t grid[4];    /* 0: chosen */
  qk_values_t values; /* of the action; its table has checked them */
  double phase[4][2];
  qk_prec_t inner;
  bool ignore_checksum;
  qk_fix_recipe_t fix;     /* the gauge that the links are brought to */
  int32_t nslot;           /* 0: chosen */
  int32_t link_reals;      /* 0: chosen */
  bool single_rhs;         /* what is alone has a solver of one column */
  int64_t reserve;         /* bytes on the host of rank 0 that are the front's */
  bool reads_only;         /* another engine of the setup writes the files that they share */
  qk_launch_place_t place; /* among the engines that serve the setup, and devices */
  int32_t staging;         /* sources, and as many solutions, on their way beside the slots */
  uint64_t fingerprint;    /* that the front knows it by */
  qk_mg_params_t mg;
  int32_t deflate; /* lowest vectors that plain solvers begin with; 0: none */
  /* The file that they are read from, or written to; whose they are, if they are not made here;
   * "": none */
  char deflate_file[QK_PATH_MAX + 1], deflate_from[QK_SETUP_NAME_MAX + 1];
  char clover[QK_PATH_MAX + 1];     /* memory of the clover term that `values` name; "": none */
  char checkpoint[QK_PATH_MAX + 1]; /* "": none */
  /* The setup whose null vectors multigrid starts from, and its checkpoint; "": none */
  char evolve_from[QK_SETUP_NAME_MAX + 1], evolve_path[QK_PATH_MAX + 1];
} qk_load_t;

/* Then `auto` is a plain solver. */
static inline bool qk_load_deflates(const qk_load_t *load) {
  return load->deflate > 0 || load->deflate_from[0];
}

/* QK_BAD_ARGUMENT names field, value and limit; the result is unchanged. */
qk_status_t qk_load_parse(const Quark__Engine__Load *message, qk_load_t *load, qk_err_t *err);
/* A text of a message into an array of `size`, for other messages too. */
qk_status_t qk_load_text(const char *field, const char *text, char *to, size_t size, qk_err_t *err);

#endif
