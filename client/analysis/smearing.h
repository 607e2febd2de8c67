/*
 * smearing.h: parses and prints smearings.
 *
 *   gauss:ALPHA,STEPS             Gaussian smearing with the alpha of quark_smearing_t
 *   gauss:width=W,steps=N         the same in Chroma's form (1 + W^2/(4N) Delta)^N:
 *                                 alpha = a / (1 - 6 a), a = W^2 / (4 N); negative for N < 3/2 W^2
 *   ape:ALPHA,STEPS[,4d]          links; without 4d only spatial links, with spatial staples
 *   stout:RHO,STEPS[,4d]
 *   hyp:ALPHA1,ALPHA2,ALPHA3[,STEPS]
 *   none                          neither Gaussian nor of links
 *
 * Pure functions. Errors: QK_BAD_ARGUMENT, with the text, what is wrong in it and the limit.
 */
#ifndef QK_CLIENT_SMEARING_H
#define QK_CLIENT_SMEARING_H

#include "client/quark.h"
#include "daemon/base/err.h"

enum { QK_SMEARING_TEXT = 128 };

/* Sets alpha and steps of *smearing. */
qk_status_t qk_smearing_parse(const char *text, quark_smearing_t *smearing, qk_err_t *err);
/* Sets links, link_param, link_steps and link_all of *smearing. */
qk_status_t qk_smearing_parse_links(const char *text, quark_smearing_t *smearing, qk_err_t *err);

/* In words that parse to the same numbers: "gauss:0.25,10", "ape:0.6,20", "none". */
void qk_smearing_print(const quark_smearing_t *smearing, char text[QK_SMEARING_TEXT]);
void qk_smearing_print_links(const quark_smearing_t *smearing, char text[QK_SMEARING_TEXT]);

#endif
