/* What a SUBMIT or CONTRACT may say: each legal message is admitted, each illegal field refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/front/job/job.h"
#include "proto/action/operator_text.h"

static const qk_shape_t SHAPE = {{4, 6, 8, 10}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS};

static Quark__Submit submit_of(uint32_t nrhs) {
  Quark__Submit s = QUARK__SUBMIT__INIT;
  s.request = 1;
  s.nrhs = nrhs;
  s.dtype = QUARK__DTYPE__DTYPE_F32;
  s.tol = 1e-8;
  s.source = QUARK__SOURCE_KIND__SOURCE_UPLOAD;
  s.sink = QUARK__SINK__SINK_DOWNLOAD;
  return s;
}

Test(job_check, admits_each_legal_request) {
  qk_err_t err = {0};
  Quark__Submit s = submit_of(QK_REQUEST_RHS_MAX);
  cr_assert_eq(qk_job_check(&s, &SHAPE, &err), QK_OK);
  s.source = QUARK__SOURCE_KIND__SOURCE_FILE;
  s.sink = QUARK__SINK__SINK_FILE;
  cr_assert_eq(qk_job_check(&s, &SHAPE, &err), QK_OK);
  Quark__Column c = QUARK__COLUMN__INIT, *columns[2] = {&c, &c};
  s = submit_of(2);
  s.column = columns;
  s.n_column = 2;
  for (int kind = QUARK__SOURCE_KIND__SOURCE_POINT; kind <= QUARK__SOURCE_KIND__SOURCE_Z4; kind++) {
    s.source = (Quark__SourceKind)kind;
    c.t = 9;
    cr_assert_eq(qk_job_check(&s, &SHAPE, &err), QK_OK);
  }
  c.t = c.spin = c.colour = -1;
  c.px = -3;
  c.py = 5;
  cr_assert_eq(qk_job_check(&s, &SHAPE, &err), QK_OK);
  c.t = 2;
  c.t_every = 10;
  cr_assert_eq(qk_job_check(&s, &SHAPE, &err), QK_OK);
  s.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  s.sink = QUARK__SINK__SINK_KEEP;
  s.keep_ms = 1;
  c = (Quark__Column)QUARK__COLUMN__INIT;
  c.t = -1;
  c.pz = -7;
  c.request = 1;
  c.rhs = QK_REQUEST_RHS_MAX - 1;
  c.gamma = 15;
  cr_assert_eq(qk_job_check(&s, &SHAPE, &err), QK_OK, "%s", err.text);
}

Test(job_check, admits_each_legal_smearing) {
  double param[3] = {1, 0.5, 0};
  Quark__Smearing smear = QUARK__SMEARING__INIT;
  Quark__Submit s = submit_of(1);
  s.smear = &smear;
  smear.alpha = QK_SMEAR_ALPHA_MAX;
  smear.steps = QK_SMEAR_STEPS_MAX;
  smear.link_param = param;
  smear.link_steps = QK_LINK_STEPS_MAX;
  const size_t params[4] = {0, 1, 1, 3};
  for (int links = 0; links < 4; links++) {
    qk_err_t err = {0};
    smear.links = (Quark__LinkSmear)links;
    smear.n_link_param = params[links];
    param[0] = links == QUARK__LINK_SMEAR__LINK_SMEAR_STOUT ? 0.25 : 1;
    cr_assert_eq(qk_job_check(&s, &SHAPE, &err), QK_OK, "%s", err.text);
    smear.alpha = -smear.alpha;
  }
}

Test(job_check, a_flavour_is_for_actions_that_have_some) {
  const qk_action_row_t *twisted = qk_action_named("twisted-clover"),
                        *clover = qk_action_named("wilson-clover"),
                        *both = qk_action_named("doublet");
  Quark__Submit s = submit_of(1);
  cr_expect_eq(s.flavour, 1, "where it is absent");
  for (s.flavour = -1; s.flavour <= 1; s.flavour++) {
    qk_err_t err = {0};
    cr_expect_eq(qk_job_check(&s, &SHAPE, &err), QK_OK, "%s", err.text);
    cr_expect_eq(qk_job_check_action(&s, twisted, &err), QK_OK, "%s", err.text);
    cr_expect_eq(qk_job_check_action(&s, clover, &err), s.flavour < 0 ? QK_BAD_ARGUMENT : QK_OK);
    qk_err_t other = {0};
    cr_expect_eq(qk_job_check_action(&s, both, &other), s.flavour < 0 ? QK_BAD_ARGUMENT : QK_OK);
    if (s.flavour < 0)
      cr_expect(strstr(other.text, "flavour = -1: right-hand sides of the action doublet"), "%s",
                other.text);
    if (s.flavour < 0)
      cr_expect_str_eq(err.text, "flavour = -1: the action wilson-clover of this setup has no "
                                 "flavours, only 1 is accepted");
  }
}

#define REFUSED(code, change)                                                                      \
  do {                                                                                             \
    qk_err_t err = {0};                                                                            \
    Quark__Submit s = submit_of(2);                                                                \
    Quark__Column c = QUARK__COLUMN__INIT, *columns[3] = {&c, &c, &c};                             \
    double param[3] = {0.5, 0.5, 0.5};                                                             \
    Quark__Smearing g = QUARK__SMEARING__INIT;                                                     \
    g.alpha = 1;                                                                                   \
    g.link_param = param;                                                                          \
    s.column = columns;                                                                            \
    s.smear = &g;                                                                                  \
    change;                                                                                        \
    cr_expect_eq(qk_job_check(&s, &SHAPE, &err), code, "%s: %s", #change, err.text);               \
    cr_expect(err.text[0], "%s", #change);                                                         \
  } while (0)
#define POINT s.source = QUARK__SOURCE_KIND__SOURCE_POINT, s.n_column = 2
#define WALL s.source = QUARK__SOURCE_KIND__SOURCE_WALL, s.n_column = 2
#define SEQUENTIAL s.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL, s.n_column = 2, c.request = 1
#define SMEAR g.links = QUARK__LINK_SMEAR__LINK_SMEAR_APE, g.n_link_param = 1

Test(job_check, refuses_each_illegal_field) {
  REFUSED(QK_BAD_ARGUMENT, s.request = 0);
  REFUSED(QK_BAD_ARGUMENT, s.nrhs = 0);
  REFUSED(QK_TOO_LARGE, s.nrhs = QK_REQUEST_RHS_MAX + 1);
  REFUSED(QK_BAD_ARGUMENT, s.dtype = 3);
  REFUSED(QK_BAD_ARGUMENT, s.dtype = 0);
  REFUSED(QK_BAD_ARGUMENT, s.basis = 4);
  REFUSED(QK_BAD_ARGUMENT, s.basis = -1);
  REFUSED(QK_BAD_ARGUMENT, s.normalisation = 2);
  REFUSED(QK_BAD_ARGUMENT, s.flavour = 2);
  REFUSED(QK_BAD_ARGUMENT, s.flavour = -2);
  REFUSED(QK_BAD_ARGUMENT, s.flavour = INT32_MIN);
  REFUSED(QK_BAD_ARGUMENT, s.tol = 0);
  REFUSED(QK_BAD_ARGUMENT, s.tol = 1);
  REFUSED(QK_BAD_ARGUMENT, s.tol = -1e-8);
  REFUSED(QK_BAD_ARGUMENT, s.tol = NAN);
  REFUSED(QK_BAD_ARGUMENT, s.tol = INFINITY);
  REFUSED(QK_BAD_ARGUMENT, s.max_iter = 0);
  REFUSED(QK_BAD_ARGUMENT, s.max_iter = QK_ITERATIONS_MAX + 1);
  REFUSED(QK_BAD_ARGUMENT, s.deadline_ms = QK_DEADLINE_MS_MAX + 1);
  REFUSED(QK_BAD_ARGUMENT, s.priority = QK_PRIORITY_MAX + 1);
  REFUSED(QK_BAD_ARGUMENT, s.source = 7);
  REFUSED(QK_BAD_ARGUMENT, s.sink = 0);
  REFUSED(QK_BAD_ARGUMENT, s.sink = 5);
  REFUSED(QK_BAD_ARGUMENT, s.n_column = 1); /* of an upload */
  REFUSED(QK_BAD_ARGUMENT, (s.n_column = 2, s.source = QUARK__SOURCE_KIND__SOURCE_FILE));
  REFUSED(QK_BAD_ARGUMENT, (POINT, s.n_column = 1));
  REFUSED(QK_BAD_ARGUMENT, (POINT, s.n_column = 3));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.x = 4));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.y = 6));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.z = -1));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.t = -1)); /* only noise stands on every time slice */
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.t = 10));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.spin = 4));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.spin = -1));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.colour = 3));
  REFUSED(QK_BAD_ARGUMENT, (POINT, s.source = QUARK__SOURCE_KIND__SOURCE_Z2, c.t = -2));
  REFUSED(QK_BAD_ARGUMENT, s.keep_ms = 1);
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.px = 1));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.t_every = 1));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.request = 1));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.rhs = 1));
  REFUSED(QK_BAD_ARGUMENT, (POINT, c.gamma = 1));
  REFUSED(QK_BAD_ARGUMENT, (WALL, c.px = 4));
  REFUSED(QK_BAD_ARGUMENT, (WALL, c.py = -6));
  REFUSED(QK_BAD_ARGUMENT, (WALL, c.pz = INT32_MIN));
  REFUSED(QK_BAD_ARGUMENT, (WALL, c.t_every = 2));
  REFUSED(QK_BAD_ARGUMENT, (WALL, s.source = QUARK__SOURCE_KIND__SOURCE_Z2, c.t_every = 11));
  REFUSED(QK_BAD_ARGUMENT,
          (WALL, s.source = QUARK__SOURCE_KIND__SOURCE_Z2, c.t_every = 2, c.t = -1));
  REFUSED(QK_BAD_ARGUMENT, (SEQUENTIAL, c.request = 0));
  REFUSED(QK_BAD_ARGUMENT, (SEQUENTIAL, c.rhs = QK_REQUEST_RHS_MAX));
  REFUSED(QK_BAD_ARGUMENT, (SEQUENTIAL, c.gamma = 16));
  REFUSED(QK_BAD_ARGUMENT, (SEQUENTIAL, c.t = 10));
  REFUSED(QK_BAD_ARGUMENT, (SEQUENTIAL, c.t = -2));
  REFUSED(QK_BAD_ARGUMENT, (SEQUENTIAL, c.px = 4));
}

