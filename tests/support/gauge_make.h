/*
 * gauge_make.h: gauge files of every format made in memory, byte by byte and apart from the code
 * under test, for unit tests and fuzz corpora.
 *
 * links: double [t][z][y][x][mu][3][3][2] of the whole lattice.
 */
#ifndef QK_TESTS_GAUGE_MAKE_H
#define QK_TESTS_GAUGE_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gauge_kind {
  MAKE_ILDG,
  MAKE_SCIDAC,
  MAKE_BARE, /* LIME with ildg-binary-data only */
  MAKE_NERSC,
  MAKE_MILC,
  MAKE_OPENQCD,
  MAKE_DDALPHAAMG
} gauge_kind_t;

typedef struct gauge_make {
  gauge_kind_t kind;
  int bits; /* 32 or 64 */
  int rows; /* 2 or 3; NERSC only */
  bool big; /* byte order; NERSC and MILC only */
} gauge_make_t;

/* Every combination that exists. */
extern const gauge_make_t gauge_makes[];
extern const int gauge_makes_count;

/* "NERSC 32 bit 2 rows little" */
const char *gauge_make_name(const gauge_make_t *make);

typedef struct gauge_bytes {
  uint8_t *p; /* free() it */
  size_t n, room;
  size_t links; /* offset of the first link */
} gauge_bytes_t;

gauge_bytes_t gauge_make(const gauge_make_t *make, const int dims[4], const double *links,
                         double plaquette, double link_trace);

/* One LIME record, appended. */
void gauge_put_record(gauge_bytes_t *out, const char *type, const void *data, size_t n);
void gauge_put(gauge_bytes_t *out, const void *data, size_t n);

/* A random SU(3) lattice: matrices of unit rows, near one where spread is small. malloc'd. */
double *gauge_random(const int dims[4], double spread, unsigned seed);
/* Average plaquette and link trace, the slow and obvious way. */
void gauge_sums(const int dims[4], const double *links, double *plaquette, double *link_trace);

#endif
