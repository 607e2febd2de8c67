/* Problems of eigenvectors: every limit from both sides, with the sentence that says it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "proto/eigen_check.h"

/* 4 x 4 x 4 sites of a time slice: 192 colour vectors; 1024 sites: 6144 spinors of one parity. */
static const qk_shape_t SHAPE = {{4, 4, 4, 16}, 24, 12};

static Quark__EigenProblem usual(Quark__EigenKind kind) {
  Quark__EigenProblem p = QUARK__EIGEN_PROBLEM__INIT;
  p.name = (char *)"low-modes.1";
  p.kind = kind;
  p.count = 100;
  p.tol = 1e-8;
  return p;
}

static void expect(const Quark__EigenProblem *p, qk_status_t status, const char *text) {
  char why[QK_WHY] = "";
  const qk_status_t is = qk_eigen_check(p, &SHAPE, why);
  cr_expect_eq(is, status, "%s instead of %s: %s", qk_status_name(is), qk_status_name(status), why);
  if (status != QK_OK) cr_expect_str_eq(why, text);
}

Test(eigen_check, names_are_those_of_setups) {
  static const char *const good[] = {"a", "0", "low.modes_1-x"}, *const bad[] = {"",         ".a",
                                                                                 "a/b",      "a b",
                                                                                 "\xc3\xa9", "../x",
                                                                                 "a\n"};
  char why[QK_WHY], long_name[QK_EIGEN_NAME_MAX + 2];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    cr_expect_eq(qk_eigen_check_name("name", good[i], why), QK_OK, "%s: %s", good[i], why);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    cr_expect_eq(qk_eigen_check_name("name", bad[i], why), QK_BAD_ARGUMENT, "%s", bad[i]);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    cr_expect_eq(qk_eigen_check_new_name(good[i], why), i == 1 ? QK_BAD_ARGUMENT : QK_OK);
  cr_expect_eq(qk_eigen_check_new_name("48", why), QK_BAD_ARGUMENT);
  cr_expect_str_eq(why, "name = 48: all digits, which --deflate takes for a number of vectors: a "
                        "letter, '.', '_' or '-' is needed");
  memset(long_name, 'x', sizeof long_name);
  long_name[QK_EIGEN_NAME_MAX + 1] = '\0';
  cr_expect_eq(qk_eigen_check_name("name", long_name, why), QK_BAD_ARGUMENT);
  cr_expect_str_eq(why, "name of 65 bytes: 1 to 64 letters, digits, '.', '_' or '-' are needed, "
                        "the first a letter or digit");
  long_name[QK_EIGEN_NAME_MAX] = '\0';
  cr_expect_eq(qk_eigen_check_name("name", long_name, why), QK_OK);
}

Test(eigen_check, no_more_vectors_than_there_are) {
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  p.count = 0;
  expect(&p, QK_BAD_ARGUMENT, "count = 0: must be at least 1");
  p.count = QK_EIGEN_COUNT_MAX;
  expect(&p, QK_OK, NULL);
  p.count++;
  expect(&p, QK_TOO_LARGE, "count = 4097 is over the limit of 4096");
  p = usual(QUARK__EIGEN_KIND__EIGEN_LAPLACIAN);
  p.count = 192;
  expect(&p, QK_OK, NULL);
  p.count++;
  expect(&p, QK_BAD_ARGUMENT,
         "count = 193: the Laplacian of a time slice has 192 eigenvectors on this lattice");
  const qk_shape_t small = {{2, 2, 2, 2}, 24, 12}; /* 16 sites: 96 spinors of one parity, 192 */
  char why[QK_WHY];
  p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  cr_expect_eq(qk_eigen_check(&p, &small, why), QK_BAD_ARGUMENT);
  cr_expect_str_eq(why, "count = 100: the operator has 96 eigenvectors on this lattice");
  p.kind = QUARK__EIGEN_KIND__EIGEN_GAMMA5;
  cr_expect_eq(qk_eigen_check(&p, &small, why), QK_OK);
}

