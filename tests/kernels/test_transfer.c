/* Prolongator and restrictor on one backend, against plain loops over the
 * formulas of cuda/mg_ops.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/mg_kit.h"

static const int whole[4] = {0, 0, 0, 0};
static const int smallest[4] = {2, 2, 2, 2};

typedef struct shape {
  int block[4], coarse[4];
  int ncomp, nvec;
  qk_prec_t vectors, fine;
  int nrhs;
  bool single_rhs;
} shape_t;

static const shape_t shapes[] = {
    {{3, 2, 2, 3}, {2, 2, 4, 4}, 12, 6, QK_SINGLE, QK_SINGLE, 3, false},
    {{3, 2, 2, 3}, {2, 2, 4, 4}, 12, 24, QK_HALF, QK_HALF, 1, true},
    {{1, 1, 2, 2}, {4, 2, 2, 6}, 12, 2, QK_HALF, QK_SINGLE, 1, true},
    {{1, 1, 2, 2}, {4, 2, 2, 6}, 12, 32, QK_SINGLE, QK_HALF, 8, false},
    {{4, 4, 4, 4}, {2, 2, 2, 2}, 12, 24, QK_HALF, QK_HALF, 16, false},
    {{4, 4, 4, 4}, {2, 2, 2, 2}, 12, 24, QK_HALF, QK_SINGLE, 20, false},
    {{4, 4, 4, 4}, {2, 2, 2, 2}, 12, 24, QK_SINGLE, QK_SINGLE, 1, true},
    {{2, 2, 2, 2}, {2, 2, 2, 2}, 48, 24, QK_HALF, QK_SINGLE, 8, false},
    {{2, 2, 2, 2}, {2, 2, 2, 2}, 48, 32, QK_HALF, QK_SINGLE, 1, true},
    {{2, 2, 2, 2}, {2, 2, 2, 2}, 64, 24, QK_SINGLE, QK_SINGLE, 9, false},
    {{3, 1, 1, 1}, {2, 2, 4, 4}, 4, 2, QK_SINGLE, QK_SINGLE, 1, false},
    {{1, 3, 1, 2}, {2, 2, 2, 4}, 20, 6, QK_HALF, QK_SINGLE, 33, false},
    {{2, 2, 2, 2}, {2, 2, 2, 2}, 12, 6, QK_HALF, QK_HALF, 1, false},
};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

static const char *text(const shape_t *s) {
  static char line[128];
  snprintf(line, sizeof line, "blocks %dx%dx%dx%d, %d to 2*%d, prec %d of %d, %d rhs%s",
           s->block[0], s->block[1], s->block[2], s->block[3], s->ncomp, s->nvec, (int)s->vectors,
           (int)s->fine, s->nrhs, s->single_rhs ? " (eight sites)" : "");
  return line;
}

/* Two levels, what joins them, and a block on each. */
typedef struct problem {
  shape_t s;
  kit_t fine, coarse;
  mg_block_t v; /* the vectors, as columns */
  mg_block_t psi, phi;
  qk_transfer_args_t args; /* all fine sites */
} problem_t;

static problem_t problem_open(const kit_t *kit, const shape_t *s) {
  int dims[4];
  for (int mu = 0; mu < 4; mu++) dims[mu] = s->block[mu] * s->coarse[mu];
  problem_t p = {.s = *s,
                 .fine = mg_level(kit, dims, whole, s->ncomp),
                 .coarse = mg_level(kit, s->coarse, whole, 2 * s->nvec)};
  p.v = mg_block(&p.fine, QK_SINGLE, s->nvec, false, 3);
  p.psi = mg_block(&p.fine, s->fine, s->nrhs, s->single_rhs, 4);
  p.phi = mg_block(&p.coarse, QK_SINGLE, s->nrhs, s->single_rhs, 5);
  qk_transfer_t *t = &p.args.t;
  *t = (qk_transfer_t){.agg = {.fine = p.fine.lat, .coarse = p.coarse.lat},
                       .prec = s->vectors,
                       .ncomp = s->ncomp,
                       .nvec = s->nvec};
  memcpy(t->agg.block, s->block, sizeof t->agg.block);
  t->data = kit_alloc(kit, kit->ops->transfer_bytes(t));
  const qk_transfer_copy_args_t copy = {.t = *t, .v = p.v.f.v};
  kit_must(kit, kit->ops->transfer_set(kit->ctx, &copy), "transfer_set");
  p.args.parity = QK_FULL;
  p.args.fine = p.psi.f.v;
  p.args.coarse = p.phi.f.v;
  return p;
}

