#include "daemon/engine/checkpoint/eigen_header.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static const char magic[8] = "QKEIGEN\n";

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t qk_eigen_table_bytes(const qk_eigen_header_t *h) {
  const int64_t bytes = 8 * ((int64_t)h->numbers + h->nblock + 1);
  return (bytes + QK_EIGEN_FILE_ALIGNED - 1) / QK_EIGEN_FILE_ALIGNED * QK_EIGEN_FILE_ALIGNED;
}

static int64_t sites(const qk_eigen_header_t *h) {
  int64_t n = 1;
  for (int mu = 0; mu < 4; mu++) n *= h->dims[mu];
  return h->full ? n : n / 2;
}

static int basis_blocks(const qk_eigen_header_t *h) {
  return h->based ? h->problem.cut.n / QK_EIGEN_BLOCK : 0;
}

bool qk_eigen_is_coefficients(const qk_eigen_header_t *h, int block) {
  return h->based && block >= basis_blocks(h);
}

int qk_eigen_site_floats(const qk_eigen_header_t *h, int block) {
  if (qk_eigen_is_coefficients(h, block)) return QK_EIGEN_BLOCK * 2 * 2 * h->problem.cut.n;
  const bool colours = h->colours || qk_eigen_is_laplacian(&h->problem);
  const int numbers = colours ? QK_COLOUR_COMPONENTS : 12;
  return QK_EIGEN_BLOCK * 2 * numbers;
}

int64_t qk_eigen_block_bytes(const qk_eigen_header_t *h, int block) {
  const int64_t site = h->planes * qk_eigen_site_floats(h, block) * (int64_t)sizeof(float);
  int64_t aggregates = 1;
  if (!qk_eigen_is_coefficients(h, block)) return h->vectors * sites(h) * site;
  for (int mu = 0; mu < 4; mu++) aggregates *= h->dims[mu] / h->problem.cut.block[mu];
  return aggregates * site;
}

int64_t qk_eigen_block_at(const qk_eigen_header_t *h, int block) {
  const int of_basis = basis_blocks(h), vectors = h->based && block > of_basis ? of_basis : block;
  int64_t at = QK_EIGEN_HEADER_BYTES + qk_eigen_table_bytes(h);
  if (vectors > 0) at += vectors * qk_eigen_block_bytes(h, 0);
  return block > vectors ? at + (block - vectors) * qk_eigen_block_bytes(h, of_basis) : at;
}

/* ---- the header, both ways ------------------------------------------------------------------- */

/* One walk over the members serves both: put into bytes, or taken from them. */
typedef struct walk {
  uint8_t *at;
  bool put;
  bool bad; /* a number that does not fit its member */
} walk_t;

static void word(walk_t *w, uint64_t *v, int bytes) {
  uint64_t from = 0;
  for (int i = 0; i < bytes; i++) {
    if (w->put) w->at[i] = (uint8_t)(*v >> (8 * i));
    from |= (uint64_t)w->at[i] << (8 * i);
  }
  *v = from;
  w->at += bytes;
}

static void number(walk_t *w, int *v) {
  uint64_t wide = (uint64_t)*v;
  word(w, &wide, 4);
  if (wide > INT32_MAX) w->bad = true;
  *v = wide > INT32_MAX ? 0 : (int)wide;
}

static void large(walk_t *w, int64_t *v) {
  uint64_t wide = (uint64_t)*v;
  word(w, &wide, 8);
  if (wide > INT64_MAX) w->bad = true;
  *v = wide > INT64_MAX ? 0 : (int64_t)wide;
}

static void real(walk_t *w, double *x) {
  uint64_t v;
  memcpy(&v, x, sizeof v);
  word(w, &v, 8);
  memcpy(x, &v, sizeof v);
}

static void flag(walk_t *w, bool *v) {
  int n = *v;
  number(w, &n);
  if (n > 1) w->bad = true;
  *v = n == 1;
}

/* Zeros after it, to the end of its field. */
static void text(walk_t *w, char *v, size_t size) {
  const size_t n = strnlen(w->put ? v : (const char *)w->at, size);
  if (n == size) w->bad = true;
  if (w->put) {
    memset(w->at, 0, size);
    memcpy(w->at, v, n < size ? n : size - 1);
  }
  for (size_t i = n; i < size; i++)
    if (w->at[i] != 0) w->bad = true;
  memcpy(v, w->at, size);
  v[size - 1] = '\0';
  w->at += size;
}

