/* The operator with hops left out, against plain loops: chosen directions, and blocks of sites
 * without hops between them. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

static const int whole[4] = {0, 0, 0, 0};
static const double antiperiodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}};
static const double twisted[4][2] = {{0.8, 0.6}, {1, 0}, {0, 1}, {-0.6, 0.8}};

/* What a call leaves out. */
typedef struct mask {
  uint32_t hops;
  int32_t block[4];
} mask_t;

/* ---- plain loops ---- */

/* gamma_mu psi in the DeGrand-Rossi basis: [[0, B], [B^+, 0]]. */
static void gamma_times(int mu, const double complex psi[12], double complex out[12]) {
  static const double complex b[4][2][2] = {
      {{0, I}, {I, 0}}, {{0, -1}, {1, 0}}, {{I, 0}, {0, -I}}, {{1, 0}, {0, 1}}};
  for (int s = 0; s < 2; s++)
    for (int c = 0; c < 3; c++) {
      out[3 * s + c] = b[mu][s][0] * psi[6 + c] + b[mu][s][1] * psi[9 + c];
      out[6 + 3 * s + c] = conj(b[mu][0][s]) * psi[c] + conj(b[mu][1][s]) * psi[3 + c];
    }
}

/* out += one hop: (1 + g gamma_mu) U psi, or U^+ (back), times a phase. */
static void add_hop(const double complex *u, bool back, int mu, double g, double complex phase,
                    const double complex *psi, double complex *out) {
  double complex turned[12], gamma[12];
  for (int s = 0; s < 4; s++)
    for (int r = 0; r < 3; r++) {
      turned[3 * s + r] = 0;
      for (int c = 0; c < 3; c++)
        turned[3 * s + r] += (back ? conj(u[3 * c + r]) : u[3 * r + c]) * psi[3 * s + c];
    }
  gamma_times(mu, turned, gamma);
  for (int k = 0; k < 12; k++) out[k] += phase * (turned[k] + g * gamma[k]);
}

/* out = sum of the hops that take part. Sites that face each other across a split direction are of
 * different blocks. */
static void plain_hops(const kit_t *kit, mask_t m, bool dagger, const double phase[4][2],
                       const double complex *psi, double complex *out) {
  memset(out, 0, kit_components(kit) * sizeof *out);
  for (int64_t n = 0; n < kit->volume; n++)
    for (int d = 0; d < 8; d++) {
      int64_t stride = 1;
      const int mu = d / 2, back = d % 2, l = kit->lat.l[mu];
      for (int nu = 0; nu < mu; nu++) stride *= kit->lat.l[nu];
      const int x = (int)(n / stride % l), to = (x + (back ? l - 1 : 1)) % l;
      const bool edge = back ? x == 0 : x == l - 1;
      const int64_t other = n + (to - x) * stride;
      if (m.hops != 0 && !(m.hops >> d & 1)) continue;
      if (m.block[mu] > 0 && (x / m.block[mu] != to / m.block[mu] || (edge && kit->lat.split[mu])))
        continue;
      const double complex turn = edge ? CMPLX(phase[mu][0], phase[mu][1]) : 1;
      const double g = back != dagger ? 1 : -1;
      add_hop(kit->links + ((back ? other : n) * 4 + mu) * 9, back, mu, g, back ? conj(turn) : turn,
              psi + other * 12, out + n * 12);
    }
}

/* ---- calls ---- */

/* How a call is made. */
typedef struct way {
  qk_prec_t prec;
  int nrhs;
  bool single_rhs, dagger, twisted;
  qk_subset_t parity;
} way_t;

