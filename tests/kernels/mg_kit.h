/*
 * mg_kit.h: levels of multigrid in tests of its kernels: lattices beside that of a kit,
 * blocks of columns beside their host copies, coarse matrices. Numbers are multiples of 1/64
 * in [-1, 1], so that every storage format but scaled half holds them exactly and sums of
 * products in fp32 are exact.
 */
#ifndef QK_TESTS_MG_KIT_H
#define QK_TESTS_MG_KIT_H

#include "tests/kernels/hop_kit.h"

/* A kit of unit links. Skips the test where the backend has no device. */
void mg_kit_open(kit_t *kit, const int dims[4], const int split[4]);
/* The same backend with another lattice and fields of ncomp components; not to be closed. */
kit_t mg_level(const kit_t *kit, const int dims[4], const int split[4], int ncomp);

/* Columns of a full field; x[rhs]: what the device holds. */
typedef struct mg_block {
  kit_field_t f;
  double complex **x;
} mg_block_t;

/* single_rhs: tiles of one RHS by eight sites. */
mg_block_t mg_block(const kit_t *kit, qk_prec_t prec, int nrhs, bool single_rhs, uint64_t seed);
void mg_block_free(const kit_t *kit, mg_block_t *b);
/* malloc'd: multiples of 1/64. */
double complex *mg_numbers(size_t n, uint64_t seed);
/* Largest difference over the largest modulus of b. */
double mg_off(const double complex *a, const double complex *b, size_t n);
bool mg_same_bits(const double complex *a, const double complex *b, size_t n);

/* Matrices of all sites: plain [site, even ones first][dir][row][column] of
 * the host to the device. */
qk_coarse_links_t mg_matrices(const kit_t *kit, qk_prec_t prec, int n, int ndir,
                              const double complex *plain);
/* The same back; malloc'd. */
double complex *mg_plain(const kit_t *kit, const qk_coarse_links_t *m);

/* Coordinates of site i, x fastest, and back with wrapping; place among the
 * sites, even ones first. */
void mg_coords(const kit_t *kit, int64_t i, int x[4]);
int64_t mg_site(const kit_t *kit, const int x[4]);
int64_t mg_index(const kit_t *kit, int64_t i);
int mg_parity(const kit_t *kit, int64_t i);

#endif