Test(job_check, refuses_each_illegal_smearing) {
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.alpha = NAN));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.alpha = INFINITY));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.alpha = 10.01));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.alpha = -10.01));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.alpha = -1. / 6)); /* 1 + 6 alpha = 0 */
  REFUSED(QK_TOO_LARGE, (SMEAR, g.steps = QK_SMEAR_STEPS_MAX + 1));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.links = 4));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.links = -1));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.links = QUARK__LINK_SMEAR__LINK_SMEAR_NONE));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.n_link_param = 0));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, g.links = QUARK__LINK_SMEAR__LINK_SMEAR_HYP));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, param[0] = -0.1));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, param[0] = 1.1));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, param[0] = NAN));
  REFUSED(QK_BAD_ARGUMENT, (SMEAR, param[0] = 0.26, g.links = QUARK__LINK_SMEAR__LINK_SMEAR_STOUT));
  REFUSED(QK_TOO_LARGE, (SMEAR, g.link_steps = QK_LINK_STEPS_MAX + 1));
}

/* A contraction of the propagator of request 3: one meson, zero momentum. */
static Quark__Contract contract_of(Quark__Contraction *contraction, Quark__Channel **channel) {
  static Quark__Channel meson;
  quark__channel__init(&meson);
  quark__contraction__init(contraction);
  *channel = &meson;
  contraction->request_a = 3;
  contraction->channel = channel;
  contraction->n_channel = 1;
  Quark__Contract c = QUARK__CONTRACT__INIT;
  c.request = 9;
  c.contraction = contraction;
  return c;
}