static void problem_close(problem_t *p) {
  kit_free(&p->fine, p->args.t.data);
  mg_block_free(&p->fine, &p->v);
  mg_block_free(&p->fine, &p->psi);
  mg_block_free(&p->coarse, &p->phi);
}

/* Sites of a parity, through a view of that parity or the full field. */
static qk_transfer_args_t of_parity(const problem_t *p, qk_subset_t parity, bool view) {
  qk_transfer_args_t a = p->args;
  a.parity = parity;
  if (view && parity != QK_FULL) a.fine = kit_half(&p->fine, &a.fine, parity == QK_ODD);
  return a;
}

static bool takes_part(const problem_t *p, qk_subset_t parity, int64_t i) {
  return parity == QK_FULL || mg_parity(&p->fine, i) == (int)parity;
}

static int64_t aggregate_of(const problem_t *p, int64_t i) {
  int x[4];
  mg_coords(&p->fine, i, x);
  for (int mu = 0; mu < 4; mu++) x[mu] /= p->s.block[mu];
  return mg_site(&p->coarse, x);
}

static void plain_restrict(const problem_t *p, qk_subset_t parity, const double complex *psi,
                           double complex *phi) {
  const int half = p->s.ncomp / 2, nvec = p->s.nvec;
  memset(phi, 0, kit_components(&p->coarse) * sizeof *phi);
  for (int64_t i = 0; i < p->fine.volume; i++) {
    if (!takes_part(p, parity, i)) continue;
    double complex *to = phi + aggregate_of(p, i) * 2 * nvec;
    for (int c = 0; c < p->s.ncomp; c++)
      for (int v = 0; v < nvec; v++)
        to[c / half * nvec + v] += conj(p->v.x[v][i * p->s.ncomp + c]) * psi[i * p->s.ncomp + c];
  }
}

static void plain_prolong(const problem_t *p, const double complex *phi, double complex *psi) {
  const int half = p->s.ncomp / 2, nvec = p->s.nvec;
  for (int64_t i = 0; i < p->fine.volume; i++) {
    const double complex *from = phi + aggregate_of(p, i) * 2 * nvec;
    for (int c = 0; c < p->s.ncomp; c++) {
      double complex sum = 0;
      for (int v = 0; v < nvec; v++)
        sum += p->v.x[v][i * p->s.ncomp + c] * from[c / half * nvec + v];
      psi[i * p->s.ncomp + c] = sum;
    }
  }
}

/* psi with what is prolonged in place of, or added to, the sites of a parity. */
static void plain_update(const problem_t *p, qk_subset_t parity, bool add,
                         const double complex *prolonged, double complex *psi) {
  for (int64_t i = 0; i < p->fine.volume; i++)
    for (int64_t c = i * p->s.ncomp; takes_part(p, parity, i) && c < (i + 1) * p->s.ncomp; c++)
      psi[c] = (add ? psi[c] : 0) + prolonged[c];
}

static void run_restrict(const problem_t *p, const qk_transfer_args_t *a) {
  kit_must(&p->fine, p->fine.ops->restrict_(p->fine.ctx, a), "restrict");
}

static void run_prolong(const problem_t *p, const qk_transfer_args_t *a) {
  kit_must(&p->fine, p->fine.ops->prolong(p->fine.ctx, a), "prolong");
}

/* The check of each shape. */
static void each_shape(void (*check)(const problem_t *p)) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (int i = 0; i < NSHAPES; i++) {
    problem_t p = problem_open(&kit, &shapes[i]);
    check(&p);
    problem_close(&p);
  }
  kit_close(&kit);
}

static void vectors_are_kept(const problem_t *p) {
  kit_field_t back = kit_field(&p->fine, QK_SINGLE, p->s.nvec, false, QK_FULL);
  const qk_transfer_copy_args_t copy = {.t = p->args.t, .v = back.v};
  kit_must(&p->fine, p->fine.ops->transfer_get(p->fine.ctx, &copy), "transfer_get");
  double complex *got = kit_vector(&p->fine);
  for (int v = 0; v < p->s.nvec; v++) {
    kit_export(&p->fine, &back.v, v, got);
    cr_expect_eq(mg_off(got, p->v.x[v], kit_components(&p->fine)), 0, "%s: vector %d", text(&p->s),
                 v);
  }
  free(got);
  kit_field_free(&p->fine, &back);
}

Test(transfer, keeps_the_vectors) {
  each_shape(vectors_are_kept);
}

/* As many vectors from `first` on as a piece has. */
static int piece(const problem_t *p, int first) {
  return p->s.nvec - first < QK_TILE ? p->s.nvec - first : QK_TILE;
}

