/* The hop of colour vectors, its halo and its links against plain loops. Backend: QK_BACKEND. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

enum { COMP = QK_COLOUR_COMPONENTS };
static const int dims[4] = {4, 6, 2, 8}, large[4] = {8, 4, 4, 6};
static const int whole[4];
static const double phases[4][2] = {{0.8, 0.6}, {1, 0}, {0, -1}, {-1, 0}};

/* Links without signs, [t][z][y][x][mu][3][3]: fat and long ones, of no group. */
typedef struct world {
  kit_t kit;
  double complex *fat, *naik;
  bool is_long;
} world_t;

static double number(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)*seed / 0x1p63;
}

static double complex *matrices(const kit_t *kit, uint64_t seed) {
  const size_t n = (size_t)kit->volume * 36;
  double complex *m = malloc(n * sizeof *m);
  cr_assert_not_null(m);
  for (size_t i = 0; i < n; i++) {
    const double re = number(&seed);
    m[i] = re + number(&seed) * I;
  }
  return m;
}

static void world_open(world_t *w, const int d[4], const int split[4], bool is_long) {
  double complex *unit = kit_random_links(d, 0, 1);
  kit_open(&w->kit, d, split, unit);
  free(unit);
  w->kit.ncomp = COMP;
  w->fat = matrices(&w->kit, 11);
  w->naik = matrices(&w->kit, 12);
  w->is_long = is_long;
}

static void world_close(world_t *w) {
  free(w->fat);
  free(w->naik);
  kit_close(&w->kit);
}

/* ---- plain loops ----------------------------------------------------------------------------- */

static int64_t site_of(const kit_t *kit, const int x[4]) {
  const int32_t *l = kit->lat.l;
  return (((int64_t)x[3] * l[2] + x[2]) * l[1] + x[1]) * l[0] + x[0];
}

static void coordinates(const kit_t *kit, int64_t n, int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(n % kit->lat.l[mu]);
    n /= kit->lat.l[mu];
  }
}

/* out += c eta [U in(ahead) - U^+ in(behind)] of one direction and reach; cut: blocks of an extent
 * in all directions, 0 for none. sense: 0 ahead, 1 behind, 2 both. */
static void add_hops(const kit_t *kit, const double complex *u, int mu, int reach, int sense,
                     int cut, const double complex *in, double complex *out) {
  for (int64_t n = 0; n < kit->volume; n++) {
    int x[4], ahead[4], behind[4], before = 0;
    const int l = kit->lat.l[mu];
    coordinates(kit, n, x);
    memcpy(ahead, x, sizeof x);
    memcpy(behind, x, sizeof x);
    ahead[mu] = (x[mu] + reach) % l;
    behind[mu] = (x[mu] + 2 * l - reach) % l;
    for (int nu = 0; nu < mu; nu++) before += x[nu];
    const double complex edge = phases[mu][0] + phases[mu][1] * I;
    const double complex to = (before % 2 ? 1 : -1) * (x[mu] + reach >= l ? edge : 1);
    const double complex fro = (before % 2 ? -1 : 1) * (x[mu] < reach ? conj(edge) : 1);
    const bool goes = cut == 0 || (x[mu] + reach < l && x[mu] / cut == ahead[mu] / cut);
    const bool comes = cut == 0 || (x[mu] >= reach && x[mu] / cut == behind[mu] / cut);
    const double complex *a = u + (n * 4 + mu) * 9;
    const double complex *b = u + (site_of(kit, behind) * 4 + mu) * 9;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        if (sense != 1 && goes)
          out[n * COMP + i] += to * a[3 * i + j] * in[site_of(kit, ahead) * COMP + j];
        if (sense != 0 && comes)
          out[n * COMP + i] += fro * conj(b[3 * j + i]) * in[site_of(kit, behind) * COMP + j];
      }
  }
}

static void plain_hop(const world_t *w, int cut, const double complex *in, double complex *out) {
  memset(out, 0, kit_components(&w->kit) * sizeof *out);
  for (int mu = 0; mu < 4; mu++) {
    add_hops(&w->kit, w->fat, mu, 1, 2, cut, in, out);
    if (w->is_long) add_hops(&w->kit, w->naik, mu, 3, 2, cut, in, out);
  }
}

