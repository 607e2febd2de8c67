/* The lattice of a setup or job, as the journal holds it. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/front/state/journal.h"
#include "daemon/front/state/rows.h"

static const struct {
  const char *text;
  qk_shape_t shape;
} same[] = {
    {"4 6 8 10 00000000000000ff",
     {{4, 6, 8, 10}, 24, 12}}, /* as versions without shapes wrote it */
    {"4 6 8 10 00000000000000ff 6 3", {{4, 6, 8, 10}, 6, 3}},
    {"256 256 256 127 00000000000000ff 1152 576", {{256, 256, 256, 127}, 1152, 576}},
};

Test(rows, lattices_are_read_as_they_were_written) {
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    char text[QK_LATTICE_MAX];
    qk_shape_t shape = {0};
    uint64_t digest = 0;
    qk_err_t err = {0};
    qk_journal_lattice(&same[i].shape, 255, text);
    cr_expect_str_eq(text, same[i].text);
    cr_expect_eq(qk_rows_lattice(same[i].text, &shape, &digest, &err), QK_OK, "%s", err.text);
    cr_expect(qk_shape_same(&shape, &same[i].shape), "%s", text);
    cr_expect_eq(digest, 255);
  }
}

Test(rows, no_lattice_is_no_error_and_changes_nothing) {
  qk_shape_t shape = {{1, 2, 3, 4}, 5, 6};
  const qk_shape_t before = shape;
  uint64_t digest = 9;
  cr_expect_eq(qk_rows_lattice("", &shape, &digest, NULL), QK_OK);
  cr_expect(qk_shape_same(&shape, &before) && digest == 9);
}

Test(rows, damaged_lattices_are_refused) {
  static const char *const bad[] = {
      "4 6 8 10",
      "4 6 8 10 ff",
      "4 6 8 10 00000000000000ff ",
      "4 6 8 10 00000000000000ff 6",
      "4 6 8 10 00000000000000ff 24 12", /* would not be written so */
      "4 6 8 10 00000000000000ff 0 3",
      "4 6 8 10 00000000000000ff 6 0",
      "4 6 8 10 00000000000000ff 6 7",
      "4 6 8 10 00000000000000ff 1154 3",
      "4 6 8 10 00000000000000ff 6 3 1",
      "4 0 8 10 00000000000000ff 6 3",
      "70000 70000 1 1 00000000000000ff",
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qk_shape_t shape = {{1, 2, 3, 4}, 5, 6};
    const qk_shape_t before = shape;
    uint64_t digest = 9;
    qk_err_t err = {0};
    cr_expect_eq(qk_rows_lattice(bad[i], &shape, &digest, &err), QK_BAD_FORMAT, "%s", bad[i]);
    cr_expect(err.text[0] && digest == 9 && qk_shape_same(&shape, &before), "%s", bad[i]);
  }
}
