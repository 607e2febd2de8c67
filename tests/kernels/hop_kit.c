#include "tests/kernels/hop_kit.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cpu/variants.h"
#include "tests/support/loops.h"

static const size_t word_bytes[] = {8, 4, 2};

void kit_must(const kit_t *kit, qk_status_t status, const char *what) {
  if (status != QK_OK)
    cr_assert_fail("%s: %s (%s)", what, qk_status_name(status), kit->ops->last_error(kit->ctx));
}

void kit_refused(const kit_t *kit, qk_status_t status, const char *word) {
  const char *why = kit->ops->last_error(kit->ctx);
  cr_expect_eq(status, QK_BAD_ARGUMENT, "%s: %s", word, qk_status_name(status));
  cr_expect(strstr(why, word) != NULL, "%s: %s", word, why);
}

void *kit_alloc(const kit_t *kit, size_t bytes) {
  void *p = NULL;
  kit_must(kit, kit->ops->alloc(kit->ctx, bytes, &p), "alloc");
  return p;
}

void kit_free(const kit_t *kit, const void *device) {
  kit->ops->free(kit->ctx, (void *)device);
}

static void upload(const kit_t *kit, void *dst, const void *src, size_t bytes) {
  kit_must(kit, kit->ops->copy(kit->ctx, dst, src, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
}

void kit_set_lattice(kit_t *kit, const int dims[4], const int split[4]) {
  qk_lattice_t *lat = &kit->lat;
  memset(lat, 0, sizeof *lat);
  kit->volume = (int64_t)dims[0] * dims[1] * dims[2] * dims[3];
  lat->vcb = (int32_t)(kit->volume / 2);
  for (int mu = 0; mu < 4; mu++) {
    lat->l[mu] = lat->global[mu] = dims[mu];
    lat->split[mu] = split[mu];
    lat->at_lo[mu] = lat->at_hi[mu] = 1;
    lat->face[mu] = lat->vcb / dims[mu];
    kit->e[mu] = dims[mu] + 2 * split[mu];
  }
}

static int wrap(int x, int l) {
  return (x + l) % l;
}

static void set_ext(kit_t *kit) {
  const int32_t *e = kit->e, *l = kit->lat.l, *s = kit->lat.split;
  const size_t site = 36 * sizeof(double complex), bytes = (size_t)e[0] * e[1] * e[2] * e[3] * site;
  double complex *host = malloc(bytes), *to = host;
  cr_assert_not_null(host);
  for (int t = 0; t < e[3]; t++)
    for (int z = 0; z < e[2]; z++)
      for (int y = 0; y < e[1]; y++)
        for (int x = 0; x < e[0]; x++, to += 36) {
          const int64_t n =
              ((wrap(t - s[3], l[3]) * l[2] + wrap(z - s[2], l[2])) * l[1] + wrap(y - s[1], l[1])) *
                  l[0] +
              wrap(x - s[0], l[0]);
          memcpy(to, kit->links + n * 36, site);
        }
  kit->ext = kit_alloc(kit, bytes);
  upload(kit, kit->ext, host, bytes);
  free(host);
}

void kit_open(kit_t *kit, const int dims[4], const int split[4], const double complex *links) {
  const char *backend = getenv("QK_BACKEND");
  memset(kit, 0, sizeof *kit);
  kit->ops = qk_ops_by_name(backend ? backend : "cpu");
  const char *const variant = getenv("QK_CPU_VARIANT");
  if (variant != NULL && strcmp(variant, qk_cpu_variant()) != 0)
    cr_skip_test("this processor has no %s kernels", variant);
  cr_assert_not_null(kit->ops, "QK_BACKEND=%s: no such backend", backend);
  qk_err_t err = {0};
  const qk_status_t status = kit->ops->open(0, &kit->ctx, &err);
  if (status == QK_NO_DEVICE || status == QK_UNSUPPORTED) cr_skip_test("%s", err.text);
  cr_assert_eq(status, QK_OK, "open: %s", err.text);
  kit_set_lattice(kit, dims, split);
  kit->ncomp = 12;
  const size_t bytes = (size_t)kit->volume * 36 * sizeof(double complex);
  kit->links = malloc(bytes);
  cr_assert_not_null(kit->links);
  memcpy(kit->links, links, bytes);
  set_ext(kit);
}

void kit_close(kit_t *kit) {
  kit_free(kit, kit->ext);
  cr_expect_eq(kit->ops->allocated(kit->ctx), 0, "device memory left behind");
  kit->ops->close(kit->ctx);
  free(kit->links);
}

qk_links_t kit_links(const kit_t *kit, qk_prec_t prec, int reals) {
  qk_links_t links = {.prec = prec, .reals = reals};
  links.data = kit_alloc(kit, kit->ops->links_bytes(&kit->lat, prec, reals));
  qk_gauge_args_t args = {.lat = kit->lat, .u = {.data = kit->ext}};
  memcpy(args.u.e, kit->e, sizeof args.u.e);
  const qk_links_set_args_t set = {.gauge = args, .out = links};
  kit_must(kit, kit->ops->links_set(kit->ctx, &set), "links_set");
  return links;
}

qk_local_t kit_diag(const kit_t *kit, double csw, double diag, bool inverse, qk_prec_t prec) {
  const size_t bytes = kit->ops->diag_bytes(&kit->lat, QK_DOUBLE);
  qk_local_t a = {.prec = QK_DOUBLE, .data = kit_alloc(kit, bytes)}, out = {.prec = prec};
  qk_gauge_args_t args = {.lat = kit->lat, .u = {.data = kit->ext}};
  memcpy(args.u.e, kit->e, sizeof args.u.e);
  const qk_clover_set_args_t set = {
      .gauge = args, .csw = csw, .diag = diag, .plane = {1, 1, 1, 1, 1, 1}, .out = a};
  kit_must(kit, kit->ops->clover_set(kit->ctx, &set), "clover_set");
  if (inverse) {
    int64_t singular = -1;
    const qk_diag_invert_args_t invert = {
        .lat = kit->lat, .in = a, .out = &a, .singular = &singular};
    kit_must(kit, kit->ops->diag_invert(kit->ctx, &invert), "diag_invert");
    cr_assert_eq(singular, 0);
  }
  out.data = kit_alloc(kit, kit->ops->diag_bytes(&kit->lat, prec));
  const qk_diag_convert_args_t convert = {.lat = kit->lat, .in = a, .out = &out};
  kit_must(kit, kit->ops->diag_convert(kit->ctx, &convert), "diag_convert");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, a.data);
  return out;
}

/* Memory for nsites (a multiple of 8) of n complex components, filled with NaN so that what is not
 * written is noticed, or with zeros. */
static kit_field_t make_field(const kit_t *kit, qk_spinor_t v, bool zeros) {
  const int64_t lanes = v.ntile > 0 ? v.nsites * v.ntile * QK_TILE : v.nsites;
  const size_t data = (size_t)(lanes * v.ncomp * 2) * word_bytes[v.prec];
  const size_t scale = v.prec == QK_HALF ? (size_t)lanes * sizeof(float) : 0;
  const size_t at = (data + 255) / 256 * 256;
  kit_field_t f = {.v = v, .memory = kit_alloc(kit, at + scale)};
  unsigned char *fill = malloc(at + scale);
  cr_assert_not_null(fill);
  memset(fill, zeros ? 0 : 0xff, at + scale);
  upload(kit, f.memory, fill, at + scale);
  free(fill);
  f.v.data = f.memory;
  f.v.scale = scale > 0 ? (float *)((char *)f.memory + at) : NULL;
  return f;
}

kit_field_t kit_field(const kit_t *kit, qk_prec_t prec, int nrhs, bool single_rhs,
                      qk_subset_t subset) {
  qk_spinor_t v = {.prec = prec,
                   .subset = subset,
                   .ncomp = kit->ncomp,
                   .nrhs = nrhs,
                   .ntile = single_rhs ? 0 : (nrhs + QK_TILE - 1) / QK_TILE,
                   .nsites = (subset == QK_FULL ? 2 : 1) * (int64_t)kit->lat.vcb};
  return make_field(kit, v, true);
}

kit_field_t kit_ghost(const kit_t *kit, const qk_spinor_t *like, int mu, qk_subset_t subset,
                      int ncomp) {
  qk_spinor_t v = *like;
  v.ncomp = ncomp;
  v.nsites = (kit->lat.face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE * (subset == QK_FULL ? 2 : 1);
  return make_field(kit, v, false);
}

void kit_field_free(const kit_t *kit, kit_field_t *field) {
  kit_free(kit, field->memory);
}

qk_spinor_t kit_half(const kit_t *kit, const qk_spinor_t *full, int parity) {
  qk_spinor_t v = *full;
  v.subset = parity ? QK_ODD : QK_EVEN;
  v.nsites = kit->lat.vcb;
  if (parity) {
    const int64_t lanes = v.nsites * (v.ntile > 0 ? v.ntile * QK_TILE : 1);
    v.data = (char *)v.data + (size_t)(lanes * v.ncomp * 2) * word_bytes[v.prec];
    if (v.scale != NULL) v.scale += lanes;
  }
  return v;
}

/* Where the real part of a component is, in words, and how far behind it the imaginary one. */
static int64_t word_of(const kit_t *kit, const qk_spinor_t *f, int64_t index, int rhs, int c,
                       int *imaginary) {
  const int64_t tile = f->ntile > 0 ? index * f->ntile + rhs / QK_TILE : index / QK_TILE;
  const int lane = (int)(f->ntile > 0 ? rhs : index) % QK_TILE;
  const bool pieces = strcmp(kit->ops->name, "cuda") == 0;
  const int whole = f->ncomp == QK_COLOUR_COMPONENTS ? 2 : 16 / (int)word_bytes[f->prec];
  const int w = pieces ? whole : 1, r = 2 * c;
  *imaginary = pieces ? 1 : QK_TILE;
  return tile * QK_TILE * 2 * f->ncomp + (r / w * QK_TILE + lane) * w + r % w;
}

static size_t data_bytes(const qk_spinor_t *f) {
  const int64_t lanes = f->nsites * (f->ntile > 0 ? f->ntile * QK_TILE : 1);
  return (size_t)(lanes * f->ncomp * 2) * word_bytes[f->prec];
}

void *kit_words(const kit_t *kit, const qk_spinor_t *f) {
  const size_t bytes = data_bytes(f);
  void *host = malloc(bytes);
  cr_assert_not_null(host);
  kit_must(kit, kit->ops->copy(kit->ctx, host, f->data, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  return host;
}

double complex kit_number(const kit_t *kit, const qk_spinor_t *f, const void *words, int64_t index,
                          int rhs, int c) {
  int im;
  const int64_t i = word_of(kit, f, index, rhs, c, &im);
  const double *d = words;
  const float *s = words;
  return f->prec == QK_DOUBLE ? CMPLX(d[i], d[i + im]) : CMPLX(s[i], s[i + im]);
}

int64_t kit_index(const kit_t *kit, int64_t site) {
  int64_t sum = 0, n = site;
  for (int mu = 0; mu < 4; mu++) {
    sum += n % kit->lat.l[mu];
    n /= kit->lat.l[mu];
  }
  return sum % 2 * kit->lat.vcb + site / 2;
}

/* Columns of full fields of any number of components in double or single. */
static void put_column(const kit_t *kit, const qk_spinor_t *f, int rhs, const double complex *v) {
  void *words = kit_words(kit, f);
  double *d = words;
  float *s = words;
  for (int64_t n = 0; n < kit->volume * f->ncomp; n++) {
    int im;
    const int64_t i = word_of(kit, f, kit_index(kit, n / f->ncomp), rhs, (int)(n % f->ncomp), &im);
    if (f->prec == QK_DOUBLE) {
      d[i] = creal(v[n]);
      d[i + im] = cimag(v[n]);
    } else {
      s[i] = (float)creal(v[n]);
      s[i + im] = (float)cimag(v[n]);
    }
  }
  upload(kit, f->data, words, data_bytes(f));
  free(words);
}

static void get_column(const kit_t *kit, const qk_spinor_t *f, int rhs, double complex *v) {
  void *words = kit_words(kit, f);
  for (int64_t n = 0; n < kit->volume * f->ncomp; n++)
    v[n] = kit_number(kit, f, words, kit_index(kit, n / f->ncomp), rhs, (int)(n % f->ncomp));
  free(words);
}

/* Colour vectors in half, against one column in double. */
static void copy_column(const kit_t *kit, const qk_spinor_t *to, int to_rhs,
                        const qk_spinor_t *from, int from_rhs) {
  const qk_rhs_copy_args_t a = {.to = *to, .from = *from, .to_rhs = to_rhs, .from_rhs = from_rhs};
  kit_must(kit, kit->ops->rhs_copy(kit->ctx, &a), "rhs_copy");
}

static void put_half(const kit_t *kit, const qk_spinor_t *f, int rhs, const double complex *v) {
  kit_field_t one = kit_field(kit, QK_DOUBLE, 1, true, QK_FULL);
  put_column(kit, &one.v, 0, v);
  copy_column(kit, f, rhs, &one.v, 0);
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_field_free(kit, &one);
}

static void get_half(const kit_t *kit, const qk_spinor_t *f, int rhs, double complex *v) {
  kit_field_t one = kit_field(kit, QK_DOUBLE, 1, true, QK_FULL);
  copy_column(kit, &one.v, 0, f, rhs);
  get_column(kit, &one.v, 0, v);
  kit_field_free(kit, &one);
}

static qk_rhs_args_t rhs_args(const kit_t *kit, const qk_spinor_t *field, int rhs, void *wire) {
  qk_rhs_args_t c = {.lat = kit->lat,
                     .field = *field,
                     .rhs = rhs,
                     .n = 1,
                     .is_double = 1,
                     .wire = {wire},
                     .factor = 1};
  for (int s = 0; s < 4; s++) c.basis[s][s][0] = 1;
  return c;
}

void kit_import(const kit_t *kit, const qk_spinor_t *field, int rhs, const double complex *v) {
  const size_t bytes = kit_components(kit) * sizeof *v;
  if (field->ncomp != 12) {
    (field->prec == QK_HALF ? put_half : put_column)(kit, field, rhs, v);
    return;
  }
  void *wire = kit_alloc(kit, bytes);
  upload(kit, wire, v, bytes);
  const qk_rhs_args_t c = rhs_args(kit, field, rhs, wire);
  kit_must(kit, kit->ops->rhs_import(kit->ctx, &c), "rhs_import");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, wire);
}

void kit_export(const kit_t *kit, const qk_spinor_t *field, int rhs, double complex *v) {
  const size_t bytes = kit_components(kit) * sizeof *v;
  if (field->ncomp != 12) {
    (field->prec == QK_HALF ? get_half : get_column)(kit, field, rhs, v);
    return;
  }
  void *wire = kit_alloc(kit, bytes);
  const qk_rhs_args_t c = rhs_args(kit, field, rhs, wire);
  kit_must(kit, kit->ops->rhs_export(kit->ctx, &c), "rhs_export");
  kit_must(kit, kit->ops->copy(kit->ctx, v, wire, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, wire);
}

size_t kit_components(const kit_t *kit) {
  return (size_t)(kit->volume * kit->ncomp);
}

double complex *kit_vector(const kit_t *kit) {
  double complex *v = calloc(kit_components(kit), sizeof *v);
  cr_assert_not_null(v);
  return v;
}

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) * 0x1p-52 - 1;
}

void kit_random(const kit_t *kit, uint64_t seed, double complex *v) {
  for (size_t i = 0; i < kit_components(kit); i++) {
    const double re = uniform(&seed) + uniform(&seed);
    v[i] = re + (uniform(&seed) + uniform(&seed)) * I;
  }
}

double complex *kit_random_links(const int dims[4], double roughness, uint64_t seed) {
  const size_t n = (size_t)dims[0] * dims[1] * dims[2] * dims[3] * 4;
  double complex(*u)[3][3] = malloc(n * sizeof *u);
  cr_assert_not_null(u);
  for (size_t i = 0; i < n; i++) {
    for (int r = 0; r < 3; r++)
      for (int c = 0; c < 3; c++) {
        const double re = uniform(&seed);
        u[i][r][c] = (1 - roughness) * (r == c) + roughness * (re + uniform(&seed) * I);
      }
    loops_reunitarise(u[i]);
  }
  return &u[0][0][0];
}

double kit_distance(const kit_t *kit, const double complex *a, const double complex *b) {
  double off = 0, norm = 0;
  for (size_t i = 0; i < kit_components(kit); i++) {
    off += creal((a[i] - b[i]) * conj(a[i] - b[i]));
    norm += creal(b[i] * conj(b[i]));
  }
  return sqrt(off / norm);
}

double kit_tolerance(qk_prec_t prec, int reals) {
  static const double rounding[] = {2e-15, 1e-6, 1e-3};
  return rounding[prec] * (reals == 8 ? 8 : 1);
}

qk_hop_args_t kit_dirac(const kit_t *kit, bool dagger, const double phase[4][2]) {
  qk_hop_args_t a = {
      .lat = kit->lat, .out_parity = QK_FULL, .dagger = dagger, .c_hop = -0.5, .c_z = 1};
  memcpy(a.phase, phase, sizeof a.phase);
  return a;
}

void kit_own_ghosts(const kit_t *kit, qk_hop_args_t *a, kit_field_t ghost[4][2]) {
  qk_pack_args_t p = {.lat = kit->lat, .dagger = a->dagger, .links = a->links, .in = a->in};
  p.in_parity = a->out_parity == QK_FULL ? QK_FULL : a->out_parity == QK_EVEN ? QK_ODD : QK_EVEN;
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && kit->lat.split[mu]; side++) {
      ghost[mu][side] = kit_ghost(kit, &a->in, mu, a->out_parity, 6);
      a->ghost[mu][side] = ghost[mu][side].v;
    }
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && kit->lat.split[mu]; side++)
      p.to[mu][side] = ghost[mu][1 - side].v;
  kit_must(kit, kit->ops->pack(kit->ctx, &p), "pack");
}

