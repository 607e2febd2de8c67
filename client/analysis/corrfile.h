/*
 * corrfile.h: files of correlators (HDF5). README.md describes them for other readers.
 *
 *   /CONFIG/QUARK/SOURCE      a group for each piece: the correlators of one source on one
 *   configuration attributes              everything that the numbers depend on momenta
 *   int32[momentum][3] NAME of each channel    complex128[momentum][T], t counted from the source
 *
 * Writing    A piece is written to a file of its own, under a temporary name until it is complete.
 *            Files are merged into one in the same way. An older file of that name stays until
 *            then.
 * Errors     QK_IO_ERROR, QK_BAD_FORMAT, QK_UNSUPPORTED (version), QK_NOT_FOUND (a piece),
 *            QK_BAD_ARGUMENT, QK_NO_MEMORY. The text names file, object and cause.
 * Threads    One file belongs to one thread at a time.
 */
#ifndef QK_CLIENT_CORRFILE_H
#define QK_CLIENT_CORRFILE_H

#include <stdbool.h>

#include "client/analysis/channels.h"
#include "client/files/h5meta.h"
#include "client/files/wall.h"

enum { QK_CORRFILE_VERSION = 1, QK_CORR_NAME = 128 };

/* Unknown numbers are NaN; unknown texts are empty. */
typedef struct qk_corrmeta {
  char config[QK_CORR_NAME], quark[QK_CORR_NAME], label[QK_CORR_NAME]; /* names of the groups */
  char channels[4096]; /* names, separated by a blank, in the order of the numbers */
  char name[64];       /* of the source in a workflow */
  char source[QK_CORR_NAME], smear[QK_CORR_NAME], links[QK_CORR_NAME], sink[QK_CORR_NAME];
  int32_t origin[4], dims[4];    /* x, y, z, t */
  char action[QK_OPERATOR_TEXT]; /* of the operator, canonical (h5meta.h) */
  int32_t flavour;               /* of the quark, as in h5meta.h */
  int32_t site_reals;            /* of the fields that were contracted */
  double kappa, mass, csw, boundary[8], plaquette;
  char gauge[1024], digest[40], normalisation[16], program[64];
  double tolerance, residual;         /* required; the largest of the 12 columns */
  double tolerance_abs, tolerance_hq; /* likewise required; NaN: not asked for */
  /* Of all-mode averaging (ama.h), else empty: "sloppy", "exact", "correction", "mean", "error";
   * "32:0.0001 exact 1:1e-10"; the seed; the offset of its first source as "x,y,z,t" */
  char part[16], ama[QK_CORR_NAME], seed[24], offset[64];
  int32_t iterations; /* the largest number of the 12 columns */
  double seconds;
} qk_corrmeta_t;

typedef struct qk_corrpiece {
  qk_corrmeta_t meta;
  uint32_t nmom;
  int32_t (*momentum)[3];
  int n; /* channels */
  char (*channel)[QK_CHANNEL_NAME];
  double complex *c; /* [channel][momentum][T] */
  qk_wall_t wall;    /* sums of domain wall fermions, of the 12 columns; nt 0: none */
} qk_corrpiece_t;

/* Sets everything to unknown: NaN, empty, zero; site_reals to QK_H5_SITE_REALS. */
void qk_corrmeta_init(qk_corrmeta_t *meta);

/* Sets channel and n from meta.channels. Allocates momentum and c and fills them with zeros. */
qk_status_t qk_corrpiece_create(const qk_corrmeta_t *meta, uint32_t nmom, qk_corrpiece_t *piece,
                                qk_err_t *err);
void qk_corrpiece_fini(qk_corrpiece_t *piece);
/* The correlator of a channel at a momentum: T numbers. NULL: the piece does not have it. */
const double complex *qk_corrpiece_find(const qk_corrpiece_t *piece, const char *channel,
                                        const int32_t momentum[3]);

/* Writes a file with this piece alone. */
qk_status_t qk_corrfile_write(const char *path, const qk_corrpiece_t *piece, qk_err_t *err);

/* The same piece by piece. The file appears with commit; create and commit set nothing up and take
 * the writer down where they fail. destroy (NULL-safe) before commit leaves nothing. */
typedef struct qk_corrwriter qk_corrwriter_t;
qk_status_t qk_corrwriter_create(const char *path, qk_corrwriter_t **writer, qk_err_t *err);
qk_status_t qk_corrwriter_add(qk_corrwriter_t *writer, const qk_corrpiece_t *piece, qk_err_t *err);
qk_status_t qk_corrwriter_commit(qk_corrwriter_t *writer, qk_err_t *err);
void qk_corrwriter_destroy(qk_corrwriter_t *writer);

/* Merges the pieces of the n files `parts`, and those of a file at path, into one file at path. Of
 * pieces with the same name the first one in parts counts. part: the temporary name, on the same
 * file system. */
qk_status_t qk_corrfile_merge(const char *path, const char *part, int n, const char *const *parts,
                              qk_err_t *err);

typedef struct qk_corrfile qk_corrfile_t;
qk_status_t qk_corrfile_open(const char *path, qk_corrfile_t **file, qk_err_t *err);
void qk_corrfile_close(qk_corrfile_t *file); /* NULL-safe */
/* True if path is an HDF5 file of this format. */
bool qk_corrfile_is(const char *path);

int qk_corrfile_count(const qk_corrfile_t *file);
/* Reads piece i. The caller frees it by qk_corrpiece_fini. */
qk_status_t qk_corrfile_read(const qk_corrfile_t *file, int i, qk_corrpiece_t *piece,
                             qk_err_t *err);

#endif
