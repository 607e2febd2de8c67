/*
 * operator.h: the action of a setup with its parameters: as a LOAD asks for them, and as messages
 * list them. Short forms (mass, kappa, csw) become parameters here. Those of quarkd itself:
 * parameters.h.
 * Pure, all of it.
 */
#ifndef QK_FRONT_OPERATOR_H
#define QK_FRONT_OPERATOR_H

#include "daemon/base/err.h"
#include "proto/action/operator_text.h"
#include "proto/quark.pb-c.h"

/* What a LOAD asks for. One that names an action has all its parameters; otherwise those of base
 * stand for what it does not say. QK_BAD_ARGUMENT; *values is unchanged then. */
qk_status_t qk_operator_of_load(const Quark__Load *load, const qk_values_t *base,
                                qk_values_t *values, qk_err_t *err);

/* As fields of a message, which point into it: it stays where it is while they are used. */
typedef struct qk_operator_fields {
  char text[QK_OPERATOR_TEXT];
  char *action;
  size_t n_parameter;
  Quark__Setting setting[QK_VALUES_PARAMS], *parameter[QK_VALUES_PARAMS];
} qk_operator_fields_t;

void qk_operator_list(const qk_values_t *values, qk_text_form_t form, qk_operator_fields_t *fields);

/* mass and csw of those that have them; 0 for the others. */
double qk_operator_mass(const qk_values_t *values);
double qk_operator_csw(const qk_values_t *values);
/* Of a fifth dimension; 1: there is none. */
int qk_operator_slices(const qk_values_t *values);

#endif
