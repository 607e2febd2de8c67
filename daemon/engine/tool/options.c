#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/file.h"
#include "daemon/base/version.h"
#include "daemon/engine/tool/tool.h"

static void print_version(FILE *stream, struct argp_state *state) {
  fprintf(stream, "%.*s %s\n", (int)strcspn(state->name, " "), state->name, qk_version());
}

void qk_tool_parse(const struct argp *argp, int argc, char **argv, void *input) {
  argp_program_version_hook = print_version;
  argp_err_exit_status = EX_USAGE;
  error_t failed = argp_parse(argp, argc, argv, 0, NULL, input);
  if (failed == 0) return;
  fprintf(stderr, "%s: %s\n", argv[0], strerror(failed));
  exit(EX_USAGE);
}

int qk_tool_word(const struct argp_state *state, const char *option, const char *arg, int n,
                 const char *const words[]) {
  char list[160] = "";
  for (int i = 0; i < n; i++) {
    if (strcmp(arg, words[i]) == 0) return i;
    size_t at = strlen(list);
    snprintf(list + at, sizeof list - at, "%s%s",
             i == 0       ? ""
             : i == n - 1 ? " or "
                          : ", ",
             words[i]);
  }
  argp_error(state, "--%s=%s: %s", option, arg, list);
  return 0;
}

int64_t qk_tool_integer(const struct argp_state *state, const char *option, const char *arg,
                        int64_t min, int64_t max) {
  char *end;
  errno = 0;
  long long v = strtoll(arg, &end, 10);
  bool digits = (*arg >= '0' && *arg <= '9') || (*arg == '-' && arg[1] >= '0' && arg[1] <= '9');
  if (!digits || *end != '\0' || errno != 0 || v < min || v > max)
    argp_error(state, "--%s=%s: an integer from %lld to %lld", option, arg, (long long)min,
               (long long)max);
  return v;
}

double qk_tool_real(const struct argp_state *state, const char *option, const char *arg, double min,
                    double max) {
  char *end;
  double v = strtod(arg, &end);
  if (end == arg || *end != '\0' || !(v >= min && v <= max))
    argp_error(state, "--%s=%s: a number from %g to %g", option, arg, min, max);
  return v;
}

void qk_tool_need_utf8(const struct argp_state *state, const char *name) {
  json_t *text = json_string(name);
  if (text == NULL) argp_error(state, "names of files must be UTF-8 here");
  json_decref(text);
}

static const char *format_of(const char *path) {
  const char *dot = strrchr(path, '.');
  if (dot == NULL) return NULL;
  if (strcmp(dot, ".lime") == 0 || strcmp(dot, ".ildg") == 0) return "ildg";
  return strcmp(dot, ".nersc") == 0 ? "nersc" : NULL;
}

void qk_tool_need_format(const struct argp_state *state, qk_tool_options_t *options,
                         const char *out) {
  if (options->format == NULL) options->format = format_of(out);
  if (options->format == NULL)
    argp_error(state,
               "cannot tell the format of \"%s\": name it .lime, .ildg or .nersc, or give --format",
               out);
}

/* "1x1x2x2", each at least 1. */
static void parse_grid(const struct argp_state *state, const char *arg, int grid[4]) {
  const char *p = arg;
  for (int mu = 0; mu < 4; mu++) {
    char *end;
    bool digit = *p >= '1' && *p <= '9';
    long v = digit ? strtol(p, &end, 10) : 0;
    if (!digit || v > 65536 || *end != (mu < 3 ? 'x' : '\0')) {
      argp_error(state, "--grid=%s: four numbers of ranks like 1x1x2x2", arg);
      return;
    }
    grid[mu] = (int)v;
    p = end + 1;
  }
}

error_t qk_tool_parse_option(int key, char *arg, struct argp_state *state,
                             qk_tool_options_t *options) {
  static const char *const formats[] = {"ildg", "nersc"}, *const bits[] = {"32", "64"};
  const qk_choice_t *backends = &qk_choice_backends;
  qk_err_t err = {0};
  switch (key) {
  case 'j':
    options->json = true;
    return 0;
  case 'd':
    if (qk_geom_parse_dims(arg, options->dims, &err) != QK_OK)
      argp_error(state, "--dims: %s", err.text);
    options->has_dims = true;
    return 0;
  case QK_TOOL_IGNORE_CHECKSUM:
    options->ignore_checksum = true;
    return 0;
  case 'f':
    options->format = formats[qk_tool_word(state, "format", arg, 2, formats)];
    return 0;
  case 'b':
    options->bits = qk_tool_word(state, "bits", arg, 2, bits) == 0 ? 32 : 64;
    return 0;
  case QK_TOOL_BACKEND:
    options->backend =
        backends->word[qk_tool_word(state, "backend", arg, backends->n, backends->word)];
    return 0;
  case QK_TOOL_GRID:
    parse_grid(state, arg, options->grid);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

void qk_tool_need_target(struct argp_state *state, const char *what, const char *path) {
  qk_err_t err = {0};
  if (qk_file_may_replace(path, &err) != QK_OK) argp_error(state, "%s: %s", what, err.text);
}

error_t qk_tool_parse_in_out(int key, char *arg, struct argp_state *state,
                             qk_tool_options_t *options) {
  switch (key) {
  case ARGP_KEY_ARG:
    if (options->out != NULL) argp_error(state, "one argument too many: \"%s\"", arg);
    *(options->in == NULL ? &options->in : &options->out) = arg;
    return 0;
  case ARGP_KEY_END:
    if (options->out == NULL) {
      argp_error(state, "IN and OUT are needed");
      return 0;
    }
    if (options->json) qk_tool_need_utf8(state, options->in);
    if (options->json) qk_tool_need_utf8(state, options->out);
    qk_tool_need_format(state, options, options->out);
    qk_tool_need_target(state, "OUT", options->out);
    return 0;
  default:
    return qk_tool_parse_option(key, arg, state, options);
  }
}
