/* What a message may say: each wrong field is refused by name, and what is right
 * comes out as it went in. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/serve/round.h"

static const uint32_t DIMS[4] = {4, 6, 8, 16};
static const qk_action_row_t usual = {.name = "usual"},
                             flavours = {.name = "flavours", .has_flavours = true},
                             doublet = {.name = "doublet", .has_flavours = true, .vectors = 2};

static Quark__Smearing good_smearing(void) {
  static double param[3] = {0.75, 0.6, 0.3};
  Quark__Smearing s = QUARK__SMEARING__INIT;
  s.alpha = 0.25;
  s.steps = 30;
  s.links = QUARK__LINK_SMEAR__LINK_SMEAR_HYP;
  s.link_param = param;
  s.n_link_param = 3;
  s.link_steps = 2;
  return s;
}

static Quark__Engine__Fill good_fill(Quark__SourceKind source, Quark__Column *column) {
  Quark__Engine__Fill f = QUARK__ENGINE__FILL__INIT;
  f.entry = 1;
  f.serial = 7;
  f.source = source;
  f.column = column;
  f.shm_in = "/in";
  f.shm_out = "/out";
  f.dtype = QUARK__DTYPE__DTYPE_F64;
  f.factor = 1;
  f.tol = 1e-8;
  f.max_iter = 100;
  return f;
}

static void expect_fill_refused_as(const Quark__Engine__Fill *message, qk_status_t status,
                                   const char *words) {
  qk_err_t err = {0};
  qk_fill_t fill;
  memset(&fill, 0x5a, sizeof fill);
  qk_fill_t before = fill;
  cr_expect_eq(qk_fill_parse(message, 4, &flavours, &fill, &err), status, "%s", words);
  cr_expect(strstr(err.text, words) != NULL, "'%s' where '%s' was expected", err.text, words);
  cr_expect(memcmp(&fill, &before, sizeof fill) == 0, "%s", words);
}

static void expect_fill_refused(const Quark__Engine__Fill *message, const char *words) {
  expect_fill_refused_as(message, QK_BAD_ARGUMENT, words);
}

Test(round, a_sequential_fill_comes_out_as_it_went_in) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Smearing smear = good_smearing();
  Quark__Column c = QUARK__COLUMN__INIT;
  c.t = -1;
  c.px = 3;
  c.pz = -7;
  c.gamma = 9;
  c.spin = 2;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL, &c);
  m.has_in_dtype = true;
  m.in_dtype = QUARK__DTYPE__DTYPE_F32;
  m.smear = &smear;
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(!f.upload && f.source == QK_SOURCE_HELD && f.site[3] == -1 && f.gamma == 9);
  cr_expect(f.mom[0] == 3 && f.mom[1] == 0 && f.mom[2] == -7 && f.spin == -1 && f.colour == -1);
  cr_expect(f.is_double && !f.in_double);
  cr_expect_str_eq(f.shm_in, "/in");
  cr_expect(f.smear.alpha == 0.25 && f.smear.steps == 30 && f.smear.links.steps == 2);
  cr_expect(f.smear.links.kind == QK_LINK_SMEAR_HYP && f.smear.links.param[2] == 0.3);
  m.has_in_dtype = false;
  m.smear = NULL;
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.in_double && f.smear.steps == 0);
}

Test(round, an_upload_has_the_slab_that_the_front_names) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_UPLOAD, NULL);
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect_not(f.slab.partial);
  m.has_slab_first = m.has_slab_count = true;
  m.slab_first = 5;
  m.slab_count = 0;
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.slab.partial && f.slab.first == 5 && f.slab.count == 0);
  const qk_input_t input = qk_fill_input(&f);
  cr_expect(strcmp(input.name, "/in") == 0 && input.is_double && input.parity == QK_FULL);
  cr_expect(input.slab.partial && input.slab.first == 5);
  m.has_slab_first = false;
  expect_fill_refused(&m, "slab_first, slab_count: both");
  Quark__Column c = QUARK__COLUMN__INIT;
  m = good_fill(QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL, &c);
  m.has_slab_first = m.has_slab_count = true;
  expect_fill_refused(&m, "slab_first, slab_count: both, of an upload");
}

/* ---- eigenvectors ---- */