static void expect_hops(const kit_t *kit, way_t w, mask_t m) {
  kit_field_t in = kit_field(kit, w.prec, w.nrhs, w.single_rhs, QK_FULL), ghost[4][2] = {0};
  kit_field_t out = kit_field(kit, w.prec, w.nrhs, w.single_rhs, QK_FULL);
  const double(*phase)[2] = w.twisted ? twisted : antiperiodic;
  double complex *psi = kit_vector(kit), *want = kit_vector(kit), *got = kit_vector(kit);
  kit_random(kit, 3, psi);
  kit_import(kit, &in.v, w.nrhs - 1, psi);
  plain_hops(kit, m, w.dagger, phase, psi, want);
  qk_hop_args_t a = kit_dirac(kit, w.dagger, phase);
  a.links = kit_links(kit, w.prec, 18);
  a.hops = m.hops;
  memcpy(a.block, m.block, sizeof a.block);
  a.c_hop = 1;
  a.c_z = 0;
  a.out_parity = w.parity;
  a.in = w.parity == QK_FULL ? in.v : kit_half(kit, &in.v, w.parity == QK_EVEN);
  a.out = w.parity == QK_FULL ? out.v : kit_half(kit, &out.v, w.parity == QK_ODD);
  kit_own_ghosts(kit, &a, ghost);
  for (int mu = 0; mu < 4; mu++) /* where hops end at blocks nothing may be read */
    if (m.block[mu] > 0) memset(a.ghost[mu], 0, sizeof a.ghost[mu]);
  kit_must(kit, kit->ops->hop(kit->ctx, &a), "hop");
  kit_export(kit, &out.v, w.nrhs - 1, got);
  for (int64_t n = 0; n < kit->volume; n++)
    if (w.parity != QK_FULL && kit_index(kit, n) / kit->lat.vcb != w.parity)
      memset(want + n * 12, 0, 12 * sizeof *want);
  const double off = kit_distance(kit, got, want);
  cr_expect(off < kit_tolerance(w.prec, 18),
            "hops %02x, block %d %d %d %d, prec %d, nrhs %d%s%s, parity %d: off by %g", m.hops,
            m.block[0], m.block[1], m.block[2], m.block[3], w.prec, w.nrhs,
            w.single_rhs ? " single RHS" : "", w.dagger ? " dagger" : "", w.parity, off);
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && kit->lat.split[mu]; side++)
      kit_field_free(kit, &ghost[mu][side]);
  kit_free(kit, a.links.data);
  kit_field_free(kit, &in);
  kit_field_free(kit, &out);
  free(psi);
  free(want);
  free(got);
}

static void expect_all(const kit_t *kit, mask_t m) {
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int k = 0; k < 3; k++) {
      const bool odd = (prec + k) % 2;
      const way_t w = {.prec = (qk_prec_t)prec,
                       .nrhs = k == 0 ? 1 : 3 * k,
                       .single_rhs = k == 0,
                       .dagger = odd,
                       .twisted = !odd,
                       .parity = (qk_subset_t)((prec + 2 * k) % 3)};
      expect_hops(kit, w, m);
    }
}

static void open_random(kit_t *kit, const int dims[4], const int split[4]) {
  double complex *links = kit_random_links(dims, 0.5, 5);
  kit_open(kit, dims, split, links);
  free(links);
}

/* ---- properties ---- */

static const mask_t masks[] = {
    {0xff, {0, 0, 0, 0}}, {0x0f, {0, 0, 0, 0}}, {0xaa, {0, 0, 0, 0}}, {0, {2, 2, 2, 2}},
    {0, {4, 6, 4, 4}},    {0, {4, 3, 1, 0}},    {0x5a, {2, 0, 4, 4}},
};
enum { MASKS = sizeof masks / sizeof masks[0] };

Test(hop_masks, single_directions_agree_with_plain_loops) {
  kit_t kit;
  open_random(&kit, (int[]){4, 6, 4, 8}, whole);
  for (int d = 0; d < 8; d++) expect_all(&kit, (mask_t){.hops = 1u << d});
  kit_close(&kit);
}

Test(hop_masks, chosen_hops_and_blocks_agree_with_plain_loops) {
  kit_t kit;
  open_random(&kit, (int[]){4, 6, 4, 8}, whole);
  for (int i = 0; i < MASKS; i++) expect_all(&kit, masks[i]);
  kit_close(&kit);
}