/* Vectors set in pieces, last ones first, are those set at once, and come back in pieces. */
static void pieces_make_the_whole(const problem_t *p) {
  const kit_t *kit = &p->fine;
  const size_t bytes = kit->ops->transfer_bytes(&p->args.t);
  qk_transfer_t t = p->args.t;
  t.data = kit_alloc(kit, bytes);
  for (int first = (p->s.nvec - 1) / QK_TILE * QK_TILE; first >= 0; first -= QK_TILE) {
    kit_field_t f = kit_field(kit, QK_SINGLE, piece(p, first), false, QK_FULL);
    const qk_transfer_copy_args_t copy = {.t = t, .v = f.v, .first = first};
    for (int i = 0; i < f.v.nrhs; i++) kit_import(kit, &f.v, i, p->v.x[first + i]);
    kit_must(kit, kit->ops->transfer_set(kit->ctx, &copy), "transfer_set");
    kit_field_free(kit, &f);
  }
  uint8_t *once = malloc(bytes), *pieces = malloc(bytes);
  cr_assert(once && pieces);
  kit_must(kit, kit->ops->copy(kit->ctx, once, p->args.t.data, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->copy(kit->ctx, pieces, t.data, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "sync");
  cr_expect_eq(memcmp(once, pieces, bytes), 0, "%s", text(&p->s));
  free(pieces);
  free(once);
  double complex *got = kit_vector(kit);
  for (int first = 0; first < p->s.nvec; first += QK_TILE) {
    kit_field_t f = kit_field(kit, QK_SINGLE, piece(p, first), false, QK_FULL);
    const qk_transfer_copy_args_t copy = {.t = t, .v = f.v, .first = first};
    kit_must(kit, kit->ops->transfer_get(kit->ctx, &copy), "transfer_get");
    for (int i = 0; i < f.v.nrhs; i++) {
      kit_export(kit, &f.v, i, got);
      cr_expect_eq(mg_off(got, p->v.x[first + i], kit_components(kit)), 0, "%s: vector %d",
                   text(&p->s), first + i);
    }
    kit_field_free(kit, &f);
  }
  free(got);
  kit_free(kit, t.data);
}

Test(transfer, takes_and_gives_vectors_in_pieces) {
  each_shape(pieces_make_the_whole);
}

static void expect_near(const problem_t *p, int k, int rhs, const double complex *got,
                        const double complex *want, size_t size) {
  const double off = mg_off(got, want, size);
  cr_expect(off < (p->s.fine == QK_HALF ? 1e-3 : 1e-6), "%s: case %d, rhs %d: off by %g",
            text(&p->s), k, rhs, off);
}

static void is_restricted_like_plain_loops(const problem_t *p) {
  double complex *got = kit_vector(&p->coarse), *want = kit_vector(&p->coarse);
  for (int parity = QK_EVEN; parity <= QK_FULL; parity++)
    for (int view = 0; view < (parity == QK_FULL ? 1 : 2); view++) {
      const qk_transfer_args_t a = of_parity(p, (qk_subset_t)parity, view);
      run_restrict(p, &a);
      for (int rhs = 0; rhs < p->s.nrhs; rhs++) {
        plain_restrict(p, (qk_subset_t)parity, p->psi.x[rhs], want);
        kit_export(&p->coarse, &a.coarse, rhs, got);
        expect_near(p, parity, rhs, got, want, kit_components(&p->coarse));
      }
    }
  free(got);
  free(want);
}

Test(transfer, restricts_like_plain_loops) {
  each_shape(is_restricted_like_plain_loops);
}

static void is_prolonged_like_plain_loops(const problem_t *p) {
  const size_t size = kit_components(&p->fine);
  double complex *got = kit_vector(&p->fine), *want = kit_vector(&p->fine);
  double complex *prolonged = malloc((size_t)p->s.nrhs * size * sizeof *prolonged);
  cr_assert_not_null(prolonged);
  for (int rhs = 0; rhs < p->s.nrhs; rhs++)
    plain_prolong(p, p->phi.x[rhs], prolonged + (size_t)rhs * size);
  for (int k = 0; k < 12; k++) {
    const qk_subset_t parity = (qk_subset_t)(k % 3);
    qk_transfer_args_t a = of_parity(p, parity, k % 2);
    a.add = k >= 6;
    for (int rhs = 0; rhs < p->s.nrhs; rhs++) kit_import(&p->fine, &p->psi.f.v, rhs, p->psi.x[rhs]);
    run_prolong(p, &a);
    for (int rhs = 0; rhs < p->s.nrhs; rhs++) {
      memcpy(want, p->psi.x[rhs], size * sizeof *want);
      plain_update(p, parity, a.add, prolonged + (size_t)rhs * size, want);
      kit_export(&p->fine, &p->psi.f.v, rhs, got);
      expect_near(p, k, rhs, got, want, size);
    }
  }
  free(prolonged);
  free(got);
  free(want);
}

Test(transfer, prolongs_like_plain_loops) {
  each_shape(is_prolonged_like_plain_loops);
}

Test(transfer, keeps_right_hand_sides_apart) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (int i = 0; i < NSHAPES; i++) {
    if (shapes[i].nrhs < 2) continue;
    problem_t p = problem_open(&kit, &shapes[i]);
    const size_t nc = kit_components(&p.coarse), nf = kit_components(&p.fine);
    const int nrhs = p.s.nrhs, bad = nrhs / 2;
    double complex *down = malloc((size_t)nrhs * nc * sizeof *down), *got_c = kit_vector(&p.coarse);
    double complex *up = malloc((size_t)nrhs * nf * sizeof *up), *got_f = kit_vector(&p.fine);
    mg_block_t to = mg_block(&p.coarse, QK_SINGLE, nrhs, p.s.single_rhs, 6);
    mg_block_t out = mg_block(&p.fine, p.s.fine, nrhs, p.s.single_rhs, 7);
    qk_transfer_args_t a = p.args, b = p.args;
    a.coarse = to.f.v;
    b.fine = out.f.v;
    run_restrict(&p, &a);
    run_prolong(&p, &b);
    for (int rhs = 0; rhs < nrhs; rhs++) {
      kit_export(&p.coarse, &a.coarse, rhs, down + (size_t)rhs * nc);
      kit_export(&p.fine, &b.fine, rhs, up + (size_t)rhs * nf);
    }
    for (size_t k = 0; k < nf; k++) got_f[k] = k % 7 ? 1e4 : NAN;
    for (size_t k = 0; k < nc; k++) got_c[k] = k % 7 ? 1e30 : NAN;
    kit_import(&p.fine, &p.psi.f.v, bad, got_f);
    kit_import(&p.coarse, &p.phi.f.v, bad, got_c);
    run_restrict(&p, &a);
    run_prolong(&p, &b);
    for (int rhs = 0; rhs < nrhs; rhs++) {
      kit_export(&p.coarse, &a.coarse, rhs, got_c);
      kit_export(&p.fine, &b.fine, rhs, got_f);
      if (rhs == bad) {
        cr_expect(isnan(creal(got_c[0])) && isnan(creal(got_f[0])), "NaN has been lost");
        continue;
      }
      cr_expect(mg_same_bits(got_c, down + (size_t)rhs * nc, nc), "%s: restrict changed rhs %d",
                text(&shapes[i]), rhs);
      cr_expect(mg_same_bits(got_f, up + (size_t)rhs * nf, nf), "%s: prolong changed rhs %d",
                text(&shapes[i]), rhs);
    }
    free(down);
    free(up);
    free(got_c);
    free(got_f);
    mg_block_free(&p.coarse, &to);
    mg_block_free(&p.fine, &out);
    problem_close(&p);
  }
  kit_close(&kit);
}

/* ---- invariants ------------------------------------------------------------------------------ */

static double complex dot(const double complex *a, const double complex *b, size_t n) {
  double complex sum = 0;
  for (size_t i = 0; i < n; i++) sum += conj(a[i]) * b[i];
  return sum;
}

/* Vectors of the problem replaced by orthonormal ones without short digits. */
static void make_orthonormal(const problem_t *p, bool *possible) {
  const kit_t *kit = &p->fine;
  int64_t dependent = -1, sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= p->s.block[mu];
  *possible = sites * p->s.ncomp / 2 >= 2 * p->s.nvec;
  if (!*possible) return;
  const qk_orthonormalise_args_t args = {
      .agg = p->args.t.agg, .v = p->v.f.v, .dependent = &dependent};
  const qk_transfer_copy_args_t copy = {.t = p->args.t, .v = p->v.f.v};
  kit_must(kit, kit->ops->orthonormalise(kit->ctx, &args), "orthonormalise");
  cr_assert_eq(dependent, 0, "%s: %lld dependent", text(&p->s), (long long)dependent);
  kit_must(kit, kit->ops->transfer_set(kit->ctx, &copy), "transfer_set");
}

/* The storage of the vectors, and products in tf32. */
Test(transfer, restriction_undoes_prolongation_of_orthonormal_vectors) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (int i = 0; i < NSHAPES; i++) {
    bool possible;
    problem_t p = problem_open(&kit, &shapes[i]);
    make_orthonormal(&p, &possible);
    const double most = p.s.vectors == QK_HALF || p.s.fine == QK_HALF ? 2e-3 : 1e-3;
    double complex *got = kit_vector(&p.coarse);
    run_prolong(&p, &p.args);
    run_restrict(&p, &p.args);
    for (int rhs = 0; rhs < p.s.nrhs && possible; rhs++) {
      kit_export(&p.coarse, &p.args.coarse, rhs, got);
      const double off = mg_off(got, p.phi.x[rhs], kit_components(&p.coarse));
      cr_expect(off < most, "%s: rhs %d: off by %g", text(&shapes[i]), rhs, off);
    }
    free(got);
    problem_close(&p);
  }
  kit_close(&kit);
}

