/*
 * solver_kit.h: sources, solutions and checks of solvers in a rig. A seed and a factor define a
 * source, so that its residual can be computed independently of the solver. Everything asserts.
 */
#ifndef QK_TESTS_SOLVER_KIT_H
#define QK_TESTS_SOLVER_KIT_H

#include "tests/support/rig.h"

enum { SOLVER_METHODS = 4 };
extern const char *const solver_methods[SOLVER_METHODS];

/* 4^4 of mass 0.1, csw 1.2, antiperiodic; and its links. */
extern const char smooth_gauge[];
void open_smooth(qk_rig_t *rig);

/* Random numbers times factor, into a free slot. */
void put_source(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed, double factor);
void fill_slot(qk_solver_t *solver, int slot, double tol, int64_t max_iter);
/* Both. */
void put_and_fill(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed, double tol,
                  int64_t max_iter);
/* Of rig_vector. */
double *get_solution(const qk_rig_t *rig, qk_solver_t *solver, int slot);
/* |b - M x| / |b| as somebody outside would compute it; b is the source of that seed and factor. */
double residual_of(qk_rig_t *rig, const double *x, uint64_t seed, double factor);
/* The slot has ended well, and with that residual. */
void expect_solved(qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed, double factor,
                   const char *what);

#endif
