/*
 * hop_kit.h: one gauge field on one backend, for tests of the operator kernels through the ops
 * table and of nothing above it.
 *
 * The backend is QK_BACKEND (default cpu). Vectors on the host are complex doubles of the whole
 * lattice, [t][z][y][x][spin][colour] (or [component]), and links [t][z][y][x][mu][3][3]. What is
 * not under test ends the test with a message when it fails.
 */
#ifndef QK_TESTS_HOP_KIT_H
#define QK_TESTS_HOP_KIT_H

#include <complex.h>
#include <stdbool.h>

#include "cuda/ops.h"

typedef struct kit {
  const qk_ops_t *ops;
  qk_ops_ctx_t *ctx;
  qk_lattice_t lat;
  int64_t volume;
  int ncomp;             /* of fields and vectors: 12 unless a test sets it; half: 12 or 3 */
  double complex *links; /* host */
  double *ext;           /* device: the extended gauge field */
  int32_t e[4];
} kit_t;

/* A block field and the memory behind it. */
typedef struct kit_field {
  qk_spinor_t v;
  void *memory;
} kit_field_t;

/* Skips the running test where the backend has no device. links are copied. split[mu]
 * != 0: the halo of the extended gauge field is filled periodically, as if this rank
 * were its own neighbour. */
void kit_open(kit_t *kit, const int dims[4], const int split[4], const double complex *links);
/* The lattice, and nothing of what stands on it. */
void kit_set_lattice(kit_t *kit, const int dims[4], const int split[4]);
/* On links of kit_random_links. */
void kit_open_random(kit_t *kit, const int dims[4], double roughness, uint64_t seed);
/* The same random links on a lattice that wraps around, and on one that is split. */
void kit_open_both(kit_t *one, kit_t *parts, const int dims[4], const int split[4]);
void kit_close(kit_t *kit);
void kit_must(const kit_t *kit, qk_status_t status, const char *what);
/* Expects that a call has been refused as BAD_ARGUMENT, and that last_error has that word. */
void kit_refused(const kit_t *kit, qk_status_t status, const char *word);

void *kit_alloc(const kit_t *kit, size_t bytes);
qk_links_t kit_links(const kit_t *kit, qk_prec_t prec, int reals);
/* diag + csw * clover, or its inverse, in prec. */
qk_local_t kit_diag(const kit_t *kit, double csw, double diag, bool inverse, qk_prec_t prec);
void kit_free(const kit_t *kit, const void *device);

/* A field; or the two padded faces of a ghost, of ncomp components (6: half-spinors).
 * Tiles of RHS unless it is a single RHS. */
kit_field_t kit_field(const kit_t *kit, qk_prec_t prec, int nrhs, bool single_rhs,
                      qk_subset_t subset);
kit_field_t kit_ghost(const kit_t *kit, const qk_spinor_t *like, int mu, qk_subset_t subset,
                      int ncomp);
void kit_field_free(const kit_t *kit, kit_field_t *field);
/* One parity of a full field. */
qk_spinor_t kit_half(const kit_t *kit, const qk_spinor_t *full, int parity);
void kit_import(const kit_t *kit, const qk_spinor_t *field, int rhs, const double complex *v);
void kit_export(const kit_t *kit, const qk_spinor_t *field, int rhs, double complex *v);

/* The words of a field or ghost in double or single; malloc'd. And a number among them: component c
 * of column rhs at the site with an index in the field, or at a slot of the ghost. */
void *kit_words(const kit_t *kit, const qk_spinor_t *field);
double complex kit_number(const kit_t *kit, const qk_spinor_t *field, const void *words,
                          int64_t index, int rhs, int c);
/* Index in a full field of the site whose place in a vector is `site`. */
int64_t kit_index(const kit_t *kit, int64_t site);

size_t kit_components(const kit_t *kit); /* ncomp * volume */
double complex *kit_vector(const kit_t *kit);
/* Gaussian-like values that depend on the seed only. */
void kit_random(const kit_t *kit, uint64_t seed, double complex *v);
/* Random SU(3) links, at roughness 0 all one. malloc'd */
double complex *kit_random_links(const int dims[4], double roughness, uint64_t seed);
/* |a - b| / |b| */
double kit_distance(const kit_t *kit, const double complex *a, const double complex *b);

/* What M psi may be off by, relative, in a precision and with a form of the links (rough, not
 * smooth, links: those of 8 reals lose digits where a modulus comes out of a square root). */
double kit_tolerance(qk_prec_t prec, int reals);

/* The arguments of out = M in (or M^+), full or one parity, without links, diag and fields. */
qk_hop_args_t kit_dirac(const kit_t *kit, bool dagger, const double phase[4][2]);

/* The hop or the diagonal term alone of `a`, on one column. */
void kit_part(const kit_t *kit, qk_hop_args_t a, qk_prec_t prec, const double complex *in,
              double complex *out);

/* Makes the ghosts of `a` and fills them from its own faces, as if this rank
 * were its own neighbour. */
void kit_own_ghosts(const kit_t *kit, qk_hop_args_t *a, kit_field_t ghost[4][2]);

/* Lanes do not see each other: every third of 11 columns gets the same numbers, the others NaN and
 * Inf; what came out for the former must be the same bits. */
enum { KIT_LANES = 11 };
void kit_fill_lanes(const kit_t *kit, const qk_spinor_t *in);
void kit_expect_lanes_apart(const kit_t *kit, const qk_spinor_t *out);

/* The operator made of kernels: M of that mass and csw, in one precision and form of links. */
typedef struct dirac {
  qk_links_t links;
  qk_local_t diag;
} dirac_t;

dirac_t dirac_open(const kit_t *kit, qk_prec_t prec, int reals, double mass, double csw);
void dirac_close(const kit_t *kit, dirac_t *d);
/* out = M in, or M^+ in. */
void dirac_apply(const kit_t *kit, const dirac_t *d, bool dagger, const double phase[4][2],
                 const qk_spinor_t *in, const qk_spinor_t *out);
/* The same for one column in double with 18 reals. */
void dirac_apply_vector(const kit_t *kit, const dirac_t *d, bool dagger, const double phase[4][2],
                        const double complex *in, double complex *out);

#endif