Test(round, a_fill_of_an_eigenvector_comes_out_as_it_went_in) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Column c = QUARK__COLUMN__INIT;
  c.vector = 17;
  c.slice = 3;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_VECTOR, &c);
  m.vectors = "low.1";
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(!f.upload && f.vector == 17 && f.slice == 3 && f.component == 1);
  cr_expect_str_eq(f.vectors, "low.1");
  c.flavour = -1;
  expect_fill_refused(&m, "flavour of a column = -1");
  cr_assert_eq(qk_fill_parse(&m, 4, &doublet, &f, &err), QK_OK, "%s", err.text);
  cr_expect_eq(f.component, -1);
  c.flavour = 0;
  c.vector = QK_EIGEN_COUNT_MAX;
  expect_fill_refused(&m, "vector, slice = 4096, 3");
  c.vector = 0;
  c.slice = UINT32_MAX;
  expect_fill_refused(&m, "vector, slice = 0, 4294967295");
  c.slice = 0;
  m.vectors = "../low";
  expect_fill_refused(&m, "vectors of 6 bytes");
  m.vectors = NULL;
  expect_fill_refused(&m, "column, vectors");
  m.vectors = "low";
  m.column = NULL;
  expect_fill_refused(&m, "column, vectors");
}

static void expect_eigen_refused(const Quark__Engine__Eigen *m, const char *words) {
  static const int dims[4] = {4, 6, 8, 16};
  qk_err_t err = {0};
  qk_eigen_order_t order, before;
  memset(&order, 0x5a, sizeof order);
  before = order;
  cr_expect_neq(qk_eigen_parse(m, dims, &usual, &order, &err), QK_OK, "%s", words);
  cr_expect(strstr(err.text, words) != NULL, "'%s' where '%s' was expected", err.text, words);
  cr_expect(memcmp(&order, &before, sizeof order) == 0, "%s", words);
}

Test(round, an_eigen_comes_out_as_it_went_in) {
  static const int dims[4] = {4, 6, 8, 16};
  char path[QK_PATH_MAX + 2];
  qk_err_t err = {0};
  qk_eigen_order_t o;
  Quark__Smearing links = good_smearing();
  Quark__EigenProblem p = QUARK__EIGEN_PROBLEM__INIT;
  Quark__Engine__Eigen m = QUARK__ENGINE__EIGEN__INIT;
  m.serial = 9;
  m.problem = &p;
  m.file = "/state/eigen/low";
  m.shm_out = "/out";
  p.name = "low";
  p.kind = QUARK__EIGEN_KIND__EIGEN_GAMMA5;
  p.count = 20;
  p.tol = 1e-9;
  p.space = 64;
  p.order = 30;
  p.restarts = 7;
  cr_assert_eq(qk_eigen_parse(&m, dims, &usual, &o, &err), QK_OK, "%s", err.text);
  cr_expect(o.serial == 9 && !o.restore && o.problem.kind == 1 && o.problem.count == 20);
  cr_expect(o.problem.space == 64 && o.problem.order == 30 && o.problem.restarts == 7);
  cr_expect(o.problem.tol == 1e-9 && o.problem.links[0] == '\0');
  cr_expect_str_eq(o.name, "low");
  cr_expect_str_eq(o.file, "/state/eigen/low");
  cr_expect_str_eq(o.shm_out, "/out");
  p.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  p.links = &links;
  cr_assert_eq(qk_eigen_parse(&m, dims, &usual, &o, &err), QK_OK, "%s", err.text);
  const qk_eigen_order_t hyp = o;
  links.link_steps = 3;
  cr_assert_eq(qk_eigen_parse(&m, dims, &usual, &o, &err), QK_OK, "%s", err.text);
  cr_expect_str_neq(o.problem.links, hyp.problem.links);
  p.kind = QUARK__EIGEN_KIND__EIGEN_NORMAL;
  expect_eigen_refused(&m, "links");
  p.links = NULL;
  p.tol = NAN;
  expect_eigen_refused(&m, "tol = nan");
  p.tol = 1e-9;
  p.count = UINT32_MAX;
  expect_eigen_refused(&m, "count = 4294967295");
  p.count = 20;
  memset(path, 'a', sizeof path);
  path[sizeof path - 1] = '\0';
  m.file = path;
  expect_eigen_refused(&m, "file has ");
  m.file = NULL;
  m.shm_out = path;
  expect_eigen_refused(&m, "shm_out has ");
}

