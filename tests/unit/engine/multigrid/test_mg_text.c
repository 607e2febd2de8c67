#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/multigrid/mg_text.h"

static void set(qk_mg_params_t *p, const char *key, const char *text) {
  qk_err_t err = {0};
  cr_assert_eq(qk_mg_text_set(p, key, text, &err), QK_OK, "%s = %s: %s", key, text, err.text);
}

Test(mg_text, last_word_holds_for_further_levels) {
  qk_mg_params_t p = {0};
  set(&p, "mg-vectors", "24,32");
  set(&p, "mg-post", "8");
  set(&p, "mg-pre", "none,2");
  set(&p, "mg-iterations", "4,16");
  cr_assert_eq(p.level[0].nvec, 24);
  cr_assert_eq(p.level[1].nvec, 32);
  cr_assert_eq(p.level[3].nvec, 32);
  cr_assert_eq(p.level[2].post, 8);
  cr_assert_eq(p.level[0].pre, -1);
  cr_assert_eq(p.level[2].pre, 2);
  cr_assert_eq(p.level[0].iterations, 0, "level 0 is solved by the caller");
  cr_assert_eq(p.level[1].iterations, 4);
  cr_assert_eq(p.level[4].iterations, 16);
}

Test(mg_text, blocks_are_one_word_a_level) {
  qk_mg_params_t p = {0};
  set(&p, "mg-blocks", "4x4x4x8,auto,2x2x2x1");
  cr_assert_eq(p.level[0].block[3], 8);
  cr_assert_eq(p.level[1].block[0], 0);
  cr_assert_eq(p.level[2].block[3], 1);
  cr_assert_eq(p.level[3].block[0], 0);
}

Test(mg_text, bad_values_change_nothing_and_are_named) {
  static const char *const bad[][2] = {
      {"mg-levels", "1"},        {"mg-levels", "6"},         {"mg-levels", "two"},
      {"mg-levels", "2.5"},      {"mg-vectors", "24,66"},    {"mg-vectors", "24x"},
      {"mg-blocks", "4x4x4"},    {"mg-blocks", "4x4x4x0"},   {"mg-blocks", "4x4x4x4x4"},
      {"mg-smoother", "jacobi"}, {"mg-store", "double"},     {"mg-tol", "1"},
      {"mg-tol", "nan"},         {"mg-omega", "2"},          {"mg-pre", "0"},
      {"mg-iterations", "1001"}, {"mg-post", "1,2,3,4,5,6"}, {"mg-graphs", "maybe"},
      {"mg-seed", "-1"},         {"mg-colour", "red"},       {"mg-seed", "99999999999999999999"},
      {"mg-setup-vectors", "4"}, {"mg-smoother-bits", "4"},  {"mg-smoother-bits", "16"},
      {"mg-smoother-sums", "8"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qk_mg_params_t p = {0}, before = {0};
    qk_err_t err = {0};
    cr_assert_eq(qk_mg_text_set(&p, bad[i][0], bad[i][1], &err), QK_BAD_ARGUMENT, "%s = %s",
                 bad[i][0], bad[i][1]);
    cr_assert(strstr(err.text, bad[i][0]), "%s does not name %s", err.text, bad[i][0]);
    cr_assert_eq(memcmp(&p, &before, sizeof p), 0, "%s = %s", bad[i][0], bad[i][1]);
  }
}

/* What is printed sets the same parameters again. */
Test(mg_text, print_and_set_are_inverse) {
  qk_mg_params_t p = {0}, q = {0};
  static const char *const given[][2] = {
      {"mg-levels", "3"},
      {"mg-blocks", "4x4x4x4,2x2x2x2"},
      {"mg-vectors", "24,32"},
      {"mg-setup-passes", "none,2"},
      {"mg-setup-precision", "half"},
      {"mg-setup-vectors", "16"},
      {"mg-prolongator", "half,single"},
      {"mg-smoother", "mr,ca-gcr"},
      {"mg-omega", "0.85"},
      {"mg-tol", "none,0.25"},
      {"mg-smoother-bits", "8,none"},
      {"mg-smoother-sums", "half"},
      {"mg-deflate", "none"},
      {"mg-whole", "none"},
      {"mg-graphs", "no"},
      {"mg-seed", "7"},
  };
  for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) set(&p, given[i][0], given[i][1]);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  qk_mg_text_print(&p, out);
  fclose(out);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char *equals = strstr(line, " = ");
    cr_assert(equals, "%s", line);
    *equals = '\0';
    set(&q, line, equals + 3);
  }
  free(text);
  cr_assert_eq(q.nlevel, 3);
  for (int l = 0; l < 2; l++) {
    const qk_mg_level_params_t *a = &p.level[l], *b = &q.level[l];
    cr_assert_eq(memcmp(a->block, b->block, sizeof a->block), 0);
    cr_assert_eq(a->nvec, b->nvec);
    cr_assert_eq(a->setup_passes, b->setup_passes);
    cr_assert_eq(a->prolongator, b->prolongator);
    cr_assert_eq(a->smoother.kind, b->smoother.kind);
    cr_assert_eq(a->smoother.omega, b->smoother.omega);
    cr_assert_eq(p.level[l + 1].tol, q.level[l + 1].tol);
    cr_assert_eq(q.level[l + 1].smoother_bits, l == 0 ? 8 : -1);
  }
  cr_assert_eq(p.level[0].setup_prec, q.level[0].setup_prec);
  cr_assert_eq(q.level[0].smoother_sums, QK_HALF);
  cr_assert_eq(q.together, 16);
  cr_assert_eq(p.deflate, q.deflate);
  cr_assert_eq(p.no_graphs, q.no_graphs);
  cr_assert_eq(p.seed, q.seed);
}
