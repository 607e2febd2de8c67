/* What a LOAD may say: what is wrong is refused by name, before anything is loaded. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/setup/actions.h"
#include "daemon/engine/setup/load.h"
#include "proto/mg_keys.h"

enum { MANY = QK_VALUES_PARAMS + 1 };

typedef struct message {
  Quark__Engine__Load load;
  double boundary[8];
  Quark__Setting setting[MANY], *parameter[MANY];
} message_t;

static void add(message_t *m, const char *key, const char *value) {
  Quark__Setting *s = &m->setting[m->load.n_parameter];
  *s = (Quark__Setting)QUARK__SETTING__INIT;
  s->key = (char *)key;
  s->value = (char *)value;
  m->parameter[m->load.n_parameter++] = s;
}

static void begin(message_t *m, const char *action) {
  *m = (message_t){.load = QUARK__ENGINE__LOAD__INIT, .boundary = {1, 0, 1, 0, 1, 0, -1, 0}};
  m->load.gauge = "builtin:unit:4x4x4x4";
  m->load.action = (char *)action;
  m->load.backend = "cpu";
  m->load.solver = "bicgstab";
  m->load.n_boundary = 8;
  m->load.boundary = m->boundary;
  m->load.parameter = m->parameter;
}

static void expect_refused(const message_t *m, const char *says) {
  qk_load_t load;
  qk_err_t err = {0};
  memset(&load, 0x5a, sizeof load);
  const qk_load_t before = load;
  cr_expect_eq(qk_load_parse(&m->load, &load, &err), QK_BAD_ARGUMENT, "%s", says);
  cr_expect_not_null(strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
  cr_expect_eq(memcmp(&load, &before, sizeof load), 0, "%s", says);
}

Test(load, takes_the_action_and_its_parameters) {
  message_t m;
  qk_load_t load;
  qk_err_t err = {0};
  begin(&m, "wilson-clover");
  add(&m, "csw", "1.25");
  add(&m, "mass", "-0.5");
  cr_assert_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
  cr_expect_str_eq(qk_action_of(&load.values)->name, "wilson-clover");
  cr_expect(qk_value(&load.values, "mass") == -0.5 && qk_value(&load.values, "csw") == 1.25);
}

/* Nothing crosses that edge, so operators of any phase are one. */
Test(load, forgets_the_phase_of_an_open_boundary) {
  message_t m;
  for (int open = 0; open < 2; open++) {
    qk_load_t load;
    qk_err_t err = {0};
    begin(&m, "exp-clover");
    add(&m, "kappa", "0.13");
    add(&m, "csw", "1.25");
    add(&m, "open", open ? "0.9" : "0");
    cr_assert_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
    cr_expect_eq(load.phase[3][0], open ? 1 : -1);
  }
  m.load.link_reals = 8;
  expect_refused(&m, "link_reals = 8: must be 18 or 12 with an open boundary (open = 0.9)");
  begin(&m, "wilson");
  add(&m, "mass", "0.1");
  add(&m, "links", "stout:0.1,1");
  add(&m, "open", "1");
  expect_refused(&m, "links = stout:0.1,1: must be thin with an open boundary (open = 1)");
  begin(&m, "wilson");
  add(&m, "mass", "0.1");
  add(&m, "open", "-1");
  expect_refused(&m, "open = -1: must be a number from 0 to 1000");
}

Test(load, takes_the_setup_that_multigrid_starts_from) {
  message_t m;
  qk_load_t load;
  qk_err_t err = {0};
  char name[QK_SETUP_NAME_MAX + 2];
  begin(&m, "wilson");
  add(&m, "mass", "0.5");
  cr_assert_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
  cr_expect(load.evolve_from[0] == '\0' && load.evolve_path[0] == '\0');
  m.load.evolve_from = "light";
  m.load.evolve_path = "/state/multigrid-light";
  cr_assert_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
  cr_expect_str_eq(load.evolve_from, "light");
  cr_expect_str_eq(load.evolve_path, "/state/multigrid-light");
  memset(name, 'a', sizeof name);
  name[sizeof name - 1] = '\0';
  m.load.evolve_from = name;
  expect_refused(&m, "evolve_from has 65 characters: at most 64");
}

Test(load, takes_the_vectors_that_solves_begin_with) {
  message_t m;
  qk_load_t load;
  qk_err_t err = {0};
  begin(&m, "wilson");
  add(&m, "mass", "0.5");
  cr_assert_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
  cr_expect(load.deflate == 0 && load.deflate_file[0] == '\0' && load.deflate_from[0] == '\0');
  m.load.solver = "cg";
  m.load.deflate = 48;
  m.load.deflate_file = "/state/eigen/deflate";
  cr_assert_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
  cr_expect(load.deflate == 48);
  cr_expect_str_eq(load.deflate_file, "/state/eigen/deflate");
  m.load.solver = "mg";
  expect_refused(&m, "multigrid has mg-deflate");
  m.load.solver = "cg";
  m.load.deflate = 100000;
  expect_refused(&m, "deflate = 100000: must be 0 to ");
  m.load.deflate = 0;
  m.load.deflate_file = NULL;
  m.load.deflate_from = "light";
  expect_refused(&m, "deflate_from = light: without deflate_file");
}