Test(job_check, admits_each_legal_contraction) {
  qk_err_t err = {0};
  Quark__Contraction c;
  Quark__Channel *channel;
  Quark__Contract m = contract_of(&c, &channel);
  cr_assert_eq(qk_job_check_contract(&m, &SHAPE, &err), QK_OK, "%s", err.text);
  int32_t momentum[6] = {-3, 5, 7, 0, 0, 0}, origin[4] = {3, 5, 7, 9};
  c.momentum = momentum;
  c.n_momentum = 6;
  c.origin = origin;
  c.n_origin = 4;
  c.first_a = c.first_b = QK_REQUEST_RHS_MAX - QK_PROPAGATOR_COLUMNS;
  c.request_b = 2;
  cr_assert_eq(qk_job_check_contract(&m, &SHAPE, &err), QK_OK, "%s", err.text);
}

static const qk_shape_t DOUBLET = {{4, 6, 8, 10}, 2 * QK_SITE_REALS, 2 * QK_PROPAGATOR_COLUMNS},
                        STAGGERED = {{4, 6, 8, 10}, 6, 3};

/* Every value of flavour, for every kind of source and every shape: 0 and 1 are those that a
 * right-hand side of one flavour has. */
Test(job_check, a_column_says_a_flavour_that_right_hand_sides_have) {
  static const int32_t values[] = {INT32_MIN, -2, -1, 0, 1, 2, INT32_MAX};
  const qk_shape_t *const shapes[] = {&SHAPE, &DOUBLET, &STAGGERED};
  Quark__Column c = QUARK__COLUMN__INIT, *columns[2] = {&c, &c};
  Quark__Submit s = submit_of(2);
  s.column = columns;
  s.n_column = 2;
  for (int kind = QUARK__SOURCE_KIND__SOURCE_POINT; kind <= QUARK__SOURCE_KIND__SOURCE_Z4; kind++)
    for (int i = 0; i < 3; i++)
      for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
        qk_err_t err = {0};
        char said[64];
        s.source = (Quark__SourceKind)kind;
        c.flavour = values[k];
        const bool legal = c.flavour == 0 || c.flavour == 1 || (c.flavour == -1 && i == 1);
        cr_expect_eq(qk_job_check(&s, shapes[i], &err), legal ? QK_OK : QK_BAD_ARGUMENT,
                     "source %d, shape %d, flavour %d: %s", kind, i, c.flavour, err.text);
        snprintf(said, sizeof said, "column 0: flavour = %d", c.flavour);
        cr_expect(legal || strstr(err.text, said), "%s", err.text);
        cr_expect(legal || strstr(err.text, i == 1 ? "outside -1 .. 1" : "only 1 is accepted"));
      }
}

