#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/unit/client/libquark/libquark_kit.h"

Test(libquark, setups_are_listed_loaded_and_dropped) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_setup_t setup[QUARK_SETUPS];
  quark_error_t err;
  quark_load_t load;
  uint32_t n = 0;
  cr_assert_eq(quark_setups(conn, setup, &n, &err), QUARK_OK);
  cr_assert_eq(n, 2);
  cr_expect(setup[0].is_default && setup[0].state == QUARK_LOADING && setup[0].dims[3] == 10);
  cr_expect(setup[0].phase_done == 1 && setup[0].phase_total == 2 && setup[0].queued == 3);
  cr_expect(isnan(setup[0].plaquette), "not known");
  cr_expect_str_eq(setup[1].name, "second");
  cr_expect_str_eq(quark_state_name(setup[1].state), "failed");
  cr_expect_eq(setup[1].code, QUARK_BAD_CHECKSUM);
  cr_expect_str_eq(setup[1].text, "the wrong sum");

  quark_load_init(&load);
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_BAD_ARGUMENT, "it has no name");
  load.name = "third";
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  const Quark__Load *said = lq_fake.last->load;
  cr_expect(!said->gauge && said->n_dims == 0 && !said->has_kappa && !said->has_mass &&
            !said->has_csw && !said->boundary && !said->solver && !said->has_slots);
  load = (quark_load_t){.name = "third",
                        .gauge = "cfg",
                        .dims = {4, 4, 4, 8},
                        .kappa = NAN,
                        .mass = -0.5,
                        .csw = 1.5,
                        .boundary = "periodic",
                        .solver = "cg",
                        .precision = "half",
                        .make_default = true};
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  said = lq_fake.last->load;
  cr_expect_str_eq(said->gauge, "cfg");
  cr_expect(said->n_dims == 4 && said->dims[3] == 8 && !said->has_kappa && said->mass == -0.5);
  cr_expect(said->csw == 1.5 && said->has_slots && said->slots == 0 && said->make_default);
  cr_expect_str_eq(said->boundary, "periodic");
  cr_expect_str_eq(said->precision, "half");
  cr_assert_eq(quark_make_default(conn, "third", &err), QUARK_OK);
  cr_assert_eq(quark_drop(conn, "third", true, &err), QUARK_OK);
  cr_assert_eq(quark_drop(conn, "third", false, &err), QUARK_OK);
  cr_expect(lq_fake.loads == 2 && lq_fake.defaults == 1 && lq_fake.drops == 101);
  lq_fake.script.reject = QUARK_DENIED;
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_DENIED);
  cr_expect_str_eq(err.text, "as the test wants");
  cr_expect_eq(quark_drop(conn, "third", false, &err), QUARK_DENIED);
  quark_close(conn);
}

/* ---- actions ---- */

static quark_load_t doublet(void) {
  static const quark_parameter_t parameter[] = {{"mass", "-0.1"}, {"hop", "1,1,1,0.5"}};
  quark_load_t load;
  quark_load_init(&load);
  load.name = "third";
  load.action = "one-of-tomorrow";
  load.parameter = parameter;
  load.nparameter = 2;
  return load;
}

Test(libquark, a_load_names_an_action_and_its_parameters) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_load_t load = doublet();
  quark_error_t err;
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK, "%s", err.text);
  const Quark__Load *said = lq_fake.last->load;
  cr_expect_str_eq(said->action, "one-of-tomorrow");
  cr_assert_eq(said->n_parameter, 2);
  cr_expect_str_eq(said->parameter[0]->key, "mass");
  cr_expect_str_eq(said->parameter[0]->value, "-0.1");
  cr_expect_str_eq(said->parameter[1]->key, "hop");
  cr_expect_str_eq(said->parameter[1]->value, "1,1,1,0.5");
  load.action = NULL;
  load.nparameter = 1;
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  cr_expect(!lq_fake.last->load->action && lq_fake.last->load->n_parameter == 1);

  const quark_parameter_t bad[] = {{"mass", "1"}, {"csw", NULL}};
  load.parameter = bad;
  load.nparameter = 2;
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_BAD_ARGUMENT);
  cr_expect_str_eq(err.text, "parameter 1 has no key or no value");
  load.parameter = NULL;
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_BAD_ARGUMENT);
  cr_expect_eq(lq_fake.loads, 2);
  quark_close(conn);
}