/* ---- the kernels ----------------------------------------------------------------------------- */

/* In double without signs: link k of component r of tile and direction as the backend has it. */
static qk_links_t upload_links(const kit_t *kit, const double complex *u) {
  const size_t bytes = kit->ops->links_bytes(&kit->lat, QK_DOUBLE, 18);
  const int piece = kit->ops->piece;
  double *host = malloc(bytes);
  cr_assert_not_null(host);
  for (int64_t n = 0; n < kit->volume; n++)
    for (int mu = 0; mu < 4; mu++)
      for (int k = 0; k < 18; k++) {
        const int64_t at = kit_index(kit, n), lane = at % QK_TILE;
        const double complex z = u[(n * 4 + mu) * 9 + k / 2];
        host[(at / QK_TILE * 4 + mu) * (QK_TILE * 18) + (k / piece * QK_TILE + lane) * piece +
             k % piece] = k % 2 ? cimag(z) : creal(z);
      }
  qk_links_t links = {.prec = QK_DOUBLE, .reals = 18, .data = kit_alloc(kit, bytes)};
  kit_must(kit, kit->ops->copy(kit->ctx, (void *)links.data, host, bytes, QK_COPY_TO_DEVICE, 0),
           "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  free(host);
  return links;
}

static qk_links_t with_signs(const kit_t *kit, const double complex *u, qk_prec_t prec, int reach,
                             const void *behind[4]) {
  const qk_links_t in = upload_links(kit, u);
  qk_stag_links_args_t a = {
      .lat = kit->lat, .reach = reach, .in = in, .out = {.prec = prec, .reals = 18}};
  memcpy(a.phase, phases, sizeof a.phase);
  a.out.data =
      prec == QK_DOUBLE ? in.data : kit_alloc(kit, kit->ops->links_bytes(&kit->lat, prec, 18));
  kit_must(kit, kit->ops->stag_links(kit->ctx, &a), "stag_links");
  for (int mu = 0; mu < 4; mu++) {
    if (!kit->lat.split[mu]) continue;
    void *data = kit_alloc(kit, qk_stag_behind_bytes(&kit->lat, prec, mu, reach));
    const qk_stag_behind_args_t b = {
        .lat = kit->lat, .mu = mu, .reach = reach, .in = a.out, .out = data};
    kit_must(kit, kit->ops->stag_behind(kit->ctx, &b), "stag_behind"); /* its own neighbour */
    behind[mu] = data;
  }
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  if (prec != QK_DOUBLE) kit_free(kit, in.data);
  return a.out;
}

static qk_stag_links_t make_links(const world_t *w, qk_prec_t prec) {
  qk_stag_links_t s = {.fat = {.data = NULL}};
  s.fat = with_signs(&w->kit, w->fat, prec, 1, s.behind);
  if (w->is_long) s.naik = with_signs(&w->kit, w->naik, prec, 3, s.behind_long);
  return s;
}

static void free_links(const world_t *w, const qk_stag_links_t *s) {
  kit_free(&w->kit, s->fat.data);
  kit_free(&w->kit, s->naik.data);
  for (int mu = 0; mu < 4; mu++) {
    kit_free(&w->kit, s->behind[mu]);
    kit_free(&w->kit, s->behind_long[mu]);
  }
}

static qk_spinor_t ghost_like(const kit_t *kit, const qk_spinor_t *in, int mu, int depth) {
  qk_spinor_t v = *in;
  const int64_t padded = (kit->lat.face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE;
  v.nsites = padded * depth * (in->subset == QK_FULL ? 2 : 1);
  const int64_t lanes = v.nsites * (v.ntile > 0 ? v.ntile * QK_TILE : 1);
  const size_t data = (size_t)(lanes * 2 * COMP) * (size_t)qk_prec_bytes(v.prec);
  v.data = kit_alloc(kit, data);
  v.scale = v.prec == QK_HALF ? kit_alloc(kit, (size_t)lanes * sizeof(float)) : NULL;
  return v;
}

/* With ghosts from its own faces, if the lattice is split. */
static void run(const world_t *w, qk_stag_args_t *a) {
  const kit_t *kit = &w->kit;
  qk_stag_pack_args_t p = {.lat = kit->lat, .depth = w->is_long ? 3 : 1, .in = a->in};
  p.in_parity = a->in.subset;
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && kit->lat.split[mu]; side++) {
      a->ghost[mu][side] = ghost_like(kit, &a->in, mu, p.depth);
      p.to[mu][1 - side] = a->ghost[mu][side];
    }
  kit_must(kit, kit->ops->stag_pack(kit->ctx, &p), "stag_pack");
  kit_must(kit, kit->ops->stag(kit->ctx, a), "stag");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && kit->lat.split[mu]; side++) {
      kit_free(kit, a->ghost[mu][side].data);
      kit_free(kit, a->ghost[mu][side].scale);
    }
}

