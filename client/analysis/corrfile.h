/*
 * corrfile.h: files of correlators (HDF5). README.md describes them for other readers.
 *
 *   /CONFIG/QUARK/SOURCE      one group a piece: what one source gave on one configuration
 *     attributes              everything that the numbers depend on
 *     momenta                 int32[momentum][3]
 *     NAME of each channel    complex128[momentum][T], t counted from the source
 *
 * Writing    A piece is written to a file of its own, which is complete before it has its name; files
 *            are merged into one the same way. What was under the name before stays until then.
 * Errors     QK_IO_ERROR, QK_BAD_FORMAT, QK_UNSUPPORTED (version), QK_NOT_FOUND (a piece),
 *            QK_BAD_ARGUMENT, QK_NO_MEMORY; the text names file, object and cause.
 * Threads    One file belongs to one thread at a time.
 */
#ifndef QK_CLIENT_CORRFILE_H
#define QK_CLIENT_CORRFILE_H

#include <stdbool.h>

#include "client/analysis/channels.h"

enum { QK_CORRFILE_VERSION = 1, QK_CORR_NAME = 128 };

/* NaN, empty: not known. */
typedef struct qk_corrmeta {
  char config[QK_CORR_NAME], quark[QK_CORR_NAME], label[QK_CORR_NAME]; /* names of the groups */
  char channels[4096]; /* names, separated by a blank, in the order of the numbers */
  char name[64];       /* of the source in a workflow */
  char source[QK_CORR_NAME], smear[QK_CORR_NAME], links[QK_CORR_NAME], sink[QK_CORR_NAME];
  int32_t origin[4], dims[4]; /* x, y, z, t */
  double kappa, mass, csw, boundary[8], plaquette;
  char gauge[1024], digest[40], normalisation[16], program[64];
  double tolerance, residual; /* asked for; the largest of the 12 columns */
  int32_t iterations;         /* the most of a column */
  double seconds;
} qk_corrmeta_t;

typedef struct qk_corrpiece {
  qk_corrmeta_t meta;
  uint32_t nmom;
  int32_t (*momentum)[3];
  int n; /* channels */
  char (*channel)[QK_CHANNEL_NAME];
  double complex *c; /* [channel][momentum][T] */
} qk_corrpiece_t;

/* All unknown: NaN, empty, zero. */
void qk_corrmeta_init(qk_corrmeta_t *meta);

/* Sets channel and n from meta.channels; allocates momentum and c, zero. */
qk_status_t qk_corrpiece_create(const qk_corrmeta_t *meta, uint32_t nmom, qk_corrpiece_t *piece,
                                qk_err_t *err);
void qk_corrpiece_fini(qk_corrpiece_t *piece);
/* The correlator of a channel at a momentum, T numbers; NULL: the piece has none. */
const double complex *qk_corrpiece_find(const qk_corrpiece_t *piece, const char *channel,
                                        const int32_t momentum[3]);

/* A file with this piece alone. */
qk_status_t qk_corrfile_write(const char *path, const qk_corrpiece_t *piece, qk_err_t *err);

/* One file at path with all pieces of `parts` and those of path, if there is one; of pieces of the same
 * name the first one in parts counts. part: name for the unfinished file, on the same file system. */
qk_status_t qk_corrfile_merge(const char *path, const char *part, int n, const char *const *parts,
                              qk_err_t *err);

typedef struct qk_corrfile qk_corrfile_t;
qk_status_t qk_corrfile_open(const char *path, qk_corrfile_t **file, qk_err_t *err);
void qk_corrfile_close(qk_corrfile_t *file); /* NULL-safe */
/* Whether path is an HDF5 file that says it is one of these. */
bool qk_corrfile_is(const char *path);

int qk_corrfile_count(const qk_corrfile_t *file);
/* "CONFIG/QUARK/SOURCE" of piece i. */
const char *qk_corrfile_name(const qk_corrfile_t *file, int i);
/* By number. The caller ends *piece by qk_corrpiece_fini. */
qk_status_t qk_corrfile_read(const qk_corrfile_t *file, int i, qk_corrpiece_t *piece,
                             qk_err_t *err);
/* Index of the piece, or -1. */
int qk_corrfile_find(const qk_corrfile_t *file, const char *config, const char *quark,
                     const char *label);

#endif