static void expect_unsupported(quark_connection_t *conn, const quark_load_t *load) {
  quark_error_t err;
  cr_expect_eq(quark_load(conn, load, &err), QUARK_UNSUPPORTED);
  cr_expect(!err.retryable && strstr(err.text, "too old for action and parameter of LOAD"), "%s",
            err.text);
}

Test(libquark, a_daemon_that_would_ignore_an_action_is_not_asked) {
  lq_fake.script.feature = 0;
  quark_connection_t *conn = lq_connect(NULL);
  quark_load_t load = doublet();
  expect_unsupported(conn, &load);
  load.action = NULL;
  expect_unsupported(conn, &load);
  load.action = "wilson";
  load.nparameter = 0;
  expect_unsupported(conn, &load);
  cr_expect_eq(lq_fake.loads, 0);
  load.action = NULL;
  load.mass = 0.1;
  cr_expect_eq(quark_load(conn, &load, NULL), QUARK_OK, "it knows mass");
  quark_close(conn);
}

Test(libquark, a_daemon_that_would_ignore_where_vectors_come_from_is_not_asked) {
  quark_connection_t *conn = lq_connect(NULL); /* it knows actions */
  quark_load_t load;
  quark_error_t err;
  quark_load_init(&load);
  load.name = "next";
  load.evolve_from = "main";
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "too old for evolve_from of LOAD"), "%s", err.text);
  cr_expect_eq(lq_fake.loads, 0);
  quark_close(conn);
  lq_fake.script.feature = QK_FEATURE_EVOLVE;
  conn = lq_connect(NULL);
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  cr_expect_str_eq(lq_fake.last->load->evolve_from, "main");
  quark_close(conn);
}

Test(libquark, a_daemon_that_would_ignore_deflation_is_not_asked) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_load_t load;
  quark_error_t err;
  quark_load_init(&load);
  load.name = "next";
  load.deflate = 100;
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "too old for deflate of LOAD"), "%s", err.text);
  cr_expect_eq(lq_fake.loads, 0);
  load.deflate = 0; /* which is what it does */
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_OK);
  quark_close(conn);
  lq_fake.script.feature = QK_FEATURE_DEFLATE;
  conn = lq_connect(NULL);
  load.deflate = 100;
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  cr_expect(lq_fake.last->load->has_deflate && lq_fake.last->load->deflate == 100);
  load.deflate = -1;
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  cr_expect_not(lq_fake.last->load->has_deflate, "as quarkd was started");
  load.deflate_from = "low";
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "too old for deflate_from of LOAD"), "%s", err.text);
  quark_close(conn);
  lq_fake.script.feature = QK_FEATURE_DEFLATE_FROM;
  conn = lq_connect(NULL);
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  cr_expect_str_eq(lq_fake.last->load->deflate_from, "low");
  quark_close(conn);
}

static void expect_too_old(quark_code_t code, const quark_error_t *err) {
  cr_expect_eq(code, QUARK_UNSUPPORTED, "%s", quark_code_name(code));
  cr_expect(strstr(err->text, "too old for eigenvectors"), "%s", err->text);
}

Test(libquark, a_daemon_that_knows_no_eigenvectors_is_not_asked) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_eigen_params_t params;
  quark_eigen_report_t list[QUARK_EIGEN_NAMES];
  quark_params_t solve;
  const quark_column_t column = {.vector = 1};
  quark_error_t err;
  uint64_t request;
  uint32_t count;
  quark_eigen_params_init(&params);
  cr_expect_eq(quark_eigen(conn, &params, &request, NULL, &err), QUARK_BAD_ARGUMENT, "no name");
  params.name = "low";
  expect_too_old(quark_eigen(conn, &params, &request, NULL, &err), &err);
  expect_too_old(quark_eigen_drop(conn, NULL, "low", &err), &err);
  expect_too_old(quark_eigen_list(conn, NULL, list, &count, &err), &err);
  quark_params_init(&solve);
  solve.source = QUARK_VECTOR;
  solve.column = &column;
  cr_expect_eq(quark_submit(conn, &solve, &request, NULL, &err), QUARK_BAD_ARGUMENT, "no name");
  solve.vectors = "low";
  expect_too_old(quark_submit(conn, &solve, &request, NULL, &err), &err);
  cr_expect_eq(lq_fake.submits, 0);
  quark_close(conn);
}