/* ---- projections ---- */

Test(round, a_fill_says_what_it_is_projected_onto) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Column c = QUARK__COLUMN__INIT;
  const Quark__Engine__Fill plain = good_fill(QUARK__SOURCE_KIND__SOURCE_POINT, &c);
  Quark__Engine__Fill m = plain;
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.project[0] == '\0' && f.project_count == 0);
  m.project = "low";
  m.project_count = 4096;
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(strcmp(f.project, "low") == 0 && f.project_count == 4096);
  cr_expect_eq(qk_fill_parse(&m, 4, &doublet, &f, &err), QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "doublet"), "%s", err.text);
  const Quark__Engine__Fill good = m;
#define REFUSED(change, words) (m = good, change, expect_fill_refused(&m, words))
  REFUSED(m.project = "../x", "project of 4 bytes");
  REFUSED(m.project = "", "project of 0 bytes");
  REFUSED(m.project_count = 0, "project_count = 0: 1 to 4096");
  REFUSED(m.project_count = UINT32_MAX, "project_count = 4294967295");
  REFUSED(m.shm_out = NULL, "shm_out: a projection needs it");
  REFUSED(m.parity = QUARK__PARITY__PARITY_ODD, "parity = 2: a projection is of all sites");
  REFUSED(m.five_d = true, "five_d");
#undef REFUSED
}

/* ---- work and parity ---- */

Test(round, work_needs_no_tolerance_and_a_solve_does) {
  for (int work = QUARK__WORK__WORK_SOLVE; work <= QUARK__WORK__WORK_SMEAR; work++) {
    qk_err_t err = {0};
    qk_fill_t f;
    Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_UPLOAD, NULL);
    m.work = (Quark__Work)work;
    m.dagger = work % 2;
    m.tol = 0;
    m.max_iter = UINT64_MAX;
    m.parity =
        work == QUARK__WORK__WORK_SCHUR ? QUARK__PARITY__PARITY_ODD : QUARK__PARITY__PARITY_ALL;
    const bool solves = work == QUARK__WORK__WORK_SOLVE;
    cr_expect_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), solves ? QK_BAD_ARGUMENT : QK_OK, "%s",
                 err.text);
    if (solves) continue;
    cr_expect(f.work == m.work && f.dagger == m.dagger && f.parity == m.parity);
    cr_expect_eq(f.max_iter, 0);
  }
}

Test(round, a_source_stands_where_hops_come_from) {
  static const Quark__Parity all = QUARK__PARITY__PARITY_ALL, even = QUARK__PARITY__PARITY_EVEN,
                             odd = QUARK__PARITY__PARITY_ODD;
  for (int work = QUARK__WORK__WORK_SOLVE; work <= QUARK__WORK__WORK_SMEAR; work++) {
    const bool hops = work == QUARK__WORK__WORK_HOP || work == QUARK__WORK__WORK_DIAG_INVERSE_HOP;
    qk_err_t err = {0};
    qk_fill_t f;
    Quark__Column c = QUARK__COLUMN__INIT;
    Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_UPLOAD, NULL);
    m.work = (Quark__Work)work;
    m.parity = even;
    cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
    cr_expect(f.parity == even && f.in_parity == (hops ? odd : even), "work %d", work);
    cr_expect_eq(qk_fill_source_parity(m.work, all), all);
    m.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
    m.column = &c;
    m.in_parity = even;
    cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
    cr_expect_eq(f.in_parity, even, "what is kept says where it is");
  }
  cr_expect(qk_fill_subset(all) == QK_FULL && qk_fill_subset(even) == QK_EVEN);
  cr_expect_eq(qk_fill_subset(odd), QK_ODD);
}

Test(round, refuses_work_and_parities_that_do_not_fit) {
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_UPLOAD, NULL);
  const Quark__Engine__Fill good = m;
  qk_err_t err = {0};
  qk_fill_t f;
