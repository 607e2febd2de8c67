/*
 * Smearing kernels on one backend: ghosts, lanes, forms of links, refusals. What they compute is
 * judged in tests/unit/engine (test_gauss.c, test_link_smear.c) against the oracle.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

static const int whole[4] = {0, 0, 0, 0};

static qk_gauss_args_t step(const kit_t *kit, const qk_links_t *links, const qk_spinor_t *in,
                            const qk_spinor_t *out) {
  qk_gauss_args_t a = {
      .lat = kit->lat, .c_own = 0.6, .c_hop = 0.15, .links = *links, .in = *in, .out = *out};
  a.lat.split[3] = 0;
  return a;
}

static void run(const kit_t *kit, const qk_gauss_args_t *a) {
  kit_must(kit, kit->ops->gauss(kit->ctx, a), "gauss");
}

static kit_field_t random_field(const kit_t *kit, qk_prec_t prec, int nrhs, bool single_rhs) {
  kit_field_t f = kit_field(kit, prec, nrhs, single_rhs, QK_FULL);
  double complex *v = kit_vector(kit);
  for (int rhs = 0; rhs < nrhs; rhs++) {
    kit_random(kit, 50 + (uint64_t)rhs, v);
    kit_import(kit, &f.v, rhs, v);
  }
  free(v);
  return f;
}

/* Columns of both, relative. Each is fetched on the queue that computed it. */
static void expect_same(const kit_t *of_a, const qk_spinor_t *a, const kit_t *of_b,
                        const qk_spinor_t *b, double bound) {
  double complex *v = kit_vector(of_a), *w = kit_vector(of_b);
  for (int rhs = 0; rhs < a->nrhs; rhs++) {
    kit_export(of_a, a, rhs, v);
    kit_export(of_b, b, rhs, w);
    const double off = kit_distance(of_a, v, w);
    cr_expect(off <= bound, "prec %d, column %d of %d: off by %g", a->prec, rhs, a->nrhs, off);
  }
  free(v);
  free(w);
}

/* ---- ghosts ---- */

/* The rank as its own neighbour against one that wraps around: interior, then
 * packing, then boundary. */
static void check_ghosts(const kit_t *parts, const kit_t *one, qk_prec_t prec, int reals, int nrhs,
                         bool single_rhs) {
  qk_links_t far = kit_links(parts, prec, reals), near = kit_links(one, prec, reals);
  kit_field_t in = random_field(parts, prec, nrhs, single_rhs), ghost[3][2] = {0};
  kit_field_t out = kit_field(parts, prec, nrhs, single_rhs, QK_FULL);
  kit_field_t want = kit_field(one, prec, nrhs, single_rhs, QK_FULL);
  kit_field_t same = random_field(one, prec, nrhs, single_rhs);
  qk_gauss_args_t a = step(one, &near, &same.v, &want.v);
  run(one, &a);

  a = step(parts, &far, &in.v, &out.v);
  a.region = QK_REGION_INTERIOR;
  run(parts, &a);
  qk_pack_args_t p = {
      .lat = parts->lat, .in_parity = QK_FULL, .whole = 1, .links = far, .in = in.v};
  for (int mu = 0; mu < 3; mu++)
    for (int side = 0; side < 2 && parts->lat.split[mu]; side++) {
      ghost[mu][side] = kit_ghost(parts, &in.v, mu, QK_FULL, 12);
      a.ghost[mu][side] = p.to[mu][1 - side] = ghost[mu][side].v;
    }
  kit_must(parts, parts->ops->pack(parts->ctx, &p), "pack");
  a.region = QK_REGION_BOUNDARY;
  run(parts, &a);
  expect_same(parts, &out.v, one, &want.v, kit_tolerance(prec, reals));

  for (int mu = 0; mu < 3; mu++)
    for (int side = 0; side < 2 && parts->lat.split[mu]; side++)
      kit_field_free(parts, &ghost[mu][side]);
  kit_field_free(one, &same);
  kit_field_free(one, &want);
  kit_field_free(parts, &out);
  kit_field_free(parts, &in);
  kit_free(one, near.data);
  kit_free(parts, far.data);
}