Test(libquark, vectors_from_memory_are_asked_of_who_knows_them) {
  quark_eigen_params_t params;
  quark_field_params_t field;
  quark_error_t err;
  uint64_t request;
  bool present;
  quark_eigen_params_init(&params);
  quark_field_params_init(&field);
  cr_expect(params.field == NULL && field.count == 0);
  params.name = "mine";
  params.kind = QUARK_EIGEN_LAPLACIAN;
  params.count = 3;
  params.field = "field:1";
  field.kind = QUARK_FIELD_VECTORS;
  field.count = 3;
  for (int mu = 0; mu < 4; mu++) field.dims[mu] = 4;
  lq_fake.script.feature = QK_FEATURE_EIGEN;
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect_eq(quark_field_open(conn, &field, &request, NULL, &present, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "too old for vectors from memory"), "%s", err.text);
  cr_expect_eq(quark_eigen(conn, &params, &request, NULL, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "too old for vectors from memory"), "%s", err.text);
  quark_close(conn);
  lq_fake.script.feature = QK_FEATURE_VECTORS;
  conn = lq_connect(NULL);
  cr_assert_eq(quark_field_open(conn, &field, &request, NULL, &present, &err), QUARK_OK, "%s",
               err.text);
  const Quark__FieldOpen *said = lq_fake.last->field_open;
  cr_expect(said->kind == QUARK__FIELD_KIND__FIELD_VECTORS && said->count == 3 &&
            !said->has_reals && !said->has_plaquette);
  quark_close(conn);
}

Test(libquark, a_digest_of_vectors_is_the_sum_of_those_of_its_sites) {
  const float single[12] = {0.5F, 1, -2, 3, 0.25F, 1, 7, 8, 9, 10, 11, 12};
  const uint64_t second = 1;
  double wide[12];
  uint64_t whole = 0, widened = 0, parts = 0, other = 0;
  for (int k = 0; k < 12; k++) wide[k] = (double)single[k];
  quark_vectors_digest(single, QUARK_F32, NULL, 2, &whole);
  quark_vectors_digest(wide, QUARK_F64, NULL, 2, &widened);
  quark_vectors_digest(wide + 6, QUARK_F64, &second, 1, &parts);
  quark_vectors_digest(wide, QUARK_F64, NULL, 1, &parts);
  quark_vectors_digest(wide, QUARK_F64, &second, 1, &other);
  quark_vectors_digest(wide + 6, QUARK_F64, NULL, 1, &other);
  cr_expect(whole == widened && whole == parts && whole != other);
}

Test(libquark, projections_are_asked_of_daemons_that_know_them) {
  const quark_column_t column = {.t = 1};
  quark_params_t p;
  quark_error_t err;
  quark_attached_t a;
  uint64_t request;
  quark_params_init(&p);
  p.source = QUARK_POINT;
  p.column = &column;
  p.project = "low";
  p.project_count = 12;
  lq_fake.script.feature = QK_FEATURE_EIGEN;
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "too old for project"), "%s", err.text);
  cr_expect_eq(lq_fake.submits, 0);
  quark_close(conn);
  lq_fake.script.feature = lq_fake.script.later_feature = QK_FEATURE_PROJECT;
  static const uint8_t id[16] = "earlier and now";
  quark_options_t options;
  quark_options_init(&options);
  options.keep_session = true;
  options.client_id = id;
  p.detach_ms = 5000;
  conn = lq_connect(&options);
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK, "%s", err.text);
  const Quark__Submit *s = lq_fake.last->submit;
  cr_expect(s->sink == QUARK__SINK__SINK_PROJECT && s->project_count == 12);
  cr_expect_str_eq(s->project, "low");
  quark_close(conn);
  conn = lq_connect(&options);
  cr_assert_eq(quark_attach(conn, request, &a, &err), QUARK_OK, "%s", err.text);
  cr_expect(a.params.project_count == 12 && !a.params.keep && !a.params.discard);
  cr_expect_str_eq(a.params.project, "low");
  const int wrong = 3;
  for (int i = 0; i < wrong; i++) {
    quark_params_t bad = p;
    bad.keep = i == 0;
    bad.discard = i == 1;
    bad.sink_file.path = i == 2 ? "/x" : NULL;
    cr_expect_eq(quark_submit(conn, &bad, &request, NULL, &err), QUARK_BAD_ARGUMENT);
    cr_expect(strstr(err.text, "project: what is projected cannot be kept"), "%s", err.text);
  }
  quark_close(conn);
}