/* Of compressed vectors; zeros where they are not. */
static void members_of_cut(walk_t *w, qk_eigen_header_t *h) {
  qk_coherent_cut_t *cut = &h->problem.cut;
  number(w, &cut->n);
  for (int mu = 0; mu < 4; mu++) number(w, &cut->block[mu]);
  flag(w, &h->based);
  number(w, &h->smoother.order);
  real(w, &h->smoother.window);
  real(w, &h->smoother.top);
}

static void members(walk_t *w, qk_eigen_header_t *h) {
  qk_eigen_problem_t *p = &h->problem;
  qk_lanczos_state_t *s = &h->state;
  int *const asked[] = {&p->kind, &p->count, &p->space, &p->order, &p->restarts};
  int *const shape[] = {&h->vectors, &h->planes, &h->nblock, &h->numbers};
  int *const state[] = {&s->order, &s->since, &s->restarts, &s->windows, &s->done};
  word(w, &h->identity.gauge_digest, 8);
  for (int i = 0; i < 8; i++) real(w, &h->identity.phase[i / 2][i % 2]);
  text(w, h->identity.operator_text, QK_OPERATOR_TEXT);
  text(w, p->links, QK_EIGEN_LINKS);
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) number(w, asked[i]);
  real(w, &p->tol);
  for (int mu = 0; mu < 4; mu++) number(w, &h->dims[mu]);
  flag(w, &h->complete);
  flag(w, &h->full);
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) number(w, shape[i]);
  real(w, &s->window);
  real(w, &s->top);
  real(w, &s->best);
  for (size_t i = 0; i < sizeof state / sizeof *state; i++) number(w, state[i]);
  large(w, &s->randomised);
  s->nblock = h->nblock;
  members_of_cut(w, h);
  flag(w, &h->colours);
  s->nblock -= basis_blocks(h);
}

static void beginning(walk_t *w, uint64_t *version, uint64_t *bytes, int64_t *file_bytes) {
  word(w, version, 4);
  word(w, bytes, 4);
  large(w, file_bytes);
}

static uint64_t version_of(const qk_eigen_header_t *h) {
  return qk_eigen_is_compressed(&h->problem) ? QK_EIGEN_FILE_COMPRESSED : QK_EIGEN_FILE_VERSION;
}

void qk_eigen_header_encode(qk_eigen_header_t *h, uint8_t bytes[QK_EIGEN_HEADER_BYTES]) {
  walk_t w = {.at = bytes + sizeof magic, .put = true};
  uint64_t version = version_of(h), size = QK_EIGEN_HEADER_BYTES;
  memset(bytes, 0, QK_EIGEN_HEADER_BYTES);
  memcpy(bytes, magic, sizeof magic);
  h->file_bytes = qk_eigen_block_at(h, h->nblock);
  beginning(&w, &version, &size, &h->file_bytes);
  members(&w, h);
  w.at = bytes + QK_EIGEN_HEADER_BYTES - 8;
  uint64_t sum = XXH3_64bits(bytes, QK_EIGEN_HEADER_BYTES - 8);
  word(&w, &sum, 8);
}

static bool geometry_fits(const qk_eigen_header_t *h) {
  int64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (h->dims[mu] < 2 || h->dims[mu] % 2 != 0) return false;
    volume *= h->dims[mu];
    if (volume > INT32_MAX) return false;
  }
  return h->vectors >= 1 && h->vectors <= QK_LS_MAX && h->planes >= 1 && h->planes <= 2 &&
         h->nblock >= 1 && h->nblock <= QK_EIGEN_FILE_BLOCKS && h->numbers >= 0 &&
         h->numbers <= QK_EIGEN_FILE_NUMBERS;
}

static bool all_finite(const double *x, int n) {
  for (int i = 0; i < n; i++)
    if (!isfinite(x[i])) return false;
  return true;
}

