#include <inttypes.h>
#include <stdio.h>

#include "daemon/base/mem.h"
#include "daemon/engine/tool/tool.h"

static const char *const plane_name[6] = {"xy", "xz", "xt", "yz", "yt", "zt"};

typedef struct options {
  qk_tool_options_t tool;
  const char *file;
} options_t;

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_ARG:
    if (o->file != NULL) argp_error(state, "one argument too many: \"%s\"", arg);
    o->file = arg;
    return 0;
  case ARGP_KEY_END:
    if (o->file == NULL) argp_error(state, "FILE is missing");
    if (o->file != NULL && o->tool.json) qk_tool_need_utf8(state, o->file);
    return 0;
  default:
    return qk_tool_parse_option(key, arg, state, &o->tool);
  }
}

static json_t *real_or_null(bool there, double v) {
  return there ? json_real(v) : json_null();
}

/* What has become of the file's checksum. */
static const char *sum_of(const qk_tool_config_t *c) {
  if (!c->info.has_checksum) return "none";
  return c->check.checksum_ok ? "ok" : "ignored";
}

/* More words for people. */
static const char *more_of_sum(const qk_tool_config_t *c) {
  if (!c->info.has_checksum) return " in the file";
  if (c->check.checksum_ok) return "";
  return c->info.checksum_fault[0] ? c->info.checksum_fault : "the links give another one";
}

static json_t *to_json(const char *file, const qk_tool_config_t *c) {
  const qk_gauge_info_t *info = &c->info;
  const qk_gauge_check_t *check = &c->check;
  char digest[17];
  snprintf(digest, sizeof digest, "%016" PRIx64, check->digest);
  json_t *planes = json_object();
  for (int i = 0; i < 6; i++)
    json_object_set_new(planes, plane_name[i], json_real(check->plane[i]));
  const int *d = info->dims;
  return json_pack("{s:s, s:s, s:i, s:[i,i,i,i], s:f, s:o, s:f, s:s, s:f, s:f, s:s, s:o, s:o}",
                   "file", file, "format", info->format, "bits", info->bits, "dims", d[0], d[1],
                   d[2], d[3], "plaquette", check->plaquette, "planes", planes, "link_trace",
                   check->link_trace, "checksum", sum_of(c), "unitarity", check->unitarity,
                   "determinant", check->determinant, "digest", digest, "header_plaquette",
                   real_or_null(info->has_plaquette, info->plaquette), "header_link_trace",
                   real_or_null(info->has_link_trace, info->link_trace));
}

static void print_text(const char *file, const qk_tool_config_t *c) {
  const qk_gauge_info_t *info = &c->info;
  const qk_gauge_check_t *check = &c->check;
  printf("file         %s\n", file);
  printf("format       %s, %d bit\n", info->format, info->bits);
  printf("lattice      %d x %d x %d x %d (x y z t)\n", info->dims[0], info->dims[1], info->dims[2],
         info->dims[3]);
  printf("plaquette    %.15f", check->plaquette);
  if (info->has_plaquette) printf("   (header: %.12g)", info->plaquette);
  for (int i = 0; i < 6; i++)
    printf("%s%s %.12f", i % 3 == 0 ? "\n             " : "   ", plane_name[i], check->plane[i]);
  printf("\nlink trace   %.15f", check->link_trace);
  if (info->has_link_trace) printf("   (header: %.12g)", info->link_trace);
  const bool ignored = info->has_checksum && !check->checksum_ok;
  printf("\nchecksum     %s%s%s\n", sum_of(c), ignored ? ": " : "", more_of_sum(c));
  printf("unitarity    %.2e   largest |U^+U - 1|\n", check->unitarity);
  printf("determinant  %.2e   largest |det U - 1|\n", check->determinant);
  printf("digest       %016" PRIx64 "\n", check->digest);
}

int qk_tool_info(int argc, char **argv) {
  static const struct argp_option rows[] = {
      QK_TOOL_ROW_DIMS, QK_TOOL_ROW_IGNORE_CHECKSUM, QK_TOOL_ROW_JSON, {0}};
  char formats[QK_GAUGE_FORMATS_MAX], doc[512 + QK_GAUGE_FORMATS_MAX];
  snprintf(doc, sizeof doc,
           "Read a gauge configuration whole and verify its checksum, its plaquette and that its "
           "links are SU(3).\v"
           "The format is found by content: %s; builtin:weak:XxYxZxT:SEED and "
           "builtin:unit:XxYxZxT need no file.",
           qk_gauge_formats(formats));
  const struct argp argp = {.options = rows, .parser = parse, .args_doc = "FILE", .doc = doc};
  options_t o = {0};
  qk_tool_t tool;
  qk_tool_config_t config = {0};
  qk_err_t err = {0};
  qk_tool_parse(&argp, argc, argv, &o);
  qk_status_t status = qk_tool_begin(&tool, "quark-gauge", &o.tool, argc, argv, &err);
  if (status == QK_OK) status = qk_tool_load(&tool, o.file, &o.tool, &config, &err);
  if (status == QK_OK && o.tool.json) qk_tool_print(&tool, to_json(o.file, &config));
  if (status == QK_OK && !o.tool.json && tool.root) print_text(o.file, &config);
  qk_free(config.links);
  return qk_tool_end(&tool, status, &err);
}
