/*
 * quark_eigen.h: the part of quark.h about eigenvectors, which the daemon computes and keeps under
 * a name beside a setup: for deflation, as sources, to be downloaded.
 *
 * Programs include quark.h. What its top says of threads, errors and loss holds here too. A daemon
 * that knows nothing of eigenvectors is not asked: QUARK_UNSUPPORTED.
 */
#ifndef QUARK_EIGEN_H
#define QUARK_EIGEN_H

#include "quark.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum quark_eigen_kind {
  QUARK_EIGEN_NORMAL = 0,   /* Mhat^+ Mhat, on even sites */
  QUARK_EIGEN_GAMMA5 = 1,   /* gamma_5 M: those of least modulus */
  QUARK_EIGEN_LAPLACIAN = 2 /* minus the Laplacian in space, of each time slice by itself */
} quark_eigen_kind_t;

/* "normal", "gamma5", "laplacian"; NULL for others. The text is static. */
QUARK_API const char *quark_eigen_kind_name(quark_eigen_kind_t kind);
QUARK_API bool quark_eigen_kind_parse(const char *name, quark_eigen_kind_t *kind);

/* Texts are borrowed until quark_eigen returns. */
typedef struct quark_eigen_params {
  const char *name;  /* 1 to 64 letters, digits, '.', '_', '-', the first a letter or digit */
  const char *setup; /* NULL: the one in the options of the connection */
  quark_eigen_kind_t kind;
  uint32_t count; /* lowest ones, 1 to 4096; LAPLACIAN: of each time slice */
  double tol;     /* |A v - lambda v| over the largest eigenvalue, of each. Default 1e-8 */
  /* Vectors of the Krylov space, order of the Chebyshev polynomial (even), restarts at most; 0, the
   * default: chosen. */
  uint32_t space, order, restarts;
  /* NORMAL: so many of the lowest, a multiple of 8 up to 512 and less than count, are a basis of
   * all, which are compressed. 0, the default: they are kept whole. block: extents of what the
   * basis is cut into, x first, a divisor of the lattice's (x: an even one); 0, the default: 4,
   * or 2 where that is none. */
  uint32_t basis, block[4];
  quark_smearing_t links; /* LAPLACIAN: of the links; alpha and steps do not count. Default: none */
  /* LAPLACIAN: vectors that were sent, "field:NUMBER" of this connection or "digest:" and 16
   * hexadecimal digits. NULL, the default: they are computed. */
  const char *field;
  uint64_t deadline_ms; /* as in quark_params_t, and so are the next two */
  int priority;
  uint64_t detach_ms;
} quark_eigen_params_t;

QUARK_API void quark_eigen_params_init(quark_eigen_params_t *params);

/* Has eigenvectors computed: a request with one result, which is waited for and downloaded as RHS
 * 0. The download has *bytes bytes (bytes may be NULL): pairs of doubles, eigenvalue and residual,
 * in ascending order; LAPLACIAN: [t][count] of them. In the result iterations are restarts, and
 * true_residual is the largest residual. The vectors stay when the request is released; if it does
 * not end well there are none. Errors: those of quark_submit, QUARK_BAD_ARGUMENT (the name is
 * taken), QUARK_BUSY (there are as many names as the setup, or the user, may have).
 *
 * With `basis` the daemon keeps as many vectors and, of each of `count`, coefficients of these in
 * blocks of the lattice, in place of `count` vectors. The lowest `basis` are as exact as without;
 * the others are the best vectors that there are in that space, and their residuals, which are
 * measured, may be larger than tol. An older daemon is not asked: QUARK_UNSUPPORTED.
 *
 * To have solutions projected onto the lowest project_count of LAPLACIAN (distillation),
 * quark_submit with `project` and `project_count`, of generated sources: in place of a solution x
 * tau[t][spin][m] = sum_x v_m(t,x)^+ x(t,x), field_bytes of complex numbers of dtype. An older
 * daemon is not asked: QUARK_UNSUPPORTED.
 *
 * To download vectors, or solve for them, quark_submit with source QUARK_VECTOR: `vectors` of the
 * params is the name, `vector` of a column the number from the lowest; work QUARK_WORK_SMEAR gives
 * them as they are. NORMAL: zero on odd sites (parity QUARK_PARITY_EVEN leaves those out).
 * LAPLACIAN: of slice t (-1: of each), in `spin`. Actions with a fifth dimension: its slice
 * `slice`. */
QUARK_API quark_code_t quark_eigen(quark_connection_t *conn, const quark_eigen_params_t *params,
                                   uint64_t *request, uint64_t *bytes, quark_error_t *err);

