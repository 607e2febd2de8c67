/*
 * values.h: operators for tests: Wilson, or Wilson-clover if csw is not 0.
 */
#ifndef QK_TESTS_VALUES_H
#define QK_TESTS_VALUES_H

#include "daemon/engine/setup/actions.h"

/* Of a canonical text; the process ends if it is none. */
qk_values_t values_of(const char *text);
qk_values_t values_wilson(double mass, double csw);

/* Periodic but for the factor phase_t in t; 18, 12 and 18 reals a link; all precisions. */
qk_action_params_t params_wilson(double mass, double csw, double phase_t);

#endif
