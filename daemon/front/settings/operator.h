/*
 * operator.h: the action of a setup with its parameters: from the command line, from a LOAD laid
 * over it, and as messages list it. Short forms (mass, kappa, csw) become parameters here.
 * Pure, all of it.
 */
#ifndef QK_FRONT_OPERATOR_H
#define QK_FRONT_OPERATOR_H

#include "daemon/base/err.h"
#include "proto/operator_text.h"
#include "proto/quark.pb-c.h"

/* NaN: not given. */
typedef struct qk_short_forms {
  double mass, kappa, csw;
} qk_short_forms_t;

/* action NULL: as csw says (operator_text.h). QK_BAD_ARGUMENT. */
qk_status_t qk_operator_of_flags(const char *action, qk_short_forms_t given, qk_values_t *values,
                                 qk_err_t *err);

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

/* csw of those that have one; 0 for the others. */
double qk_operator_csw(const qk_values_t *values);

#endif