static const int whole[4]; /* nothing is split */

void kit_open_random(kit_t *kit, const int dims[4], double roughness, uint64_t seed) {
  double complex *links = kit_random_links(dims, roughness, seed);
  kit_open(kit, dims, whole, links);
  free(links);
}

void kit_open_both(kit_t *one, kit_t *parts, const int dims[4], const int split[4]) {
  double complex *links = kit_random_links(dims, 0.5, 9);
  kit_open(one, dims, whole, links);
  kit_open(parts, dims, split, links);
  free(links);
}

void kit_fill_lanes(const kit_t *kit, const qk_spinor_t *in) {
  double complex *v = kit_vector(kit), *bad = kit_vector(kit);
  kit_random(kit, 2, v);
  for (size_t i = 0; i < kit_components(kit); i++) bad[i] = i % 5 ? NAN : INFINITY;
  for (int rhs = 0; rhs < KIT_LANES; rhs++) kit_import(kit, in, rhs, rhs % 3 ? bad : v);
  free(v);
  free(bad);
}

void kit_expect_lanes_apart(const kit_t *kit, const qk_spinor_t *out) {
  double complex *first = kit_vector(kit), *w = kit_vector(kit);
  kit_export(kit, out, 0, first);
  cr_expect(isfinite(creal(first[0])));
  for (int rhs = 1; rhs < KIT_LANES; rhs++) {
    kit_export(kit, out, rhs, w);
    if (rhs % 3 == 0)
      cr_expect_eq(memcmp(w, first, kit_components(kit) * sizeof *w), 0, "prec %d, rhs %d",
                   (int)out->prec, rhs);
    else
      cr_expect_not(isfinite(creal(w[17])), "prec %d, rhs %d", (int)out->prec, rhs);
  }
  free(first);
  free(w);
}