Test(transfer, restrictor_is_the_adjoint_of_the_prolongator) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (int i = 0; i < NSHAPES; i++) {
    if (shapes[i].fine == QK_HALF) continue;
    problem_t p = problem_open(&kit, &shapes[i]);
    mg_block_t to = mg_block(&p.coarse, QK_SINGLE, p.s.nrhs, p.s.single_rhs, 6);
    double complex *r = kit_vector(&p.coarse), *q = kit_vector(&p.fine);
    qk_transfer_args_t a = p.args;
    a.coarse = to.f.v;
    run_restrict(&p, &a);
    run_prolong(&p, &p.args);
    for (int rhs = 0; rhs < p.s.nrhs; rhs++) {
      kit_export(&p.coarse, &to.f.v, rhs, r);
      kit_export(&p.fine, &p.args.fine, rhs, q);
      const double complex x = dot(r, p.phi.x[rhs], kit_components(&p.coarse));
      const double complex y = dot(p.psi.x[rhs], q, kit_components(&p.fine));
      const double size = sqrt(creal(dot(q, q, kit_components(&p.fine))) *
                               creal(dot(p.psi.x[rhs], p.psi.x[rhs], kit_components(&p.fine))));
      cr_expect(cabs(x - y) < 1e-6 * size, "%s: rhs %d: %g of %g", text(&shapes[i]), rhs,
                cabs(x - y), size);
    }
    free(r);
    free(q);
    mg_block_free(&p.coarse, &to);
    problem_close(&p);
  }
  kit_close(&kit);
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define REFUSED(change, word)                                                                      \
  do {                                                                                             \
    qk_transfer_args_t a = p.args;                                                                 \
    change;                                                                                        \
    kit_refused(&p.fine, p.fine.ops->prolong(p.fine.ctx, &a), word);                               \
    kit_refused(&p.fine, p.fine.ops->restrict_(p.fine.ctx, &a), word);                             \
  } while (0)

