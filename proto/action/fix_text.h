/*
 * fix_text.h: the setting "fix-gauge", the gauge that links are brought to when they are loaded:
 * what the front and the engine check alike.
 *
 *   none | landau[:THETA] | coulomb[:THETA]
 *
 * THETA: where the iteration ends (daemon/engine/gauge/fix/gauge_fix.h), 1e-26 to 1, 1e-12 where it
 * is not given. Pure.
 */
#ifndef QK_PROTO_FIX_TEXT_H
#define QK_PROTO_FIX_TEXT_H

#include <stdbool.h>

#include "proto/action/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_FIX_TEXT_MAX = 40 }; /* bytes */

typedef struct qk_fix_recipe {
  bool landau, coulomb; /* at most one */
  double theta;
} qk_fix_recipe_t;

/* text NULL: none. False: `why` names the text and what would be accepted. */
bool qk_fix_read(const char *text, qk_fix_recipe_t *recipe, char why[QK_WHY]);
/* The text of a recipe, with its theta; returns it. */
char *qk_fix_text(const qk_fix_recipe_t *recipe, char text[QK_FIX_TEXT_MAX + 1]);

#ifdef __cplusplus
}
#endif
#endif
