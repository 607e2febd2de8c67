/*
 * mg_text.h: multigrid parameters as text: settings of quarkd, options of programs, and the file that
 * quark-tune writes. One table of keys, QK_MG_TEXT_KEYS.
 *
 * A value is one word, or words separated by commas for one level after the other: the first for level 0, or for
 * level 1 where `first` says so; the last word holds for all further levels (blocks: one word a level). A word
 * "auto" leaves the default; counts of steps and passes accept "none". Pure.
 */
#ifndef QK_ENGINE_MG_TEXT_H
#define QK_ENGINE_MG_TEXT_H

#include <stdio.h>

#include "daemon/engine/multigrid.h"

/* X(key, first level or -1 for the whole hierarchy, form, help) */
#define QK_MG_TEXT_KEYS(X)                                                                         \
  X("mg-levels", -1, "N", "levels of the hierarchy, 2 to 5")                                       \
  X("mg-blocks", 0, "XxYxZxT,...", "aggregates of each level but the last")                        \
  X("mg-vectors", 0, "N,...", "null vectors of each level but the last")                           \
  X("mg-setup-iterations", 0, "N,...", "iterations that relax the null vectors")                   \
  X("mg-setup-tol", 0, "TOL,...", "fall of the residual that ends their relaxation")               \
  X("mg-setup-passes", 0, "N,...", "refinements of the null vectors by multigrid itself")          \
  X("mg-setup-precision", -1, "single|half", "of the relaxation on level 0")                       \
  X("mg-prolongator", 0, "single|half,...", "storage of prolongators")                             \
  X("mg-smoother", 0, "NAME,...", "mr, ca-gcr, chebyshev or schwarz")                              \
  X("mg-omega", 0, "W,...", "relaxation factor of mr and schwarz")                                 \
  X("mg-smoother-blocks", 0, "XxYxZxT,...", "blocks of schwarz")                                   \
  X("mg-smoother-precision", -1, "single|half", "of the smoother on level 0")                      \
  X("mg-pre", 0, "N,...", "smoothing steps before the coarse correction")                          \
  X("mg-post", 0, "N,...", "smoothing steps after it")                                             \
  X("mg-iterations", 1, "N,...", "iterations of GCR on coarse levels")                             \
  X("mg-tol", 1, "TOL,...", "residual that ends them early, or none")                              \
  X("mg-store", 1, "single|half,...", "storage of coarse matrices")                                \
  X("mg-deflate", -1, "N", "vectors of the coarsest level that are deflated")                      \
  X("mg-graphs", -1, "yes|no", "launch a cycle as one graph where the backend can")                \
  X("mg-seed", -1, "N", "of the random vectors that a setup starts from")

/* QK_BAD_ARGUMENT names key, word and limit; params are then unchanged. */
qk_status_t qk_mg_text_set(qk_mg_params_t *params, const char *key, const char *text,
                           qk_err_t *err);

/* "key = value" lines of all parameters that differ from {0}, for params->nlevel levels. */
void qk_mg_text_print(const qk_mg_params_t *params, FILE *out);

#endif
