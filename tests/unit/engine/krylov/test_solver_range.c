/* Sources near the ends of what a double holds, with every solver; and where the numbers of a field
 * are found. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/extent.h"
#include "tests/support/staggered/colours.h"
#include "tests/unit/engine/krylov/solver_kit.h"

static const double one[4][4][2] = {
    {{1, 0}}, {{0, 0}, {1, 0}}, {{0, 0}, {0, 0}, {1, 0}}, {{0, 0}, {0, 0}, {0, 0}, {1, 0}}};

/* Random numbers times 2^exponent. */
static void put(const qk_rig_t *rig, qk_solver_t *solver, int slot, int exponent) {
  double *v = rig_vector(rig);
  rig_random(rig, 7, v);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] = ldexp(v[i], exponent);
  rig_import(rig, qk_solver_rhs(solver, slot), 0, v);
  qk_free(v);
}

/* Solutions are those of the source in the middle, to the bit, times the power of two. */
static void any_size(const char *method, qk_prec_t inner) {
  const int exponent[] = {-900, -550, -450, 100, 450, 520, 1000};
  enum { N = sizeof exponent / sizeof *exponent, MIDDLE = 3 };
  qk_rig_t rig;
  open_smooth(&rig);
  qk_solver_t *solver = rig_solver(&rig, method, inner, N);
  for (int i = 0; i < N; i++) put(&rig, solver, i, exponent[i]);
  for (int i = 0; i < N; i++) cr_assert_eq(qk_solver_fill(solver, i, 1e-10, 1000), QK_OK);
  rig_run(solver);
  double *middle = get_solution(&rig, solver, MIDDLE);
  const qk_slot_t *same = qk_solver_slot(solver, MIDDLE);
  cr_expect(same->status == QK_OK && same->iterations > 0);
  for (int i = 0; i < N; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    const int e = exponent[i] - exponent[MIDDLE];
    double *x = get_solution(&rig, solver, i);
    int wrong = 0;
    for (size_t c = 0; c < rig_reals(&rig); c++) wrong += x[c] != ldexp(middle[c], e);
    cr_expect_eq(wrong, 0, "%s, 2^%d: %d numbers are others", method, exponent[i], wrong);
    cr_expect(s->status == QK_OK && s->residual == same->residual && s->residual > 0,
              "%s, 2^%d: %s, %g", method, exponent[i], qk_status_name(s->status), s->residual);
    cr_expect_eq(s->norm_b, ldexp(same->norm_b, e), "%s, 2^%d: %g", method, exponent[i], s->norm_b);
    qk_free(x);
  }
  qk_free(middle);
  qk_solver_destroy(solver);
  rig_close(&rig);
}

Test(solver_range, bicgstab_solves_sources_of_any_size) {
  any_size("bicgstab", QK_HALF);
}
Test(solver_range, cg_solves_sources_of_any_size) {
  any_size("cg", QK_SINGLE);
}
Test(solver_range, gcr_solves_sources_of_any_size) {
  any_size("gcr", QK_DOUBLE);
}

/* ---- what cannot be solved for says why
 * -------------------------------------------------------------------- */

/* A source that is 0 but for the real number at [site][spin][colour][part], whose place the message
 * names. */
typedef struct single {
  int site[4], spin, colour, part;
  double value, tol;
  qk_status_t status;
  const char *says;
} single_t;

static size_t number_of(const qk_rig_t *rig, const single_t *l) {
  const int32_t *n = rig->geom.global;
  const size_t site =
      (size_t)(((l->site[3] * n[2] + l->site[2]) * n[1] + l->site[1]) * n[0] + l->site[0]);
  return site * 24 + (size_t)(l->spin * 6 + l->colour * 2 + l->part);
}

static void put_single(const qk_rig_t *rig, qk_solver_t *solver, int slot, const single_t *l) {
  double *v = rig_vector(rig);
  v[number_of(rig, l)] = l->value;
  rig_import(rig, qk_solver_rhs(solver, slot), 0, v);
  qk_free(v);
}