/* Version 1 has zeros there. */
static bool cut_fits(const qk_eigen_header_t *h) {
  const qk_coherent_cut_t *cut = &h->problem.cut;
  const qk_chebyshev_params_t *s = &h->smoother;
  if (cut->n == 0)
    return !h->based && s->order == 0 && s->window == 0 && s->top == 0 && cut->block[0] == 0 &&
           cut->block[1] == 0 && cut->block[2] == 0 && cut->block[3] == 0;
  for (int mu = 0; mu < 4; mu++)
    if (cut->block[mu] < 1 || h->dims[mu] % cut->block[mu] != 0) return false;
  if (cut->n > QK_COHERENT_MAX || cut->n % QK_EIGEN_BLOCK != 0 || cut->block[0] % 2 != 0 ||
      h->full || h->problem.kind != 0 || cut->n >= h->problem.count)
    return false;
  if (!h->based) return !h->complete && s->order == 0 && s->window == 0 && s->top == 0;
  return s->order >= 2 && s->order <= 64 && s->order % 2 == 0 && s->window > 0 &&
         s->window < s->top;
}

/* As many numbers as blocks say. */
static bool contents_fit(const qk_eigen_header_t *h) {
  const qk_eigen_problem_t *p = &h->problem;
  const double real[] = {p->tol,        h->state.window,    h->state.top,
                         h->state.best, h->smoother.window, h->smoother.top};
  if (!all_finite(real, 6) || !all_finite(&h->identity.phase[0][0], 8)) return false;
  const bool laplacian = qk_eigen_is_laplacian(p);
  const int64_t values = (int64_t)p->count * (laplacian ? h->dims[3] : 1);
  if (laplacian && (!h->full || h->vectors != 1 || h->state.done > h->dims[3])) return false;
  if (!cut_fits(h)) return false;
  if (h->colours && (p->kind != 0 || h->full || h->vectors != 1 || p->cut.n > 0)) return false;
  const int blocks = h->nblock - basis_blocks(h);
  if (!h->complete && !laplacian) return blocks >= 1 && h->numbers == 8 * (blocks - 1);
  return p->count >= 1 && h->numbers == 2 * values && blocks == (p->count + 7) / 8;
}

static bool texts_fit(const qk_eigen_header_t *h, char why[QK_WHY]) {
  qk_values_t values;
  for (const char *p = h->problem.links; *p; p++)
    if (*p < ' ' || *p > '~') return false;
  return qk_values_parse(&values, h->identity.operator_text, why);
}

