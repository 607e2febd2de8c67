/* Parameters of each type, with the rows of made_actions.c, as quarkd is given them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/settings/settings.h"

/* What quarkd makes of the lines of its file and of one argument; NULL: it refuses them. */
static const char *operator_of(const char *lines, const char *arg) {
  static char text[QK_OPERATOR_TEXT];
  char file[] = "/tmp/qk-parameters-XXXXXX", config[64];
  const int fd = mkstemp(file);
  cr_assert(fd >= 0 && write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines));
  close(fd);
  snprintf(config, sizeof config, "--config=%s", file);
  const char *argv[] = {"quarkd", "--gauge=x", config, arg};
  qk_settings_t s;
  int code = -1;
  const bool fine = qk_settings_parse(&s, arg ? 4 : 3, (char **)argv, &code);
  if (fine) qk_values_text(&s.op, QK_TEXT_GIVEN, text);
  qk_settings_fini(&s);
  unlink(file);
  return fine ? text : NULL;
}

static const char FIFTH[] = "action = fifth\nmass = 0.1\nLs = 8\nb = 1.5,1.25\nlinks = stout\n";

Test(parameter_types, are_keys_of_the_file) {
  cr_expect_str_eq(operator_of(FIFTH, NULL), "fifth;mass=0.1;Ls=8;b=1.5,1.25;links=stout");
  cr_expect_str_eq(operator_of(FIFTH, "--set=Ls=12"),
                   "fifth;mass=0.1;Ls=12;b=1.5,1.25;links=stout");
  cr_expect_str_eq(operator_of("action = words\nw = ab\n", NULL), "words;w=ab");
}

Test(parameter_types, of_other_actions_are_refused) {
  stderr = fopen("/dev/null", "w");
  cr_expect_null(operator_of("action = words\nw = ab\nLs = 8\n", NULL));
  cr_expect_null(operator_of(FIFTH, "--set=w=ab"));
  cr_expect_null(operator_of(FIFTH, "--Ls=12")); /* no flag */
  cr_expect_null(operator_of("set = Ls=8\nLs = 8\naction = fifth\nmass = 1\n", NULL));
  cr_expect_null(operator_of("ls = 8\naction = fifth\nmass = 1\n", NULL));
}
