/*
 * deflation.h: the vectors that solves of a setup begin with, as status shows them.
 */
#ifndef QUARKCTL_DEFLATION_H
#define QUARKCTL_DEFLATION_H

#include "client/cli/ctl.h"

/* A line, and one more where their file made trouble; only where there are vectors. */
void ctl_deflation_print(const quark_deflation_t *deflation);
/* null where there are none. */
json_t *ctl_deflation_json(const quark_deflation_t *deflation);

#endif
