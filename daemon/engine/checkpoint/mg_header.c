#include "daemon/engine/checkpoint/mg_header.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/engine/eigen/deflation.h"

static const char magic[8] = "QKMGSET\n";

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct cursor {
  uint8_t *to;
  const uint8_t *from;
} cursor_t;

static void put(cursor_t *c, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; i++) *c->to++ = (uint8_t)(v >> (8 * i));
}
static void put_real(cursor_t *c, double x) {
  uint64_t v;
  memcpy(&v, &x, sizeof v);
  put(c, v, 8);
}

static uint64_t get(cursor_t *c, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v |= (uint64_t)*c->from++ << (8 * i);
  return v;
}
static double get_real(cursor_t *c) {
  uint64_t v = get(c, 8);
  double x;
  memcpy(&x, &v, sizeof x);
  return x;
}
/* An integer that is not negative; -1 where it is out of range, which no check lets pass. */
static int get_int(cursor_t *c) {
  uint64_t v = get(c, 4);
  return v <= INT32_MAX ? (int)v : -1;
}
static int64_t get_long(cursor_t *c) {
  uint64_t v = get(c, 8);
  return v <= INT64_MAX ? (int64_t)v : -1;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static void put_identity(cursor_t *c, const qk_mg_identity_t *id) {
  const size_t n = strnlen(id->operator_text, QK_OPERATOR_TEXT);
  put(c, id->gauge_digest, 8);
  for (int i = 0; i < 8; i++) put_real(c, id->phase[i / 2][i % 2]);
  put(c, id->seed, 8);
  memset(c->to, 0, QK_OPERATOR_TEXT);
  memcpy(c->to, id->operator_text, n);
  c->to += QK_OPERATOR_TEXT;
}

static void put_section(cursor_t *c, const qk_mg_section_t *s) {
  put(c, (uint64_t)s->kind, 4);
  put(c, (uint64_t)s->level, 4);
  put(c, (uint64_t)s->prec, 4);
  put(c, (uint64_t)s->columns, 4);
  put(c, (uint64_t)s->ncomp, 4);
  put(c, 0, 4);
  put(c, (uint64_t)s->sites, 8);
  put(c, (uint64_t)s->offset, 8);
  put(c, (uint64_t)s->bytes, 8);
  put(c, s->checksum, 8);
}

void qk_mg_header_encode(const qk_mg_header_t *h, uint8_t bytes[QK_MG_HEADER_BYTES]) {
  cursor_t c = {.to = bytes};
  memset(bytes, 0, QK_MG_HEADER_BYTES);
  for (size_t i = 0; i < sizeof magic; i++) put(&c, (uint8_t)magic[i], 1);
  put(&c, QK_MG_FILE_VERSION, 4);
  put(&c, QK_MG_HEADER_BYTES, 4);
  put(&c, (uint64_t)h->file_bytes, 8);
  put_identity(&c, &h->identity);
  for (int mu = 0; mu < 4; mu++) put(&c, (uint64_t)h->dims[mu], 4);
  put(&c, (uint64_t)h->nlevel, 4);
  put(&c, (uint64_t)h->deflate, 4);
  put(&c, (uint64_t)h->deflate_wanted, 4);
  for (int l = 0; l < QK_MG_FILE_LEVELS; l++) {
    for (int mu = 0; mu < 4; mu++) put(&c, (uint64_t)h->level[l].block[mu], 4);
    put(&c, (uint64_t)h->level[l].nvec, 4);
    put(&c, (uint64_t)h->level[l].ntest, 4);
    put(&c, (uint64_t)h->level[l].nnull, 4);
    put(&c, (uint64_t)h->level[l].setup_iterations, 4);
    put(&c, (uint64_t)h->level[l].setup_passes + 1, 4);
    put(&c, (uint64_t)h->level[l].setup_prec, 4);
    put_real(&c, h->level[l].setup_tol);
  }
  put(&c, (uint64_t)h->nsection, 4);
  for (int i = 0; i < QK_MG_SECTIONS_MAX; i++) put_section(&c, &h->section[i]);
  for (int i = 0; i < QK_MG_FILE_EIGEN; i++) {
    put_real(&c, h->value[i]);
    put_real(&c, h->residual[i]);
  }
  put_real(&c, h->fresh_residual);
  put_real(&c, h->fresh_convergence);
  memcpy(c.to, h->origin, strnlen(h->origin, QK_MG_ORIGIN - 1));
  c.to = bytes + QK_MG_HEADER_BYTES - 8;
  put(&c, XXH3_64bits(bytes, QK_MG_HEADER_BYTES - 8), 8);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void get_identity(cursor_t *c, qk_mg_identity_t *id) {
  id->gauge_digest = get(c, 8);
  for (int i = 0; i < 8; i++) id->phase[i / 2][i % 2] = get_real(c);
  id->seed = get(c, 8);
  memcpy(id->operator_text, c->from, QK_OPERATOR_TEXT);
  c->from += QK_OPERATOR_TEXT;
}

/* Canonical text of an action that this build has, and zeros after it. */
static bool operator_fits(const char text[QK_OPERATOR_TEXT], char why[QK_WHY]) {
  qk_values_t values;
  const size_t n = strnlen(text, QK_OPERATOR_TEXT);
  snprintf(why, QK_WHY, "it does not end, or is not all of its field");
  if (n == QK_OPERATOR_TEXT) return false;
  for (size_t i = n; i < QK_OPERATOR_TEXT; i++)
    if (text[i] != '\0') return false;
  return qk_values_parse(&values, text, why);
}

/* Figures that were measured, or 0; and a text that ends within its field. */
static bool past_fits(const qk_mg_header_t *h) {
  const size_t n = strnlen(h->origin, QK_MG_ORIGIN);
  if (!(h->fresh_residual >= 0 && isfinite(h->fresh_residual))) return false;
  if (!(h->fresh_convergence >= 0 && isfinite(h->fresh_convergence))) return false;
  for (size_t i = 0; i < QK_MG_ORIGIN; i++)
    if (i < n ? h->origin[i] < ' ' || h->origin[i] > '~' : h->origin[i] != '\0') return false;
  return n < QK_MG_ORIGIN;
}

static void get_section(cursor_t *c, qk_mg_section_t *s) {
  s->kind = (qk_mg_section_kind_t)get_int(c);
  s->level = get_int(c);
  s->prec = (qk_prec_t)get_int(c);
  s->columns = get_int(c);
  s->ncomp = get_int(c);
  get_int(c);
  s->sites = get_long(c);
  s->offset = get_long(c);
  s->bytes = get_long(c);
  s->checksum = get(c, 8);
}

/* Sites of level l, or 0 where the blocks do not divide the lattice. */
static int64_t sites_of(const qk_mg_header_t *h, int level) {
  int64_t sites = 1;
  for (int mu = 0; mu < 4; mu++) {
    int l = h->dims[mu];
    for (int k = 0; k < level; k++) {
      int b = h->level[k].block[mu];
      if (b < 1 || l % b != 0) return 0;
      l /= b;
    }
    sites *= l;
  }
  return sites;
}

static bool vectors_fit(const qk_mg_header_t *h, int l) {
  const int nvec = h->level[l].nvec, tested = h->level[l].ntest, null = h->level[l].nnull;
  return nvec >= 2 && nvec <= QK_MG_VECTORS_MAX && nvec % 2 == 0 && tested >= nvec &&
         tested <= QK_MG_VECTORS_MAX && null >= nvec && null <= QK_MG_VECTORS_MAX;
}

static bool geometry_fits(const qk_mg_header_t *h) {
  int64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (h->dims[mu] < 2 || h->dims[mu] % 2 != 0) return false;
    volume *= h->dims[mu];
    if (volume > INT32_MAX) return false;
  }
  if (h->nlevel < 2 || h->nlevel > QK_MG_LEVELS_MAX) return false;
  if (h->deflate < 0 || h->deflate > QK_MG_FILE_EIGEN || h->deflate_wanted < h->deflate)
    return false;
  for (int l = 0; l + 1 < h->nlevel; l++)
    if (!vectors_fit(h, l)) return false;
  return sites_of(h, h->nlevel - 1) >= 16;
}

/* Section i as it must be, but for offset and checksum; prec: of null vectors. */
static qk_mg_section_t section_of(const qk_mg_header_t *h, int i, qk_prec_t prec) {
  const int n = h->nlevel - 1;
  qk_mg_section_t s = {.kind = QK_MG_SECTION_VECTORS, .level = i, .prec = prec};
  if (i < n) {
    s.columns = h->level[i].nvec;
  } else if (i < 2 * n) {
    s.kind = QK_MG_SECTION_NULL;
    s.level = i - n + 1;
    s.columns = h->level[i - n].nnull;
  } else {
    s.kind = QK_MG_SECTION_DEFLATION;
    s.level = n;
    s.columns = qk_deflation_columns(h->deflate, i - 2 * n);
  }
  if (i >= n) s.prec = QK_SINGLE;
  s.ncomp = s.level == 0 ? 12 : 2 * h->level[s.level - 1].nvec;
  s.sites = sites_of(h, s.level) / (qk_mg_section_full(&s) ? 1 : 2);
  s.bytes = s.sites * qk_mg_section_site_bytes(&s);
  return s;
}

static bool section_fits(const qk_mg_header_t *h, int i, int64_t offset) {
  const qk_mg_section_t *s = &h->section[i];
  qk_mg_section_t want = section_of(h, i, s->prec);
  return s->kind == want.kind && s->level == want.level && s->prec == want.prec &&
         (s->prec == QK_SINGLE || s->prec == QK_HALF) && s->columns == want.columns &&
         s->ncomp == want.ncomp && s->sites == want.sites && s->bytes == want.bytes &&
         s->offset == offset;
}

static int sections_of(const qk_mg_header_t *h) {
  int n = 2 * (h->nlevel - 1);
  for (int b = 0; qk_deflation_columns(h->deflate, b) > 0; b++) n++;
  return n;
}

static bool sections_fit(const qk_mg_header_t *h) {
  int64_t offset = QK_MG_HEADER_BYTES;
  if (h->nsection != sections_of(h)) return false;
  for (int i = 0; i < h->nsection; i++) {
    if (!section_fits(h, i, offset)) return false;
    offset += h->section[i].bytes;
  }
  for (int i = 0; i < h->deflate; i++)
    if (!(h->value[i] > 0 && isfinite(h->value[i]))) return false;
  return h->file_bytes == offset;
}

qk_status_t qk_mg_header_decode(const uint8_t bytes[QK_MG_HEADER_BYTES], qk_mg_header_t *h,
                                qk_err_t *err) {
  cursor_t c = {.from = bytes + sizeof magic};
  memset(h, 0, sizeof *h);
  if (memcmp(bytes, magic, sizeof magic) != 0)
    return qk_fail(err, QK_BAD_FORMAT, "not a checkpoint of multigrid");
  int version = get_int(&c), length = get_int(&c);
  if (version != QK_MG_FILE_VERSION)
    return qk_fail(err, QK_UNSUPPORTED, "checkpoint of version %d: this build reads %d", version,
                   QK_MG_FILE_VERSION);
  cursor_t last = {.from = bytes + QK_MG_HEADER_BYTES - 8};
  if (get(&last, 8) != XXH3_64bits(bytes, QK_MG_HEADER_BYTES - 8))
    return qk_fail(err, QK_BAD_CHECKSUM, "checksum of the checkpoint's header");
  h->file_bytes = get_long(&c);
  get_identity(&c, &h->identity);
  for (int mu = 0; mu < 4; mu++) h->dims[mu] = get_int(&c);
  h->nlevel = get_int(&c);
  h->deflate = get_int(&c);
  h->deflate_wanted = get_int(&c);
  for (int l = 0; l < QK_MG_FILE_LEVELS; l++) {
    for (int mu = 0; mu < 4; mu++) h->level[l].block[mu] = get_int(&c);
    h->level[l].nvec = get_int(&c);
    h->level[l].ntest = get_int(&c);
    h->level[l].nnull = get_int(&c);
    h->level[l].setup_iterations = get_int(&c);
    h->level[l].setup_passes = get_int(&c) - 1;
    h->level[l].setup_prec = (qk_prec_t)get_int(&c);
    h->level[l].setup_tol = get_real(&c);
  }
  h->nsection = get_int(&c);
  for (int i = 0; i < QK_MG_SECTIONS_MAX; i++) get_section(&c, &h->section[i]);
  for (int i = 0; i < QK_MG_FILE_EIGEN; i++) {
    h->value[i] = get_real(&c);
    h->residual[i] = get_real(&c);
  }
  h->fresh_residual = get_real(&c);
  h->fresh_convergence = get_real(&c);
  memcpy(h->origin, c.from, QK_MG_ORIGIN);
  char why[QK_WHY];
  if (!operator_fits(h->identity.operator_text, why))
    return qk_fail(err, QK_BAD_FORMAT, "the operator in the checkpoint's header: %s", why);
  if (length != QK_MG_HEADER_BYTES || !geometry_fits(h) || !sections_fit(h) || !past_fits(h))
    return qk_fail(err, QK_BAD_FORMAT, "the checkpoint's header contradicts itself");
  return QK_OK;
}

/* ---- making and comparing -------------------------------------------------------------------- */

/* Vectors to be deflated. */
static int wanted(const qk_mg_params_t *params) {
  return params->deflate > 0 ? params->deflate : 0;
}

void qk_mg_header_fill(qk_mg_header_t *h, const qk_mg_t *mg, const qk_mg_identity_t *identity) {
  int64_t offset = QK_MG_HEADER_BYTES;
  memset(h, 0, sizeof *h);
  h->identity = *identity;
  memcpy(h->dims, mg->level[0].geom.global, sizeof h->dims);
  h->nlevel = mg->nlevel;
  h->deflate = mg->deflation ? qk_deflation_count(mg->deflation) : 0;
  h->deflate_wanted = wanted(&mg->params);
  h->fresh_residual = mg->fresh_residual;
  h->fresh_convergence = mg->fresh_convergence;
  memcpy(h->origin, mg->origin, sizeof h->origin);
  for (int l = 0; l + 1 < mg->nlevel; l++) {
    const qk_mg_level_params_t *p = &mg->params.level[l];
    memcpy(h->level[l].block, p->block, sizeof p->block);
    h->level[l].nvec = p->nvec;
    h->level[l].ntest = p->ntest;
    h->level[l].nnull = mg->level[l].null ? mg->level[l].null->v.nrhs : p->ntest;
    h->level[l].setup_iterations = p->setup_iterations;
    h->level[l].setup_passes = p->setup_passes < 0 ? -1 : p->setup_passes;
    h->level[l].setup_prec = p->setup_prec;
    h->level[l].setup_tol = p->setup_tol;
  }
  h->nsection = sections_of(h);
  for (int i = 0; i < h->nsection; i++) {
    const int l = i < h->nlevel - 1 ? i : 0;
    qk_mg_section_t *s = &h->section[i];
    *s = section_of(h, i, mg->params.level[l].prolongator);
    s->offset = offset;
    offset += s->bytes;
  }
  h->file_bytes = offset;
  if (h->deflate > 0) {
    const size_t bytes = (size_t)h->deflate * sizeof *h->value;
    memcpy(h->value, qk_deflation_values(mg->deflation), bytes);
    memcpy(h->residual, qk_deflation_residuals(mg->deflation), bytes);
  }
}

uint64_t qk_mg_identity_digest(const qk_mg_identity_t *identity) {
  uint8_t bytes[QK_OPERATOR_TEXT + 128] = {0};
  cursor_t c = {.to = bytes};
  put_identity(&c, identity);
  return XXH3_64bits(bytes, sizeof bytes);
}

static qk_status_t match_identity(const qk_mg_identity_t *file, const qk_mg_identity_t *wanted,
                                  qk_err_t *err) {
  if (file->gauge_digest != wanted->gauge_digest)
    return qk_fail(err, QK_NOT_FOUND,
                   "checkpoint of another gauge field: digest %016" PRIx64 ", not %016" PRIx64,
                   file->gauge_digest, wanted->gauge_digest);
  if (strcmp(file->operator_text, wanted->operator_text) != 0)
    return qk_fail(err, QK_NOT_FOUND, "checkpoint of the operator %.200s, not %.200s",
                   file->operator_text, wanted->operator_text);
  for (int mu = 0; mu < 4; mu++)
    if (file->phase[mu][0] != wanted->phase[mu][0] || file->phase[mu][1] != wanted->phase[mu][1])
      return qk_fail(err, QK_NOT_FOUND,
                     "checkpoint of boundary phase %.17g%+.17gi in %c, not %.17g%+.17gi",
                     file->phase[mu][0], file->phase[mu][1], "xyzt"[mu], wanted -> phase[mu][0],
                     wanted -> phase[mu][1]);
  if (file->seed != wanted->seed)
    return qk_fail(err, QK_NOT_FOUND, "checkpoint of seed %" PRIu64 ", not %" PRIu64, file->seed,
                   wanted->seed);
  return QK_OK;
}

static qk_status_t match_vectors(const qk_mg_header_t *h, int l, const qk_mg_level_params_t *p,
                                 qk_err_t *err) {
  const int *b = h->level[l].block;
  for (int mu = 0; mu < 4; mu++)
    if (b[mu] != p->block[mu])
      return qk_fail(err, QK_NOT_FOUND,
                     "checkpoint of blocks %dx%dx%dx%d on level %d, not %dx%dx%dx%d", b[0], b[1],
                     b[2], b[3], l, p->block[0], p->block[1], p->block[2], p->block[3]);
  if (h->level[l].nvec != p->nvec)
    return qk_fail(err, QK_NOT_FOUND, "checkpoint of %d vectors on level %d, not %d",
                   h->level[l].nvec, l, p->nvec);
  return QK_OK;
}

static qk_status_t match_level(const qk_mg_header_t *h, int l, const qk_mg_level_params_t *p,
                               qk_err_t *err) {
  const int passes = p->setup_passes < 0 ? -1 : p->setup_passes;
  const qk_status_t status = match_vectors(h, l, p, err);
  if (status != QK_OK) return status;
  if (h->level[l].ntest != p->ntest)
    return qk_fail(err, QK_NOT_FOUND, "checkpoint of %d test vectors on level %d, not %d",
                   h->level[l].ntest, l, p->ntest);
  if (h->level[l].setup_prec != p->setup_prec)
    return qk_fail(err, QK_NOT_FOUND,
                   "checkpoint of vectors relaxed in %s precision on level %d, not in %s",
                   h->level[l].setup_prec == QK_HALF ? "half" : "single", l,
                   p->setup_prec == QK_HALF ? "half" : "single");
  if (h->level[l].setup_iterations == p->setup_iterations && h->level[l].setup_passes == passes &&
      h->level[l].setup_tol == p->setup_tol)
    return QK_OK;
  return qk_fail(err, QK_NOT_FOUND,
                 "checkpoint of a setup of level %d with %d iterations to %g, %d passes, not %d to "
                 "%g, %d",
                 l, h->level[l].setup_iterations, h->level[l].setup_tol, h->level[l].setup_passes,
                 p->setup_iterations, p->setup_tol, passes);
}

static qk_status_t match_lattice(const qk_mg_header_t *h, const int dims[4], qk_err_t *err) {
  if (memcmp(h->dims, dims, sizeof h->dims) == 0) return QK_OK;
  return qk_fail(err, QK_NOT_FOUND, "checkpoint of a lattice %dx%dx%dx%d, not %dx%dx%dx%d",
                 h->dims[0], h->dims[1], h->dims[2], h->dims[3], dims[0], dims[1], dims[2],
                 dims[3]);
}

static qk_status_t match_levels(const qk_mg_header_t *h, const qk_mg_params_t *params,
                                qk_err_t *err) {
  if (h->nlevel == params->nlevel) return QK_OK;
  return qk_fail(err, QK_NOT_FOUND, "checkpoint of %d levels, not %d", h->nlevel, params->nlevel);
}

qk_status_t qk_mg_header_fits(const qk_mg_header_t *h, const int dims[4], int ncomp,
                              const qk_mg_params_t *params, qk_err_t *err) {
  qk_status_t status = match_lattice(h, dims, err);
  if (status != QK_OK) return status;
  status = match_levels(h, params, err);
  for (int l = 0; status == QK_OK && l + 1 < h->nlevel; l++)
    status = match_vectors(h, l, &params->level[l], err);
  if (status != QK_OK || h->section[0].ncomp == ncomp) return status;
  return qk_fail(err, QK_NOT_FOUND, "checkpoint of fields with %d reals at a site, not %d",
                 2 * h->section[0].ncomp, 2 * ncomp);
}

qk_status_t qk_mg_header_match(const qk_mg_header_t *h, const int dims[4],
                               const qk_mg_identity_t *identity, const qk_mg_params_t *params,
                               qk_err_t *err) {
  qk_status_t status = match_lattice(h, dims, err);
  if (status != QK_OK) return status;
  status = match_identity(&h->identity, identity, err);
  if (status != QK_OK) return status;
  status = match_levels(h, params, err);
  if (status != QK_OK) return status;
  for (int l = 0; l + 1 < h->nlevel && status == QK_OK; l++)
    status = match_level(h, l, &params->level[l], err);
  if (status == QK_OK && h->deflate_wanted != wanted(params))
    status = qk_fail(err, QK_NOT_FOUND, "checkpoint of %d deflated vectors, not %d",
                     h->deflate_wanted, wanted(params));
  return status;
}

/* ---- sites ----------------------------------------------------------------------------------- */

uint64_t qk_mg_section_sum(const void *data, int64_t first, int64_t n, int64_t site_bytes,
                           int section) {
  uint64_t sum = 0;
  const uint8_t *p = data;
  for (int64_t i = 0; i < n; i++)
    sum += XXH3_64bits_withSeed(p + i * site_bytes, (size_t)site_bytes,
                                (XXH64_hash_t)(first + i) + ((XXH64_hash_t)section << 56));
  return sum;
}

/* Sites of a local row, and of a global one. */
static int64_t width(const int32_t *l, bool full) {
  return full ? l[0] : l[0] / 2;
}

int64_t qk_mg_global_site(const qk_lattice_t *lat, bool full, int64_t n) {
  const int64_t in_row = n % width(lat->l, full) + width(lat->offset, full);
  int64_t row = n / width(lat->l, full), global = 0, stride = 1;
  for (int mu = 1; mu < 4; mu++) {
    global += (lat->offset[mu] + row % lat->l[mu]) * stride;
    row /= lat->l[mu];
    stride *= lat->global[mu];
  }
  return global * width(lat->global, full) + in_row;
}

int64_t qk_mg_run(const qk_lattice_t *lat, bool full) {
  int64_t run = width(lat->l, full);
  for (int mu = 1; mu < 4 && lat->l[mu - 1] == lat->global[mu - 1]; mu++) run *= lat->l[mu];
  return run;
}