#define REFUSED(field, value, words)                                                               \
  do {                                                                                             \
    m = good;                                                                                      \
    m.field = (value);                                                                             \
    expect_fill_refused(&m, words);                                                                \
  } while (0)
  REFUSED(work, (Quark__Work)8, "work = 8");
  REFUSED(work, (Quark__Work)-1, "work = -1");
  REFUSED(parity, (Quark__Parity)3, "parity = 3");
  REFUSED(in_parity, (Quark__Parity)-1, "in_parity = -1");
  REFUSED(schur, (Quark__Schur)3, "schur = 3");
  REFUSED(schur, QUARK__SCHUR__SCHUR_SYMMETRIC, "parity is missing");
  REFUSED(work, QUARK__WORK__WORK_SCHUR, "parity is missing");
#undef REFUSED
  m = good;
  m.parity = QUARK__PARITY__PARITY_ODD;
  m.schur = QUARK__SCHUR__SCHUR_ASYMMETRIC;
  cr_expect_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect_eq(qk_fill_parse(&m, 4, &doublet, &f, &err), QK_UNSUPPORTED, "a doublet");
  m.work = QUARK__WORK__WORK_HOP;
  expect_fill_refused(&m, "schur = 2");
}

Test(round, tolerances_and_the_solver_come_out_as_they_went_in) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_UPLOAD, NULL);
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.stopping.tol == 1e-8 && !qk_stopping_asks_more(&f.stopping) && !f.batch_only);
  m.tol = 0;
  m.tol_abs = 3;
  m.tol_hq = 1e-4;
  m.factor = 0.25;
  m.single_rhs = false;
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.stopping.tol == 0 && f.stopping.tol_abs == 3 && f.stopping.tol_hq == 1e-4);
  cr_expect(f.stopping.factor == 0.25 && f.factor == 0.25 && f.batch_only);
  m.tol_abs = m.tol_hq = 0;
  expect_fill_refused(&m, "tol, tol_abs, tol_hq = 0, 0, 0");
  m.tol_hq = -1;
  expect_fill_refused(&m, "tol, tol_abs, tol_hq = 0, 0, -1");
  m.tol_hq = 1;
  m.tol_abs = INFINITY;
  expect_fill_refused(&m, "tol, tol_abs, tol_hq = 0, inf, 1");
  m.tol_abs = 0;
  m.tol = 1;
  expect_fill_refused(&m, "tol, tol_abs, tol_hq = 1, 0, 1");
}

Test(round, noise_has_slices_and_momentum) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Column c = QUARK__COLUMN__INIT;
  c.t = 3;
  c.t_every = 4;
  c.py = -2;
  c.spin = -1;
  c.colour = 1;
  c.seed = 1ull << 63;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_Z4, &c);
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.hint.order == QK_ORDER_OTHERS && f.hint.backlog == 0, "as it says nothing of them");
  m.order = QK_ORDER_FIRST;
  m.backlog = UINT32_MAX;
  cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.hint.order == QK_ORDER_FIRST && f.hint.backlog == UINT32_MAX);
  cr_expect(f.source == QK_SOURCE_Z4 && f.t_every == 4 && f.mom[1] == -2 && f.seed == 1ull << 63);
  cr_expect(f.spin == -1 && f.colour == 1 && f.site[3] == 3);
}

/* What comes of Column.flavour, by kind of source and vectors of a right-hand side; 9: refused. */
Test(round, the_column_of_a_doublet_has_a_flavour) {
  static const struct {
    Quark__SourceKind source;
    int vectors, flavour, component;
  } cases[] = {
      {QUARK__SOURCE_KIND__SOURCE_POINT, 2, 0, 1},     {QUARK__SOURCE_KIND__SOURCE_POINT, 2, 1, 1},
      {QUARK__SOURCE_KIND__SOURCE_POINT, 2, -1, -1},   {QUARK__SOURCE_KIND__SOURCE_Z2, 2, 0, 0},
      {QUARK__SOURCE_KIND__SOURCE_Z2, 2, -1, -1},      {QUARK__SOURCE_KIND__SOURCE_Z2, 1, 0, 1},
      {QUARK__SOURCE_KIND__SOURCE_Z2, 1, -1, 9},       {QUARK__SOURCE_KIND__SOURCE_POINT, 2, 2, 9},
      {QUARK__SOURCE_KIND__SOURCE_POINT, 2, -2, 9},    {QUARK__SOURCE_KIND__SOURCE_POINT, 1, -1, 9},
      {QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL, 2, 1, 9}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_err_t err = {0};
    qk_fill_t f = {0};
    Quark__Column c = QUARK__COLUMN__INIT;
    c.flavour = cases[i].flavour;
    Quark__Engine__Fill m = good_fill(cases[i].source, &c);
    const qk_status_t status =
        qk_fill_parse(&m, 4, cases[i].vectors > 1 ? &doublet : &usual, &f, &err);
    cr_expect_eq(status != QK_OK, cases[i].component == 9, "case %zu: %s", i, err.text);
    if (status == QK_OK) cr_expect_eq(f.component, cases[i].component, "case %zu", i);
    if (status == QK_BAD_ARGUMENT) cr_expect_not_null(strstr(err.text, "flavour"), "%s", err.text);
  }
}