Test(libquark, eigenvectors_are_listed) {
  lq_fake.script.feature = QK_FEATURE_EIGEN;
  quark_connection_t *conn = lq_connect(NULL);
  quark_eigen_report_t list[QUARK_EIGEN_NAMES];
  quark_eigen_kind_t kind;
  uint32_t count;
  cr_assert_eq(quark_eigen_list(conn, "main", list, &count, NULL), QUARK_OK);
  cr_assert_eq(count, 2);
  cr_expect_str_eq(list[0].name, "low");
  cr_expect_str_eq(list[0].user, "ann");
  cr_expect_str_eq(list[0].field, "");
  cr_expect_str_eq(list[1].field, "digest:0123456789abcdef");
  cr_expect(list[0].state == QUARK_EIGEN_KEPT && list[0].kind == QUARK_EIGEN_GAMMA5 &&
            list[0].count == 32 && list[0].tol == 1e-7 && list[0].lowest == 0.125 &&
            list[0].host_bytes == 1ull << 35);
  cr_expect(isnan(list[0].highest) && isnan(list[1].lowest) && list[1].state == QUARK_EIGEN_MAKING);
  cr_expect_str_eq(quark_eigen_kind_name(QUARK_EIGEN_LAPLACIAN), "laplacian");
  cr_expect_null(quark_eigen_kind_name((quark_eigen_kind_t)3));
  cr_expect(quark_eigen_kind_parse("gamma5", &kind) && kind == QUARK_EIGEN_GAMMA5);
  cr_expect_not(quark_eigen_kind_parse("overlap", &kind));
  quark_close(conn);
}

Test(libquark, sign_function_of_overlap_is_shown) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_report_t report;
  cr_assert_eq(quark_status(conn, &report, NULL), QUARK_OK);
  const quark_sign_t *s = &report.setup.sign;
  cr_expect(s->vectors == 20 && s->lowest == 0.125 && s->bound == 0.25 && !s->fractions &&
            s->order == 200 && s->square == 1e-11 && s->ginsparg_wilson == 5e-12);
  quark_close(conn);
}

Test(libquark, deflation_is_shown) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_report_t report;
  quark_setup_t setup[QUARK_SETUPS];
  uint32_t count;
  cr_assert_eq(quark_status(conn, &report, NULL), QUARK_OK);
  const quark_deflation_t *d = &report.setup.deflation;
  cr_expect_eq(report.setup.deflate, 64);
  cr_expect_str_eq(report.setup.deflate_from, "low");
  cr_expect(d->vectors == 60 && d->lowest == 0.25 && d->highest == 0.75 && d->seconds == 12.5 &&
            d->bytes == 1ull << 33 && d->restored);
  cr_expect_str_eq(d->origin, "light/low");
  cr_expect_str_eq(d->trouble, "the disk is full");
  cr_assert_eq(quark_setups(conn, setup, &count, NULL), QUARK_OK);
  cr_expect(count == 2 && setup[0].deflation.vectors == 60 && setup[1].deflation.vectors == 0);
  quark_close(conn);
}

Test(libquark, the_next_daemon_is_not_asked_if_it_is_an_older_one) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_load_t load = doublet();
  lq_fake.script.later_feature = 0;
  lq_fake.script.drop_load = 1;
  expect_unsupported(conn, &load);
  cr_expect_eq(lq_fake.loads, 1, "by the one that knew what it was");
  quark_close(conn);
}