Test(job_check, other_members_of_a_doublets_column_have_the_limits_of_all) {
  Quark__Column c = QUARK__COLUMN__INIT, *columns[1] = {&c};
  Quark__Submit s = submit_of(1);
  qk_err_t err = {0};
  s.source = QUARK__SOURCE_KIND__SOURCE_POINT;
  s.column = columns;
  s.n_column = 1;
  c.flavour = -1;
  c.spin = 3;
  cr_expect_eq(qk_job_check(&s, &DOUBLET, &err), QK_OK, "%s", err.text);
  c.spin = 4;
  cr_expect_eq(qk_job_check(&s, &DOUBLET, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "spin = 4 is outside 0 .. 3"), "%s", err.text);
}

Test(job_check, refuses_contractions_and_sequential_sources_of_doublets) {
  static const char *const is = "is not defined for a doublet, whose right-hand sides have two "
                                "flavours (48 real numbers a site, 24 columns)";
  qk_err_t err = {0};
  Quark__Contraction c;
  Quark__Channel *channel;
  Quark__Contract m = contract_of(&c, &channel);
  Quark__Submit s = submit_of(2);
  cr_expect_eq(qk_job_check_contract(&m, &DOUBLET, &err), QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "a contraction: ") && strstr(err.text, is), "%s", err.text);
  cr_expect_eq(qk_job_check(&s, &DOUBLET, &err), QK_OK);
  s.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  err = (qk_err_t){0};
  cr_expect_eq(qk_job_check(&s, &DOUBLET, &err), QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "a sequential source: ") && strstr(err.text, is), "%s", err.text);
}