static double complex *colours(const kit_t *kit, uint64_t seed) {
  double complex *v = kit_vector(kit);
  kit_random(kit, seed, v);
  return v;
}

static void combine(const kit_t *kit, double complex *out, double c_hop, double c_x,
                    const double complex *x, double c_y, const double complex *y) {
  for (size_t i = 0; i < kit_components(kit); i++)
    out[i] = c_hop * out[i] + c_x * x[i] + c_y * y[i];
}

typedef struct shape {
  int nrhs;
  bool single_rhs;
} shape_t;

static const shape_t shapes[] = {{1, true},   {1, false},  {4, false}, {8, false},
                                 {11, false}, {16, false}, {32, false}};

/* in, x, y, out */
typedef struct fields {
  kit_field_t f[4];
  shape_t shape;
  qk_prec_t prec;
} fields_t;

static fields_t make_fields(const kit_t *kit, qk_prec_t prec, shape_t shape) {
  fields_t s = {.shape = shape, .prec = prec};
  for (int i = 0; i < 4; i++) s.f[i] = kit_field(kit, prec, shape.nrhs, shape.single_rhs, QK_FULL);
  for (int rhs = 0; rhs < shape.nrhs; rhs++)
    for (int i = 0; i < 3; i++) {
      double complex *v = colours(kit, 100 * (uint64_t)i + (uint64_t)rhs + 1);
      kit_import(kit, &s.f[i].v, rhs, v);
      free(v);
    }
  return s;
}

/* out = 0.7 hop in + c_x x + 0.4 y. */
static void expect_fields(const world_t *w, const fields_t *s, int rhs, double c_x) {
  const kit_t *kit = &w->kit;
  double complex *v[4], *want = kit_vector(kit);
  for (int i = 0; i < 4; i++) {
    v[i] = kit_vector(kit);
    kit_export(kit, &s->f[i].v, rhs, v[i]);
  }
  plain_hop(w, 0, v[0], want);
  combine(kit, want, 0.7, c_x, v[1], 0.4, v[2]);
  const double off = kit_distance(kit, v[3], want);
  cr_expect(off <= kit_tolerance(s->prec, 18), "prec %d, %d rhs, c_x %g: rhs %d off by %g",
            (int)s->prec, s->shape.nrhs, c_x, rhs, off);
  for (int i = 0; i < 4; i++) free(v[i]);
  free(want);
}

/* As a full field without x, and in two halves with it. */
static void check_shape(const world_t *w, qk_prec_t prec, shape_t shape,
                        const qk_stag_links_t *links) {
  const kit_t *kit = &w->kit;
  fields_t s = make_fields(kit, prec, shape);
  for (int step = 0; step < 2; step++) {
    const double c_x = step ? -1.3 : 0;
    for (int parity = 0; parity < (step ? 2 : 1); parity++) {
      qk_stag_args_t a = {.lat = kit->lat,
                          .out_parity = step ? (qk_subset_t)parity : QK_FULL,
                          .c_hop = 0.7,
                          .c_x = c_x,
                          .c_y = 0.4,
                          .links = *links};
      qk_spinor_t *const place[] = {&a.in, &a.x, &a.y, &a.out};
      for (int i = 0; i < 4; i++)
        *place[i] = step ? kit_half(kit, &s.f[i].v, i == 0 ? 1 - parity : parity) : s.f[i].v;
      run(w, &a);
    }
    for (int rhs = 0; rhs < shape.nrhs; rhs++) expect_fields(w, &s, rhs, c_x);
  }
  for (int i = 0; i < 4; i++) kit_field_free(kit, &s.f[i]);
}

