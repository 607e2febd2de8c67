/*
 * h5meta.h: the metadata of a field file: its attributes, and one column a right-hand side.
 *
 * Plain structs, which the caller fills and h5file.h and scidac.h write and read, with the table of
 * their members. HDF5 is not needed to use them. client/README.md says how they stand in the file.
 */
#ifndef QK_CLIENT_H5META_H
#define QK_CLIENT_H5META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/action/operator_text.h"
#include "proto/limits.h"
#include "proto/status.h"

/* Of the fields that these programs read and write: usual ones, those of doublets, which have two
 * flavours, and colour vectors of staggered fermions, which have no spin. */
enum {
  QK_H5_SITE_REALS = QK_SITE_REALS,
  QK_H5_TWO_SITE_REALS = 2 * QK_SITE_REALS,
  QK_H5_COLOUR_SITE_REALS = QK_COLOUR_REALS
};
enum { QK_H5FILE_MAX_EXTENT = 1 << 16 }; /* sites in one direction, in any format */
enum { QK_H5FILE_MAX_SLICES = 1 << 10 }; /* of a fifth dimension */

/* What all columns have in common. Unknown numbers are NaN; unknown texts are empty. */
typedef struct qk_h5meta {
  int32_t dims[4];               /* x, y, z, t; required */
  char kind[16];                 /* "propagator", "source", "solution" */
  char basis[32];                /* gamma basis by name */
  char normalisation[16];        /* "mass": solutions of M = (4 + m) - D/2 + ... */
  char action[QK_OPERATOR_TEXT]; /* of the operator, canonical: "wilson-clover;mass=0.1;csw=1" */
  double kappa, mass, csw;       /* NaN: the action has none */
  int32_t flavour;               /* 1 or -1; 0: the action has none */
  int32_t site_reals;            /* real numbers of the field at a site */
  int32_t slices;     /* of a fifth dimension; 0: the fields have four. The attribute axes */
  double boundary[8]; /* phases for x, y, z, t as re, im pairs */
  double plaquette;
  /* What was asked of the residuals: relative, absolute, heavy-quark; NaN: nothing */
  double tolerance, tolerance_abs, tolerance_hq;
  char source[128];     /* as given to quarkctl: "point:0,0,0,0", or the name of the input file */
  char smear[128];      /* Gaussian smearing of the source in words (smearing.h) */
  char links[128];      /* smearing of the links in it */
  char sequential[128]; /* "gamma=g5,t=8,p=0:0:0": of a propagator through another */
  char gauge[1024];     /* path of the configuration as the daemon knows it */
  char digest[40];      /* of the links, hexadecimal */
  char program[64];     /* name and version of the writer; filled in by create */
} qk_h5meta_t;

/* What belongs to one right-hand side. */
typedef struct qk_h5column {
  qk_status_t status;
  double true_residual; /* |b - M x| / |b| in double; NaN in a file of sources */
  double hq_residual;   /* heavy-quark residual; NaN: not asked for */
  int64_t iterations;
  double seconds;
  char source[16];      /* "point", "wall", "z2", "z4", "upload", "sequential", "file" */
  int32_t site[4];      /* x, y, z, t of a source; -1 where it has none */
  int32_t spin, colour; /* -1: not of a single component */
  uint64_t seed;
  int32_t momentum[3]; /* of the source's phase */
  int32_t every;       /* noise on time slices t, t + every, ...; 0: as t says */
  int32_t gamma;       /* of a sequential source; -1: none */
  int32_t flavour;     /* of a doublet's source: 1 upper, -1 lower; 0: both, or not known */
} qk_h5column_t;

/* Sets everything to unknown: NaN, empty, dims zero; site_reals to QK_H5_SITE_REALS, which is what
 * files without this attribute have. */
void qk_h5meta_init(qk_h5meta_t *meta);
/* Sets status OK, no source, and all numbers to unknown. */
void qk_h5column_init(qk_h5column_t *column);

/* ---- the members of qk_h5meta_t by name: files are written and read from this table ---- */

typedef enum qk_h5kind {
  QK_H5_TEXT, /* char[]; empty: not known */
  QK_H5_REAL, /* double; NaN: not known */
  QK_H5_INT   /* int32_t */
} qk_h5kind_t;

typedef struct qk_h5attr {
  const char *name;
  qk_h5kind_t kind;
  size_t offset;
  int count; /* characters with the final zero, or numbers */
} qk_h5attr_t;

#define QK_H5ATTR(type, name, kind, count)                                                         \
  { #name, kind, offsetof(type, name), count }
#define QK_H5ATTR_TEXT(type, name) QK_H5ATTR(type, name, QK_H5_TEXT, (int)sizeof((type *)0)->name)

const qk_h5attr_t *qk_h5meta_members(int *n);
/* The status of that name; false: there is none. */
bool qk_h5column_status(const char *name, qk_status_t *status);

#endif