/* What is defined for spin and colour alone. */
Test(job_check, refuses_contractions_and_sequential_sources_of_other_fields) {
  static const qk_shape_t OTHER = {{4, 6, 8, 10}, 8, 4};
  qk_err_t err = {0};
  Quark__Contraction c;
  Quark__Channel *channel;
  Quark__Contract m = contract_of(&c, &channel);
  cr_expect_eq(qk_job_check_contract(&m, &OTHER, &err), QK_UNSUPPORTED);
  cr_expect_not_null(strstr(err.text, "8 real numbers a site and 4 columns"), "%s", err.text);
  Quark__Submit s = submit_of(2);
  cr_expect_eq(qk_job_check(&s, &OTHER, &err), QK_OK);
  s.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  cr_expect_eq(qk_job_check(&s, &OTHER, &err), QK_UNSUPPORTED);
}

static void refused_of_colours(const Quark__Submit *s, qk_status_t code, const char *words) {
  qk_err_t err = {0};
  cr_expect_eq(qk_job_check(s, &STAGGERED, &err), code, "%s: %s", words, err.text);
  cr_expect(strstr(err.text, words), "%s: %s", words, err.text);
  err = (qk_err_t){0};
  cr_expect_eq(qk_job_check(s, &SHAPE, &err), QK_OK, "%s: %s", words, err.text);
}

Test(job_check, refuses_what_colour_vectors_do_not_have) {
  Quark__Column c = QUARK__COLUMN__INIT, *columns[2] = {&c, &c};
  Quark__Submit good = submit_of(2), s = good;
  qk_err_t err = {0};
  s.dagger = true;
  refused_of_colours(&s, QK_UNSUPPORTED, "dagger: fields of this setup have colour alone");
  s.work = QUARK__WORK__WORK_M;
  cr_expect_eq(qk_job_check(&s, &STAGGERED, &err), QK_OK, "%s", err.text);
  s = good;
  s.basis = QUARK__BASIS__BASIS_OPENQCD;
  refused_of_colours(&s, QK_BAD_ARGUMENT, "basis = 3: ");
  s = good;
  s.parity = QUARK__PARITY__PARITY_EVEN;
  refused_of_colours(&s, QK_UNSUPPORTED, "a field of one parity");
  s = good;
  s.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  s.column = columns;
  s.n_column = 2;
  c.request = 1;
  cr_expect_eq(qk_job_check(&s, &STAGGERED, &err), QK_OK, "%s", err.text);
  c.gamma = 15;
  refused_of_colours(&s, QK_UNSUPPORTED, "column 0: gamma = 15");
  s = good;
  s.source = QUARK__SOURCE_KIND__SOURCE_POINT;
  s.column = columns;
  s.n_column = 2;
  c = (Quark__Column)QUARK__COLUMN__INIT;
  c.spin = 2;
  refused_of_colours(&s, QK_BAD_ARGUMENT, "column 0: spin = 2 is outside 0 .. 0");
}

Test(job_check, colour_vectors_make_local_mesons) {
  qk_err_t err = {0};
  Quark__Contraction c;
  Quark__Channel *channel;
  Quark__Contract m = contract_of(&c, &channel);
  c.first_a = QK_REQUEST_RHS_MAX - QK_COLOUR_COLUMNS;
  for (uint32_t n = 0; n < 16; n++) {
    channel->sink = channel->source = n;
    cr_expect_eq(qk_job_check_contract(&m, &STAGGERED, &err), QK_OK, "%s", err.text);
  }
  channel->sink = 5;
  cr_expect_eq(qk_job_check_contract(&m, &STAGGERED, &err), QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "channel 0: sink = 5, source = 15"), "%s", err.text);
  channel->kind = QUARK__CHANNEL_KIND__CHANNEL_NUCLEON;
  err = (qk_err_t){0};
  cr_expect_eq(qk_job_check_contract(&m, &STAGGERED, &err), QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "channel 0: kind = 1"), "%s", err.text);
  c.first_a = QK_REQUEST_RHS_MAX - QK_COLOUR_COLUMNS + 1;
  channel->sink = 15;
  channel->kind = QUARK__CHANNEL_KIND__CHANNEL_CORNER;
  err = (qk_err_t){0};
  cr_expect_eq(qk_job_check_contract(&m, &STAGGERED, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "first_a"), "%s", err.text); /* not the channel */
  channel->kind = QUARK__CHANNEL_KIND__CHANNEL_MESON;
  err = (qk_err_t){0};
  cr_expect_eq(qk_job_check_contract(&m, &STAGGERED, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "first_a = 1022 is outside 0 .. 1021"), "%s", err.text);
}

