#include "proto/eigen_check.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/column_check.h"

static const char *const KIND[] = {[QUARK__EIGEN_KIND__EIGEN_NORMAL] = "normal",
                                   [QUARK__EIGEN_KIND__EIGEN_GAMMA5] = "gamma5",
                                   [QUARK__EIGEN_KIND__EIGEN_LAPLACIAN] = "laplacian"};
enum { KINDS = sizeof KIND / sizeof *KIND };

__attribute__((format(printf, 3, 4))) static qk_status_t
refuse(char why[QK_WHY], qk_status_t status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, QK_WHY, format, args);
  va_end(args);
  return status;
}

const char *qk_eigen_kind_name(int kind) {
  return kind >= 0 && kind < KINDS ? KIND[kind] : NULL;
}

int qk_eigen_kind_find(const char *word) {
  for (int k = 0; k < KINDS; k++)
    if (strcmp(KIND[k], word) == 0) return k;
  return -1;
}

static bool is_laplacian(const Quark__EigenProblem *p) {
  return p->kind == QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
}

qk_status_t qk_eigen_check_name(const char *what, const char *name, char why[QK_WHY]) {
  const size_t n = strlen(name);
  bool legal = n <= QK_EIGEN_NAME_MAX && isalnum((unsigned char)name[0]);
  for (const char *p = name; *p && legal; p++)
    legal = isalnum((unsigned char)*p) || strchr("._-", *p) != NULL;
  if (legal) return QK_OK;
  return refuse(why, QK_BAD_ARGUMENT,
                "%s of %zu bytes: 1 to %d letters, digits, '.', '_' or '-' are needed, the first a "
                "letter or digit",
                what, n, QK_EIGEN_NAME_MAX);
}

qk_status_t qk_eigen_check_new_name(const char *name, char why[QK_WHY]) {
  const qk_status_t status = qk_eigen_check_name("name", name, why);
  if (status != QK_OK || name[strspn(name, "0123456789")] != '\0') return status;
  return refuse(why, QK_BAD_ARGUMENT,
                "name = %s: all digits, which --deflate takes for a number of vectors: a letter, "
                "'.', '_' or '-' is needed",
                name);
}

/* The dimension of the space that the vectors are in. */
static uint64_t dimension(const Quark__EigenProblem *p, const qk_shape_t *shape) {
  const uint64_t sites = qk_shape_sites(shape);
  if (is_laplacian(p)) return 3 * (sites / shape->dims[3]);
  const uint64_t all = sites * (shape->site_reals / 2);
  return p->kind == QUARK__EIGEN_KIND__EIGEN_NORMAL ? all / 2 : all;
}

/* Of colour vectors there are those of Mhat. */
static qk_status_t check_colour(const Quark__EigenProblem *p, const qk_shape_t *shape,
                                char why[QK_WHY]) {
  if (!qk_shape_is_colour(shape)) return QK_OK;
  if (p->kind != QUARK__EIGEN_KIND__EIGEN_NORMAL)
    return refuse(why, QK_UNSUPPORTED,
                  "kind = %d (%s): of fields with colour alone there are eigenvectors of kind = 0 "
                  "(normal)",
                  (int)p->kind, qk_eigen_kind_name((int)p->kind));
  if (p->basis == 0) return QK_OK;
  return refuse(why, QK_UNSUPPORTED,
                "basis = %u: eigenvectors of fields with colour alone are not compressed",
                p->basis);
}

static qk_status_t check_count(const Quark__EigenProblem *p, const qk_shape_t *shape,
                               char why[QK_WHY]) {
  const uint64_t most = dimension(p, shape);
  if (p->count < 1) return refuse(why, QK_BAD_ARGUMENT, "count = 0: must be at least 1");
  if (p->count > QK_EIGEN_COUNT_MAX)
    return refuse(why, QK_TOO_LARGE, "count = %u is over the limit of %d", p->count,
                  QK_EIGEN_COUNT_MAX);
  if (p->count <= most) return QK_OK;
  return refuse(why, QK_BAD_ARGUMENT, "count = %u: %s has %llu eigenvectors on this lattice",
                p->count, is_laplacian(p) ? "the Laplacian of a time slice" : "the operator",
                (unsigned long long)most);
}

static qk_status_t check_method(const Quark__EigenProblem *p, char why[QK_WHY]) {
  const struct {
    const char *name;
    uint32_t value, most;
  } number[] = {{"space", p->space, QK_EIGEN_SPACE_MAX},
                {"order", p->order, QK_EIGEN_ORDER_MAX},
                {"restarts", p->restarts, QK_EIGEN_RESTARTS_MAX}};
  for (size_t i = 0; i < sizeof number / sizeof *number; i++)
    if (number[i].value > number[i].most)
      return refuse(why, QK_TOO_LARGE, "%s = %u is over the limit of %u", number[i].name,
                    number[i].value, number[i].most);
  if (p->space > 0 && p->space <= p->count)
    return refuse(why, QK_BAD_ARGUMENT, "space = %u: must be greater than count = %u, or 0",
                  p->space, p->count);
  if (p->order % 2) return refuse(why, QK_BAD_ARGUMENT, "order = %u: must be even, or 0", p->order);
  if (p->tol >= QK_EIGEN_TOL_MIN && p->tol <= QK_EIGEN_TOL_MAX) return QK_OK;
  return refuse(why, QK_BAD_ARGUMENT, "tol = %g is outside %g .. %g", p->tol, QK_EIGEN_TOL_MIN,
                QK_EIGEN_TOL_MAX);
}

