/* quark_gauge.c: the program quark-gauge: what is in a gauge file, and one format into another. */
#include <argp.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/base/version.h"
#include "daemon/engine/gauge.h"

static const char *const plane_name[6] = {"xy", "xz", "xt", "yz", "yt", "zt"};

typedef struct options {
  const char *command, *in, *out, *format;
  bool json, has_dims;
  int dims[4], bits;
} options_t;

/* A configuration that was read and found good. */
typedef struct config {
  qk_comm_t *comm;
  qk_geom_t geom;
  qk_gauge_info_t info;
  qk_gauge_check_t check;
  double *links;
} config_t;

static const char *format_of(const char *path) {
  const char *dot = strrchr(path, '.');
  if (dot == NULL) return NULL;
  if (strcmp(dot, ".lime") == 0 || strcmp(dot, ".ildg") == 0) return "ildg";
  return strcmp(dot, ".nersc") == 0 ? "nersc" : NULL;
}

static void parse_command(int n, const char *arg, struct argp_state *state) {
  options_t *o = state->input;
  const char **place[3] = {&o->command, &o->in, &o->out};
  bool convert = o->command != NULL && strcmp(o->command, "convert") == 0;
  if (n == 0 && strcmp(arg, "info") != 0 && strcmp(arg, "convert") != 0)
    argp_error(state, "unknown command \"%s\": info or convert", arg);
  if (n >= (convert ? 3 : 2)) argp_error(state, "one argument too many: \"%s\"", arg);
  *place[n] = arg;
}

static bool is_utf8(const char *text) {
  json_t *j = json_string(text);
  json_decref(j);
  return j != NULL;
}

static void parse_end(int n, struct argp_state *state) {
  options_t *o = state->input;
  if (n == 0) argp_error(state, "no command: info or convert");
  bool convert = strcmp(o->command, "convert") == 0;
  if (n < (convert ? 3 : 2))
    argp_error(state, "%s needs %s", o->command, convert ? "IN and OUT" : "FILE");
  if (o->json && !(is_utf8(o->in) && (o->out == NULL || is_utf8(o->out))))
    argp_error(state, "--json wants file names in UTF-8");
  if (!convert) {
    if (o->format != NULL || o->bits != 0) argp_error(state, "--format and --bits go with convert");
    return;
  }
  if (o->format == NULL) o->format = format_of(o->out);
  if (o->format == NULL)
    argp_error(state,
               "cannot tell the format of \"%s\": name it .lime, .ildg or .nersc, or give --format",
               o->out);
}