Test(job_check, twice_is_a_normalisation_of_colour_vectors) {
  Quark__Submit s = submit_of(1);
  qk_err_t err = {0};
  s.normalisation = QUARK__NORMALISATION__NORMALISATION_TWICE;
  cr_expect_eq(qk_job_check(&s, &STAGGERED, &err), QK_OK, "%s", err.text);
  cr_expect_eq(qk_job_check(&s, &SHAPE, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "normalisation = 2: "), "%s", err.text);
}

Test(job_check, colour_vectors_have_eigenvectors_of_mhat) {
  qk_err_t err = {0};
  Quark__Eigen e = QUARK__EIGEN__INIT;
  Quark__EigenProblem p = QUARK__EIGEN_PROBLEM__INIT;
  e.request = 1;
  e.problem = &p;
  p.name = (char *)"low";
  p.count = 8;
  p.tol = 1e-8;
  p.kind = QUARK__EIGEN_KIND__EIGEN_NORMAL;
  cr_expect_eq(qk_job_check_eigen(&e, &STAGGERED, &err), QK_OK, "%s", err.text);
  p.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  cr_expect_eq(qk_job_check_eigen(&e, &STAGGERED, &err), QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "kind = 2 (laplacian): of fields with colour alone"), "%s", err.text);
}

#define CONTRACT_REFUSED(code, change)                                                             \
  do {                                                                                             \
    qk_err_t err = {0};                                                                            \
    static int32_t v[3 * QK_MOMENTA_MAX + 3];                                                      \
    Quark__Smearing g = QUARK__SMEARING__INIT;                                                     \
    Quark__Contraction c;                                                                          \
    Quark__Channel *channel;                                                                       \
    Quark__Contract m = contract_of(&c, &channel);                                                 \
    memset(v, 0, sizeof v);                                                                        \
    c.momentum = c.origin = v;                                                                     \
    (void)g;                                                                                       \
    change;                                                                                        \
    cr_expect_eq(qk_job_check_contract(&m, &SHAPE, &err), code, "%s: %s", #change, err.text);      \
    cr_expect(err.text[0], "%s", #change);                                                         \
  } while (0)

Test(job_check, refuses_each_illegal_contraction) {
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, m.request = 0);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, m.deadline_ms = QK_DEADLINE_MS_MAX + 1);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, m.priority = QK_PRIORITY_MAX + 1);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, c.n_channel = 0);
  CONTRACT_REFUSED(QK_TOO_LARGE, c.n_channel = QK_CHANNELS_MAX + 1);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, channel->kind = 4);
  CONTRACT_REFUSED(QK_UNSUPPORTED, channel->kind = QUARK__CHANNEL_KIND__CHANNEL_CORNER);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, channel->kind = -1);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, channel->sink = 16);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, channel->source = 16);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, c.first_a = QK_REQUEST_RHS_MAX - 11);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, c.first_b = 1);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, (c.request_b = 1, c.first_b = UINT32_MAX));
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, c.n_momentum = 4);
  CONTRACT_REFUSED(QK_TOO_LARGE, c.n_momentum = 3 * QK_MOMENTA_MAX + 3);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, (c.n_momentum = 6, v[5] = 8));
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, c.n_origin = 3);
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, (c.n_origin = 4, v[0] = 4));
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, (c.n_origin = 4, v[3] = -1));
  CONTRACT_REFUSED(QK_BAD_ARGUMENT, (c.sink = &g, g.alpha = NAN));
}

/* ---- work ---- */