static const single_t single[] = {
    {{1, 2, 3, 0},
     3,
     2,
     0,
     NAN,
     1e-10,
     QK_NAN_INPUT,
     "NaN or Inf at x y z t = 1 2 3 0, spin 3, colour 2"},
    {{0, 0, 0, 0},
     0,
     0,
     0,
     INFINITY,
     1e-10,
     QK_NAN_INPUT,
     "at x y z t = 0 0 0 0, spin 0, colour 0"},
    {{3, 3, 3, 3},
     2,
     1,
     0,
     -INFINITY,
     1e-10,
     QK_NAN_INPUT,
     "at x y z t = 3 3 3 3, spin 2, colour 1"},
    {{0, 1, 2, 3},
     1,
     1,
     1,
     5e-324,
     1e-10,
     QK_BAD_ARGUMENT,
     "too small: its norm is 4.94e-324, its largest number 4.94e-324 at x y z t = 0 1 2 3, spin 1, "
     "colour 1"},
    {{0, 1, 2, 3}, 1, 1, 1, -1e-299, 1e-10, QK_BAD_ARGUMENT, "a norm of 2.23e-298"},
    {{0, 1, 2, 3}, 1, 1, 1, -1e-299, 1e-6, QK_OK, ""},
    {{0, 1, 2, 3}, 1, 1, 1, 1e307, 1e-6, QK_OK, ""},
};

Test(solver_range, what_cannot_be_solved_for_is_named_with_its_place) {
  enum { N = sizeof single / sizeof *single };
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++) {
    qk_solver_t *solver = rig_solver(&rig, solver_methods[k], QK_SINGLE, N);
    for (int i = 0; i < N; i++) put_single(&rig, solver, i, &single[i]);
    for (int i = 0; i < N; i++) cr_assert_eq(qk_solver_fill(solver, i, single[i].tol, 1000), QK_OK);
    rig_run(solver);
    for (int i = 0; i < N; i++) {
      const qk_slot_t *s = qk_solver_slot(solver, i);
      cr_expect(s->status == single[i].status && s->why.code == single[i].status, "%s, %g: %s",
                solver_methods[k], single[i].value, qk_status_name(s->status));
      cr_expect(strstr(s->why.text, single[i].says), "%g: %s", single[i].value, s->why.text);
      cr_expect((s->iterations > 0) == (single[i].status == QK_OK));
    }
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
}

Test(solver_range, a_norm_or_a_solution_that_overflows_is_refused) {
  qk_rig_t rig;
  open_smooth(&rig);
  rig_operator(&rig, 1e-3, 0, 1); /* nearly singular: x is much larger than b */
  double *v = rig_vector(&rig);
  qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_DOUBLE, 2);
  for (size_t i = 0; i < rig_reals(&rig); i++) v[i] = DBL_MAX / 2;
  rig_import(&rig, qk_solver_rhs(solver, 0), 0, v);
  for (size_t i = 0; i < rig_reals(&rig); i++) v[i] = 1e306;
  rig_import(&rig, qk_solver_rhs(solver, 1), 0, v);
  for (int i = 0; i < 2; i++) cr_assert_eq(qk_solver_fill(solver, i, 1e-8, 1000), QK_OK);
  rig_run(solver);
  const char *says[] = {"the source is too large: its norm is over 1.8e+308",
                        "the solution is over 1.8e+308 at x y z t = "};
  for (int i = 0; i < 2; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    cr_expect_eq(s->status, QK_BAD_ARGUMENT, "%s", qk_status_name(s->status));
    cr_expect(strstr(s->why.text, says[i]), "%s", s->why.text);
  }
  cr_expect_gt(qk_solver_slot(solver, 1)->iterations, 0);
  qk_free(v);
  qk_solver_destroy(solver);
  rig_close(&rig);
}

/* What a slot said of its last source is not said of the next one. */
Test(solver_range, a_slot_forgets_what_was_wrong) {
  qk_rig_t rig;
  open_smooth(&rig);
  qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_SINGLE, 1);
  put_single(&rig, solver, 0, &single[0]);
  cr_assert_eq(qk_solver_fill(solver, 0, 1e-10, 1000), QK_OK);
  cr_expect_eq(qk_solver_slot(solver, 0)->why.code, QK_NAN_INPUT);
  qk_solver_clear(solver, 0);
  put(&rig, solver, 0, -700);
  cr_assert_eq(qk_solver_fill(solver, 0, 1e-10, 1000), QK_OK);
  rig_run(solver);
  cr_expect(qk_solver_slot(solver, 0)->status == QK_OK &&
            qk_solver_slot(solver, 0)->why.text[0] == '\0');
  qk_solver_destroy(solver);
  rig_close(&rig);
}

/* ---- where numbers are
 * ---------------------------------------------------------------------------------- */