static void check_split(const int dims[4], const int split[4]) {
  kit_t parts, one;
  kit_open_both(&one, &parts, dims, split);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int reals = 12; reals <= 18; reals += 6) {
      check_ghosts(&parts, &one, (qk_prec_t)prec, reals, 1, true);
      check_ghosts(&parts, &one, (qk_prec_t)prec, reals, 9, false);
    }
  kit_close(&one);
  kit_close(&parts);
}

Test(smear, reads_ghosts_as_it_reads_neighbours_in_one_direction) {
  for (int mu = 0; mu < 3; mu++) {
    int split[4] = {0, 0, 0, 0};
    split[mu] = 1;
    check_split((int[]){4, 6, 4, 2}, split);
  }
}
Test(smear, reads_ghosts_as_it_reads_neighbours_in_all_directions) {
  check_split((int[]){4, 4, 6, 4}, (int[]){1, 1, 1, 1});
  check_split((int[]){6, 2, 4, 4}, (int[]){1, 0, 1, 0});
}

/* ---- lanes ---- */

Test(smear, keeps_lanes_apart) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 10);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    qk_links_t u = kit_links(&kit, (qk_prec_t)prec, 12);
    kit_field_t in = kit_field(&kit, (qk_prec_t)prec, KIT_LANES, false, QK_FULL);
    kit_field_t out = kit_field(&kit, (qk_prec_t)prec, KIT_LANES, false, QK_FULL);
    kit_fill_lanes(&kit, &in.v);
    const qk_gauss_args_t a = step(&kit, &u, &in.v, &out.v);
    run(&kit, &a);
    kit_expect_lanes_apart(&kit, &out.v);
    kit_field_free(&kit, &out);
    kit_field_free(&kit, &in);
    kit_free(&kit, u.data);
  }
  kit_close(&kit);
}

/* ---- links in other forms ---- */

