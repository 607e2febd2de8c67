/*
 * ama.h: all-mode averaging (Blum, Izubuchi, Shintani, arXiv:1208.4349): sources all over the
 * lattice, solved sloppily, and the means of their correlators.
 *
 *   C = mean over all sources of sloppy + mean over some of them of (exact - sloppy)
 *
 * Sources stand on a regular grid that is shifted by a random offset, so that the second term makes
 * the first one exact on average. Positions are the same numbers for a seed on every machine.
 * Errors: QK_BAD_ARGUMENT, with what is wrong; QK_NO_MEMORY.
 */
#ifndef QK_CLIENT_AMA_H
#define QK_CLIENT_AMA_H

#include <stdbool.h>

#include "client/analysis/corrfile.h"

enum { QK_AMA_SOURCES = 4096 };

/* So many sources, to that tolerance: "32:1e-4". n: 1 to QK_AMA_SOURCES. Pure. */
typedef struct qk_ama_part {
  int32_t n;
  double tol;
} qk_ama_part_t;
qk_status_t qk_ama_parse(const char *text, qk_ama_part_t *part, qk_err_t *err);

/* Where the sources stand. A direction in which the correlator depends on where its source is, is
 * not free: all sources have the coordinate of the first there. */
typedef struct qk_ama_grid {
  int32_t dims[4], first[4]; /* first: before the offset */
  bool is_free[4];
  uint64_t seed;
} qk_ama_grid_t;

/* offset: 0 where a direction is not free. site: [n], all different; site[0] is first + offset.
 * QK_BAD_ARGUMENT: there are not so many. Pure. */
qk_status_t qk_ama_place(const qk_ama_grid_t *grid, int32_t n, int32_t offset[4],
                         int32_t (*site)[4], qk_err_t *err);
/* Whether source k of n is one of m that are solved exactly too: 0 is the first. */
bool qk_ama_is_exact(int32_t k, int32_t n, int32_t m);

/* Mean and spread of complex numbers of several pieces of one shape. */
typedef struct qk_ama_sum {
  int64_t n; /* pieces so far */
  size_t size;
  double complex *mean, *square; /* square: of real and imaginary parts, about their means */
} qk_ama_sum_t;

qk_status_t qk_ama_sum_init(qk_ama_sum_t *sum, const qk_corrpiece_t *shape, qk_err_t *err);
void qk_ama_sum_fini(qk_ama_sum_t *sum);
/* The numbers of a piece, less those of another one unless that is NULL. */
void qk_ama_sum_add(qk_ama_sum_t *sum, const double complex *c, const double complex *less);
/* The combined correlator, and its standard error with the sources as independent ones: real and
 * imaginary part each. NaN for one sloppy source; the spread of one correction is not known and
 * does not count. mean, error: [size]. */
void qk_ama_combine(const qk_ama_sum_t *sloppy, const qk_ama_sum_t *correction,
                    double complex *mean, double complex *error);

#endif