typedef void check_fn(const world_t *w, qk_prec_t prec, shape_t shape,
                      const qk_stag_links_t *links);

/* In all precisions and shapes. */
static void check_all(check_fn *check, const int d[4], const int split[4], bool is_long) {
  world_t w;
  world_open(&w, d, split, is_long);
  for (int p = 0; p < QK_PRECS; p++) {
    const qk_stag_links_t links = make_links(&w, (qk_prec_t)p);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      check(&w, (qk_prec_t)p, shapes[i], &links);
    free_links(&w, &links);
  }
  world_close(&w);
}

static void check_world(const int d[4], const int split[4], bool is_long) {
  check_all(check_shape, d, split, is_long);
}

Test(stag, is_the_sum_of_its_hops) {
  check_world(dims, whole, false);
  check_world(dims, whole, true);
}

/* The GPU goes through tiles of 16 x 4 x 2 sites and blocks of tiles, or of 8 x 4 x 4. */
Test(stag, is_the_same_in_tiles) {
  static const int wide[4] = {32, 4, 4, 2}, narrow[4] = {24, 8, 4, 2};
  check_world(wide, whole, true);
  check_world(narrow, whole, true);
}

Test(stag, is_the_same_across_the_edges_of_ranks) {
  static const int splits[][4] = {{0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 1, 0}, {1, 1, 1, 1}};
  for (int i = 0; i < 4; i++) {
    check_world(large, splits[i], false);
    check_world(large, splits[i], true);
  }
}

/* One direction and sense, and blocks of two sites. */
static void check_masks(const world_t *w, const qk_stag_links_t *links, bool single_rhs) {
  const kit_t *kit = &w->kit;
  double complex *v = colours(kit, 5), *want = kit_vector(kit), *got = kit_vector(kit);
  kit_field_t in = kit_field(kit, QK_DOUBLE, single_rhs ? 1 : 3, single_rhs, QK_FULL);
  kit_field_t out = kit_field(kit, QK_DOUBLE, single_rhs ? 1 : 3, single_rhs, QK_FULL);
  kit_import(kit, &in.v, 0, v);
  qk_stag_args_t a = {.lat = kit->lat, .out_parity = QK_FULL, .c_hop = 1, .links = *links};
  a.in = in.v;
  a.out = out.v;
  for (int hop = 0; hop < 8; hop++) {
    a.hops = 1u << hop;
    run(w, &a);
    kit_export(kit, &out.v, 0, got);
    memset(want, 0, kit_components(kit) * sizeof *want);
    add_hops(kit, w->fat, hop / 2, 1, hop % 2, 0, v, want);
    add_hops(kit, w->naik, hop / 2, 3, hop % 2, 0, v, want);
    cr_expect_leq(kit_distance(kit, got, want), 2e-15, "hop %d", hop);
  }
  a.hops = 0;
  for (int mu = 0; mu < 4; mu++) a.block[mu] = 2;
  run(w, &a);
  kit_export(kit, &out.v, 0, got);
  plain_hop(w, 2, v, want);
  cr_expect_leq(kit_distance(kit, got, want), 2e-15, "blocks");
  kit_field_free(kit, &in);
  kit_field_free(kit, &out);
  free(v);
  free(want);
  free(got);
}

Test(stag, leaves_hops_out) {
  static const int split[4] = {0, 1, 0, 1};
  for (int in_parts = 0; in_parts < 2; in_parts++) {
    world_t w;
    world_open(&w, large, in_parts ? split : whole, true);
    const qk_stag_links_t links = make_links(&w, QK_DOUBLE);
    check_masks(&w, &links, true);
    check_masks(&w, &links, false);
    free_links(&w, &links);
    world_close(&w);
  }
}

/* Scalars on the device, [][QK_MAX_RHS][2]: what is added to sums, the two parts of a ratio. */
enum { MORE, NUM, DEN, RED, SCALARS };

typedef struct scalars {
  double host[SCALARS][2 * QK_MAX_RHS];
  uint8_t mask[QK_MAX_RHS];
  double *at;
  uint8_t *on;
} scalars_t;

static double *scalar(const scalars_t *c, int k) {
  return c->at + (ptrdiff_t)k * 2 * QK_MAX_RHS;
}