/* The values and residuals of a set that is kept already, which are not computed again: a request
 * and a download as those of quark_eigen. Of the params name, setup, deadline_ms, priority and
 * detach_ms have a meaning. It waits for a set that is RETURNING. Errors: QUARK_NOT_FOUND,
 * QUARK_BUSY (it is being made), QUARK_UNSUPPORTED (an older daemon). */
QUARK_API quark_code_t quark_eigen_values(quark_connection_t *conn,
                                          const quark_eigen_params_t *params, uint64_t *request,
                                          uint64_t *bytes, quark_error_t *err);

/* ---- vectors of one's own ----
 *
 * Eigenvectors of the Laplacian that another program has computed, or other vectors in their place:
 * quark_field_open with kind QUARK_FIELD_VECTORS and their `count`, 1 to 4096, then quark_upload of
 * complex numbers [t][n][z][y][x][colour], and quark_wait, which tells their digest and the largest
 * deviation of a norm squared from 1 (`unitarity`). QUARK_BAD_ARGUMENT names the first number that
 * is NaN or Inf, or the vector whose norm squared is off by more than 1e-4. In parts it goes as
 * links do: a part has all vectors of its time slices.
 *
 * quark_eigen with `field` makes a set of them: kind LAPLACIAN, count as that of the field; space,
 * order, restarts and links are 0. tol is how far from 0 the largest element of V^+ V - 1 may be on
 * a time slice, else it ends with QUARK_BAD_ARGUMENT, slice and number. They stay as they are, in
 * the precision in which they came (of 64 bit the first 48). Their eigenvalues are not known: those
 * of the result are 0, and the residual of a vector is the largest element of its row of
 * |V^+ V - 1|. The field may then be released. Errors: also QUARK_NOT_FOUND, QUARK_BAD_GEOMETRY
 * (another lattice than the setup's).
 */

/* As quark_gauge_digest, of numbers [sites][colour] of vectors; site[i] counts the sites of all:
 * (t count + n) sites of a time slice + site. */
QUARK_API void quark_vectors_digest(const void *vectors, quark_dtype_t dtype, const uint64_t *site,
                                    size_t sites, uint64_t *sum);

/* What the daemon told last; count 0: nothing yet. seconds: of the engine that is at it. */
typedef struct quark_eigen_progress {
  uint32_t restart, converged, count; /* eigenvalues that have converged, of count */
  double seconds;
} quark_eigen_progress_t;

/* QUARK_NOT_FOUND: no such request. Each QUARK_EVENT_PROGRESS of the request says that there is
 * another one. */
QUARK_API quark_code_t quark_eigen_watch(quark_connection_t *conn, uint64_t request,
                                         quark_eigen_progress_t *progress, quark_error_t *err);

/* Drops the vectors of a name, of the setup (NULL: as in the params). Errors: QUARK_NOT_FOUND,
 * QUARK_DENIED (another user's), QUARK_BUSY (they are being made, or RHS that use them have not
 * ended). */
QUARK_API quark_code_t quark_eigen_drop(quark_connection_t *conn, const char *setup,
                                        const char *name, quark_error_t *err);

typedef enum quark_eigen_state {
  QUARK_EIGEN_MAKING = 0, /* their request waits or runs */
  QUARK_EIGEN_KEPT = 1,
  QUARK_EIGEN_RETURNING = 2 /* the engine was lost, and the next one reads them */
} quark_eigen_state_t;

/* Unknown numbers are NaN or 0; unknown texts are empty. */
typedef struct quark_eigen_report {
  char name[72], user[72]; /* who had them made */
  char field[32];          /* "digest:" and 16 digits of what was sent; "": they were computed */
  quark_eigen_state_t state;
  quark_eigen_kind_t kind;
  uint32_t count;
  double tol, lowest, highest, residual, seconds; /* residual: the largest; seconds: they took */
  uint64_t device_bytes, host_bytes;              /* of all ranks */
  uint32_t basis, block[4];                       /* of compressed ones; else 0 */
  char unwritten[160]; /* why they are on no disk, and go with their engine; "": nothing is wrong */
  quark_smearing_t links; /* LAPLACIAN: of the links, as in the params */
  /* GAMMA5 of overlap fermions: zero modes of chirality +1 and -1, whose difference is the index;
   * -1: not known, or of another action */
  int32_t zero_plus, zero_minus;
} quark_eigen_report_t;

enum { QUARK_EIGEN_NAMES = 16 };

/* Those of a setup (NULL: as in the params). */
QUARK_API quark_code_t quark_eigen_list(quark_connection_t *conn, const char *setup,
                                        quark_eigen_report_t report[QUARK_EIGEN_NAMES],
                                        uint32_t *count, quark_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
