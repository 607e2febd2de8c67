/* Messages about fields with colour alone: what they do not have is refused by name. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/engine/serve/round.h"

static const uint32_t DIMS[4] = {4, 6, 8, 16};
static const qk_action_row_t flavours = {.name = "flavours", .has_flavours = true},
                             colours = {.name = "colours", .colour = true};

static Quark__Engine__Fill fill_of(Quark__SourceKind source, Quark__Column *column) {
  Quark__Engine__Fill f = QUARK__ENGINE__FILL__INIT;
  f.source = source;
  f.column = column;
  f.shm_in = f.shm_out = "/x";
  f.dtype = QUARK__DTYPE__DTYPE_F64;
  f.factor = 1;
  f.tol = 1e-8;
  f.max_iter = 100;
  return f;
}

static void expect_not_of_colours(const Quark__Engine__Fill *m, qk_status_t status,
                                  const char *words) {
  qk_err_t err = {0};
  qk_fill_t f;
  cr_expect_eq(qk_fill_parse(m, 4, &colours, &f, &err), status, "%s: %s", words, err.text);
  cr_expect(strstr(err.text, words), "%s: %s", words, err.text);
  cr_expect_eq(qk_fill_parse(m, 4, &flavours, &f, &err), QK_OK, "%s: %s", words, err.text);
}

Test(round_colour, colour_vectors_have_no_spin) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Column c = QUARK__COLUMN__INIT;
  const Quark__Engine__Fill good = fill_of(QUARK__SOURCE_KIND__SOURCE_POINT, &c);
  Quark__Engine__Fill m = good;
  c.colour = 2;
  cr_assert_eq(qk_fill_parse(&m, 4, &colours, &f, &err), QK_OK, "%s", err.text);
  cr_expect(f.spin == 0 && f.colour == 2 && f.component == 1);
  c.spin = 1;
  expect_not_of_colours(&m, QK_BAD_ARGUMENT, "spin = 1: 0 to 0");
  c.spin = 0;
  m.basis = QUARK__BASIS__BASIS_UKQCD;
  expect_not_of_colours(&m, QK_BAD_ARGUMENT, "basis = 1");
  m = good;
  m.source = QUARK__SOURCE_KIND__SOURCE_Z4;
  c.spin = c.colour = -1;
  cr_expect_eq(qk_fill_parse(&m, 4, &colours, &f, &err), QK_OK, "%s", err.text);
}

Test(round_colour, what_colour_vectors_do_not_have_is_refused) {
  qk_err_t err = {0};
  qk_fill_t f;
  Quark__Column c = QUARK__COLUMN__INIT;
  const Quark__Engine__Fill good = fill_of(QUARK__SOURCE_KIND__SOURCE_POINT, &c);
  Quark__Engine__Fill m = good;
#define REFUSED(change, words) (m = good, change, expect_not_of_colours(&m, QK_UNSUPPORTED, words))
  REFUSED(m.dagger = true, "a solve of the adjoint");
  REFUSED(m.parity = QUARK__PARITY__PARITY_EVEN, "fields of one parity");
  REFUSED((m.project = "low", m.project_count = 1), "a projection");
  REFUSED((m.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL, c.gamma = 15), "gamma = 15");
#undef REFUSED
  m = good;
  m.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  c.gamma = 0;
  cr_expect_eq(qk_fill_parse(&m, 4, &colours, &f, &err), QK_OK, "%s", err.text);
  m = good;
  m.source = QUARK__SOURCE_KIND__SOURCE_VECTOR;
  m.vectors = (char *)"low";
  cr_expect_eq(qk_fill_parse(&m, 4, &colours, &f, &err), QK_OK, "%s", err.text);
  c.spin = 1;
  expect_not_of_colours(&m, QK_BAD_ARGUMENT, "spin, t = 1, 0: 0 to 0");
  c.spin = 0;
  m = good;
  m.dagger = true;
  m.work = QUARK__WORK__WORK_M;
  cr_expect_eq(qk_fill_parse(&m, 4, &colours, &f, &err), QK_OK, "%s", err.text);
}

static qk_status_t contract_of_colours(size_t columns, Quark__ChannelKind kind, uint32_t sink,
                                       uint32_t steps, qk_err_t *err) {
  char *names[12];
  for (int i = 0; i < 12; i++) names[i] = "/a";
  Quark__Channel channel = QUARK__CHANNEL__INIT, *list[] = {&channel};
  Quark__Contraction c = QUARK__CONTRACTION__INIT;
  Quark__Smearing smear = QUARK__SMEARING__INIT;
  Quark__Engine__Contract m = QUARK__ENGINE__CONTRACT__INIT;
  qk_correlate_t correlate;
  channel.kind = kind;
  channel.sink = sink;
  channel.source = 15;
  c.channel = list;
  c.n_channel = 1;
  smear.steps = steps;
  smear.alpha = 0.1;
  if (steps > 0) c.sink = &smear;
  m.contraction = &c;
  m.shm_a = names;
  m.n_shm_a = columns;
  m.dtype_a = QUARK__DTYPE__DTYPE_F64;
  m.shm_out = "/out";
  return qk_correlate_parse(&m, DIMS, &colours, &correlate, err);
}

Test(round_colour, colour_vectors_make_mesons_of_three_columns) {
  const Quark__ChannelKind meson = QUARK__CHANNEL_KIND__CHANNEL_MESON;
  const struct {
    size_t columns;
    Quark__ChannelKind kind;
    uint32_t sink, steps;
    const char *words;
  } bad[] = {{12, meson, 15, 0, "shm_a has 12 names: 3"},
             {2, meson, 15, 0, "shm_a has 2 names: 3"},
             {3, meson, 7, 0, "channel[0]: of fields with colour alone"},
             {3, QUARK__CHANNEL_KIND__CHANNEL_DELTA, 15, 0, "channel[0]: of fields"},
             {3, (Quark__ChannelKind)4, 15, 0, "channel[0]: kind = 4"}};
  qk_err_t err = {0};
  cr_expect_eq(contract_of_colours(3, meson, 15, 0, &err), QK_OK, "%s", err.text);
  cr_expect_eq(contract_of_colours(3, meson, 15, 2, &err), QK_OK, "%s", err.text);
  cr_expect_eq(contract_of_colours(3, meson, 9, 0, &err), QK_OK, "%s", err.text);
  cr_expect_eq(contract_of_colours(3, QUARK__CHANNEL_KIND__CHANNEL_CORNER, 7, 0, &err), QK_OK, "%s",
               err.text);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    err = (qk_err_t){0};
    cr_expect_neq(contract_of_colours(bad[i].columns, bad[i].kind, bad[i].sink, bad[i].steps, &err),
                  QK_OK);
    cr_expect(strstr(err.text, bad[i].words), "%s: %s", bad[i].words, err.text);
  }
}

Test(smearing, that_shifts_alone_is_one) {
  qk_smearing_t shift = {.alpha = 0.3, .shift = 5}, other = {.alpha = 0.1, .shift = 5};
  const qk_smearing_t none = {.alpha = 0.2, .links = {QK_LINK_SMEAR_APE, {0.5}, 3, true, false}},
                      nothing = {0};
  cr_expect(qk_smearing_any(&shift) && !qk_smearing_any(&none));
  cr_expect(qk_smearing_equal(&none, &nothing) && !qk_smearing_equal(&shift, &nothing));
  cr_expect(qk_smearing_equal(&shift, &other)); /* alpha of no steps */
  other.links = none.links;                     /* those of the shift */
  cr_expect(!qk_smearing_equal(&shift, &other));
  other = shift;
  other.shift = 4;
  cr_expect(!qk_smearing_equal(&shift, &other));
  other.shift = 5;
  other.steps = 1;
  cr_expect(!qk_smearing_equal(&shift, &other));
}