Test(round, a_fill_has_a_flavour_if_its_action_has_some) {
  static const int sign[][2] = {{1, 1}, {0, 1}, {-1, -1}};
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Column c = QUARK__COLUMN__INIT;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_POINT, &c);
  cr_assert_eq(qk_fill_parse(&m, 4, &usual, &f, &err), QK_OK, "%s", err.text);
  cr_expect_eq(f.flavour, 1, "as it says nothing of it");
  m.has_flavour = true;
  for (int i = 0; i < 3; i++) {
    m.flavour = sign[i][0];
    cr_assert_eq(qk_fill_parse(&m, 4, &flavours, &f, &err), QK_OK, "%s", err.text);
    cr_expect_eq(f.flavour, sign[i][1]);
  }
  cr_expect_eq(qk_fill_parse(&m, 4, &usual, &f, &err), QK_BAD_ARGUMENT);
  cr_expect_str_eq(err.text, "flavour = -1: the action has none, only 1 is accepted");
  m.flavour = 2;
  expect_fill_refused(&m, "flavour = 2: must be 1 or -1");
  m.flavour = -2;
  expect_fill_refused(&m, "flavour = -2: must be 1 or -1");
}

Test(round, what_a_source_does_not_have_is_refused) {
  Quark__Column c = QUARK__COLUMN__INIT;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_POINT, &c);
  c.pz = 1;
  expect_fill_refused(&m, "momentum = 0,0,1");
  c.pz = 0;
  c.t_every = 2;
  expect_fill_refused(&m, "t_every = 2");
  m.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  expect_fill_refused(&m, "t_every = 2");
  m.source = QUARK__SOURCE_KIND__SOURCE_Z2;
  c.t = -1;
  expect_fill_refused(&m, "t_every = 2");
  c.t = 0;
  c.t_every = 1u << 31;
  expect_fill_refused(&m, "t_every = 2147483648");
  c.t_every = 0;
  c.gamma = 16;
  expect_fill_refused(&m, "gamma = 16: must be 0 to 15");
  c.gamma = 0;
  m.source = (Quark__SourceKind)6;
  expect_fill_refused(&m, "source = 6");
  m.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  m.shm_in = NULL;
  expect_fill_refused(&m, "shm_in is missing: a sequential source");
  m.shm_in = "/in";
  m.has_in_dtype = true;
  m.in_dtype = (Quark__Dtype)3;
  expect_fill_refused(&m, "in_dtype = 3");
  m.column = NULL;
  expect_fill_refused(&m, "column is missing");
}

Test(round, smearing_is_checked_field_by_field) {
  Quark__Column c = QUARK__COLUMN__INIT;
  Quark__Engine__Fill m = good_fill(QUARK__SOURCE_KIND__SOURCE_WALL, &c);
  Quark__Smearing s = good_smearing();
  m.smear = &s;
  s.alpha = INFINITY;
  expect_fill_refused(&m, "alpha");
  s = good_smearing();
  s.steps = QK_SMEAR_STEPS_MAX + 1;
  expect_fill_refused_as(&m, QK_TOO_LARGE, "steps = 1001");
  s = good_smearing();
  s.links = (Quark__LinkSmear)4;
  expect_fill_refused(&m, "links = 4");
  s = good_smearing();
  s.n_link_param = 2;
  expect_fill_refused(&m, "link_param has 2 entries: 3 for HYP");
  s = good_smearing();
  s.links = QUARK__LINK_SMEAR__LINK_SMEAR_NONE;
  expect_fill_refused(&m, "link_param has 3 entries: 0 for links");
  s = good_smearing();
  s.link_steps = 1u << 31;
  expect_fill_refused_as(&m, QK_TOO_LARGE, "link_steps = 2147483648 is over the limit of 100");
  s = good_smearing();
  s.link_param = (double[]){0.7, NAN, 0.3};
  expect_fill_refused(&m, "nan");
}

