#include <stdio.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/link_smear.h"
#include "daemon/engine/tool/tool.h"

enum { KEY_LINKS = QK_TOOL_OWN };

typedef struct options {
  qk_tool_options_t tool;
  const char *links;
  qk_link_smear_t smear;
} options_t;

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  qk_err_t err = {0};
  switch (key) {
  case KEY_LINKS:
    o->links = arg;
    if (qk_link_smear_parse(arg, &o->smear, &err) != QK_OK)
      argp_error(state, "--links=%s: %s", arg, err.text);
    return 0;
  case ARGP_KEY_END:
    if (o->links == NULL) argp_error(state, "--links is needed");
    return qk_tool_parse_in_out(key, arg, state, &o->tool);
  default:
    return qk_tool_parse_in_out(key, arg, state, &o->tool);
  }
}

static qk_status_t smear_field(qk_gaugefield_t *field, const qk_link_smear_t *smear, double *links,
                               qk_err_t *err) {
  qk_status_t status = qk_gaugefield_import(field, links);
  if (status != QK_OK) return status;
  status = qk_link_smear_apply(field, smear, err);
  return status == QK_OK ? qk_gaugefield_export(field, links) : status;
}

/* In place, on the device. */
static qk_status_t smear_links(qk_tool_t *tool, const qk_link_smear_t *smear, double *links,
                               qk_err_t *err) {
  qk_gaugefield_t *field = NULL;
  qk_status_t status = qk_gaugefield_create(&tool->dev, 1, &field);
  if (status == QK_OK) status = smear_field(field, smear, links, err);
  qk_gaugefield_destroy(field);
  return qk_tool_explain(tool, status, err);
}

static void print_result(const qk_tool_t *tool, const options_t *o, int bits, double before,
                         double after) {
  if (tool->json) {
    qk_tool_print(tool, json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:f}", "in", o->tool.in, "out",
                                  o->tool.out, "links", o->links, "format", o->tool.format, "bits",
                                  bits, "plaquette_before", before, "plaquette", after));
  } else if (tool->root) {
    printf("%s: %s, %d bit, verified; plaquette %.12f, before %.12f\n", o->tool.out, o->tool.format,
           bits, after, before);
  }
}

static qk_status_t smear(qk_tool_t *tool, const options_t *o, double **links, qk_err_t *err) {
  qk_tool_config_t config = {0};
  qk_gauge_check_t check;
  qk_status_t status = qk_tool_load(tool, o->tool.in, &o->tool, &config, err);
  *links = config.links;
  if (status != QK_OK) return status;
  status = qk_tool_open_device(tool, o->tool.backend != NULL ? o->tool.backend : "auto", err);
  if (status != QK_OK) return status;
  status = smear_links(tool, &o->smear, config.links, err);
  if (status != QK_OK) return status;
  status = qk_gauge_measure(&tool->geom, config.links, &check, err);
  if (status != QK_OK) return status;
  int bits = o->tool.bits != 0 ? o->tool.bits : config.info.bits;
  status = qk_gauge_write(o->tool.out, o->tool.format, bits, &tool->geom, config.links, err);
  if (status != QK_OK) return status;
  print_result(tool, o, bits, config.check.plaquette, check.plaquette);
  qk_tool_tell_bits(tool, o->tool.out, bits, &check);
  return status;
}

int qk_tool_smear(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"links", KEY_LINKS, "SMEARING", 0,
       "ape:ALPHA,STEPS   stout:RHO,STEPS   hyp:ALPHA1,ALPHA2,ALPHA3,STEPS; ape and stout act in "
       "space, with ,4d behind on all directions",
       1},
      QK_TOOL_ROW_DIMS,
      QK_TOOL_ROW_FORMAT,
      QK_TOOL_ROW_BITS,
      QK_TOOL_ROW_BACKEND,
      QK_TOOL_ROW_GRID,
      QK_TOOL_ROW_JSON,
      {0}};
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "IN OUT",
      .doc = "Smear the links of a gauge configuration and write what comes out.\v"
             "IN and OUT are as for quark-gauge convert."};
  options_t o = {0};
  qk_tool_t tool;
  double *links = NULL;
  qk_err_t err = {0};
  qk_tool_parse(&argp, argc, argv, &o);
  qk_status_t status = qk_tool_begin(&tool, "quark-gauge", &o.tool, argc, argv, &err);
  if (status == QK_OK) status = smear(&tool, &o, &links, &err);
  qk_free(links);
  return qk_tool_end(&tool, status, &err);
}
