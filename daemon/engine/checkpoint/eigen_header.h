/*
 * eigen_header.h: the beginning of a file of eigenvectors, version 1, or 2 where they are
 * compressed (eigen/compressed.h). Little endian; unsigned integers of 32 bits unless marked u64;
 * reals as IEEE doubles (f64).
 *
 *   "QKEIGEN\n"  version  header bytes  file bytes (u64)
 *   gauge digest (u64)  phase [4][re, im] (f64)
 *   operator [4096]: action and parameters as canonical text (operator_text.h), then zeros
 *   links [256]: smearing of the links of a Laplacian, or "digest:" and 16 hexadecimal digits of
 *     vectors that a client sent in its place, printable ASCII, then zeros
 *   kind  count  space  order  restarts, as they were asked for  tolerance (f64)
 *   extents x y z t
 *   complete (1) or a state (0)  full: all sites (1), the even ones (0)
 *   vectors: slices or flavours of an eigenvector  planes  blocks  numbers
 *   of a state: window  top  best (f64)  order  since  restarts  windows  converged
 *               columns drawn (u64)
 *   version 2, else zeros: vectors of the basis  extents of its aggregates x y z t  based (1:
 *     blocks begin with the basis; 0: a state before there is one)  order, window, top (f64) of the
 *     polynomial
 *   colours: of colour vectors (1: 3 components) or of spinors (0)
 *   zeros, and in the last 8 bytes XXH3_64bits of all bytes before
 *
 * Then a table: `numbers` reals (f64; complete: eigenvalue and residual of each vector, of a
 * Laplacian [t][vector]; a state: of each vector of all blocks but the last its Ritz value, of a
 * Laplacian as complete, for the first `converged` time slices), a checksum (u64) of each block,
 * XXH3_64bits of these, and zeros up to a multiple of 4096. Then the blocks, of eight eigenvectors:
 *
 *   [plane][vector][site][column][12 components, of colour vectors and of a Laplacian 3][re, im]
 *   as float
 *
 * sites of the lattice in global lexicographic order, x fastest. The sum of the planes are the
 * numbers: one for single precision, two for double. Where blocks begin with the basis, those after
 * it are coefficients, of eight eigenvectors or of what a state has:
 *
 *   [plane][aggregate][column][chirality][vector of the basis][re, im] as float
 *
 * aggregates in global lexicographic order. The checksum of a block is the sum modulo 2^64
 * over its planes, vectors and sites n of XXH3_64bits_withSeed(bytes of the site, n + 2^56 *
 * (vectors * plane + vector)).
 *
 * Pure. A header that decodes describes a file of its size.
 */
#ifndef QK_ENGINE_EIGEN_HEADER_H
#define QK_ENGINE_EIGEN_HEADER_H

#include "daemon/engine/checkpoint/mg_file.h"
#include "daemon/engine/eigen/compressed.h"

enum {
  QK_EIGEN_HEADER_BYTES = 8192,
  QK_EIGEN_FILE_VERSION = 1,
  QK_EIGEN_FILE_COMPRESSED = 2, /* version */
  QK_EIGEN_FILE_ALIGNED = 4096,
  QK_EIGEN_FILE_BLOCKS = 2048,
  QK_EIGEN_FILE_NUMBERS = 2048 * QK_EIGEN_MAX,
  QK_EIGEN_LINKS = 256,
  QK_EIGEN_IS_LAPLACIAN = 2 /* EigenKind of quark.proto */
};

/* What the vectors are of. */
typedef struct qk_eigen_problem {
  int kind; /* EigenKind of quark.proto */
  int count, space, order, restarts;
  double tol;
  char links[QK_EIGEN_LINKS];
  qk_coherent_cut_t cut; /* of compressed vectors */
} qk_eigen_problem_t;

static inline bool qk_eigen_is_compressed(const qk_eigen_problem_t *p) {
  return p->cut.n > 0;
}

/* Vectors that a client has sent: `links` is "digest:" and 16 hexadecimal digits. */
static inline bool qk_eigen_is_given(const qk_eigen_problem_t *p) {
  return p->links[0] == 'd';
}

static inline bool qk_eigen_is_laplacian(const qk_eigen_problem_t *p) {
  return p->kind == QK_EIGEN_IS_LAPLACIAN;
}

typedef struct qk_eigen_header {
  int64_t file_bytes;
  qk_mg_identity_t identity; /* its seed is 0 */
  qk_eigen_problem_t problem;
  int dims[4];
  bool complete, full, based;
  bool colours;                   /* of an operator on colour vectors */
  qk_chebyshev_params_t smoother; /* of compressed vectors, where `based` */
  int vectors, planes, nblock, numbers;
  qk_lanczos_state_t state; /* nblock: as above */
} qk_eigen_header_t;

/* Whether block b has coefficients. */
bool qk_eigen_is_coefficients(const qk_eigen_header_t *h, int block);
/* Floats of a site, or of an aggregate, of one plane and vector; bytes of the table, of a block;
 * where one begins. */
int qk_eigen_site_floats(const qk_eigen_header_t *h, int block);
int64_t qk_eigen_table_bytes(const qk_eigen_header_t *h);
int64_t qk_eigen_block_bytes(const qk_eigen_header_t *h, int block);
int64_t qk_eigen_block_at(const qk_eigen_header_t *h, int block);

/* Sets file_bytes, too. */
void qk_eigen_header_encode(qk_eigen_header_t *h, uint8_t bytes[QK_EIGEN_HEADER_BYTES]);
/* QK_BAD_FORMAT, QK_UNSUPPORTED (version), QK_BAD_CHECKSUM; *h is then undefined. */
qk_status_t qk_eigen_header_decode(const uint8_t bytes[QK_EIGEN_HEADER_BYTES], qk_eigen_header_t *h,
                                   qk_err_t *err);

/* The table as bytes of the file, and back; sum: [nblock]. QK_BAD_CHECKSUM; QK_BAD_FORMAT: a number
 * that is not finite. */
void qk_eigen_table_encode(const qk_eigen_header_t *h, const double *number, const uint64_t *sum,
                           uint8_t *bytes);
qk_status_t qk_eigen_table_decode(const qk_eigen_header_t *h, const uint8_t *bytes, double *number,
                                  uint64_t *sum, qk_err_t *err);

/* QK_OK if the file is of the same links, operator (but for a Laplacian, which knows links alone)
 * and problem as `wanted`; else QK_NOT_FOUND and what differs. */
qk_status_t qk_eigen_header_match(const qk_eigen_header_t *h, const qk_eigen_header_t *wanted,
                                  qk_err_t *err);

#endif
