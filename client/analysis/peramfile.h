/*
 * peramfile.h: files of perambulators (HDF5), which grow time slice by time slice. client/README.md
 * describes them for other readers.
 *
 *   perambulator   complex [t0][spin0][n0][t][spin][n]
 *   t_source       int32 [t0], the time slices of the sources
 *   complete       uint8 [t0]: 1 where all numbers of a time slice are there
 *   true_residual  float64 [t0][spin0][n0], NaN: not solved
 *   attributes     everything that the numbers depend on
 *
 * Until it is complete a file has the name PATH.part. Its datasets have their place from the
 * beginning, so that a process that dies while it writes loses what it wrote of one time slice.
 *
 * Errors    QK_IO_ERROR, QK_BAD_FORMAT, QK_UNSUPPORTED (version), QK_DENIED (numbers in other
 *           files), QK_BAD_ARGUMENT: the file is of another calculation; the text names the
 *           attribute. QK_NO_MEMORY.
 * Threads   One file belongs to one thread at a time, and by its lock to one process.
 */
#ifndef QK_CLIENT_PERAMFILE_H
#define QK_CLIENT_PERAMFILE_H

#include "client/files/h5meta.h"
#include "daemon/base/err.h"

enum { QK_PERAMFILE_VERSION = 1, QK_PERAM_SPINS = 4 };

/* Unknown numbers are NaN, unknown texts empty. */
typedef struct qk_perammeta {
  int32_t dims[4];                         /* x, y, z, t */
  int32_t count;                           /* vectors of a time slice */
  int32_t flavour;                         /* as in h5meta.h */
  char vectors[72];                        /* their name with the daemon */
  char vectors_digest[32];                 /* of those that a client has sent */
  double lowest, highest, vector_residual; /* what the daemon says of them: tells sets apart */
  char action[QK_OPERATOR_TEXT];           /* of the operator, canonical (h5meta.h) */
  char basis[32], normalisation[16];
  char gauge[1024], digest[40], program[64]; /* program: of who began the file */
  double boundary[8], plaquette;
  double tolerance, tolerance_abs, tolerance_hq;
} qk_perammeta_t;

/* Everything unknown, or zero. */
void qk_perammeta_init(qk_perammeta_t *meta);

typedef struct qk_peramfile qk_peramfile_t;

/* The unfinished file of that name is gone on with if it is of the same calculation; if there is
 * none one begins. t: n different time slices, in this order. bits: 32 or 64, of real numbers. */
qk_status_t qk_peramfile_open(const char *path, const qk_perammeta_t *meta, int n,
                              const int32_t t[], int bits, qk_peramfile_t **file, qk_err_t *err);
/* Whether the finished file is there, of the same calculation. QK_OK with *is false: there is
 * none. */
qk_status_t qk_peramfile_is_done(const char *path, const qk_perammeta_t *meta, int n,
                                 const int32_t t[], int bits, bool *is, qk_err_t *err);
bool qk_peramfile_has(const qk_peramfile_t *file, int i); /* all numbers of time slice t[i] */
/* What belongs to source n0, spin0 on time slice t[i]: [t][spin][n] complex numbers. */
qk_status_t qk_peramfile_write(qk_peramfile_t *file, int i, int spin0, int n0, const void *data,
                               double residual, qk_err_t *err);
/* All of time slice t[i] has been written: it is on the disk before it is marked. */
qk_status_t qk_peramfile_complete(qk_peramfile_t *file, int i, qk_err_t *err);
/* All time slices are complete: the file gets its name. Then, or after a failure, close. */
qk_status_t qk_peramfile_commit(qk_peramfile_t *file, qk_err_t *err);
void qk_peramfile_close(qk_peramfile_t *file); /* NULL-safe; what is unfinished stays */

#endif