Test(eigen_check, numbers_of_the_method_have_limits) {
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_GAMMA5);
  p.space = 100;
  expect(&p, QK_BAD_ARGUMENT, "space = 100: must be greater than count = 100, or 0");
  p.space = QK_EIGEN_SPACE_MAX + 1;
  expect(&p, QK_TOO_LARGE, "space = 16385 is over the limit of 16384");
  p.space = QK_EIGEN_SPACE_MAX;
  p.order = QK_EIGEN_ORDER_MAX + 2;
  expect(&p, QK_TOO_LARGE, "order = 4098 is over the limit of 4096");
  p.order = 31;
  expect(&p, QK_BAD_ARGUMENT, "order = 31: must be even, or 0");
  p.order = QK_EIGEN_ORDER_MAX;
  p.restarts = QK_EIGEN_RESTARTS_MAX + 1;
  expect(&p, QK_TOO_LARGE, "restarts = 1001 is over the limit of 1000");
  p.restarts = QK_EIGEN_RESTARTS_MAX;
  expect(&p, QK_OK, NULL);
}

Test(eigen_check, tolerances_are_numbers) {
  static const double bad[] = {0, -1e-8, 0.2, NAN, INFINITY, 1e-16};
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  char why[QK_WHY];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    p.tol = bad[i];
    cr_expect_eq(qk_eigen_check(&p, &SHAPE, why), QK_BAD_ARGUMENT, "%g", bad[i]);
  }
  p.tol = 0.2;
  expect(&p, QK_BAD_ARGUMENT, "tol = 0.2 is outside 1e-15 .. 0.1");
}

Test(eigen_check, links_are_for_the_laplacian) {
  Quark__Smearing links = QUARK__SMEARING__INIT;
  double rho = 0.1;
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_LAPLACIAN);
  p.links = &links;
  links.links = QUARK__LINK_SMEAR__LINK_SMEAR_STOUT;
  links.link_param = &rho;
  links.n_link_param = 1;
  links.link_steps = 10;
  expect(&p, QK_OK, NULL);
  rho = 0.3;
  expect(&p, QK_BAD_ARGUMENT, "links: link_param 0 = 0.3 is outside 0 .. 0.25 of stout");
  p.kind = QUARK__EIGEN_KIND__EIGEN_NORMAL;
  expect(&p, QK_BAD_ARGUMENT, "links: they are for the Laplacian only, not for kind = 0");
}

Test(eigen_check, a_basis_is_cut_into_what_divides_the_lattice) {
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  uint32_t block[] = {2, 4, 1, 8};
  p.basis = 24;
  expect(&p, QK_OK, NULL);
  p.block = block;
  p.n_block = 4;
  expect(&p, QK_OK, NULL);
  block[0] = 1;
  expect(&p, QK_BAD_ARGUMENT, "block: 1 in x: must be a divisor of 4, and even");
  block[0] = 2;
  block[2] = 3;
  expect(&p, QK_BAD_ARGUMENT, "block: 3 in z: must be a divisor of 4");
  block[2] = 0;
  expect(&p, QK_BAD_ARGUMENT, "block: 0 in z: must be a divisor of 4");
  p.n_block = 3;
  expect(&p, QK_BAD_ARGUMENT, "block: 3 numbers: 4 are needed, in x, y, z, t");
  p.basis = 0;
  expect(&p, QK_BAD_ARGUMENT, "block: it is for a basis: basis = 0");
  p.n_block = 0;
  p.basis = 20;
  expect(&p, QK_BAD_ARGUMENT, "basis = 20: must be a multiple of 8, and less than count = 100");
  p.basis = 104;
  expect(&p, QK_BAD_ARGUMENT, "basis = 104: must be a multiple of 8, and less than count = 100");
  p.count = 1000;
  p.basis = 520;
  expect(&p, QK_TOO_LARGE, "basis = 520 is over the limit of 512");
  p.basis = 24;
  p.kind = QUARK__EIGEN_KIND__EIGEN_GAMMA5;
  expect(&p, QK_BAD_ARGUMENT, "basis = 24: it is for kind = 0 (NORMAL), not for 1");
}

Test(eigen_check, a_compressed_set_takes_a_basis_and_coefficients) {
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL), q = p;
  const uint64_t vector = 512 * 24 * sizeof(float); /* of one parity */
  uint32_t block[] = {2, 2, 2, 2};
  int chosen[4];
  p.basis = 24;
  cr_expect_not(qk_eigen_same(&p, &q));
  qk_eigen_block(&p, SHAPE.dims, chosen);
  cr_expect(chosen[0] == 4 && chosen[3] == 4);
  /* 4 blocks of 4^4, two chiralities, 24 complex numbers of each for 104 vectors */
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 1, true),
               24 * vector + 104 * 4 * 2 * 24 * 2 * sizeof(float));
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 12, false),
               2 * (12 * 24 * vector + 104 * 4 * 2 * 24 * 2 * sizeof(float)));
  q.basis = 24;
  cr_expect(qk_eigen_same(&p, &q));
  q.n_block = 4;
  q.block = block;
  cr_expect_not(qk_eigen_same(&p, &q));
}

