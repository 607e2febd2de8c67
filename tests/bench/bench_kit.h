/*
 * bench_kit.h: one backend and one lattice to time kernels on, and a plain copy timed in the same
 * run to set them against. Whatever fails ends the program with a message. Times in seconds, rates
 * in bytes a second, counting what is read and what is written.
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

/* Opens the backend and measures the copy. dims[mu] == 0: the default of the
 * backend, 16^4 or 32^3 x 64. */
void bench_open(bench_t *b, const char *program, const char *backend, const int dims[4],
                double seconds);
void bench_close(bench_t *b);
void bench_must(const bench_t *b, qk_status_t status, const char *what);
void bench_heading(const bench_t *b); /* device, lattice, rate of the copy */

/* The options of a benchmark, "--name value", and where their values go. */
typedef struct bench_option {
  const char *name;
  enum { BENCH_TEXT, BENCH_REAL, BENCH_COUNT, BENCH_DIMS, BENCH_FLAG } kind;
  void *to; /* const char *, double, int, int[4] of XxYxZxT, bool */
} bench_option_t;

/* options: n of them. --help prints usage and leaves; so does, with 64, what is no option. */
void bench_parse(int argc, char **argv, const char *usage, const bench_option_t options[], int n);

extern const char *const bench_prec_name[3];

/* A line of "operation, field, nrhs, us, GB/s, of copy", or a JSON object; and
 * the head of the table. */
void bench_show(const bench_t *b, bool json, const char *op, qk_prec_t prec, int nrhs, double bytes,
                double seconds);
void bench_show_heading(const bench_t *b);

void *bench_alloc(const bench_t *b, size_t bytes);
/* A field of Z4 noise (full), or of zeros. One RHS: tiles of 8 sites. */
qk_spinor_t bench_field(const bench_t *b, qk_prec_t prec, int nrhs, qk_subset_t subset);
/* The same of 12 or QK_COLOUR_COMPONENTS components. */
qk_spinor_t bench_field_of(const bench_t *b, qk_prec_t prec, int nrhs, int ncomp,
                           qk_subset_t subset);
/* Bytes of one right-hand side of such a field, with its scales. */
double bench_field_bytes(const qk_spinor_t *v);

typedef void (*bench_fn)(const bench_t *b, void *arg);
/* Median time of one call, over batches long enough for the clock. */
double bench_measure(const bench_t *b, bench_fn run, void *arg);

#endif