/* Which of two words the argument of an option is. */
static int choice(const char *option, const char *arg, const char *const word[2],
                  struct argp_state *state) {
  for (int i = 0; i < 2; i++) {
    if (strcmp(arg, word[i]) == 0) return i;
  }
  argp_error(state, "--%s=%s: %s or %s", option, arg, word[0], word[1]);
  return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  static const char *const formats[2] = {"ildg", "nersc"}, *const bits[2] = {"32", "64"};
  options_t *o = state->input;
  qk_err_t err = {0};
  switch (key) {
  case 'j':
    o->json = true;
    return 0;
  case 'd':
    if (qk_geom_parse_dims(arg, o->dims, &err) != QK_OK) argp_error(state, "--dims: %s", err.text);
    o->has_dims = true;
    return 0;
  case 'f':
    o->format = formats[choice("format", arg, formats, state)];
    return 0;
  case 'b':
    o->bits = choice("bits", arg, bits, state) == 0 ? 32 : 64;
    return 0;
  case ARGP_KEY_ARG:
    parse_command((int)state->arg_num, arg, state);
    return 0;
  case ARGP_KEY_END:
    parse_end((int)state->arg_num, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static void print_version(FILE *stream, struct argp_state *state) {
  (void)state;
  fprintf(stream, "quark-gauge %s\n", qk_version());
}

static const struct argp_option option_table[] = {
    {"json", 'j', NULL, 0, "one JSON object on stdout", 0},
    {"dims", 'd', "XxYxZxT", 0, "extents, for LIME files that do not give them", 0},
    {"format", 'f', "FORMAT", 0, "convert: ildg or nersc (else by the extension of OUT)", 0},
    {"bits", 'b', "32|64", 0, "convert: precision of OUT (else that of IN)", 0},
    {0}};

static const struct argp argp = {
    .options = option_table,
    .parser = parse,
    .args_doc = "info FILE\nconvert IN OUT",
    .doc =
        "Verify gauge configurations and convert them.\v"
        "info reads FILE whole and verifies its checksum, plaquette and that its links are SU(3). "
        "convert does the same with IN, writes OUT (ILDG for .lime and .ildg, NERSC for .nersc) "
        "and reads it back. The format of FILE and IN is found by content: ILDG, SciDAC, NERSC, "
        "MILC v5, openQCD, DDalphaAMG; builtin:weak:XxYxZxT:SEED and builtin:unit:XxYxZxT need "
        "no file.\n\n"
        "Exit status: 0, 64 wrong usage, 65 missing or damaged data, 75 not enough memory."};

static void progress_bar(void *arg, const char *phase, int64_t done, int64_t total) {
  (void)arg;
  enum { WIDTH = 40 };
  char bar[WIDTH + 1];
  double part = total > 0 ? (double)done / (double)total : 1;
  for (int i = 0; i < WIDTH; i++) bar[i] = i < part * WIDTH ? '#' : '.';
  bar[WIDTH] = '\0';
  fprintf(stderr, "\r%s [%s] %3.0f%% of %.1f MB", phase, bar, 100 * part, (double)total / 1e6);
  if (done == total) fputs("\r\033[K", stderr);
}

/* All that is read must be good: anything else is an error. */
static qk_status_t load(const options_t *o, config_t *c, qk_err_t *err) {
  const int grid[4] = {1, 1, 1, 1};
  qk_status_t status = qk_gauge_probe(o->in, o->has_dims ? o->dims : NULL, &c->info, err);
  if (status == QK_OK) status = qk_comm_self_create(&c->comm, err);
  if (status == QK_OK) status = qk_comm_set_grid(c->comm, grid, err);
  if (status == QK_OK) status = qk_geom_init(&c->geom, c->comm, c->info.dims, err);
  if (status != QK_OK) return status;
  size_t bytes = (size_t)c->geom.volume * 72 * sizeof(double);
  c->links = qk_malloc(bytes);
  if (c->links == NULL)
    return qk_fail(err, QK_NO_MEMORY, "%s: no memory for %zu bytes of links", o->in, bytes);
  status = qk_gauge_read(o->in, &c->info, &c->geom, c->links, &c->check,
                         isatty(STDERR_FILENO) ? progress_bar : NULL, NULL, err);
  if (status == QK_OK) {
    status = qk_gauge_judge(&c->info, &c->check, err);
    if (status != QK_OK) qk_err_prefix(err, "%s", o->in);
  }
  return status;
}

static void unload(config_t *c) {
  qk_free(c->links);
  qk_comm_destroy(c->comm);
}

static json_t *real_or_null(bool there, double v) {
  return there ? json_real(v) : json_null();
}

static void print_json(json_t *root) {
  json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  putchar('\n');
  json_decref(root);
}

static void info_json(const options_t *o, const config_t *c) {
  const qk_gauge_info_t *info = &c->info;
  const qk_gauge_check_t *check = &c->check;
  char digest[17];
  snprintf(digest, sizeof digest, "%016" PRIx64, check->digest);
  json_t *planes = json_object();
  for (int i = 0; i < 6; i++)
    json_object_set_new(planes, plane_name[i], json_real(check->plane[i]));
  const int *d = info->dims;
  print_json(json_pack("{s:s, s:s, s:i, s:[i,i,i,i], s:f, s:o, s:f, s:s, s:f, s:f, s:s, s:o, s:o}",
                       "file", o->in, "format", info->format, "bits", info->bits, "dims", d[0],
                       d[1], d[2], d[3], "plaquette", check->plaquette, "planes", planes,
                       "link_trace", check->link_trace, "checksum",
                       info->has_checksum ? "ok" : "none", "unitarity", check->unitarity,
                       "determinant", check->determinant, "digest", digest, "header_plaquette",
                       real_or_null(info->has_plaquette, info->plaquette), "header_link_trace",
                       real_or_null(info->has_link_trace, info->link_trace)));
}

static void info_text(const options_t *o, const config_t *c) {
  const qk_gauge_info_t *info = &c->info;
  const qk_gauge_check_t *check = &c->check;
  printf("file         %s\n", o->in);
  printf("format       %s, %d bit\n", info->format, info->bits);
  printf("lattice      %d x %d x %d x %d (x y z t)\n", info->dims[0], info->dims[1], info->dims[2],
         info->dims[3]);
  printf("plaquette    %.15f", check->plaquette);
  if (info->has_plaquette) printf("   (header: %.12g)", info->plaquette);
  for (int i = 0; i < 6; i++)
    printf("%s%s %.12f", i % 3 == 0 ? "\n             " : "   ", plane_name[i], check->plane[i]);
  printf("\nlink trace   %.15f", check->link_trace);
  if (info->has_link_trace) printf("   (header: %.12g)", info->link_trace);
  printf("\nchecksum     %s\n", info->has_checksum ? "ok" : "none in the file");
  printf("unitarity    %.2e   largest |U^+U - 1|\n", check->unitarity);
  printf("determinant  %.2e   largest |det U - 1|\n", check->determinant);
  printf("digest       %016" PRIx64 "\n", check->digest);
}

static qk_status_t convert(const options_t *o, const config_t *c, qk_err_t *err) {
  int bits = o->bits != 0 ? o->bits : c->info.bits;
  qk_status_t status = qk_gauge_write(o->out, o->format, bits, &c->geom, c->links, err);
  if (status != QK_OK) return status;
  if (o->json) {
    print_json(json_pack("{s:s, s:s, s:s, s:i, s:f}", "in", o->in, "out", o->out, "format",
                         o->format, "bits", bits, "plaquette", c->check.plaquette));
  } else {
    printf("%s: %s, %d bit, verified; plaquette %.12f\n", o->out, o->format, bits,
           c->check.plaquette);
  }
  return QK_OK;
}

static int exit_code(qk_status_t status) {
  switch (status) {
  case QK_OK:
    return EX_OK;
  case QK_BAD_ARGUMENT:
    return EX_USAGE;
  case QK_NO_MEMORY:
    return EX_TEMPFAIL;
  default:
    return EX_DATAERR;
  }
}

int main(int argc, char **argv) {
  options_t o = {0};
  config_t c = {0};
  qk_err_t err = {0};
  argp_program_version_hook = print_version;
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  qk_status_t status = load(&o, &c, &err);
  if (status == QK_OK) {
    if (strcmp(o.command, "convert") == 0) {
      status = convert(&o, &c, &err);
    } else if (o.json) {
      info_json(&o, &c);
    } else {
      info_text(&o, &c);
    }
  }
  if (status != QK_OK) {
    fprintf(stderr, "quark-gauge: %s\n", err.text);
    if (o.json)
      print_json(json_pack("{s:s, s:s}", "status", qk_status_name(status), "error", err.text));
  }
  unload(&c);
  return exit_code(status);
}
