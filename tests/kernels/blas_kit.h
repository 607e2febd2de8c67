/*
 * blas_kit.h: block BLAS beside plain loops over host data. A block is nrhs host vectors (complex
 * doubles of the whole lattice, wire order) and the same numbers in a field on the device; what the
 * device holds after rounding is read back first, so that both start from equal numbers.
 */
#ifndef QK_TESTS_BLAS_KIT_H
#define QK_TESTS_BLAS_KIT_H

#include "tests/kernels/hop_kit.h"

typedef struct block {
  kit_field_t field;  /* full */
  qk_spinor_t v;      /* the part under test: full, even or odd */
  double complex **x; /* [nrhs] host values */
} block_t;

/* How fields are cut: precision, nrhs, tiles of one RHS by 8 sites or not, and which sites. */
typedef struct cut {
  qk_prec_t prec;
  int nrhs;
  bool single_rhs;
  qk_subset_t subset;
} cut_t;

/* All precisions, both tile shapes, ragged and full blocks, all subsets. */
extern const cut_t cuts[];
extern const int ncuts;
bool cut_exists(const kit_t *kit, cut_t cut); /* with the kit's ncomp; of others than 12, fewer */
/* The same for kernels that take no colour vectors in half. */
bool cut_exists_without_colours(const kit_t *kit, cut_t cut);
const char *cut_text(cut_t cut); /* static buffer */

void block_kit_open(kit_t *kit); /* 4x6x2x8, no split, unit links */

/* test(kit) for each ncomp. */
void each_ncomp(void (*test)(const kit_t *kit));
void each_ncomp_of_spinors(void (*test)(const kit_t *kit)); /* what colour vectors do not have */

/* Random numbers of a seed. */
block_t block_make(const kit_t *kit, cut_t cut, uint64_t seed);
void block_free(const kit_t *kit, block_t *b);
/* Sets column rhs on the host and the device, and reads back what the device has made of it. */
void block_set(const kit_t *kit, block_t *b, int rhs, const double complex *x);
/* What the device holds now; malloc'd. */
double complex *block_get(const kit_t *kit, const block_t *b, int rhs);

/* Component i of a full vector is of the sites that a subset has. */
bool component_in(const kit_t *kit, qk_subset_t subset, size_t i);
/* Largest difference over the largest modulus of b, over all sites: those outside a cut's subset
 * must not have changed either. */
double block_off(const kit_t *kit, const double complex *a, const double complex *b);
/* Relative rounding of one fused update in a precision. */
double blas_tolerance(qk_prec_t prec);

/* Device arrays. */
double *device_scalars(const kit_t *kit, const double complex *c, int n);
uint8_t *device_mask(const kit_t *kit, const uint8_t *mask, int n);
void read_scalars(const kit_t *kit, const double *device, double complex *c, int n);

/* The operation `op` on one right-hand side by plain loops; f[i] in and out, c the scalars of this
 * one, red the sums. Only components in the subset take part. */
void plain_blas(const kit_t *kit, qk_blas_op_t op, qk_subset_t subset, double complex **f,
                const double complex *c, double complex *red);

/* Number of fields, scalars and results of an operation. */
typedef struct blas_counts {
  const char *name;
  int fields, scalars, reductions;
} blas_counts_t;
blas_counts_t blas_counts(qk_blas_op_t op);

#endif