/* "field:" and a number, or "digest:" and 16 hexadecimal digits. */
static bool is_field(const char *text) {
  const char *number = strncmp(text, "field:", 6) == 0 ? text + 6 : NULL;
  const char *digest = strncmp(text, "digest:", 7) == 0 ? text + 7 : NULL;
  const size_t digits = number ? strlen(number) : 0;
  if (number) return digits >= 1 && digits <= 20 && strspn(number, "0123456789") == digits;
  return digest && strlen(digest) == 16 && strspn(digest, "0123456789abcdef") == 16;
}

/* Vectors that are taken as a client sent them: nothing is computed. */
static qk_status_t check_field(const Quark__EigenProblem *p, char why[QK_WHY]) {
  const struct {
    const char *name;
    uint32_t value;
  } number[] = {{"space", p->space}, {"order", p->order}, {"restarts", p->restarts}};
  if (!is_laplacian(p))
    return refuse(why, QK_BAD_ARGUMENT,
                  "field: a client's vectors are those of the Laplacian (kind = %d), not of kind = "
                  "%d",
                  QUARK__EIGEN_KIND__EIGEN_LAPLACIAN, (int)p->kind);
  if (!is_field(p->field))
    return refuse(why, QK_BAD_ARGUMENT,
                  "field of %zu bytes: field:REQUEST or digest:HEX16 is needed, HEX16 of 16 "
                  "hexadecimal digits in lower case",
                  strlen(p->field));
  for (size_t i = 0; i < sizeof number / sizeof *number; i++)
    if (number[i].value > 0)
      return refuse(why, QK_BAD_ARGUMENT, "%s = %u: vectors of a field are not computed: must be 0",
                    number[i].name, number[i].value);
  if (!p->links) return QK_OK;
  return refuse(why, QK_BAD_ARGUMENT,
                "links: vectors of a field are not computed, on smeared links or others");
}

enum {
  LANES = 8,       /* vectors that lie together */
  SPACE_EXTRA = 32 /* of a Krylov space beyond twice the vectors (lanczos_params.c) */
};

void qk_eigen_block(const Quark__EigenProblem *p, const uint32_t dims[4], int block[4]) {
  for (int mu = 0; mu < 4; mu++) {
    const int chosen = dims[mu] % 4 == 0 ? 4 : 2;
    block[mu] = p->n_block == 4 ? (int)p->block[mu] : chosen;
  }
}

/* Of the basis of compressed vectors. */
static qk_status_t check_basis(const Quark__EigenProblem *p, const qk_shape_t *shape,
                               char why[QK_WHY]) {
  if (p->basis == 0 && p->n_block == 0) return QK_OK;
  if (p->basis == 0) return refuse(why, QK_BAD_ARGUMENT, "block: it is for a basis: basis = 0");
  if (p->kind != QUARK__EIGEN_KIND__EIGEN_NORMAL)
    return refuse(why, QK_BAD_ARGUMENT, "basis = %u: it is for kind = 0 (NORMAL), not for %d",
                  p->basis, (int)p->kind);
  if (p->basis % LANES != 0 || p->basis >= p->count)
    return refuse(why, QK_BAD_ARGUMENT,
                  "basis = %u: must be a multiple of %d, and less than count = %u", p->basis, LANES,
                  p->count);
  if (p->basis > QK_EIGEN_BASIS_MAX)
    return refuse(why, QK_TOO_LARGE, "basis = %u is over the limit of %d", p->basis,
                  QK_EIGEN_BASIS_MAX);
  if (p->n_block != 0 && p->n_block != 4)
    return refuse(why, QK_BAD_ARGUMENT, "block: %zu numbers: 4 are needed, in x, y, z, t",
                  p->n_block);
  for (size_t mu = 0; mu < p->n_block; mu++) {
    const uint32_t b = p->block[mu], l = shape->dims[mu];
    if (b < 1 || b > l || l % b != 0 || (mu == 0 && b % 2 != 0))
      return refuse(why, QK_BAD_ARGUMENT, "block: %u in %c: must be a divisor of %u%s", b,
                    "xyzt"[mu], l, mu == 0 ? ", and even" : "");
  }
  return QK_OK;
}