/* ---- correlators ---- */

typedef struct message {
  Quark__Engine__Contract contract;
  Quark__Contraction contraction;
  Quark__Smearing sink;
  Quark__Channel channel[QK_CHANNELS_MAX + 1];
  Quark__Channel *channels[QK_CHANNELS_MAX + 1];
  int32_t momentum[3 * QK_MOMENTA_MAX + 3], origin[5];
  char *a[13], *b[13];
} message_t;

static void good_message(message_t *m) {
  memset(m, 0, sizeof *m);
  quark__engine__contract__init(&m->contract);
  quark__contraction__init(&m->contraction);
  m->sink = good_smearing();
  for (int i = 0; i <= QK_CHANNELS_MAX; i++) {
    quark__channel__init(&m->channel[i]);
    m->channels[i] = &m->channel[i];
  }
  for (int i = 0; i < 13; i++) {
    m->a[i] = "/a";
    m->b[i] = "/b";
  }
  m->contract.serial = 11;
  m->contract.contraction = &m->contraction;
  m->contract.shm_a = m->a;
  m->contract.n_shm_a = 12;
  m->contract.dtype_a = QUARK__DTYPE__DTYPE_F64;
  m->contract.shm_out = "/out";
  m->contraction.channel = m->channels;
  m->contraction.n_channel = 1;
  m->contraction.momentum = m->momentum;
  m->contraction.origin = m->origin;
}

static void expect_contract_refused(const message_t *m, qk_status_t status, const char *words) {
  qk_err_t err = {0};
  static qk_correlate_t c;
  memset(&c, 0, sizeof c);
  cr_expect_eq(qk_correlate_parse(&m->contract, DIMS, &usual, &c, &err), status, "%s", words);
  cr_expect(strstr(err.text, words) != NULL, "'%s' where '%s' was expected", err.text, words);
  cr_expect(c.nchannel == 0 && c.serial == 0, "%s", words);
}

Test(round, a_contraction_comes_out_as_it_went_in) {
  static message_t m;
  static qk_correlate_t c;
  qk_err_t err = {0};
  good_message(&m);
  cr_assert_eq(qk_correlate_parse(&m.contract, DIMS, &usual, &c, &err), QK_OK, "%s", err.text);
  cr_expect(c.serial == 11 && c.nmom == 1 && c.mom[0][0] == 0 && c.origin[3] == 0);
  cr_expect(c.a_double && c.b[0][0] == '\0' && c.sink.steps == 0 && c.nchannel == 1);
  cr_expect(c.channel[0].kind == QK_CHANNEL_MESON && c.channel[0].sink == 15 &&
            c.channel[0].source == 15);

  m.contract.shm_b = m.b;
  m.contract.n_shm_b = 12;
  m.contract.has_dtype_b = true;
  m.contract.dtype_b = QUARK__DTYPE__DTYPE_F32;
  m.contraction.n_channel = QK_CHANNELS_MAX;
  m.channel[511].kind = QUARK__CHANNEL_KIND__CHANNEL_DELTA;
  m.contraction.n_momentum = 3 * QK_MOMENTA_MAX;
  m.momentum[3 * QK_MOMENTA_MAX - 2] = -5;
  m.contraction.n_origin = 4;
  m.origin[3] = 15;
  m.contraction.sink = &m.sink;
  cr_assert_eq(qk_correlate_parse(&m.contract, DIMS, &usual, &c, &err), QK_OK, "%s", err.text);
  cr_expect(c.a_double && !c.b_double && strcmp(c.b[11], "/b") == 0 && strcmp(c.a[0], "/a") == 0);
  cr_expect(c.nchannel == 512 && c.channel[511].kind == QK_CHANNEL_DELTA);
  cr_expect(c.nmom == 128 && c.mom[127][1] == -5 && c.origin[3] == 15 && c.sink.steps == 30);
}

