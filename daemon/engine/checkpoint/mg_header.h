/*
 * mg_header.h: the first QK_MG_HEADER_BYTES of a checkpoint of multigrid, version 3. Little endian;
 * unsigned integers of 32 bits unless marked u64; reals as IEEE doubles (f64).
 *
 *   "QKMGSET\n"  version  header bytes  file bytes (u64)
 *   gauge digest (u64)  phase [4][re, im] (f64)  seed (u64)
 *   operator [4096]: action and parameters as canonical text (operator_text.h), then zeros
 *   extents x y z t
 *   levels  deflated vectors in the file  and requested
 *   4 x { block [4]  vectors  test vectors  null vectors of the file  setup iterations
 *         setup passes + 1  setup precision  setup tolerance (f64) }
 *   sections
 *   12 x { kind  level  precision  columns  components  0  sites  offset  bytes  checksum
 *          (u64 from sites on) }
 *   256 x { eigenvalue  residual } (f64)
 *   |M v| / |v| of level 0 and convergence of the last setup from noise (f64); 0: not known
 *   origin [1024] of an evolved setup: printable ASCII, then zeros
 *   zeros, and in the last 8 bytes XXH3_64bits of all bytes before
 *
 * Version 1 had the name of the operator, mass and csw, and 8192 bytes; version 2 no test vectors,
 * and as many null vectors as vectors. They are not read: a setup replaces them.
 *
 * Sections: the orthonormal vectors of each prolongator, on level l; the null vectors from which
 * they were made, in terms of them, on level l+1; blocks of deflation vectors, on the last level.
 * A section holds [site][column][component][re, im]: sites of its level in global lexicographic
 * order, x fastest (for deflation vectors the even ones), as float (precision 1) or 16-bit float
 * (2). Its checksum is the sum modulo 2^64 over its sites n of XXH3_64bits_withSeed(bytes of the
 * site, n + 2^56 * section).
 *
 * Pure but for the file functions. A header that decodes describes sections that fit the file.
 */
#ifndef QK_ENGINE_MG_HEADER_H
#define QK_ENGINE_MG_HEADER_H

#include "daemon/engine/checkpoint/mg_file.h"

enum {
  QK_MG_HEADER_BYTES = 12288,
  QK_MG_FILE_VERSION = 3,
  QK_MG_SECTIONS_MAX = 12,
  QK_MG_FILE_LEVELS = QK_MG_LEVELS_MAX - 1, /* that have vectors */
  QK_MG_FILE_EIGEN = 256
};

typedef enum qk_mg_section_kind {
  QK_MG_SECTION_VECTORS = 1,
  QK_MG_SECTION_NULL = 2,
  QK_MG_SECTION_DEFLATION = 3
} qk_mg_section_kind_t;

typedef struct qk_mg_section {
  qk_mg_section_kind_t kind;
  int level;
  qk_prec_t prec;
  int columns, ncomp;
  int64_t sites, offset, bytes;
  uint64_t checksum;
} qk_mg_section_t;

typedef struct qk_mg_header {
  int64_t file_bytes;
  qk_mg_identity_t identity;
  int dims[4];
  int nlevel, deflate, deflate_wanted;
  struct {
    int block[4];
    int nvec, ntest, nnull, setup_iterations, setup_passes;
    qk_prec_t setup_prec;
    double setup_tol;
  } level[QK_MG_FILE_LEVELS];
  int nsection;
  qk_mg_section_t section[QK_MG_SECTIONS_MAX];
  double value[QK_MG_FILE_EIGEN], residual[QK_MG_FILE_EIGEN];
  double fresh_residual, fresh_convergence;
  char origin[QK_MG_ORIGIN];
} qk_mg_header_t;

static inline int64_t qk_mg_section_site_bytes(const qk_mg_section_t *s) {
  return (int64_t)s->columns * s->ncomp * (s->prec == QK_HALF ? 4 : 8);
}

/* Of the whole lattice, not the even sites alone. */
static inline bool qk_mg_section_full(const qk_mg_section_t *s) {
  return s->kind != QK_MG_SECTION_DEFLATION;
}

/* What mg would be stored as: offsets, sizes; checksums are zero. */
void qk_mg_header_fill(qk_mg_header_t *h, const qk_mg_t *mg, const qk_mg_identity_t *identity);

void qk_mg_header_encode(const qk_mg_header_t *h, uint8_t bytes[QK_MG_HEADER_BYTES]);
/* QK_BAD_FORMAT, QK_UNSUPPORTED, QK_BAD_CHECKSUM; *h is then undefined. */
qk_status_t qk_mg_header_decode(const uint8_t bytes[QK_MG_HEADER_BYTES], qk_mg_header_t *h,
                                qk_err_t *err);

/* QK_OK if the file has this lattice, identity and setup; else QK_NOT_FOUND and what differs. */
qk_status_t qk_mg_header_match(const qk_mg_header_t *h, const int dims[4],
                               const qk_mg_identity_t *identity, const qk_mg_params_t *params,
                               qk_err_t *err);

/* QK_OK if null vectors of the file can be the start of a setup with these parameters on fields of
 * `ncomp` components: lattice, levels, aggregates and numbers of vectors are the same. Else
 * QK_NOT_FOUND and what differs. */
qk_status_t qk_mg_header_fits(const qk_mg_header_t *h, const int dims[4], int ncomp,
                              const qk_mg_params_t *params, qk_err_t *err);

/* Sum of the checksums of n sites that follow one another from global index `first` on. */
uint64_t qk_mg_section_sum(const void *data, int64_t first, int64_t n, int64_t site_bytes,
                           int section);

/* Sites of the local lattice in its order, as pieces of a section: local site n (of all sites,
 * or of the even ones) has global index qk_mg_global_site; the next `run - n % run` sites are
 * consecutive in both orders. */
int64_t qk_mg_global_site(const qk_lattice_t *lat, bool full, int64_t n);
int64_t qk_mg_run(const qk_lattice_t *lat, bool full);

#endif