/* Of some columns the ratio is 0. */
static void put_scalars(const kit_t *kit, scalars_t *c) {
  const qk_copy_t up = QK_COPY_TO_DEVICE;
  for (int i = 0; i < QK_MAX_RHS; i++) {
    c->mask[i] = i % 3 != 1;
    c->host[MORE][2 * i] = 100 + i;
    c->host[NUM][2 * i] = 0.2 * (i + 1);
    c->host[DEN][2 * i] = i % 8 == 3 ? 0 : 0.7 + i % 2;
    c->host[RED][2 * i] = -1;
    for (int k = 0; k < SCALARS; k++) c->host[k][2 * i + 1] = 0;
  }
  c->at = kit_alloc(kit, sizeof c->host);
  c->on = kit_alloc(kit, sizeof c->mask);
  kit_must(kit, kit->ops->copy(kit->ctx, c->at, c->host, sizeof c->host, up, 0), "copy");
  kit_must(kit, kit->ops->copy(kit->ctx, c->on, c->mask, sizeof c->mask, up, 0), "copy");
}

static void get_scalars(const kit_t *kit, scalars_t *c) {
  kit_must(kit, kit->ops->copy(kit->ctx, c->host, c->at, sizeof c->host, QK_COPY_TO_HOST, 0),
           "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, c->at);
  kit_free(kit, c->on);
}

/* out of column rhs beside y - ratio (0.7 hop - 1.3 x), and the sum of squares beside that of out
 * and 0.5 more; a masked column has y, and what stood in red. */
static void expect_step(const world_t *w, const fields_t *s, int rhs, const scalars_t *c) {
  const kit_t *kit = &w->kit;
  double complex *v[4], *want = kit_vector(kit);
  double sum = 0.5 * c->host[MORE][2 * rhs];
  for (int i = 0; i < 4; i++) {
    v[i] = kit_vector(kit);
    kit_export(kit, &s->f[i].v, rhs, v[i]);
  }
  const double den = c->host[DEN][2 * rhs];
  const double ratio = c->mask[rhs] && den != 0 ? c->host[NUM][2 * rhs] / den : 0;
  plain_hop(w, 0, v[0], want);
  combine(kit, want, -0.7 * ratio, 1.3 * ratio, v[1], 1, v[2]);
  cr_expect(kit_distance(kit, v[3], want) <= kit_tolerance(s->prec, 18),
            "prec %d, %d rhs: step %d is off by %g", (int)s->prec, s->shape.nrhs, rhs,
            kit_distance(kit, v[3], want));
  for (size_t i = 0; i < kit_components(kit); i++) sum += creal(v[3][i] * conj(v[3][i]));
  const double expected = c->mask[rhs] ? sum : -1, red = c->host[RED][2 * rhs];
  cr_expect(fabs(red - expected) <= 10 * kit_tolerance(s->prec, 18) * fabs(expected),
            "prec %d, %d rhs: sum %d is %.17g, not %.17g", (int)s->prec, s->shape.nrhs, rhs, red,
            expected);
  for (int i = 0; i < 4; i++) free(v[i]);
  free(want);
}

/* The field y becomes out, too. */
static void begin_in_place(const kit_t *kit, const fields_t *s) {
  double complex *y = kit_vector(kit);
  for (int rhs = 0; rhs < s->shape.nrhs; rhs++) {
    kit_export(kit, &s->f[2].v, rhs, y);
    kit_import(kit, &s->f[3].v, rhs, y);
  }
  free(y);
}

static void check_step_to(const world_t *w, const fields_t *s, const qk_stag_links_t *links,
                          bool in_place) {
  const kit_t *kit = &w->kit;
  scalars_t c;
  put_scalars(kit, &c);
  if (in_place) begin_in_place(kit, s);
  qk_stag_args_t a = {.lat = kit->lat,
                      .out_parity = QK_FULL,
                      .c_hop = 0.7,
                      .c_x = -1.3,
                      .c_y = 1,
                      .links = *links,
                      .in = s->f[0].v,
                      .x = s->f[1].v,
                      .y = s->f[in_place ? 3 : 2].v,
                      .out = s->f[3].v,
                      .num = scalar(&c, NUM),
                      .den = scalar(&c, DEN),
                      .red = scalar(&c, RED),
                      .more = scalar(&c, MORE),
                      .c_more = 0.5,
                      .mask = c.on};
  run(w, &a);
  get_scalars(kit, &c);
  for (int rhs = 0; rhs < s->shape.nrhs; rhs++) expect_step(w, s, rhs, &c);
}

static void check_step(const world_t *w, qk_prec_t prec, shape_t shape,
                       const qk_stag_links_t *links) {
  fields_t s = make_fields(&w->kit, prec, shape);
  check_step_to(w, &s, links, false);
  check_step_to(w, &s, links, true);
  for (int i = 0; i < 4; i++) kit_field_free(&w->kit, &s.f[i]);
}

Test(stag, steps_and_sums_each_right_hand_side) {
  static const int wide[4] = {32, 4, 4, 2}, split[4] = {1, 0, 0, 1};
  check_all(check_step, dims, whole, false);
  check_all(check_step, wide, whole, true);
  check_all(check_step, large, split, true);
}

Test(stag, keeps_lanes_apart) {
  world_t w;
  world_open(&w, large, whole, true);
  for (int p = 0; p < QK_PRECS; p++) {
    const qk_stag_links_t links = make_links(&w, (qk_prec_t)p);
    kit_field_t in = kit_field(&w.kit, (qk_prec_t)p, KIT_LANES, false, QK_FULL);
    kit_field_t out = kit_field(&w.kit, (qk_prec_t)p, KIT_LANES, false, QK_FULL);
    kit_fill_lanes(&w.kit, &in.v);
    qk_stag_args_t a = {.lat = w.kit.lat, .out_parity = QK_FULL, .c_hop = 1, .links = links};
    a.in = in.v;
    a.out = out.v;
    run(&w, &a);
    kit_expect_lanes_apart(&w.kit, &out.v);
    kit_field_free(&w.kit, &in);
    kit_field_free(&w.kit, &out);
    free_links(&w, &links);
  }
  world_close(&w);
}

Test(stag, refuses_what_does_not_fit) {
  world_t w;
  world_open(&w, large, whole, true);
  const kit_t *kit = &w.kit;
  const qk_stag_links_t links = make_links(&w, QK_SINGLE);
  kit_field_t in = kit_field(kit, QK_SINGLE, 3, false, QK_FULL);
  kit_field_t out = kit_field(kit, QK_SINGLE, 3, false, QK_FULL);
  const qk_stag_args_t good = {
      .lat = kit->lat, .out_parity = QK_FULL, .c_hop = 1, .links = links, .in = in.v, .out = out.v};
  qk_stag_args_t a = good;
  a.out.ncomp = 12;
  kit_refused(kit, kit->ops->stag(kit->ctx, &a), "3 components");
  a = good;
  a.in.data = a.out.data;
  kit_refused(kit, kit->ops->stag(kit->ctx, &a), "may not be out");
  a = good;
  a.num = a.in.data; /* not read */
  kit_refused(kit, kit->ops->stag(kit->ctx, &a), "num: without den");
  a = good;
  a.links.fat.reals = 12;
  kit_refused(kit, kit->ops->stag(kit->ctx, &a), "reals must be 18");
  a = good;
  a.links.naik.prec = QK_DOUBLE;
  kit_refused(kit, kit->ops->stag(kit->ctx, &a), "other precision");
  a = good;
  a.c_x = 1;
  kit_refused(kit, kit->ops->stag(kit->ctx, &a), "absent");
  a = good;
  a.lat.split[3] = 1;
  kit_refused(kit, kit->ops->stag(kit->ctx, &a), "behind");
  qk_stag_pack_args_t pack = {.lat = kit->lat, .in_parity = QK_FULL, .depth = 2, .in = in.v};
  kit_refused(kit, kit->ops->stag_pack(kit->ctx, &pack), "depth");
  qk_stag_links_args_t set = {.lat = kit->lat, .reach = 1, .in = links.fat, .out = links.fat};
  kit_refused(kit, kit->ops->stag_links(kit->ctx, &set), "precision");
  qk_stag_behind_args_t behind = {.lat = kit->lat, .mu = 4, .reach = 1, .in = links.fat};
  kit_refused(kit, kit->ops->stag_behind(kit->ctx, &behind), "out");
  kit_field_free(kit, &in);
  kit_field_free(kit, &out);
  free_links(&w, &links);
  world_close(&w);
}