Test(eigen_check, vectors_of_a_field_are_not_computed) {
  static const char *const good[] = {"field:1", "field:18446744073709551615",
                                     "digest:0123456789abcdef"};
  static const char *const bad[] = {"",
                                    "field:",
                                    "field:1x",
                                    "field:123456789012345678901",
                                    "digest:",
                                    "digest:0123456789abcde",
                                    "digest:0123456789abcdef0",
                                    "digest:0123456789abcdeF",
                                    "Field:1",
                                    "fiel"};
  Quark__Smearing links = QUARK__SMEARING__INIT;
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_LAPLACIAN);
  char why[QK_WHY];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    p.field = (char *)good[i];
    expect(&p, QK_OK, NULL);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    p.field = (char *)bad[i];
    cr_expect_eq(qk_eigen_check(&p, &SHAPE, why), QK_BAD_ARGUMENT, "%s", bad[i]);
  }
  expect(&p, QK_BAD_ARGUMENT,
         "field of 4 bytes: field:REQUEST or digest:HEX16 is needed, HEX16 of 16 hexadecimal "
         "digits in lower case");
  p.field = (char *)good[0];
  p.links = &links;
  expect(&p, QK_BAD_ARGUMENT,
         "links: vectors of a field are not computed, on smeared links or others");
  p.restarts = 1;
  expect(&p, QK_BAD_ARGUMENT, "restarts = 1: vectors of a field are not computed: must be 0");
  p.order = 2;
  expect(&p, QK_BAD_ARGUMENT, "order = 2: vectors of a field are not computed: must be 0");
  p.space = 101;
  expect(&p, QK_BAD_ARGUMENT, "space = 101: vectors of a field are not computed: must be 0");
  p.kind = QUARK__EIGEN_KIND__EIGEN_GAMMA5;
  expect(&p, QK_BAD_ARGUMENT,
         "field: a client's vectors are those of the Laplacian (kind = 2), not of kind = 1");
}

Test(eigen_check, kinds_have_names) {
  Quark__EigenProblem p = usual((Quark__EigenKind)3);
  expect(&p, QK_BAD_ARGUMENT, "kind = 3 is outside 0 .. 2");
  p.kind = (Quark__EigenKind)-1;
  expect(&p, QK_BAD_ARGUMENT, "kind = -1 is outside 0 .. 2");
  for (int k = 0; k < 3; k++) cr_expect_eq(qk_eigen_kind_find(qk_eigen_kind_name(k)), k);
  cr_expect_null(qk_eigen_kind_name(3));
  cr_expect_null(qk_eigen_kind_name(-1));
  cr_expect_eq(qk_eigen_kind_find("overlap"), -1);
}

Test(eigen_check, a_result_has_two_numbers_a_vector) {
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  cr_expect_eq(qk_eigen_bytes(&p, &SHAPE), 1600);
  p.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  cr_expect_eq(qk_eigen_values(&p, &SHAPE), 1600);
  cr_expect_eq(qk_eigen_bytes(&p, &SHAPE), 25600);
}

Test(eigen_check, host_memory_is_that_of_blocks_of_eight) {
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_GAMMA5);
  p.count = 9; /* two blocks */
  const uint64_t one = 2ull * 8 * 1024 * 24 * sizeof(float);
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 1, true), one);
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 1, false), 2 * one);
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 12, true), 12 * one);
  p.kind = QUARK__EIGEN_KIND__EIGEN_NORMAL;
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 1, true), one / 2);
  const qk_shape_t two = {{4, 4, 4, 16}, 48, 24};
  cr_expect_eq(qk_eigen_host_bytes(&p, &two, 1, true), one);
  p.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 12, true), one / 4, "it has no fifth dimension");
  p.count = 8;
  cr_expect_eq(qk_eigen_host_bytes(&p, &SHAPE, 1, false), one / 4);
}