static void *fetched(const kit_t *kit, const void *device, size_t bytes) {
  void *host = malloc(bytes);
  cr_assert_not_null(host);
  kit_must(kit, kit->ops->copy(kit->ctx, host, device, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  return host;
}

static void expect_same_links(const kit_t *kit, const qk_links_t *a, const qk_links_t *b) {
  const size_t bytes = kit->ops->links_bytes(&kit->lat, a->prec, a->reals);
  void *x = fetched(kit, a->data, bytes), *y = fetched(kit, b->data, bytes);
  cr_expect_eq(memcmp(x, y, bytes), 0, "precision %d, %d reals", (int)a->prec, a->reals);
  free(y);
  free(x);
}

/* The links of the kit as a field without halo. */
static qk_linkfield_t linkfield(const kit_t *kit) {
  const size_t bytes = (size_t)kit->volume * 36 * sizeof *kit->links;
  qk_linkfield_t u = {.data = kit_alloc(kit, bytes), .halo = 1};
  void *sites = kit_alloc(kit, bytes);
  memcpy(u.e, kit->lat.l, sizeof u.e);
  const qk_link_copy_args_t a = {
      .lat = kit->lat, .u = u, .directions = 4, .sites = sites, .n = kit->volume};
  kit_must(kit, kit->ops->copy(kit->ctx, sites, kit->links, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  kit_must(kit, kit->ops->link_import(kit->ctx, &a), "link_import");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, sites);
  return u;
}

Test(smear, takes_links_of_a_field_as_those_of_a_configuration) {
  const int dims[4] = {4, 6, 2, 8};
  double complex *links = kit_random_links(dims, 0.7, 4);
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  qk_linkfield_t u = linkfield(&kit);
  qk_links_t own = kit_links(&kit, QK_DOUBLE, 18), got = kit_links(&kit, QK_DOUBLE, 18);
  kit_must(
      &kit,
      kit.ops->zero(kit.ctx, (void *)got.data, kit.ops->links_bytes(&kit.lat, QK_DOUBLE, 18), 0),
      "zero");
  const qk_links_from_field_args_t set = {.lat = kit.lat, .u = u, .out = got};
  kit_must(&kit, kit.ops->links_from_field(kit.ctx, &set), "links_from_field");
  expect_same_links(&kit, &got, &own);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int reals = 12; reals <= 18; reals += 6) {
      qk_links_t want = kit_links(&kit, (qk_prec_t)prec, reals), other = want;
      const size_t bytes = kit.ops->links_bytes(&kit.lat, (qk_prec_t)prec, reals);
      other.data = kit_alloc(&kit, bytes);
      const qk_links_convert_args_t convert = {.lat = kit.lat, .in = own, .out = other};
      kit_must(&kit, kit.ops->links_convert(kit.ctx, &convert), "links_convert");
      expect_same_links(&kit, &other, &want);
      kit_free(&kit, other.data);
      kit_free(&kit, want.data);
    }
  kit_free(&kit, got.data);
  kit_free(&kit, own.data);
  kit_free(&kit, u.data);
  kit_close(&kit);
  free(links);
}

/* ---- refusals ---- */

static void refuses_other_links(const kit_t *kit, const qk_links_t *single,
                                const qk_links_t *twelve, const qk_links_t *eight) {
  qk_links_convert_args_t convert = {.lat = kit->lat, .in = *single, .out = *twelve};
  kit_refused(kit, kit->ops->links_convert(kit->ctx, &convert), "links_convert");
  convert.in = *twelve;
  convert.out = *eight;
  kit_refused(kit, kit->ops->links_convert(kit->ctx, &convert), "reals 12 to 8");
}

Test(smear, refuses_what_does_not_fit) {
  const int dims[4] = {4, 4, 4, 4};
  double complex *links = kit_random_links(dims, 0.5, 4);
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  qk_links_t u = kit_links(&kit, QK_SINGLE, 12), eight = kit_links(&kit, QK_SINGLE, 8);
  qk_links_t other = kit_links(&kit, QK_DOUBLE, 12);
  kit_field_t in = random_field(&kit, QK_SINGLE, 3, false);
  kit_field_t out = kit_field(&kit, QK_SINGLE, 3, false, QK_FULL);
  kit_field_t more = kit_field(&kit, QK_SINGLE, 4, false, QK_FULL);
  const qk_gauss_args_t good = step(&kit, &u, &in.v, &out.v);
  qk_gauss_args_t a = good;
#define REFUSED(change, said)                                                                      \
  a = good;                                                                                        \
  change;                                                                                          \
  kit_refused(&kit, kit.ops->gauss(kit.ctx, &a), said)
  REFUSED(a.links = eight, "reals must be 18 or 12");
  REFUSED(a.links = other, "other precision");
  REFUSED(a.links.data = NULL, "links: absent");
  REFUSED(a.out = in.v, "in: may not be out");
  REFUSED(a.in = more.v, "another block");
  REFUSED(a.in.data = NULL, "absent");
  REFUSED(a.lat.split[3] = 1, "split[3] must be 0");
  REFUSED(a.lat.split[1] = 1, "ghost: absent");
  REFUSED(a.in = kit_half(&kit, &in.v, 0), "nsites");
#undef REFUSED
  refuses_other_links(&kit, &u, &other, &eight);
  qk_linkfield_t f = linkfield(&kit), g = linkfield(&kit);
  const qk_links_from_field_args_t set = {.lat = kit.lat, .u = f, .out = other};
  kit_refused(&kit, kit.ops->links_from_field(kit.ctx, &set), "18 reals in double");

  qk_link_smear_args_t fine = {.lat = kit.lat, .u = f, .out = g, .mask = 15, .own = 1}, s = fine;
  s.mask = 16;
  kit_refused(&kit, kit.ops->link_smear(kit.ctx, &s), "mask = 16");
  s = fine;
  s.side[1][2] = f.data;
  kit_refused(&kit, kit.ops->link_smear(kit.ctx, &s), "staples of direction 1 along 2");
  s.top[1][2] = g.data;
  kit_refused(&kit, kit.ops->link_smear(kit.ctx, &s), "not out");
  s = fine;
  s.side[3][3] = s.top[3][3] = f.data;
  kit_refused(&kit, kit.ops->link_smear(kit.ctx, &s), "staples of direction 3 along 3");
  s = fine;
  s.u.data = NULL;
  kit_refused(&kit, kit.ops->link_smear(kit.ctx, &s), "no data");

  kit_free(&kit, g.data);
  kit_free(&kit, f.data);
  kit_field_free(&kit, &more);
  kit_field_free(&kit, &out);
  kit_field_free(&kit, &in);
  kit_free(&kit, other.data);
  kit_free(&kit, eight.data);
  kit_free(&kit, u.data);
  kit_close(&kit);
  free(links);
}