qk_status_t qk_eigen_header_decode(const uint8_t bytes[QK_EIGEN_HEADER_BYTES], qk_eigen_header_t *h,
                                   qk_err_t *err) {
  uint8_t copy[QK_EIGEN_HEADER_BYTES];
  uint64_t version = 0, size = 0, sum = 0;
  char why[QK_WHY] = "its texts";
  walk_t w = {.at = copy + sizeof magic}, end = {.at = copy + QK_EIGEN_HEADER_BYTES - 8};
  memcpy(copy, bytes, sizeof copy);
  memset(h, 0, sizeof *h);
  if (memcmp(copy, magic, sizeof magic) != 0)
    return qk_fail(err, QK_BAD_FORMAT, "not a file of eigenvectors");
  beginning(&w, &version, &size, &h->file_bytes);
  if (version != QK_EIGEN_FILE_VERSION && version != QK_EIGEN_FILE_COMPRESSED)
    return qk_fail(err, QK_UNSUPPORTED, "version %" PRIu64 " of files of eigenvectors, not 1 or 2",
                   version);
  word(&end, &sum, 8);
  if (sum != XXH3_64bits(copy, QK_EIGEN_HEADER_BYTES - 8))
    return qk_fail(err, QK_BAD_CHECKSUM, "the checksum of the header is wrong");
  members(&w, h);
  if (w.bad || size != QK_EIGEN_HEADER_BYTES || !geometry_fits(h) || !contents_fit(h) ||
      version != version_of(h))
    return qk_fail(err, QK_BAD_FORMAT, "the header describes no eigenvectors");
  for (const uint8_t *p = w.at; p < copy + QK_EIGEN_HEADER_BYTES - 8; p++)
    if (*p != 0) return qk_fail(err, QK_BAD_FORMAT, "the header does not end in zeros");
  if (!texts_fit(h, why)) return qk_fail(err, QK_BAD_FORMAT, "operator in the header: %s", why);
  if (h->file_bytes != qk_eigen_block_at(h, h->nblock))
    return qk_fail(err, QK_BAD_FORMAT, "the header says %lld bytes, its blocks have %lld",
                   (long long)h->file_bytes, (long long)qk_eigen_block_at(h, h->nblock));
  return QK_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

void qk_eigen_table_encode(const qk_eigen_header_t *h, const double *values, const uint64_t *sum,
                           uint8_t *bytes) {
  walk_t w = {.at = bytes, .put = true};
  memset(bytes, 0, (size_t)qk_eigen_table_bytes(h));
  for (int i = 0; i < h->numbers; i++) {
    double x = values[i];
    real(&w, &x);
  }
  for (int i = 0; i < h->nblock; i++) {
    uint64_t one = sum[i];
    word(&w, &one, 8);
  }
  uint64_t all = XXH3_64bits(bytes, (size_t)(w.at - bytes));
  word(&w, &all, 8);
}

qk_status_t qk_eigen_table_decode(const qk_eigen_header_t *h, const uint8_t *bytes, double *values,
                                  uint64_t *sum, qk_err_t *err) {
  walk_t w = {.at = (uint8_t *)(uintptr_t)bytes};
  uint64_t all = 0;
  for (int i = 0; i < h->numbers; i++) real(&w, &values[i]);
  for (int i = 0; i < h->nblock; i++) word(&w, &sum[i], 8);
  const uint64_t made = XXH3_64bits(bytes, (size_t)(w.at - bytes));
  word(&w, &all, 8);
  if (all != made) return qk_fail(err, QK_BAD_CHECKSUM, "the checksum of the table is wrong");
  if (all_finite(values, h->numbers)) return QK_OK;
  return qk_fail(err, QK_BAD_FORMAT, "a number in the table is not finite");
}

/* ---- whose they are -------------------------------------------------------------------------- */

qk_status_t qk_eigen_header_match(const qk_eigen_header_t *h, const qk_eigen_header_t *wanted,
                                  qk_err_t *err) {
  const qk_mg_identity_t *a = &h->identity, *b = &wanted->identity;
  const qk_eigen_problem_t *p = &h->problem, *q = &wanted->problem;
  if (memcmp(h->dims, wanted->dims, sizeof h->dims) != 0)
    return qk_fail(err, QK_NOT_FOUND, "eigenvectors of %dx%dx%dx%d, not %dx%dx%dx%d", h->dims[0],
                   h->dims[1], h->dims[2], h->dims[3], wanted->dims[0], wanted->dims[1],
                   wanted->dims[2], wanted->dims[3]);
  if (a->gauge_digest != b->gauge_digest)
    return qk_fail(err, QK_NOT_FOUND,
                   "eigenvectors on links with digest %016" PRIx64 ", not %016" PRIx64,
                   a->gauge_digest, b->gauge_digest);
  const bool by_links = qk_eigen_is_laplacian(p) && qk_eigen_is_laplacian(q);
  if (!by_links && (strcmp(a->operator_text, b->operator_text) != 0 ||
                    memcmp(a->phase, b->phase, sizeof a->phase) != 0))
    return qk_fail(err, QK_NOT_FOUND, "eigenvectors of another operator: %.200s, not %.200s",
                   a->operator_text, b->operator_text);
  if (p->kind != q->kind || strcmp(p->links, q->links) != 0)
    return qk_fail(err, QK_NOT_FOUND, "eigenvectors of kind %d, not %d, or of other smeared links",
                   p->kind, q->kind);
  if (p->count != q->count || p->tol != q->tol || p->space != q->space || p->order != q->order ||
      p->restarts != q->restarts)
    return qk_fail(err, QK_NOT_FOUND,
                   "%d eigenvectors to %g, not %d to %g, or by another space or order", p->count,
                   p->tol, q->count, q->tol);
  if (p->cut.n != q->cut.n || memcmp(p->cut.block, q->cut.block, sizeof p->cut.block) != 0)
    return qk_fail(err, QK_NOT_FOUND,
                   "eigenvectors with a basis of %d and blocks of %dx%dx%dx%d, not %d and "
                   "%dx%dx%dx%d",
                   p->cut.n, p->cut.block[0], p->cut.block[1], p->cut.block[2], p->cut.block[3],
                   q->cut.n, q->cut.block[0], q->cut.block[1], q->cut.block[2], q->cut.block[3]);
  if (h->full == wanted->full && h->vectors == wanted->vectors && h->planes == wanted->planes &&
      h->colours == wanted->colours)
    return QK_OK;
  return qk_fail(err, QK_NOT_FOUND, "eigenvectors of another shape or precision");
}
