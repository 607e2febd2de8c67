/* Chiralities, faces and parts of spinors of any number of components, against plain loops.
 * Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

/* ---- chiral ---- */

static void expect_chiral(const kit_t *kit, cut_t cut, double plus, double minus, bool in_place) {
  block_t in = block_make(kit, cut, 1), other = block_make(kit, cut, 2);
  block_t *out = in_place ? &in : &other;
  const qk_chiral_args_t args = {.plus = plus, .minus = minus, .in = in.v, .out = out->v};
  kit_must(kit, kit->ops->chiral(kit->ctx, &args), "chiral");
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    double complex *now = block_get(kit, out, rhs), *want = out->x[rhs];
    for (size_t i = 0; i < kit_components(kit); i++) {
      const bool first = i % (size_t)kit->ncomp < (size_t)kit->ncomp / 2;
      if (component_in(kit, cut.subset, i)) want[i] = (first ? plus : minus) * in.x[rhs][i];
    }
    const double off = block_off(kit, now, want);
    cr_expect(off <= blas_tolerance(cut.prec), "%s, ncomp %d: %g, %g%s: rhs %d is off by %g",
              cut_text(cut), kit->ncomp, plus, minus, in_place ? " in place" : "", rhs, off);
    free(now);
  }
  block_free(kit, &in);
  block_free(kit, &other);
}

static void check_chiral(const kit_t *kit) {
  static const double factors[][2] = {{1, -1}, {1, 0}, {0, 1}, {-0.75, 2.5}};
  for (int i = 0; i < ncuts; i++)
    for (int k = 0; k < 4 && cut_exists_without_colours(kit, cuts[i]); k++)
      expect_chiral(kit, cuts[i], factors[k][0], factors[k][1], (i + k) % 2);
}

Test(coarse_fields, chiral_multiplies_the_halves_of_a_spinor) {
  each_ncomp_of_spinors(check_chiral);
}

Test(coarse_fields, chiral_keeps_lanes_apart) {
  kit_t kit;
  block_kit_open(&kit);
  kit.ncomp = 20;
  block_t b = block_make(&kit, (cut_t){QK_SINGLE, 9, false, QK_FULL}, 1);
  double complex *bad = kit_vector(&kit);
  for (size_t i = 0; i < kit_components(&kit); i++) bad[i] = NAN;
  for (int rhs = 0; rhs < 9; rhs += 4) block_set(&kit, &b, rhs, bad);
  const qk_chiral_args_t args = {.plus = 1, .minus = 1, .in = b.v, .out = b.v};
  kit_must(&kit, kit.ops->chiral(kit.ctx, &args), "chiral");
  for (int rhs = 0; rhs < 9; rhs++) {
    double complex *now = block_get(&kit, &b, rhs);
    if (rhs % 4 == 0)
      cr_expect(isnan(creal(now[7])), "rhs %d", rhs);
    else
      cr_expect_arr_eq(now, b.x[rhs], kit_components(&kit) * sizeof *now, "rhs %d", rhs);
    free(now);
  }
  free(bad);
  block_free(&kit, &b);
  kit_close(&kit);
}

/* ---- coarse_pack ---- */

/* The sites of a parity on the face x[mu] = at, in their order, are the slots of
 * the ghost from `first`. */
static void expect_face(const kit_t *kit, const block_t *b, const qk_spinor_t *ghost, int mu,
                        int at, int parity, int64_t first) {
  void *words = kit_words(kit, ghost);
  int64_t stride = 1, slot = first, wrong = 0;
  for (int nu = 0; nu < mu; nu++) stride *= kit->lat.l[nu];
  for (int64_t site = 0; site < kit->volume; site++) {
    if (site / stride % kit->lat.l[mu] != at) continue;
    if (kit_index(kit, site) / kit->lat.vcb != parity) continue;
    for (int rhs = 0; rhs < b->v.nrhs; rhs++)
      for (int c = 0; c < kit->ncomp; c++)
        wrong += kit_number(kit, ghost, words, slot, rhs, c) != b->x[rhs][site * kit->ncomp + c];
    slot++;
  }
  cr_expect_eq(slot - first, kit->lat.face[mu]);
  cr_expect_eq(wrong, 0, "ncomp %d, nrhs %d, prec %d, mu %d, face %d, parity %d: %ld numbers wrong",
               kit->ncomp, b->v.nrhs, b->v.prec, mu, at, parity, (long)wrong);
  free(words);
}