Test(eigen_check, dense_problems_take_five_matrices_on_the_first_rank) {
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  const uint64_t entry = 2 * sizeof(double);
  p.count = 9;
  p.space = 0;
  cr_expect_eq(qk_eigen_space(&p, &SHAPE), 64); /* twice two blocks, and four more */
  cr_expect_eq(qk_eigen_work_bytes(&p, &SHAPE, 1), 5 * 64 * 64 * entry);
  cr_expect_eq(qk_eigen_work_bytes(&p, &SHAPE, 4), (5 + 3 * 2) * 64 * 64 * entry);
  p.basis = 24;
  cr_expect_eq(qk_eigen_space(&p, &SHAPE), 80, "of the basis");
  p.basis = 0;
  p.space = 400;
  cr_expect_eq(qk_eigen_space(&p, &SHAPE), 400);
  p.space = 10000;
  cr_expect_eq(qk_eigen_space(&p, &SHAPE), 512 * 12, "no more than there are vectors");
  p.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  cr_expect_eq(qk_eigen_space(&p, &SHAPE), 64 * 3);
  p.field = (char *)"field:3";
  cr_expect_eq(qk_eigen_work_bytes(&p, &SHAPE, 1), 0, "they are not computed");
}

Test(eigen_check, problems_are_the_same_where_their_vectors_are) {
  Quark__Smearing links = QUARK__SMEARING__INIT, none = QUARK__SMEARING__INIT;
  double rho[2] = {0.1, 0.1};
  Quark__EigenProblem a = usual(QUARK__EIGEN_KIND__EIGEN_LAPLACIAN), b = a;
  b.name = (char *)"other";
  cr_expect(qk_eigen_same(&a, &b));
  b.links = &none; /* as they are */
  cr_expect(qk_eigen_same(&a, &b));
  b.links = &links;
  links.links = QUARK__LINK_SMEAR__LINK_SMEAR_STOUT;
  links.link_param = rho;
  links.n_link_param = 1;
  cr_expect_not(qk_eigen_same(&a, &b));
  none = links;
  none.link_param = rho + 1;
  a.links = &none;
  cr_expect(qk_eigen_same(&a, &b));
  rho[1] = 0.2;
  cr_expect_not(qk_eigen_same(&a, &b));
  a = b = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  b.count++;
  cr_expect_not(qk_eigen_same(&a, &b));
  a = b = usual(QUARK__EIGEN_KIND__EIGEN_LAPLACIAN);
  b.field = (char *)"digest:0123456789abcdef";
  cr_expect_not(qk_eigen_same(&a, &b));
  cr_expect_not(qk_eigen_same(&b, &a));
  a.field = (char *)"digest:0123456789abcdee";
  cr_expect_not(qk_eigen_same(&a, &b));
  a.field = b.field;
  cr_expect(qk_eigen_same(&a, &b));
}

Test(eigen_check, colour_vectors_have_those_of_mhat) {
  /* 1024 sites: 1536 numbers of one parity; in memory with one that is 0 beside each three */
  static const qk_shape_t colours = {{4, 4, 4, 16}, 6, 3};
  Quark__EigenProblem p = usual(QUARK__EIGEN_KIND__EIGEN_NORMAL);
  char why[QK_WHY] = "";
  p.count = 1536;
  cr_expect_eq(qk_eigen_check(&p, &colours, why), QK_OK, "%s", why);
  cr_expect_eq(qk_eigen_host_bytes(&p, &colours, 1, true), (uint64_t)1536 * 512 * 8 * 4);
  cr_expect_eq(qk_eigen_host_bytes(&p, &colours, 1, false), (uint64_t)1536 * 512 * 8 * 8);
  p.count = 1537;
  cr_expect_eq(qk_eigen_check(&p, &colours, why), QK_BAD_ARGUMENT);
  p.count = 100;
  p.basis = 8;
  cr_expect_eq(qk_eigen_check(&p, &colours, why), QK_UNSUPPORTED);
  cr_expect_str_eq(why, "basis = 8: eigenvectors of fields with colour alone are not compressed");
  p = usual(QUARK__EIGEN_KIND__EIGEN_GAMMA5);
  cr_expect_eq(qk_eigen_check(&p, &colours, why), QK_UNSUPPORTED);
  cr_expect_str_eq(why, "kind = 1 (gamma5): of fields with colour alone there are eigenvectors of "
                        "kind = 0 (normal)");
}