Test(libquark, an_action_that_waits_for_a_session_is_not_sent_to_an_older_daemon) {
  quark_options_t options;
  quark_report_t report;
  quark_load_t load = doublet();
  quark_options_init(&options);
  options.timeout_ms = 300;
  quark_connection_t *conn = lq_connect(&options);
  lq_fake.script.mute = 1;
  lq_fake.script.drop_now = 1;
  cr_expect_eq(quark_status(conn, &report, NULL), QUARK_TIMEOUT, "nobody answers");
  cr_expect_eq(quark_load(conn, &load, NULL), QUARK_TIMEOUT);
  lq_fake.script.later_feature = 0;
  lq_fake.script.mute = 0;
  lq_fake.script.drop_now = 1;
  while (quark_status(conn, &report, NULL) != QUARK_OK) continue;
  cr_expect_eq(lq_fake.loads, 0, "it would have come before the question");
  quark_close(conn);
}

Test(libquark, setups_that_no_answer_has_room_for_are_asked_for_in_parts) {
  static quark_setup_t setup[70];
  quark_error_t err;
  quark_connection_t *conn = lq_connect(NULL);
  for (int all = 0; all <= 64; all += 1 + all / 3) {
    uint32_t n = 99;
    lq_fake.script.setups = all;
    memset(setup, 0, sizeof setup);
    cr_assert_eq(quark_setup_list(conn, setup, 70, &n, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(n, all ? (uint32_t)all : 2);
    for (int i = 0; i < all; i++) cr_expect_eq(atoi(setup[i].name), i);
    cr_expect_eq(*setup[all ? all : 2].name, '\0');
  }
  uint32_t n = 0;
  lq_fake.script.setups = 50;
  memset(setup, 0, sizeof setup);
  cr_assert_eq(quark_setup_list(conn, setup, 30, &n, &err), QUARK_OK);
  cr_expect(n == 50 && strcmp(setup[29].name, "29") == 0 && !*setup[30].name, "no more than room");
  cr_assert_eq(quark_setup_list(conn, NULL, 0, &n, &err), QUARK_OK);
  cr_expect_eq(n, 50);
  cr_assert_eq(quark_setups(conn, setup, &n, &err), QUARK_OK);
  cr_expect(n == 20 && isnan(setup[0].boundary[0]));
  quark_close(conn);
}

Test(libquark, reports_say_the_action_as_it_was_given) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_report_t report;
  quark_setup_t setup[QUARK_SETUPS];
  uint32_t n;
  cr_assert_eq(quark_status(conn, &report, NULL), QUARK_OK);
  cr_expect_str_eq(report.setup.action, "wilson-clover");
  cr_expect_str_eq(report.setup.parameters, "kappa=0.125;csw=1.769");
  cr_expect(report.setup.site_reals == 6 && report.setup.columns == 3);
  cr_assert_eq(report.setup.start_parts, 2);
  cr_expect_str_eq(report.setup.start[0].phase, "read");
  cr_expect(report.setup.start[0].seconds == 0.75 && !report.setup.start[0].beside);
  cr_expect(report.setup.start[1].seconds == 0.5 && report.setup.start[1].beside);
  cr_assert_eq(quark_setups(conn, setup, &n, NULL), QUARK_OK);
  cr_expect_str_eq(setup[0].action, "wilson-clover");
  cr_expect_str_eq(setup[0].parameters, "kappa=0.125;csw=1.769");
  cr_expect(setup[0].site_reals == 48 && setup[0].columns == 24);
  cr_expect(!*setup[1].action && !*setup[1].parameters, "an old daemon does not say");
  cr_expect(setup[1].site_reals == 24 && setup[1].columns == 12, "which has no others");
  quark_close(conn);
}

Test(libquark, parameters_are_cut_into_pairs) {
  quark_parameter_t p[2];
  char text[] = "kappa=0.125;hop=1,1,1,0.5;links=thin", none[] = "", odd[] = "a;=b";
  cr_expect_eq(quark_parameters_split(none, 2, p), 0);
  cr_expect_eq(quark_parameters_split(text, 2, p), 3);
  cr_expect_str_eq(p[0].key, "kappa");
  cr_expect_str_eq(p[0].value, "0.125");
  cr_expect_str_eq(p[1].key, "hop");
  cr_expect_str_eq(p[1].value, "1,1,1,0.5");
  cr_expect_eq(quark_parameters_split(odd, 2, p), 2);
  cr_expect(!strcmp(p[0].key, "a") && !*p[0].value && !*p[1].key && !strcmp(p[1].value, "b"));
}