Test(hop_masks, agree_with_plain_loops_where_neighbours_are_ghosts) {
  static const int splits[][4] = {{1, 1, 1, 1}, {0, 1, 0, 1}};
  for (int s = 0; s < 2; s++) {
    kit_t kit;
    open_random(&kit, (int[]){4, 6, 4, 8}, splits[s]);
    for (int d = 0; d < 8; d++) expect_all(&kit, (mask_t){.hops = 1u << d});
    for (int i = 0; i < MASKS; i++) expect_all(&kit, masks[i]);
    kit_close(&kit);
  }
}

/* With NaN on one block of sites the others stay finite: nothing of it is read into them. */
Test(hop_masks, blocks_do_not_see_each_other) {
  kit_t kit;
  open_random(&kit, (int[]){4, 4, 4, 4}, whole);
  double complex *v = kit_vector(&kit);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int single_rhs = 0; single_rhs < 2; single_rhs++) {
      kit_field_t in = kit_field(&kit, (qk_prec_t)prec, 1, single_rhs, QK_FULL);
      kit_field_t out = kit_field(&kit, (qk_prec_t)prec, 1, single_rhs, QK_FULL);
      kit_random(&kit, 3, v);
      for (int64_t i = 0; i < 12 * kit.volume; i++)
        if (i / 12 % 4 < 2) v[i] = NAN; /* x = 0, 1 */
      kit_import(&kit, &in.v, 0, v);
      qk_hop_args_t a = kit_dirac(&kit, false, antiperiodic);
      a.links = kit_links(&kit, (qk_prec_t)prec, 12);
      a.block[0] = 2;
      a.c_z = 0;
      a.in = in.v;
      a.out = out.v;
      kit_must(&kit, kit.ops->hop(kit.ctx, &a), "hop");
      kit_export(&kit, &out.v, 0, v);
      int64_t wrong = 0;
      for (int64_t i = 0; i < 12 * kit.volume; i++)
        wrong += (isfinite(creal(v[i])) != 0) != (i / 12 % 4 >= 2);
      cr_expect_eq(wrong, 0, "prec %d%s: %ld components", prec, single_rhs ? " single RHS" : "",
                   (long)wrong);
      kit_free(&kit, a.links.data);
      kit_field_free(&kit, &in);
      kit_field_free(&kit, &out);
    }
  free(v);
  kit_close(&kit);
}

Test(hop_masks, misfits_are_refused) {
  kit_t kit;
  open_random(&kit, (int[]){4, 6, 4, 8}, whole);
  kit_field_t in = kit_field(&kit, QK_SINGLE, 1, true, QK_FULL);
  kit_field_t out = kit_field(&kit, QK_SINGLE, 1, true, QK_FULL);
  qk_hop_args_t a = kit_dirac(&kit, false, antiperiodic);
  a.links = kit_links(&kit, QK_SINGLE, 12);
  a.c_z = 0;
  a.in = in.v;
  a.out = out.v;
  const mask_t bad[] = {{0x100, {0}}, {0, {3, 0, 0, 0}}, {0, {0, -2, 0, 0}}, {0, {0, 0, 0, 16}}};
  for (int i = 0; i < 4; i++) {
    a.hops = bad[i].hops;
    memcpy(a.block, bad[i].block, sizeof a.block);
    cr_expect_eq(kit.ops->hop(kit.ctx, &a), QK_BAD_ARGUMENT, "case %d", i);
    cr_expect(strstr(kit.ops->last_error(kit.ctx), i == 0 ? "hops" : "block") != NULL,
              "case %d: %s", i, kit.ops->last_error(kit.ctx));
  }
  kit_free(&kit, a.links.data);
  kit_field_free(&kit, &in);
  kit_field_free(&kit, &out);
  kit_close(&kit);
}
