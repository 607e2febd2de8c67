/*
 * links_text.h: smearing of links, and the parameter "links" of an action: what the front and the
 * engine check alike. Formulas: docs/physics.md, "Smearing of links".
 *
 * Functions that check return false; `why` is then a sentence that names what is wrong and what
 * would be accepted. Pure.
 */
#ifndef QK_PROTO_LINKS_TEXT_H
#define QK_PROTO_LINKS_TEXT_H

#include "proto/action/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_link_smear_kind { /* numbers as in quark.proto */
                                  QK_LINK_SMEAR_NONE,
                                  QK_LINK_SMEAR_APE,
                                  QK_LINK_SMEAR_STOUT,
                                  QK_LINK_SMEAR_HYP
} qk_link_smear_kind_t;

typedef struct qk_link_smear {
  qk_link_smear_kind_t kind;
  double param[3]; /* APE alpha 0..1; stout rho 0..0.25; HYP alpha1..3, each 0..1 */
  int steps;       /* 0..100 */
  bool spatial;    /* APE, stout: only U_x, U_y, U_z, with staples in space */
  bool hex;        /* HYP: exponentials in place of projections */
} qk_link_smear_t;

/* Kind, steps and parameters are in their ranges. */
bool qk_link_smear_fits(const qk_link_smear_t *smear, char why[QK_WHY]);

/* The parameter "links": what an operator is made of.
 *   thin                                           links as they were read
 *   ape:ALPHA,STEPS[:xyz]   stout:RHO,STEPS[:xyz]  smeared in all directions, or in space alone
 *   hyp:A1,A2,A3,STEPS      hex:A1,A2,A3,STEPS
 *   A/B                                            hops of A, clover term of B
 *   slinc:RHO,STEPS                                stout:RHO,STEPS/thin */
typedef struct qk_links_recipe {
  qk_link_smear_t hop, clover;
  bool apart; /* the clover term has links of its own */
} qk_links_recipe_t;

/* A recipe has one text alone, as operators are told apart by it: numbers in their shortest form,
 * slinc if it is one. Another text of it is refused with that one. */
bool qk_links_read(const char *text, qk_links_recipe_t *recipe, char why[QK_WHY]);
/* The same without the recipe. */
bool qk_links_fit(const char *text, char why[QK_WHY]);

#ifdef __cplusplus
}
#endif
#endif
