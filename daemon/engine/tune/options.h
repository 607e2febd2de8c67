/*
 * options.h: the command line of quark-tune.
 */
#ifndef QK_TUNE_OPTIONS_H
#define QK_TUNE_OPTIONS_H

#include "daemon/engine/multigrid/multigrid.h"
#include "daemon/engine/tool/tool.h"
#include "proto/action/operator_text.h"

enum { QK_TUNE_FROM = 32 };

typedef struct qk_tune_options {
  qk_tool_options_t tool;
  const char *gauge, *out, *protocol, *show; /* NULL: not given */
  const char *from[QK_TUNE_FROM];
  int nfrom;
  const char *action; /* NULL: as csw says */
  qk_setting_t setting[QK_VALUES_PARAMS];
  int nsetting;
  qk_values_t values; /* not with show */
  double boundary_t, tol, budget, solves;
  int slots;
  int trials; /* of the search, at most */
  qk_mg_params_t start;
  bool has_start;
} qk_tune_options_t;

/* Exits for --help and bad usage. Texts are borrowed from argv. */
void qk_tune_options(int argc, char **argv, qk_tune_options_t *options);

#endif
