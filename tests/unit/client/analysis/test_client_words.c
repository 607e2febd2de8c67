#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/analysis/filespec.h"
#include "client/analysis/scan.h"
#include "client/analysis/smearing.h"
#include "client/analysis/source.h"
#include "tests/support/refused.h"

static const qk_shape_t shape = {{4, 6, 8, 16}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS},
                        doublet = {{4, 6, 8, 16}, 2 * QK_SITE_REALS, 2 * QK_PROPAGATOR_COLUMNS};

Test(flavour, is_one_of_two_signs) {
  static const char *const refused[] = {"", "0", "2", "-2", "1 ", " 1", "+", "--1", "+1.0", "up"};
  int32_t flavour = 0;
  cr_expect(qk_flavour_parse("-1", &flavour) && flavour == -1);
  cr_expect(qk_flavour_parse("+1", &flavour) && flavour == 1);
  cr_expect(qk_flavour_parse("-1", &flavour) && qk_flavour_parse("1", &flavour) && flavour == 1);
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
    cr_expect(!qk_flavour_parse(refused[i], &flavour) && flavour == 1, "%s", refused[i]);
}

/* ---- sources ---- */

static quark_column_t *columns_on(const qk_shape_t *fields, const char *text, int64_t *n) {
  qk_source_t source;
  qk_err_t err = {0};
  quark_column_t *columns = NULL;
  cr_assert_eq(qk_source_parse(text, &source, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_source_columns(&source, fields, n, &columns, &err), QK_OK, "%s", err.text);
  return columns;
}

static quark_column_t *columns_of(const char *text, int64_t *n) {
  return columns_on(&shape, text, n);
}

Test(source, points_and_walls_have_twelve_columns_colour_fastest) {
  int64_t n;
  quark_column_t *c = columns_of("point:1,2,3,15", &n);
  cr_assert_eq(n, 12);
  for (int i = 0; i < 12; i++) {
    cr_expect(c[i].x == 1 && c[i].y == 2 && c[i].z == 3 && c[i].t == 15);
    cr_expect(c[i].spin == i / 3 && c[i].colour == i % 3 && c[i].flavour == 0);
  }
  free(c);
  c = columns_of("wall:7,p=1:-2:0", &n);
  cr_assert_eq(n, 12);
  for (int i = 0; i < 12; i++) {
    cr_expect(c[i].t == 7 && c[i].px == 1 && c[i].py == -2 && c[i].pz == 0);
    cr_expect(c[i].spin == i / 3 && c[i].colour == i % 3);
  }
  free(c);
}

Test(source, both_ways_of_writing_noise_are_the_same) {
  const char *const pairs[][2] = {{"z2:7", "z2:seed=7"},
                                  {"z4:7:3", "z4:t=3,seed=7"},
                                  {"z4:7:3,count=5", "z4:count=5,t=3,seed=7"}};
  for (int k = 0; k < 3; k++) {
    int64_t n, m;
    quark_column_t *a = columns_of(pairs[k][0], &n), *b = columns_of(pairs[k][1], &m);
    cr_assert_eq(n, m);
    cr_assert_eq(n, k == 2 ? 5 : 1);
    for (int64_t i = 0; i < n; i++) {
      cr_expect_eq(memcmp(&a[i], &b[i], sizeof a[i]), 0);
      cr_expect(a[i].seed == 7 + (uint64_t)i && a[i].t == (k ? 3 : -1));
      cr_expect(a[i].spin == -1 && a[i].colour == -1);
    }
    free(a);
    free(b);
  }
}

Test(source, diluted_noise_covers_each_component_and_slice_once) {
  int64_t n;
  quark_column_t *c = columns_of("z4:seed=3,count=2,dilute=spin+time+colour,every=4", &n);
  int seen[2][4][4][3] = {{{{0}}}};
  cr_assert_eq(n, 2 * 4 * 12);
  for (int64_t i = 0; i < n; i++) {
    cr_assert(c[i].seed >= 3 && c[i].seed <= 4 && c[i].t >= 0 && c[i].t < 4 && c[i].t_every == 4);
    seen[c[i].seed - 3][c[i].t][c[i].spin][c[i].colour]++;
    cr_expect_eq(i % 3, c[i].colour, "colour is fastest");
  }
  for (int i = 0; i < 96; i++) cr_expect_eq((&seen[0][0][0][0])[i], 1);
  free(c);
  c = columns_of("z2:1,dilute=time", &n);
  cr_assert_eq(n, 16, "each time slice alone");
  for (int i = 0; i < 16; i++) cr_expect(c[i].t == i && c[i].t_every == 0 && c[i].spin == -1);
  free(c);
  c = columns_of("z2:1,every=8", &n);
  cr_expect(n == 1 && c[0].t == 0 && c[0].t_every == 8);
  free(c);
}

Test(source, of_a_doublet_points_and_walls_have_both_flavours_the_upper_first) {
  static const char *const texts[] = {"point:1,2,3,15", "wall:7,p=1:-2:0"};
  for (int k = 0; k < 2; k++)
    for (int flavour = -1; flavour <= 1; flavour++) {
      int64_t n;
      char text[64];
      snprintf(text, sizeof text, "%s%s", texts[k],
               flavour < 0   ? ",flavour=-1"
               : flavour > 0 ? ",flavour=+1"
                             : "");
      quark_column_t *c = columns_on(&doublet, text, &n);
      cr_assert_eq(n, flavour ? 12 : 24, "%s", text);
      for (int i = 0; i < n; i++) {
        const quark_column_t want = {.x = k ? 0 : 1,
                                     .y = k ? 0 : 2,
                                     .z = k ? 0 : 3,
                                     .t = k ? 7 : 15,
                                     .px = k ? 1 : 0,
                                     .py = k ? -2 : 0,
                                     .spin = i % 12 / 3,
                                     .colour = i % 3,
                                     .flavour = flavour  ? flavour
                                                : i < 12 ? 1
                                                         : -1};
        cr_expect_eq(memcmp(&c[i], &want, sizeof want), 0, "%s: column %d", text, i);
      }
      free(c);
    }
}

Test(source, noise_of_a_doublet_is_in_both_flavours_unless_it_says_which) {
  static const struct {
    const char *text;
    int64_t n;
    int32_t flavour[4];
  } cases[] = {{"z2:7", 1, {0}},
               {"z4:7:3,flavour=+1", 1, {1}},
               {"z2:seed=7,flavour=1,p=0:0:1", 1, {1}},
               {"z2:7,flavour=-1,count=2", 2, {-1, -1}},
               {"z4:7,dilute=flavour", 2, {1, -1}},
               {"z4:7,count=2,dilute=flavour", 4, {1, -1, 1, -1}}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    int64_t n;
    quark_column_t *c = columns_on(&doublet, cases[k].text, &n);
    cr_assert_eq(n, cases[k].n, "%s", cases[k].text);
    for (int i = 0; i < n; i++)
      cr_expect(c[i].flavour == cases[k].flavour[i] && c[i].spin == -1 && c[i].colour == -1);
    free(c);
  }
}

Test(source, noise_that_is_diluted_in_all_covers_each_component_once) {
  int64_t n;
  quark_column_t *c = columns_on(&doublet, "z4:3,dilute=flavour+time+colour+spin,every=2", &n);
  cr_assert_eq(n, 2 * 24);
  for (int i = 0; i < n; i++) /* colour runs fastest, then spin, flavour, time */
    cr_expect(c[i].t == i / 24 && c[i].flavour == (i % 24 < 12 ? 1 : -1) &&
              c[i].spin == i % 12 / 3 && c[i].colour == i % 3 && c[i].t_every == 2);
  free(c);
}

Test(source, flavours_are_refused_where_right_hand_sides_have_one) {
  static const char *const bad[][2] = {{"point:0,0,0,0,flavour=-1", "flavour=-1 is for"},
                                       {"wall:0,flavour=+1", "flavour=+1 is for"},
                                       {"z2:1,flavour=1", "flavour=+1 is for"},
                                       {"z4:1,dilute=flavour+spin", "dilute=flavour is for"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qk_source_t s;
    qk_err_t err = {0};
    int64_t n;
    quark_column_t *c = NULL;
    cr_assert_eq(qk_source_parse(bad[i][0], &s, &err), QK_OK, "%s", bad[i][0]);
    cr_expect(qk_source_has_flavour(&s));
    cr_expect_eq(qk_source_columns(&s, &shape, &n, &c, &err), QK_UNSUPPORTED);
    cr_expect(!c && strstr(err.text, bad[i][1]) && strstr(err.text, "two flavours"), "%s",
              err.text);
  }
}

static qk_status_t parse_source(const char *text, bool *touched, qk_err_t *err) {
  qk_source_t s = {.count = 77};
  const qk_status_t status = qk_source_parse(text, &s, err);
  *touched = s.count != 77;
  return status;
}

Test(source, what_is_no_source_is_refused_with_its_text) {
  const char *const bad[] = {"",
                             "point",
                             "point:",
                             "point:1,2,3",
                             "point:1,2,3,4,5",
                             "point:1,2,3,-4",
                             "point:1,2,3,4 ",
                             "wall:",
                             "wall:1,p=1:2",
                             "wall:1,q=1:2:3",
                             "wall:1,flavour=",
                             "wall:1,flavour=0",
                             "wall:1,flavour=+1,p=1:2:3",
                             "point:1,2,3,4,flavour=2",
                             "point:1,2,3,4,flavour=-1,",
                             "point:1,2,3,4,flavour=-1,flavour=1",
                             "z2:1,flavour=up",
                             "z2:1,dilute=flavour+flavour",
                             "z2:1,dilute=flavour,flavour=1",
                             "z2:",
                             "z2:t=3",
                             "z2:1:",
                             "z2:1,",
                             "z2:1,count=0",
                             "z2:1,count=x",
                             "z4:1,dilute=",
                             "z4:1,dilute=spin+spin",
                             "z4:1,every=0",
                             "z3:1",
                             "z2:1,dilute=time,t=3",
                             "z2:99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    expect_refused(parse_source, bad[i], bad[i]);
}

Test(source, places_outside_the_lattice_are_refused_with_the_limit) {
  const char *const bad[][2] = {{"point:4,0,0,0", "x = 4"},
                                {"point:0,0,8,0", "which has 8"},
                                {"wall:16", "t = 16"},
                                {"z2:1:16", "t = 16"},
                                {"wall:0,p=0:-6:0", "py = -6"},
                                {"z2:1,every=17", "every = 17"},
                                {"z4:1,count=1000000,dilute=spin+colour+time", "16777216"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qk_source_t s;
    qk_err_t err = {0};
    int64_t n;
    quark_column_t *c;
    cr_assert_eq(qk_source_parse(bad[i][0], &s, &err), QK_OK, "%s", bad[i][0]);
    cr_expect_eq(qk_source_columns(&s, &shape, &n, &c, &err), QK_BAD_ARGUMENT);
    cr_expect_not_null(strstr(err.text, bad[i][1]), "\"%s\" not in \"%s\"", bad[i][1], err.text);
  }
}

/* ---- smearing ---- */

Test(smearing, the_width_form_is_that_of_chroma) {
  quark_smearing_t s = {0};
  const double widths[] = {0.5, 2, 4.2};
  const int steps[] = {3, 5, 60};
  for (int k = 0; k < 3; k++) {
    char text[64];
    snprintf(text, sizeof text, "gauss:width=%g,steps=%d", widths[k], steps[k]);
    cr_assert_eq(qk_smearing_parse(text, &s, NULL), QK_OK);
    cr_expect_eq(s.steps, (uint32_t)steps[k]);
    /* (psi + alpha S psi) / (1 + 6 alpha) = psi + w^2/(4N) (S psi - 6 psi), for any number S psi */
    for (double hop = -6; hop <= 6; hop += 1.5) {
      const double ours = (1 + s.alpha * hop) / (1 + 6 * s.alpha),
                   chroma = 1 + widths[k] * widths[k] / (4 * steps[k]) * (hop - 6);
      cr_expect_float_eq(ours, chroma, 1e-12 * (1 + fabs(chroma)));
    }
  }
}

Test(smearing, words_read_back_as_the_same_numbers) {
  const char *const gauss[] = {"none", "gauss:0.25,10", "gauss:1e-3,1000",
                               "gauss:0.3333333333333333,7"};
  const char *const links[] = {"none",        "ape:0.6,20",        "ape:0.6,20,4d",
                               "stout:0.1,5", "stout:0.25,100,4d", "hyp:0.75,0.6,0.3,2"};
  char text[QK_SMEARING_TEXT];
  for (size_t i = 0; i < sizeof gauss / sizeof gauss[0]; i++) {
    quark_smearing_t s = {0};
    cr_assert_eq(qk_smearing_parse(gauss[i], &s, NULL), QK_OK, "%s", gauss[i]);
    qk_smearing_print(&s, text);
    quark_smearing_t again = {0};
    cr_assert_eq(qk_smearing_parse(text, &again, NULL), QK_OK, "%s", text);
    cr_expect(again.alpha == s.alpha && again.steps == s.steps, "%s", text);
  }
  for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
    quark_smearing_t s = {.alpha = 0.5, .steps = 3};
    cr_assert_eq(qk_smearing_parse_links(links[i], &s, NULL), QK_OK, "%s", links[i]);
    cr_expect(s.alpha == 0.5 && s.steps == 3, "the rest of the smearing stays");
    qk_smearing_print_links(&s, text);
    cr_expect_str_eq(text, links[i]);
  }
}

Test(smearing, numbers_stand_where_they_belong) {
  quark_smearing_t s = {0};
  cr_assert_eq(qk_smearing_parse_links("hyp:0.75,0.6,0.3", &s, NULL), QK_OK);
  cr_expect(s.links == QUARK_HYP && s.link_steps == 1 && !s.link_all);
  cr_expect(s.link_param[0] == 0.75 && s.link_param[1] == 0.6 && s.link_param[2] == 0.3);
  cr_assert_eq(qk_smearing_parse_links("stout:0.1,5,4d", &s, NULL), QK_OK);
  cr_expect(s.links == QUARK_STOUT && s.link_steps == 5 && s.link_all && s.link_param[0] == 0.1);
}

static qk_status_t parse_gauss(const char *text, bool *touched, qk_err_t *err) {
  quark_smearing_t s = {.steps = 77};
  const qk_status_t status = qk_smearing_parse(text, &s, err);
  *touched = s.steps != 77;
  return status;
}

static qk_status_t parse_links(const char *text, bool *touched, qk_err_t *err) {
  quark_smearing_t s = {.link_steps = 77};
  const qk_status_t status = qk_smearing_parse_links(text, &s, err);
  *touched = s.link_steps != 77;
  return status;
}

Test(smearing, what_is_no_smearing_is_refused_with_its_text) {
  const char *const gauss[] = {"",
                               "gauss",
                               "gauss:0.25",
                               "gauss:0.25,0",
                               "gauss:0.25,1001",
                               "gauss:nan,3",
                               "gauss:99,3",
                               "gauss:width=2",
                               "gauss:width=-2,steps=9",
                               "gauss:width=2,steps=6",
                               "gauss:0.25,3,4",
                               "jacobi:1,2"};
  const char *const links[] = {"",
                               "ape",
                               "ape:0.6",
                               "ape:1.5,3",
                               "ape:0.6,0",
                               "ape:0.6,101",
                               "stout:0.3,5",
                               "ape:0.6,3,3d",
                               "hyp:0.75,0.6",
                               "hyp:0.75,0.6,2",
                               "hyp:0.75,0.6,0.3,2,4d",
                               "exp:1,2"};
  for (size_t i = 0; i < sizeof gauss / sizeof gauss[0]; i++)
    expect_refused(parse_gauss, gauss[i], gauss[i]);
  for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
    expect_refused(parse_links, links[i], links[i]);
}

/* ---- files of the daemon ---- */

Test(filespec, takes_the_path_up_to_the_first_key) {
  qk_filespec_t f;
  qk_err_t err = {0};
  cr_assert_eq(qk_filespec_parse("file:/a,b/c", true, &f, &err), QK_OK);
  cr_expect(strcmp(f.path, "/a,b/c") == 0 && f.offset == 0 && f.size == 0 && f.nrhs == 0);
  cr_assert_eq(qk_filespec_parse("file:/a,nrhs=3,offset=7,size=99", true, &f, &err), QK_OK);
  cr_expect(strcmp(f.path, "/a") == 0 && f.offset == 7 && f.size == 99 && f.nrhs == 3);
  cr_assert_eq(qk_filespec_parse("file:b,offset=1", false, &f, &err), QK_OK);
  char folder[4096];
  cr_assert_not_null(getcwd(folder, sizeof folder));
  cr_expect(strncmp(f.path, folder, strlen(folder)) == 0 && f.offset == 1);
  cr_expect_str_eq(f.path + strlen(folder), "/b");
}

Test(filespec, refuses_what_it_does_not_know) {
  const char *const wrong[] = {"",
                               "/a",
                               "file:",
                               "file:,offset=1",
                               "file:/a,offset=",
                               "file:/a,offset=x",
                               "file:/a,nrhs=0",
                               "file:/a,nrhs=1025",
                               "file:/a,size=0",
                               "file:/a,offset=1,x"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    qk_filespec_t f;
    qk_err_t err = {0};
    cr_expect_eq(qk_filespec_parse(wrong[i], true, &f, &err), QK_BAD_ARGUMENT, "%s", wrong[i]);
    cr_expect(strstr(err.text, wrong[i]) && strstr(err.text, "file:PATH"), "%s", err.text);
  }
  qk_filespec_t f;
  qk_err_t err = {0};
  cr_expect_eq(qk_filespec_parse("file:/a,nrhs=2", false, &f, &err), QK_BAD_ARGUMENT);
  char longest[QK_FILE_NAME_MAX + 16] = "file:/";
  memset(longest + 6, 'x', QK_FILE_NAME_MAX);
  err = (qk_err_t){0};
  cr_expect_eq(qk_filespec_parse(longest, true, &f, &err), QK_TOO_LARGE);
}

/* ---- steps ---- */

Test(scan, reads_what_is_there_and_nothing_else) {
  const char *p = "12,-3x 4.5e1";
  int64_t i = 0;
  double x = 0;
  cr_expect(qk_scan_int(&p, 0, 12, &i) && i == 12 && *p == ',');
  cr_expect(!qk_scan_int(&p, -9, 9, &i) && *p == ',');
  cr_expect(qk_scan_word(&p, ",") && !qk_scan_int(&p, -2, 9, &i) && *p == '-');
  cr_expect(qk_scan_int(&p, -3, 9, &i) && i == -3);
  cr_expect(!qk_scan_real(&p, &x) && qk_scan_word(&p, "x") && !qk_scan_real(&p, &x));
  qk_scan_blanks(&p);
  cr_expect(qk_scan_real(&p, &x) && x == 45 && !*p);
}
