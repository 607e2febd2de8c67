/* quark-gauge without lattices: names of files, the state of a chain, the error of its mean. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge_tool/autocorr.h"
#include "daemon/engine/gauge_tool/pattern.h"
#include "daemon/engine/gauge_tool/state.h"

/* ---- names ---- */

Test(pattern, makes_names_with_the_number_in_them) {
  static const struct {
    const char *text, *path, *stem, *folder;
  } cases[] = {{"cfg.%05d.lime", "cfg.00042.lime", "cfg", ""},
               {"a/b/run_%d", "a/b/run_42", "a/b/run", "a/b/"},
               {"/x/%03d.nersc", "/x/042.nersc", "/x/chain", "/x/"},
               {"50%%-%01d%%.lime", "50%-42%.lime", "50%", ""},
               {"a%%b/%d", "a%b/42", "a%b/chain", "a%b/"},
               {"x%018d", "x000000000000000042", "x", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_pattern_t p;
    qk_err_t err = {0};
    char out[QK_PATTERN_PATH];
    cr_assert_eq(qk_pattern_parse(cases[i].text, &p, &err), QK_OK, "%s", err.text);
    qk_pattern_path(&p, 42, out);
    cr_expect_str_eq(out, cases[i].path);
    qk_pattern_stem(&p, out);
    cr_expect_str_eq(out, cases[i].stem);
    qk_pattern_folder(&p, out);
    cr_expect_str_eq(out, cases[i].folder);
  }
}

Test(pattern, refuses_what_is_not_one_integer_conversion) {
  static const char *const cases[] = {
      "",     "cfg.lime", "cfg.%s.lime", "%n%d", "%d%d",   "%5d",     "%-5d",
      "%+d",  "%05",      "%019d",       "%0d",  "%00d",   "%",       "cfg%",
      "%ld",  "%d %x",    "%*d",         "%.3d", "%0099d", "run%d/x", "run%d/%d",
      "%05u", "%%d",      "% d",         "%1$d", "%i",     "%d%",     "%05d%05d"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_pattern_t p = {.width = 7};
    qk_err_t err = {0};
    cr_expect_eq(qk_pattern_parse(cases[i], &p, &err), QK_BAD_ARGUMENT, "\"%s\"", cases[i]);
    cr_expect_not_null(strstr(err.text, cases[i]), "%s", err.text);
    cr_expect_eq(p.width, 7, "the output was touched");
  }
}

Test(pattern, refuses_names_that_leave_no_room) {
  char text[QK_PATTERN_TEXT + 64], path[QK_PATTERN_PATH];
  qk_pattern_t p;
  memset(text, 'a', sizeof text);
  strcpy(text + QK_PATTERN_NAME - 2, "%d");
  cr_expect_eq(qk_pattern_parse(text, &p, NULL), QK_OK);
  strcpy(text + QK_PATTERN_NAME - 2, "a%d");
  cr_expect_eq(qk_pattern_parse(text, &p, NULL), QK_BAD_ARGUMENT);
  for (int i = 0; i < QK_PATTERN_TEXT; i++) text[i] = i % 100 == 99 ? '/' : 'a';
  strcpy(text + QK_PATTERN_TEXT - 3, "/%d");
  cr_assert_eq(qk_pattern_parse(text, &p, NULL), QK_OK);
  qk_pattern_path(&p, INT64_MAX, path);
  cr_expect_str_eq(path + QK_PATTERN_TEXT - 2, "9223372036854775807");
  strcpy(text + QK_PATTERN_TEXT - 3, "a/%d");
  cr_expect_eq(qk_pattern_parse(text, &p, NULL), QK_BAD_ARGUMENT);
}

/* ---- state ---- */

static char folder[32], path[64];

static void make_folder(void) {
  strcpy(folder, "/tmp/qk-state-XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/cfg.state", folder);
}

static void remove_folder(void) {
  unlink(path);
  cr_expect_eq(rmdir(folder), 0, "a file was left over");
  cr_expect_eq(qk_mem_bytes(), 0);
}

TestSuite(state, .init = make_folder, .fini = remove_folder);

static double plaquettes[3] = {0.1, 1.0 / 3, 0.5936};
static const qk_chain_params_t params = {
    .dims = {8, 4, 6, 16},
    .evolve = {.beta = 6.1, .c1 = -1.0 / 12, .or_per_hb = 3, .seed = INT64_MAX},
    .start = "hot",
    .out = "cfg.%d.lime",
    .format = "ildg",
    .bits = 32,
    .every = 5};
static const qk_chain_state_t stored = {.sweep = 3,
                                        .configuration = "cfg.state-3.lime",
                                        .digest = 0xfedcba9876543210,
                                        .plaquettes = plaquettes};

static void expect_stored(const qk_chain_state_t *s) {
  cr_expect_eq(s->sweep, stored.sweep);
  cr_expect_eq(s->digest, stored.digest);
  cr_expect_str_eq(s->configuration, stored.configuration);
  cr_expect_arr_eq(s->plaquettes, plaquettes, sizeof plaquettes);
}

Test(state, comes_back_to_the_last_bit) {
  qk_chain_state_t s;
  qk_err_t err = {0};
  cr_assert_eq(qk_state_save(path, &params, &stored, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_state_load(path, &params, &s, &err), QK_OK, "%s", err.text);
  expect_stored(&s);
  qk_free(s.plaquettes);
}

Test(state, says_which_parameter_differs) {
  static const struct {
    const char *name, *now, *before;
  } cases[] = {{"beta", "6.2", "6.1"},
               {"c1", "-0.331", "-0.083333"},
               {"or-per-hb", "4", "3"},
               {"seed", "1", "9223372036854775807"},
               {"dims", "[8,4,6,8]", "[8,4,6,16]"},
               {"start", "\"cold\"", "\"hot\""},
               {"out", "\"b%d\"", "\"cfg.%d.lime\""},
               {"format", "\"nersc\"", "\"ildg\""},
               {"bits", "64", "32"},
               {"every", "6", "5"}};
  cr_assert_eq(qk_state_save(path, &params, &stored, NULL), QK_OK);
  for (int i = 0; i < 10; i++) {
    qk_chain_params_t other = params;
    qk_chain_state_t s = {.sweep = -1};
    qk_err_t err = {0};
    char first[64];
    if (i == 0) other.evolve.beta = 6.2;
    if (i == 1) other.evolve.c1 = -0.331;
    if (i == 2) other.evolve.or_per_hb = 4;
    if (i == 3) other.evolve.seed = 1;
    if (i == 4) other.dims[3] = 8;
    if (i == 5) other.start = "cold";
    if (i == 6) other.out = "b%d";
    if (i == 7) other.format = "nersc";
    if (i == 8) other.bits = 64;
    if (i == 9) other.every = 6;
    cr_expect_eq(qk_state_load(path, &other, &s, &err), QK_BAD_ARGUMENT, "%s", cases[i].name);
    snprintf(first, sizeof first, "%s = %s", cases[i].name, cases[i].now);
    cr_expect_not_null(strstr(err.text, first), "%s", err.text);
    cr_expect_not_null(strstr(err.text, cases[i].before), "%s", err.text);
    cr_expect_not_null(strstr(err.text, path), "%s", err.text);
    cr_expect_eq(s.sweep, -1, "the output was touched");
  }
}

static size_t slurp(char *text, size_t room) {
  FILE *f = fopen(path, "r");
  cr_assert_not_null(f);
  size_t n = fread(text, 1, room, f);
  cr_assert(n > 0 && n < room);
  fclose(f);
  return n;
}

static void spill(const char *text, size_t n) {
  FILE *f = fopen(path, "w");
  cr_assert_not_null(f);
  cr_assert_eq(fwrite(text, 1, n, f), n);
  cr_assert_eq(fclose(f), 0);
}

/* A damaged state is refused with a reason, or means the same: damage in the white space. */
static bool refused_or_the_same(void) {
  qk_chain_state_t s = {0};
  qk_err_t err = {0};
  qk_status_t status = qk_state_load(path, &params, &s, &err);
  if (status == QK_OK) {
    expect_stored(&s);
    qk_free(s.plaquettes);
    return false;
  }
  cr_expect(status == QK_BAD_FORMAT || status == QK_BAD_CHECKSUM, "%s", err.text);
  cr_expect_not_null(strstr(err.text, path));
  return true;
}

Test(state, damage_is_noticed_wherever_it_is) {
  static char text[4096];
  cr_assert_eq(qk_state_save(path, &params, &stored, NULL), QK_OK);
  size_t n = slurp(text, sizeof text), refused = 0;
  for (size_t i = 0; i < n; i++) {
    text[i] ^= (char)(1 << i % 8);
    spill(text, n);
    refused += refused_or_the_same();
    text[i] ^= (char)(1 << i % 8);
    spill(text, i);
    if (i + 1 < n) cr_expect(refused_or_the_same(), "the first %zu bytes", i);
  }
  cr_expect_gt(refused, n * 7 / 8, "%zu of %zu", refused, n);
}

Test(state, refuses_what_is_no_state) {
  static const char *const cases[] = {
      "",
      "{}",
      "[]",
      "null",
      "not json",
      "{\"kind\": \"other\", \"checksum\": \"0000000000000000\"}",
      "{\"kind\": \"quark-gauge chain 1\"}",
      "{\"kind\": \"quark-gauge chain 1\", \"checksum\": \"0000000000000000\"}",
      "{\"kind\": \"quark-gauge chain 1\", \"kind\": 1}"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    spill(cases[i], strlen(cases[i]));
    cr_expect(refused_or_the_same(), "%s", cases[i]);
  }
  unlink(path);
  cr_expect_eq(qk_state_load(path, &params, NULL, NULL), QK_NOT_FOUND);
  cr_assert_eq(mkdir(path, 0700), 0);
  cr_expect_eq(qk_state_load(path, &params, NULL, NULL), QK_BAD_FORMAT);
  cr_assert_eq(rmdir(path), 0);
}

/* The stored state with the value of a key replaced (NULL: left out) and its checksum mended. */
static void forge(const char *key, const char *value) {
  const size_t how = JSON_SORT_KEYS | JSON_INDENT(1) | JSON_REAL_PRECISION(17);
  char sum[17];
  cr_assert_eq(qk_state_save(path, &params, &stored, NULL), QK_OK);
  json_t *object = json_load_file(path, 0, NULL);
  cr_assert_not_null(object);
  json_object_del(object, "checksum");
  if (value == NULL) {
    json_object_del(object, key);
  } else {
    json_object_set_new(object, key, json_loads(value, JSON_DECODE_ANY, NULL));
  }
  char *text = json_dumps(object, how);
  snprintf(sum, sizeof sum, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
  json_object_set_new(object, "checksum", json_string(sum));
  cr_assert_eq(json_dump_file(object, path, 0), 0);
  free(text);
  json_decref(object);
}

Test(state, values_that_cannot_be_are_refused_whatever_the_checksum) {
  static const char *const cases[][2] = {{"sweep", NULL},
                                         {"sweep", "0"},
                                         {"sweep", "-1"},
                                         {"sweep", "4"},
                                         {"sweep", "3.0"},
                                         {"sweep", "9223372036854775807"},
                                         {"sweep", "\"3\""},
                                         {"configuration", NULL},
                                         {"configuration", "\"\""},
                                         {"configuration", "\"../cfg.lime\""},
                                         {"configuration", "3"},
                                         {"digest", NULL},
                                         {"digest", "\"fedc\""},
                                         {"digest", "\"fedcba987654321g\""},
                                         {"digest", "\"-edcba9876543210\""},
                                         {"plaquettes", NULL},
                                         {"plaquettes", "[]"},
                                         {"plaquettes", "[0.1, 0.2]"},
                                         {"plaquettes", "[0.1, 0.2, \"0.3\"]"},
                                         {"plaquettes", "[0.1, 0.2, 1]"},
                                         {"plaquettes", "{}"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_chain_state_t s = {.sweep = -1};
    qk_err_t err = {0};
    forge(cases[i][0], cases[i][1]);
    cr_expect_eq(qk_state_load(path, &params, &s, &err), QK_BAD_FORMAT, "%s = %s: %s", cases[i][0],
                 cases[i][1], err.text);
    cr_expect(strstr(err.text, path) != NULL && s.sweep == -1);
  }
  forge("parameters", "[]");
  cr_expect_eq(qk_state_load(path, &params, NULL, NULL), QK_BAD_ARGUMENT);
  forge("digest", "\"fedcba9876543210\"");
  cr_expect_not(refused_or_the_same());
}

Test(state, a_full_disk_leaves_the_one_before) {
  qk_chain_state_t next = stored, s;
  qk_err_t err = {0};
  next.sweep = 2;
  cr_assert_eq(qk_state_save(path, &params, &stored, NULL), QK_OK);
  cr_assert_eq(qk_fault_set("write:1"), 0);
  cr_expect_eq(qk_state_save(path, &params, &next, &err), QK_IO_ERROR);
  cr_expect(strstr(err.text, path) != NULL && strstr(err.text, "No space") != NULL, "%s", err.text);
  cr_assert_eq(qk_fault_set(NULL), 0);
  cr_assert_eq(qk_state_load(path, &params, &s, NULL), QK_OK);
  expect_stored(&s);
  qk_free(s.plaquettes);
}

Test(state, names_that_are_not_utf8_are_refused) {
  qk_chain_params_t bad = params;
  qk_err_t err = {0};
  bad.out = "\xff%d";
  cr_expect_eq(qk_state_save(path, &bad, &stored, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "UTF-8"));
}

/* ---- autocorrelation ---- */

enum { STEPS = 20000, CHAINS = 200 };

static double uniform(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(uint64_t *seed) {
  double r = sqrt(-2 * log(uniform(seed)));
  return r * cos(6.283185307179586 * uniform(seed));
}

/* x' = a x + sqrt(1 - a^2) noise: variance 1, tau_int = (1 + a) / (2 (1 - a)). */
static void autoregressive(double a, uint64_t *seed, double *x) {
  x[0] = gauss(seed);
  for (int i = 1; i < STEPS; i++) x[i] = a * x[i - 1] + sqrt(1 - a * a) * gauss(seed);
}

Test(autocorr, finds_the_time_and_the_error_of_known_chains) {
  static const double a[] = {0, 0.6, 0.9};
  static double x[STEPS];
  uint64_t seed = 1;
  for (int k = 0; k < 3; k++) {
    double tau = (1 + a[k]) / (2 * (1 - a[k])), sum = 0, sum2 = 0, claimed = 0;
    int within = 0;
    for (int c = 0; c < CHAINS; c++) {
      autoregressive(a[k], &seed, x);
      qk_autocorr_t r = qk_autocorr_estimate(x, STEPS);
      sum += r.tau;
      sum2 += r.tau * r.tau;
      claimed += r.tau_error / CHAINS;
      within += fabs(r.mean) < r.error;
      cr_assert_float_eq(r.error, sqrt(2 * tau / STEPS), 0.35 * sqrt(2 * tau / STEPS));
    }
    double mean = sum / CHAINS, spread = sqrt(sum2 / CHAINS - mean * mean);
    /* The window cuts off a part exp(-S...) of the sum: some percent. */
    cr_expect_float_eq(mean, tau, 0.04 * tau + 3 * spread / sqrt(CHAINS), "%g: tau %g", a[k], mean);
    cr_expect_float_eq(claimed, spread, 0.3 * spread, "%g: error of tau %g", a[k], claimed);
    /* 68.3 % of 200 within one error: 3 binomial errors are 20 */
    cr_expect(within > 117 && within < 156, "%g: %d of %d", a[k], within, CHAINS);
  }
}

Test(autocorr, is_the_naive_error_without_correlation) {
  static double x[STEPS];
  uint64_t seed = 5;
  double mean = 0, var = 0;
  autoregressive(0, &seed, x);
  for (int i = 0; i < STEPS; i++) mean += x[i] / STEPS;
  for (int i = 0; i < STEPS; i++) var += (x[i] - mean) * (x[i] - mean) / STEPS;
  qk_autocorr_t r = qk_autocorr_estimate(x, STEPS);
  cr_expect_float_eq(r.mean, mean, 1e-12);
  cr_expect_float_eq(r.error, sqrt(var / STEPS), 0.05 * r.error);
  cr_expect_eq(r.window, 1);
}

Test(autocorr, says_what_it_cannot_tell) {
  static const double same[5] = {2, 2, 2, 2, 2}, turns[6] = {1, -1, 1, -1, 1, -1};
  qk_autocorr_t r = qk_autocorr_estimate(same, 3);
  cr_expect(r.mean == 2 && isnan(r.error) && isnan(r.tau) && isnan(r.tau_error));
  r = qk_autocorr_estimate(same, 5);
  cr_expect(r.mean == 2 && r.error == 0 && r.tau == 0.5);
  r = qk_autocorr_estimate(turns, 6);
  cr_expect(r.mean == 0 && isnan(r.error) && isnan(r.tau));
}