Test(extent, finds_the_first_of_the_largest_numbers) {
  qk_rig_t rig;
  qk_extent_t e;
  qk_field_t *f;
  open_smooth(&rig);
  double *v = rig_vector(&rig);
  cr_assert_eq(qk_field_create(&rig.dev, QK_DOUBLE, 1, QK_FULL, &f), QK_OK);
  v[5000] = v[321] = v[320] = -4e200;
  v[319] = 3e200;
  rig_import(&rig, f, 0, v);
  cr_assert_eq(qk_extent_find(rig.work, f, one, 0.5, &e), QK_OK);
  cr_expect(e.finite && e.largest == 2e200 && e.at == 320, "%g at %lld", e.largest,
            (long long)e.at);
  cr_expect_float_eq(e.norm, sqrt(3 + 9. / 16), 1e-14);
  v[6143] = v[4000] = INFINITY;
  rig_import(&rig, f, 0, v);
  cr_assert_eq(qk_extent_find(rig.work, f, one, 1, &e), QK_OK);
  cr_expect(!e.finite && e.at == 4000);
  memset(v, 0, rig_reals(&rig) * sizeof *v);
  rig_import(&rig, f, 0, v);
  cr_assert_eq(qk_extent_find(rig.work, f, one, 1, &e), QK_OK);
  cr_expect(e.finite && e.largest == 0 && e.norm == 0);
  qk_field_destroy(f);
  qk_free(v);
  rig_close(&rig);
}

/* ---- colour vectors ------------------------------------------------------------------------- */

static void open_colours(qk_rig_t *rig) {
  colours_open(rig, NULL, "builtin:weak:4x6x2x4:3", NULL, "staggered;mass=0.4", -1);
}

/* Solutions are those of the first source, to the bit, times the power of two. */
Test(solver_range, plain_cg_solves_colour_vectors_of_any_size) {
  static const int exponent[] = {0, -900, -550, 520, 1000};
  enum { N = sizeof exponent / sizeof *exponent };
  qk_rig_t rig;
  open_colours(&rig);
  const size_t n = colours_numbers(&rig);
  double complex *v = colours_vector(&rig), *first = colours_vector(&rig);
  qk_solver_t *solver = rig_solver(&rig, "cg", QK_SINGLE, N);
  for (int i = 0; i < N; i++) {
    colours_random(&rig, 7, v);
    for (size_t c = 0; c < n; c++) v[c] *= ldexp(1, exponent[i]);
    colours_import(&rig, qk_solver_rhs(solver, i), 0, v);
    cr_assert_eq(qk_solver_fill(solver, i, 1e-10, 1000), QK_OK);
  }
  rig_run(solver);
  colours_export(&rig, qk_solver_solution(solver, 0), 0, first);
  for (int i = 0; i < N; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    int wrong = 0;
    colours_export(&rig, qk_solver_solution(solver, i), 0, v);
    for (size_t c = 0; c < n; c++) wrong += v[c] != first[c] * ldexp(1, exponent[i]);
    cr_expect_eq(wrong, 0, "2^%d: %d numbers are others", exponent[i], wrong);
    cr_expect(s->status == QK_OK && s->residual > 0 && s->residual <= 1e-10, "2^%d: %s, %g",
              exponent[i], qk_status_name(s->status), s->residual);
  }
  qk_solver_destroy(solver);
  qk_free(first);
  qk_free(v);
  rig_close(&rig);
}

Test(extent, names_the_place_in_a_colour_vector) {
  char place[QK_EXTENT_PLACE];
  qk_rig_t rig;
  qk_extent_t e;
  qk_field_t *f;
  open_colours(&rig);
  double complex *v = colours_vector(&rig);
  const size_t last = colours_numbers(&rig) - 1;
  cr_assert_eq(qk_field_create(&rig.dev, QK_DOUBLE, 1, QK_FULL, &f), QK_OK);
  v[7] = 4e200;
  v[last] = -4e200 * I;
  colours_import(&rig, f, 0, v);
  cr_assert_eq(qk_extent_find(rig.work, f, one, 0.5, &e), QK_OK);
  cr_expect(e.finite && e.largest == 2e200 && e.at == 14, "%g at %lld", e.largest, (long long)e.at);
  cr_expect_float_eq(e.norm, sqrt(2), 1e-14);
  qk_extent_place(&rig.geom, &e, place);
  cr_expect_str_eq(place, "x y z t = 2 0 0 0, colour 1");
  v[last] = NAN;
  colours_import(&rig, f, 0, v);
  cr_assert_eq(qk_extent_find(rig.work, f, one, 1, &e), QK_OK);
  qk_extent_place(&rig.geom, &e, place);
  cr_expect(!e.finite);
  cr_expect_str_eq(place, "x y z t = 3 5 1 3, colour 2");
  qk_field_destroy(f);
  qk_free(v);
  rig_close(&rig);
}
