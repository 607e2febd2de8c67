/*
 * open.h: the parameter `open`, cF of an open boundary in t: openQCD's type 0 (M. Luescher,
 * S. Schaefer, Comput. Phys. Commun. 184 (2013) 519; openQCD, doc/dirac.pdf).
 *
 * The operator is P (T - 1/2 hop) P on 0 < t < T-1, P the projector on these slices, and 1 on the
 * outer ones, t = 0 and T-1: fields that are 0 there stay so. cF - 1 is added to the number of T on
 * t = 1 and T-2. There is no hop across the edge, so the boundary phase of t has no effect. F is of
 * the links as they were read.
 */
#ifndef QK_ENGINE_OPEN_H
#define QK_ENGINE_OPEN_H

#include "cuda/gauge_ops.h"
#include "daemon/base/err.h"
#include "proto/action/operator_text.h"

/* What the kernels are told; `is` is 0 where the action has no such parameter, or it is 0. */
qk_open_t qk_open_of(const qk_values_t *values);

/* Links of so many reals (0: not chosen yet) on a lattice of that extent in t (0: not known). Pure.
 * QK_BAD_ARGUMENT. */
qk_status_t qk_open_fits(const qk_values_t *values, int link_reals, int extent_t, qk_err_t *err);

#endif
