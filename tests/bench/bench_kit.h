/*
 * bench_kit.h: one backend and one lattice to time kernels on, and a plain copy timed in the same run to
 * set them against. Whatever fails ends the program with a message. Times in seconds, rates in bytes a
 * second, counting what is read and what is written.
 */
#ifndef QK_BENCH_KIT_H
#define QK_BENCH_KIT_H

#include <stdbool.h>

#include "cuda/ops.h"

typedef struct bench {
  const char *program;
  const qk_ops_t *ops;
  qk_ops_ctx_t *ctx;
  qk_lattice_t lat;
  int64_t volume;
  double copy_rate;
  double seconds; /* to spend on one measurement */
} bench_t;

/* Opens the backend and measures the copy. dims[mu] == 0: the default of the backend, 16^4 or 32^3 x 64. */
void bench_open(bench_t *b, const char *program, const char *backend, const int dims[4],
                double seconds);
void bench_close(bench_t *b);
void bench_must(const bench_t *b, qk_status_t status, const char *what);
void bench_heading(const bench_t *b); /* device, lattice, rate of the copy */

void *bench_alloc(const bench_t *b, size_t bytes);
/* A field of Z4 noise (full), or of zeros. One RHS: tiles of 8 sites. */
qk_spinor_t bench_field(const bench_t *b, qk_prec_t prec, int nrhs, qk_subset_t subset);
/* Bytes of one right-hand side of such a field, with its scales. */
double bench_field_bytes(const qk_spinor_t *v);

typedef void (*bench_fn)(const bench_t *b, void *arg);
/* Median time of one call, over batches long enough for the clock. */
double bench_measure(const bench_t *b, bench_fn run, void *arg);

#endif