Test(job_check, work_needs_neither_tolerance_nor_iterations) {
  qk_err_t err = {0};
  for (int work = QUARK__WORK__WORK_SOLVE; work <= QUARK__WORK__WORK_SMEAR; work++) {
    Quark__Submit s = submit_of(1);
    s.work = (Quark__Work)work;
    s.tol = (double)NAN;
    s.max_iter = 0;
    s.parity =
        work == QUARK__WORK__WORK_SCHUR ? QUARK__PARITY__PARITY_EVEN : QUARK__PARITY__PARITY_ALL;
    cr_expect_eq(qk_job_check(&s, &SHAPE, &err), work == 0 ? QK_BAD_ARGUMENT : QK_OK, "%d", work);
  }
}

Test(job_check, work_is_one_of_those_that_there_are) {
  static const int values[] = {-1, 8, INT32_MAX, INT32_MIN};
  for (int i = 0; i < 4; i++) {
    qk_err_t err = {0};
    Quark__Submit s = submit_of(1);
    s.work = (Quark__Work)values[i];
    cr_expect_eq(qk_job_check(&s, &SHAPE, &err), QK_BAD_ARGUMENT);
    char said[64];
    snprintf(said, sizeof said, "work = %d is outside 0 .. 7", values[i]);
    cr_expect_str_eq(err.text, said);
  }
}

Test(job_check, an_adjoint_is_solved_for_where_gamma_5_makes_it) {
  static const char *const name[] = {"wilson", "exp-clover", "twisted-clover", "doublet"};
  for (int i = 0; i < 4; i++)
    for (int work = 0; work < 2; work++) {
      qk_err_t err = {0};
      Quark__Submit s = submit_of(1);
      s.dagger = true;
      s.work = (Quark__Work)work;
      const bool legal = i < 3 || work > 0;
      cr_expect_eq(qk_job_check_action(&s, qk_action_named(name[i]), &err),
                   legal ? QK_OK : QK_UNSUPPORTED, "%s", name[i]);
      cr_expect(legal || strstr(err.text, "dagger: the adjoint of the action doublet"));
    }
}

Test(job_check, an_operator_that_connects_all_sites_has_no_parts) {
  const qk_action_row_t *overlap = qk_action_named("overlap");
  for (int work = 0; work <= QUARK__WORK__WORK_SMEAR; work++)
    for (int parity = 0; parity <= 1; parity++) {
      qk_err_t err = {0};
      Quark__Submit s = submit_of(1);
      s.work = (Quark__Work)work;
      s.parity = (Quark__Parity)parity;
      s.dagger = work == 0;
      const bool legal =
          parity == 0 && (work == QUARK__WORK__WORK_SOLVE || work == QUARK__WORK__WORK_M ||
                          work == QUARK__WORK__WORK_SMEAR);
      cr_expect_eq(qk_job_check_action(&s, overlap, &err), legal ? QK_OK : QK_UNSUPPORTED, "%d %d",
                   work, parity);
      cr_expect(legal || strstr(err.text, "whose operator connects all sites"), "%s", err.text);
    }
}

/* Every system with every work and parity. */
Test(job_check, a_system_on_one_parity_has_one) {
  for (int work = 0; work <= QUARK__WORK__WORK_SMEAR; work++)
    for (int schur = 0; schur <= 2; schur++)
      for (int parity = 0; parity <= 2; parity++) {
        qk_err_t err = {0};
        Quark__Submit s = submit_of(1);
        s.work = (Quark__Work)work;
        s.schur = (Quark__Schur)schur;
        s.parity = (Quark__Parity)parity;
        const bool may = work == QUARK__WORK__WORK_SOLVE || work == QUARK__WORK__WORK_SCHUR;
        const bool needs = schur > 0 || work == QUARK__WORK__WORK_SCHUR;
        const bool legal = (schur == 0 || may) && (!needs || parity > 0);
        cr_expect_eq(qk_job_check(&s, &SHAPE, &err), legal ? QK_OK : QK_BAD_ARGUMENT, "%d %d %d",
                     work, schur, parity);
        const uint64_t whole = 4 * 6 * 8 * 10 * 24 * 4;
        cr_expect_eq(qk_job_field_bytes(&s, &SHAPE), parity > 0 ? whole / 2 : whole);
      }
}
