#include <stdio.h>

#include "daemon/base/mem.h"
#include "daemon/engine/tool/tool.h"

static error_t parse(int key, char *arg, struct argp_state *state) {
  return qk_tool_parse_in_out(key, arg, state, state->input);
}

static void print_result(const qk_tool_t *tool, const qk_tool_options_t *o, int bits,
                         double plaquette) {
  if (tool->json) {
    qk_tool_print(tool, json_pack("{s:s, s:s, s:s, s:i, s:f}", "in", o->in, "out", o->out, "format",
                                  o->format, "bits", bits, "plaquette", plaquette));
  } else if (tool->root) {
    printf("%s: %s, %d bit, verified%s; plaquette %.12f\n", o->out, o->format, bits,
           o->ignore_checksum ? " without the checksum of the file" : "", plaquette);
  }
}

int qk_tool_convert(int argc, char **argv) {
  static const struct argp_option rows[] = {QK_TOOL_ROW_DIMS,   QK_TOOL_ROW_IGNORE_CHECKSUM,
                                            QK_TOOL_ROW_FORMAT, QK_TOOL_ROW_BITS,
                                            QK_TOOL_ROW_JSON,   {0}};
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "IN OUT",
      .doc =
          "Read and verify a gauge configuration, write it, and read back what was written.\v"
          "OUT is ILDG for .lime and .ildg, NERSC for .nersc, with the precision of IN. IN is all "
          "that quark-gauge info takes."};
  qk_tool_options_t o = {0};
  qk_tool_t tool;
  qk_tool_config_t config = {0};
  qk_err_t err = {0};
  qk_tool_parse(&argp, argc, argv, &o);
  qk_status_t status = qk_tool_begin(&tool, "quark-gauge", &o, argc, argv, &err);
  if (status == QK_OK) status = qk_tool_load(&tool, o.in, &o, &config, &err);
  if (status == QK_OK) {
    int bits = o.bits != 0 ? o.bits : config.info.bits;
    status = qk_gauge_write(o.out, o.format, bits, &tool.geom, config.links, &err);
    if (status == QK_OK) print_result(&tool, &o, bits, config.check.plaquette);
    if (status == QK_OK) qk_tool_tell_bits(&tool, o.out, bits, &config.check);
  }
  qk_free(config.links);
  return qk_tool_end(&tool, status, &err);
}