qk_status_t qk_eigen_check(const Quark__EigenProblem *p, const qk_shape_t *shape,
                           char why[QK_WHY]) {
  qk_status_t status = qk_eigen_check_name("name", p->name, why);
  if (status != QK_OK) return status;
  if (!qk_eigen_kind_name((int)p->kind))
    return refuse(why, QK_BAD_ARGUMENT, "kind = %d is outside 0 .. %d", (int)p->kind, KINDS - 1);
  status = check_colour(p, shape, why);
  if (status == QK_OK) status = check_count(p, shape, why);
  if (status == QK_OK) status = check_method(p, why);
  if (status == QK_OK) status = check_basis(p, shape, why);
  if (status == QK_OK && p->field) return check_field(p, why);
  if (status != QK_OK) return status;
  if (p->links && !is_laplacian(p))
    return refuse(why, QK_BAD_ARGUMENT, "links: they are for the Laplacian only, not for kind = %d",
                  (int)p->kind);
  return qk_smearing_check(p->links, "links", why);
}

uint64_t qk_eigen_values(const Quark__EigenProblem *p, const qk_shape_t *shape) {
  return (uint64_t)p->count * (is_laplacian(p) ? shape->dims[3] : 1);
}

uint64_t qk_eigen_bytes(const Quark__EigenProblem *p, const qk_shape_t *shape) {
  return qk_eigen_values(p, shape) * 2 * sizeof(double);
}

uint64_t qk_eigen_host_bytes(const Quark__EigenProblem *p, const qk_shape_t *shape, int slices,
                             bool single) {
  /* vectors that lie together; reals of a site, of colour vectors with a component that is 0 */
  enum { BLOCK = 8, COLOURS = 6, COLOUR_VECTORS = 8, SPINORS = 24 };
  const uint64_t sites = qk_shape_sites(shape), blocks = (p->count + BLOCK - 1) / BLOCK,
                 real = single ? sizeof(float) : 2 * sizeof(float);
  const uint64_t spinors = qk_shape_is_colour(shape)     ? COLOUR_VECTORS
                           : shape->site_reals > SPINORS ? shape->site_reals
                                                         : SPINORS;
  if (is_laplacian(p)) return blocks * BLOCK * sites * COLOURS * real;
  const uint64_t parity = p->kind == QUARK__EIGEN_KIND__EIGEN_NORMAL ? 2 : 1;
  if (p->basis > 0) {
    int block[4];
    uint64_t numbers = 2 * (uint64_t)p->basis;
    qk_eigen_block(p, shape->dims, block);
    for (int mu = 0; mu < 4; mu++) numbers *= shape->dims[mu] / (uint64_t)block[mu];
    return p->basis * (sites / 2) * spinors * (uint64_t)slices * real +
           blocks * BLOCK * numbers * 2 * real;
  }
  return blocks * BLOCK * (sites / parity) * spinors * (uint64_t)slices * real;
}

uint64_t qk_eigen_space(const Quark__EigenProblem *p, const qk_shape_t *shape) {
  const uint64_t most = dimension(p, shape), whole = (p->count + LANES - 1) / LANES * LANES;
  /* at least what is chosen for the vectors of a basis, which nobody asks for */
  const uint64_t least = p->basis > 0 ? 2 * (uint64_t)p->basis + SPACE_EXTRA : 0;
  uint64_t rows = p->space > 0 ? p->space : 2 * whole + SPACE_EXTRA;
  if (rows > most) rows = most;
  return rows > least ? rows : least;
}

uint64_t qk_eigen_work_bytes(const Quark__EigenProblem *p, const qk_shape_t *shape, int ranks) {
  enum { FIRST = 5, OTHERS = 2 }; /* matrices: LAPACK works on the first rank, on a copy */
  const uint64_t rows = qk_eigen_space(p, shape);
  if (p->field) return 0;
  return (FIRST + OTHERS * (uint64_t)(ranks - 1)) * rows * rows * 2 * sizeof(double);
}

uint64_t qk_projection_bytes(uint32_t count, Quark__Dtype dtype, const qk_shape_t *shape) {
  const uint64_t real = dtype == QUARK__DTYPE__DTYPE_F64 ? sizeof(double) : sizeof(float);
  return (uint64_t)shape->dims[3] * 4 * count * 2 * real;
}

static bool same_links(const Quark__Smearing *a, const Quark__Smearing *b) {
  static const Quark__Smearing NONE = QUARK__SMEARING__INIT;
  if (!a) a = &NONE;
  if (!b) b = &NONE;
  return a->links == b->links && a->n_link_param == b->n_link_param &&
         a->link_steps == b->link_steps && a->link_spatial == b->link_spatial &&
         (a->n_link_param == 0 ||
          memcmp(a->link_param, b->link_param, a->n_link_param * sizeof *a->link_param) == 0);
}

static bool same_field(const Quark__EigenProblem *a, const Quark__EigenProblem *b) {
  return a->field && b->field ? strcmp(a->field, b->field) == 0 : !a->field && !b->field;
}

bool qk_eigen_same(const Quark__EigenProblem *a, const Quark__EigenProblem *b) {
  return a->kind == b->kind && a->count == b->count && a->tol == b->tol && a->space == b->space &&
         a->order == b->order && a->restarts == b->restarts && same_links(a->links, b->links) &&
         same_field(a, b) && a->basis == b->basis && a->n_block == b->n_block &&
         (a->n_block == 0 || memcmp(a->block, b->block, a->n_block * sizeof *a->block) == 0);
}