static void expect_pack(const kit_t *kit, cut_t cut) {
  block_t b = block_make(kit, cut, 3);
  kit_field_t ghost[4][2] = {0};
  qk_coarse_pack_args_t args = {.lat = kit->lat, .in_parity = cut.subset, .in = b.v};
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && kit->lat.split[mu]; side++) {
      ghost[mu][side] = kit_ghost(kit, &b.v, mu, cut.subset, kit->ncomp);
      args.to[mu][side] = ghost[mu][side].v;
    }
  kit_must(kit, kit->ops->coarse_pack(kit->ctx, &args), "coarse_pack");
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && kit->lat.split[mu]; side++) {
      const qk_spinor_t *to = &ghost[mu][side].v;
      const int at = side ? kit->lat.l[mu] - 1 : 0;
      for (int parity = 0; parity < 2; parity++)
        if (cut.subset == QK_FULL || (int)cut.subset == parity)
          expect_face(kit, &b, to, mu, at, parity,
                      cut.subset == QK_FULL && parity ? to->nsites / 2 : 0);
      kit_field_free(kit, &ghost[mu][side]);
    }
  block_free(kit, &b);
}

static void check_pack(const int dims[4], const int split[4], int ncomp) {
  double complex *links = kit_random_links(dims, 0, 1);
  kit_t kit;
  kit_open(&kit, dims, split, links);
  kit.ncomp = ncomp;
  for (int i = 0; i < ncuts; i++)
    if (cuts[i].prec != QK_HALF) expect_pack(&kit, cuts[i]);
  kit_close(&kit);
  free(links);
}

Test(coarse_fields, faces_are_packed_in_the_order_of_ghosts) {
  static const int all[4] = {1, 1, 1, 1}, some[4] = {1, 0, 0, 1};
  check_pack((int[]){4, 6, 4, 8}, all, 4);
  check_pack((int[]){4, 4, 6, 4}, all, 20);
  check_pack((int[]){6, 2, 2, 4}, some, 8);
}

/* ---- parts of a whole lattice ---- */

/* Site of the whole lattice where site n of a part stands; lexicographic. */
static int64_t site_in(const kit_t *whole, const kit_t *part, int64_t n) {
  int64_t at = 0, x[4];
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = n % part->lat.l[mu] + part->lat.offset[mu];
    n /= part->lat.l[mu];
  }
  for (int mu = 3; mu >= 0; mu--) at = at * whole->lat.l[mu] + x[mu];
  return at;
}

/* What has become of a field of the whole lattice: the part's numbers at its sites if it is there,
 * else its own. */
static void expect_whole(const kit_t *kit, const kit_t *part, const block_t *now, const block_t *p,
                         bool there) {
  for (int rhs = 0; rhs < p->v.nrhs; rhs++) {
    const size_t bytes = (size_t)kit->ncomp * sizeof(double complex);
    double complex *got = block_get(kit, now, rhs), *want = now->x[rhs];
    for (int64_t n = 0; n < part->volume && there; n++)
      memcpy(want + site_in(kit, part, n) * kit->ncomp, p->x[rhs] + n * kit->ncomp, bytes);
    cr_expect_arr_eq(got, want, kit_components(kit) * sizeof *got, "ncomp %d, nrhs %d, rhs %d",
                     kit->ncomp, p->v.nrhs, rhs);
    free(got);
  }
}

/* The second half of turns is another field. */
static void expect_part(const kit_t *kit, const kit_t *part, cut_t cut) {
  block_t one = block_make(kit, cut, 1), two = block_make(kit, cut, 2),
          p = block_make(part, cut, 3);
  block_t other = block_make(kit, cut, 4);
  const uint32_t exchanges = 4;
  void *epoch = NULL;
  kit_must(kit, kit->ops->alloc(kit->ctx, sizeof exchanges, &epoch), "alloc");
  kit_must(kit, kit->ops->copy(kit->ctx, epoch, &exchanges, sizeof exchanges, QK_COPY_TO_DEVICE, 0),
           "copy");
  qk_part_args_t args = {.lat = part->lat,
                         .whole = kit->lat,
                         .part = p.v,
                         .n = 1,
                         .of = {one.v.data, other.v.data},
                         .turns = {epoch, (char *)two.v.data - (char *)one.v.data}};
  kit_must(kit, kit->ops->part_put(kit->ctx, &args), "part_put");
  expect_whole(kit, part, &one, &p, false);
  expect_whole(kit, part, &two, &p, true);
  args.n = 2;
  args.turns = (qk_turns_t){0};
  kit_must(kit, kit->ops->part_put(kit->ctx, &args), "part_put");
  expect_whole(kit, part, &one, &p, true);
  expect_whole(kit, part, &other, &p, true);
  block_t back = block_make(part, cut, 5);
  args.part = back.v;
  args.turns.epoch = epoch;
  kit_must(kit, kit->ops->part_get(kit->ctx, &args), "part_get");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync"); /* the part's is another */
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    double complex *got = block_get(part, &back, rhs);
    cr_expect_arr_eq(got, p.x[rhs], kit_components(part) * sizeof *got, "rhs %d", rhs);
    free(got);
  }
  kit->ops->free(kit->ctx, epoch);
  block_free(part, &back);
  block_free(part, &p);
  block_free(kit, &other);
  block_free(kit, &two);
  block_free(kit, &one);
}