Test(round, contractions_are_checked_field_by_field) {
  static message_t m;
  static char name[QK_SHM_NAME_MAX + 2];
  memset(name, 'n', sizeof name - 1);
#define REFUSED_AS(status, change, words)                                                          \
  good_message(&m);                                                                                \
  change;                                                                                          \
  expect_contract_refused(&m, status, words)
#define REFUSED(change, words) REFUSED_AS(QK_BAD_ARGUMENT, change, words)
  REFUSED(m.contract.n_shm_a = 11, "shm_a has 11 names: 12");
  REFUSED(m.contract.n_shm_a = 13, "shm_a has 13 names: 12");
  REFUSED((m.contract.shm_b = m.b, m.contract.n_shm_b = 1), "shm_b has 1 names: 12");
  REFUSED(m.a[5] = name, "shm_a has 65 characters: at most 64");
  REFUSED(m.contract.shm_out = name, "shm_out has 65 characters: at most 64");
  REFUSED(m.contract.dtype_a = (Quark__Dtype)0, "dtype_a = 0");
  REFUSED((m.contract.has_dtype_b = true, m.contract.dtype_b = (Quark__Dtype)4), "dtype_b = 4");
  REFUSED(m.contraction.n_channel = 0, "channel has 0 entries: 1 to 512");
  REFUSED(m.contraction.n_channel = 513, "channel has 513 entries: 1 to 512");
  REFUSED(m.channel[0].kind = (Quark__ChannelKind)4, "channel[0]: kind = 4");
  REFUSED(m.channel[0].sink = 16, "sink, source = 16, 15: 0 to 15");
  REFUSED(m.channel[0].source = 99, "sink, source = 15, 99: 0 to 15");
  REFUSED(m.contraction.n_momentum = 4, "momentum: 4 numbers");
  REFUSED_AS(QK_TOO_LARGE, m.contraction.n_momentum = 3 * 129, "over the limit of 128");
  REFUSED((m.contraction.n_momentum = 6, m.momentum[4] = 6),
          "momentum 1: py = 6 is outside -5 .. 5");
  REFUSED((m.contraction.n_momentum = 3, m.momentum[0] = INT32_MIN), "px = -2147483648");
  REFUSED(m.contraction.n_origin = 5, "origin: 5 numbers");
  REFUSED((m.contraction.n_origin = 4, m.origin[2] = 8), "origin: z = 8 is outside 0 .. 7");
  REFUSED((m.contraction.n_origin = 4, m.origin[0] = -1), "origin: x = -1");
  REFUSED_AS(QK_TOO_LARGE, (m.contraction.sink = &m.sink, m.sink.steps = 5000), "steps = 5000");
#undef REFUSED
#undef REFUSED_AS
}

/* ---- what counts as the same smearing ---- */

Test(smearing, is_the_same_where_it_does_the_same) {
  const qk_smearing_t ape = {0.2, 5, {QK_LINK_SMEAR_APE, {0.5}, 3, true, false}, 0};
  qk_smearing_t other = ape;
  cr_expect(qk_smearing_equal(&ape, &other));
  other.links.param[2] = 1; /* APE has one parameter */
  cr_expect(qk_smearing_equal(&ape, &other));
  other = ape;
  other.alpha = 0.3;
  cr_expect(!qk_smearing_equal(&ape, &other));
  other = ape;
  other.steps = 6;
  cr_expect(!qk_smearing_equal(&ape, &other));
  other = ape;
  other.links.spatial = false;
  cr_expect(!qk_smearing_equal(&ape, &other));
  other = ape;
  other.links.param[0] = 0.6;
  cr_expect(!qk_smearing_equal(&ape, &other));
  other = ape;
  other.links.kind = QK_LINK_SMEAR_STOUT;
  cr_expect(!qk_smearing_equal(&ape, &other));
  const qk_smearing_t none = {0.2, 5, {QK_LINK_SMEAR_NONE, {0}, 0, false, false}, 0};
  other = ape;
  other.links.steps = 0;
  cr_expect(qk_smearing_equal(&none, &other) && !qk_smearing_equal(&none, &ape));
  const qk_smearing_t hyp = {0.2, 5, {QK_LINK_SMEAR_HYP, {0.7, 0.6, 0.3}, 1, false, false}, 0};
  other = hyp;
  other.links.spatial = true; /* HYP has none of it */
  cr_expect(qk_smearing_equal(&hyp, &other));
  other.links.param[2] = 0.4;
  cr_expect(!qk_smearing_equal(&hyp, &other));
}