void kit_part(const kit_t *kit, qk_hop_args_t a, qk_prec_t prec, const double complex *in,
              double complex *out) {
  kit_field_t x = kit_field(kit, prec, 1, true, QK_FULL),
              y = kit_field(kit, prec, 1, true, QK_FULL);
  if (a.c_hop != 0)
    a.in = x.v;
  else
    a.z = x.v;
  a.out = y.v;
  kit_import(kit, &x.v, 0, in);
  kit_must(kit, kit->ops->hop(kit->ctx, &a), "hop");
  kit_export(kit, &y.v, 0, out);
  kit_field_free(kit, &x);
  kit_field_free(kit, &y);
}

dirac_t dirac_open(const kit_t *kit, qk_prec_t prec, int reals, double mass, double csw) {
  dirac_t d = {.links = kit_links(kit, prec, reals), .diag = {.prec = prec, .scalar = 4 + mass}};
  if (csw != 0) d.diag = kit_diag(kit, csw, 4 + mass, false, prec);
  return d;
}

void dirac_close(const kit_t *kit, dirac_t *d) {
  kit_free(kit, d->links.data);
  kit_free(kit, d->diag.data);
}

void dirac_apply(const kit_t *kit, const dirac_t *d, bool dagger, const double phase[4][2],
                 const qk_spinor_t *in, const qk_spinor_t *out) {
  qk_hop_args_t a = kit_dirac(kit, dagger, phase);
  a.links = d->links;
  a.diag = d->diag;
  a.in = a.z = *in;
  a.out = *out;
  kit_must(kit, kit->ops->hop(kit->ctx, &a), "hop");
}

void dirac_apply_vector(const kit_t *kit, const dirac_t *d, bool dagger, const double phase[4][2],
                        const double complex *in, double complex *out) {
  kit_field_t x = kit_field(kit, QK_DOUBLE, 1, true, QK_FULL);
  kit_field_t y = kit_field(kit, QK_DOUBLE, 1, true, QK_FULL);
  kit_import(kit, &x.v, 0, in);
  dirac_apply(kit, d, dagger, phase, &x.v, &y.v);
  kit_export(kit, &y.v, 0, out);
  kit_field_free(kit, &x);
  kit_field_free(kit, &y);
}