static void check_parts(const int dims[4], const int local[4], const int offset[4], int ncomp) {
  static const int none[4] = {0};
  double complex *links = kit_random_links(dims, 0, 1), *few = kit_random_links(local, 0, 1);
  kit_t kit, part;
  kit_open(&kit, dims, none, links);
  kit_open(&part, local, none, few);
  kit.ncomp = part.ncomp = ncomp;
  memcpy(part.lat.offset, offset, sizeof part.lat.offset);
  for (int i = 0; i < ncuts; i++)
    if (cuts[i].prec != QK_HALF && cuts[i].subset == QK_FULL) expect_part(&kit, &part, cuts[i]);
  kit_close(&part);
  kit_close(&kit);
  free(few);
  free(links);
}

Test(coarse_fields, parts_go_to_their_sites_of_the_whole_and_back) {
  check_parts((int[]){4, 4, 2, 8}, (int[]){4, 2, 2, 2}, (int[]){0, 2, 0, 4}, 8);
  check_parts((int[]){6, 2, 4, 4}, (int[]){2, 2, 2, 4}, (int[]){4, 0, 2, 0}, 20);
  check_parts((int[]){2, 2, 4, 4}, (int[]){2, 2, 4, 4}, (int[]){0, 0, 0, 0}, 4);
}

Test(coarse_fields, parts_that_stand_elsewhere_are_refused) {
  kit_t kit;
  block_kit_open(&kit); /* 4x6x2x8 */
  block_t a = block_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL}, 1);
  const qk_part_args_t good = {
      .lat = kit.lat, .whole = kit.lat, .part = a.v, .n = 1, .of = {a.v.data}};
  qk_part_args_t bad[5] = {good, good, good, good, good};
  const char *const word[5] = {"offset[3]", "offset[1]", "n = 9", "of[1]", "subset"};
  bad[0].lat.offset[3] = 2;
  bad[1].lat.offset[1] = 1;
  bad[2].n = 9;
  bad[3].n = 2;
  bad[4].part.subset = QK_EVEN;
  for (int i = 0; i < 5; i++) {
    kit_refused(&kit, kit.ops->part_put(kit.ctx, &bad[i]), word[i]);
    kit_refused(&kit, kit.ops->part_get(kit.ctx, &bad[i]), word[i]);
  }
  block_free(&kit, &a);
  kit_close(&kit);
}

/* ---- refusals ---- */

Test(coarse_fields, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  block_t a = block_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL}, 1);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 3, false, QK_FULL}, 2);
  block_t c = block_make(&kit, (cut_t){QK_SINGLE, 2, false, QK_FULL}, 3);
  qk_spinor_t odd = a.v;
  odd.ncomp = 6;
  const struct {
    qk_spinor_t in, out;
    const char *word;
  } cases[] = {{a.v, b.v, "prec"}, {a.v, c.v, "nrhs"}, {odd, odd, "ncomp = 6"}, {a.v, {0}, "out"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const qk_chiral_args_t args = {.in = cases[i].in, .out = cases[i].out};
    kit_refused(&kit, kit.ops->chiral(kit.ctx, &args), cases[i].word);
    const qk_coarse_pack_args_t pack = {
        .lat = kit.lat, .in_parity = QK_FULL, .in = cases[i].in, .to = {{cases[i].out}}};
    if (cases[i].out.data == NULL) continue;
    cr_expect_eq(kit.ops->coarse_pack(kit.ctx, &pack), QK_BAD_ARGUMENT, "case %zu", i);
  }
  block_free(&kit, &a);
  block_free(&kit, &b);
  block_free(&kit, &c);
  kit_close(&kit);
}