Test(load, refuses_actions_and_parameters_by_name) {
  message_t m;
  begin(&m, "wislon");
  add(&m, "mass", "0.1");
  expect_refused(&m, "action = \"wislon\": must be one of wilson, wilson-clover");
  begin(&m, "wilson-clover");
  add(&m, "csw", "1");
  expect_refused(&m, "wilson-clover needs mass");
  add(&m, "mass", "-4");
  expect_refused(&m, "mass = -4");
  begin(&m, "wilson");
  add(&m, "mass", "nan");
  expect_refused(&m, "mass = nan");
  begin(&m, "wilson");
  add(&m, "mass", "0.1");
  add(&m, "csw", "1");
  expect_refused(&m, "csw: wilson has no such parameter");
  for (int i = 2; i < MANY; i++) add(&m, "mass", "0.1");
  expect_refused(&m, "17 parameters: at most 16");
}

Test(load, words_of_multigrid_become_parameters) {
  Quark__Setting word[] = {QUARK__SETTING__INIT, QUARK__SETTING__INIT};
  Quark__Setting *words[] = {&word[0], &word[1]};
  message_t m;
  qk_err_t err = {0};
  qk_load_t load;
  begin(&m, "wilson");
  add(&m, "mass", "0.1");
  word[0].key = "mg-vectors";
  word[0].value = "24,32";
  word[1].key = "mg-blocks";
  word[1].value = "4x4x4x2";
  m.load.solver = "auto";
  m.load.multigrid = words;
  m.load.n_multigrid = 2;
  m.load.checkpoint = "/a/b";
  cr_assert_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
  cr_expect_eq(load.solver, QK_SOLVER_AUTO);
  cr_expect_str_eq(load.checkpoint, "/a/b");
  cr_expect(load.nslot == 0 && load.link_reals == 0 && load.mg.nlevel == 0);
  cr_expect(load.mg.level[0].nvec == 24 && load.mg.level[1].nvec == 32);
  cr_expect(load.mg.level[0].block[3] == 2 && load.mg.level[1].block[3] == 0);
  word[1].value = "4x4x4";
  expect_refused(&m, "mg-blocks = 4x4x4");
  word[1].key = "mg-magic";
  expect_refused(&m, "mg-magic");
}

Test(load, every_key_of_multigrid_is_known) {
  static const char *const keys[] = {
#define X(name, key, form, help) key,
      QK_MG_KEYS(X)
#undef X
  };
  Quark__Setting word = QUARK__SETTING__INIT, *words = &word;
  message_t m;
  qk_err_t err = {0};
  qk_load_t load;
  begin(&m, "wilson");
  add(&m, "mass", "0.1");
  m.load.multigrid = &words;
  m.load.n_multigrid = 1;
  for (int k = 0; k < QK_MG_KEY_COUNT; k++) {
    word.key = (char *)keys[k];
    word.value = k == QK_MG_KEY_SEED ? "7" : "auto";
    cr_expect_eq(qk_load_parse(&m.load, &load, &err), QK_OK, "%s", err.text);
  }
}

/* Each row of proto/action/actions.c has its table, and the solvers that it names exist. */
Test(registry, has_every_action_and_only_solvers_that_exist) {
  for (int a = 0; qk_action_rows[a].name; a++) {
    const qk_values_t v = {.action = a};
    const qk_action_t *action = qk_action_of(&v);
    cr_assert_not_null(action);
    cr_expect_str_eq(action->name, qk_action_rows[a].name);
    cr_expect(action->local && action->method && action->method[0]);
    cr_expect_eq(action->twist != NULL,
                 qk_action_rows[a].has_flavours || qk_action_rows[a].vectors > 1, "%s",
                 action->name);
    const bool composed =
        qk_action_rows[a].vectors > 1 || action->slices != NULL || qk_action_rows[a].is_dense;
    cr_expect_eq(action->compose != NULL, composed, "%s", action->name);
    for (int i = 0; action->method[i]; i++) {
      cr_expect_geq(qk_choice_find(&qk_choice_solvers, action->method[i]), 1, "%s",
                    action->method[i]);
      cr_expect_eq(qk_action_solver(&v, action->method[i], NULL), QK_OK);
    }
    cr_expect(action->chirality != QK_CHIRALITY_NONE || !qk_action_allows(action, "mg"));
    cr_expect_eq(qk_action_solver(&v, "auto", NULL), QK_OK);
    qk_err_t err = {0};
    cr_expect_eq(qk_action_solver(&v, "magic", &err), QK_BAD_ARGUMENT);
    cr_expect_not_null(strstr(err.text, action->name), "%s", err.text);
  }
}