Test(transfer, refuses_descriptors_that_do_not_fit) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  problem_t p = problem_open(&kit, &shapes[0]);
  REFUSED(a.t.agg.block[1] = 3, "block[1] = 3");
  REFUSED(a.t.agg.coarse.vcb = 8, "vcb");
  REFUSED(a.t.data = NULL, "no data");
  REFUSED(a.t.prec = QK_DOUBLE, "prec = 0");
  REFUSED(a.t.ncomp = 10, "ncomp = 10");
  REFUSED(a.t.nvec = 3, "nvec = 3");
  REFUSED(a.t.nvec = 66, "nvec = 66");
  REFUSED(a.parity = (qk_subset_t)4, "parity = 4");
  REFUSED(a.fine.subset = QK_ODD, "subset = 1");
  REFUSED(a.fine.nsites = 8, "nsites = 8");
  REFUSED(a.fine.prec = QK_DOUBLE, "fine: prec = 0");
  REFUSED(a.fine.data = NULL, "fine has no data");
  REFUSED(a.coarse.ncomp = 24, "coarse: ncomp = 24");
  REFUSED(a.coarse.nrhs = 2, "coarse: nrhs, ntile = 2, 1");
  REFUSED(a.coarse.prec = QK_DOUBLE, "coarse: prec = 0");
  qk_transfer_copy_args_t copy = {.t = p.args.t, .v = p.v.f.v};
  copy.v.nrhs = 5;
  cr_expect_eq(kit.ops->transfer_set(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(kit.ops->last_error(kit.ctx), "nrhs = 5"));
  copy.v = p.v.f.v;
  copy.first = 8;
  cr_expect_eq(kit.ops->transfer_get(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(kit.ops->last_error(kit.ctx), "first = 8"));
  copy.first = 0;
  copy.v.prec = QK_DOUBLE;
  cr_expect_eq(kit.ops->transfer_get(kit.ctx, &copy), QK_BAD_ARGUMENT);
  problem_close(&p);
  kit_close(&kit);
}
