/*
 * mg_text.h: multigrid parameters as text: settings of quarkd, options of programs, and the file
 * that quark-tune writes. The keys: proto/mg_keys.h.
 *
 * A value is one word, or words separated by commas for successive levels. The first word is for
 * level 0, or for level 1 (mg-iterations, mg-tol, mg-store). The last word holds for all further
 * levels (blocks need one word per level). The word "auto" keeps the default; counts of steps and
 * passes, mg-tol, mg-smoother-bits and mg-deflate accept "none". Pure.
 */
#ifndef QK_ENGINE_MG_TEXT_H
#define QK_ENGINE_MG_TEXT_H

#include <stdio.h>

#include "daemon/engine/multigrid/multigrid.h"

/* QK_BAD_ARGUMENT names key, word and limit; params are then unchanged. */
qk_status_t qk_mg_text_set(qk_mg_params_t *params, const char *key, const char *text,
                           qk_err_t *err);

/* Whether the values of all levels are within the limits of their keys; params are complete.
 * QK_BAD_ARGUMENT names level, key, value and limit. */
qk_status_t qk_mg_text_check(const qk_mg_params_t *params, qk_err_t *err);

/* "key = value" lines of all parameters that differ from {0}, for params->nlevel levels. */
void qk_mg_text_print(const qk_mg_params_t *params, FILE *out);

#endif
