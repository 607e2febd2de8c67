/*
 * h5file.h: spinor fields in HDF5 files: right-hand sides, solutions and propagators.
 *
 * Layout     dataset "field" [rhs][t][z][y][x][spin][colour] of compounds {r, i}, 32 or 64 bit
 *            floats; dataset "columns" [rhs], one compound a right-hand side; everything else in
 *            attributes of the root group. client/README.md describes each.
 * Memory     Host; fields pass one right-hand side at a time, in wire order (x fastest of the sites,
 *            4 spins, 3 colours, colour fastest, complex interleaved), so that a file of any number
 *            of right-hand sides needs room for one.
 * Writing    The file grows under a temporary name beside its own and is renamed by commit; whatever
 *            was under the name before stays until then.
 * Reading    Files by other programs are welcome: only the field and its shape are required. Numbers
 *            of either byte order and precision are converted.
 * Errors     QK_IO_ERROR, QK_BAD_FORMAT, QK_BAD_GEOMETRY, QK_TOO_LARGE, QK_BAD_ARGUMENT,
 *            QK_UNSUPPORTED (version), QK_NO_MEMORY; the text names file, object, what was expected
 *            and what was found.
 * Threads    One file belongs to one thread at a time.
 */
#ifndef QK_CLIENT_H5FILE_H
#define QK_CLIENT_H5FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"

enum { QK_H5FILE_VERSION = 1, QK_H5FILE_MAX_EXTENT = 1 << 16 };

/* What is the same for all columns. NaN: not known; an empty string likewise. */
typedef struct qk_h5meta {
  int32_t dims[4];        /* x, y, z, t; required */
  char kind[16];          /* "propagator", "source", "solution" */
  char basis[32];         /* gamma basis by name */
  char normalisation[16]; /* "mass": solutions of M = (4 + m) - D/2 + ... */
  double kappa, mass, csw;
  double boundary[8]; /* phases for x, y, z, t as re, im pairs */
  double plaquette;
  double tolerance;     /* relative residual that was asked for */
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
  int64_t iterations;
  double seconds;
  char source[16];      /* "point", "wall", "z2", "z4", "upload", "sequential", "file" */
  int32_t site[4];      /* x, y, z, t of a source; -1 where it has none */
  int32_t spin, colour; /* -1: not of a single component */
  uint64_t seed;
  int32_t momentum[3]; /* of the source's phase */
  int32_t every;       /* noise on time slices t, t + every, ...; 0: as t says */
  int32_t gamma;       /* of a sequential source; -1: none */
} qk_h5column_t;

typedef struct qk_h5file qk_h5file_t;

/* All of meta unknown: NaN, empty, dims zero. */
void qk_h5meta_init(qk_h5meta_t *meta);
/* Status OK, no source, numbers unknown. */
void qk_h5column_init(qk_h5column_t *column);

/* bits: 32 or 64; nrhs >= 1. Nothing is left behind on error. */
qk_status_t qk_h5file_create(const char *path, const qk_h5meta_t *meta, int bits, int64_t nrhs,
                             qk_h5file_t **file, qk_err_t *err);
/* data: qk_h5file_rhs_bytes of the precision of the file. Any order of rhs; rewriting replaces. */
qk_status_t qk_h5file_write(qk_h5file_t *file, int64_t rhs, const void *data, qk_err_t *err);
qk_status_t qk_h5file_set_column(qk_h5file_t *file, int64_t rhs, const qk_h5column_t *column,
                                 qk_err_t *err);
/* Makes the file appear under its name. Close it after this all the same. */
qk_status_t qk_h5file_commit(qk_h5file_t *file, qk_err_t *err);

/* dataset NULL: "field", or the only dataset of seven (or, one right-hand side, six) dimensions. */
qk_status_t qk_h5file_open(const char *path, const char *dataset, qk_h5file_t **file,
                           qk_err_t *err);
const qk_h5meta_t *qk_h5file_meta(const qk_h5file_t *file);
int64_t qk_h5file_nrhs(const qk_h5file_t *file);
int qk_h5file_bits(const qk_h5file_t *file);
/* Bytes of one right-hand side at this precision. */
size_t qk_h5file_rhs_bytes(const qk_h5file_t *file, int bits);
/* One right-hand side as 32 or 64 bit floats. */
qk_status_t qk_h5file_read(qk_h5file_t *file, int64_t rhs, int bits, void *data, qk_err_t *err);
/* QK_NOT_FOUND where the file has no columns. */
qk_status_t qk_h5file_column(qk_h5file_t *file, int64_t rhs, qk_h5column_t *column, qk_err_t *err);

/* NULL-safe; a file that was not committed vanishes. */
void qk_h5file_close(qk_h5file_t *file);

#endif
