/* main.c: the program quark-tune. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/base/mem.h"
#include "daemon/base/version.h"
#include "daemon/engine/setup/actions.h"
#include "daemon/engine/setup/mg_grid.h"
#include "daemon/engine/tune/report.h"
#include "daemon/engine/tune/show.h"

enum { EXIT_DEFAULTS = 1 };

static qk_status_t describe(const qk_tool_t *tool, const qk_tune_options_t *o,
                            const qk_tool_config_t *config, qk_tune_case_t *of) {
  qk_device_info_t info;
  int coord[4];
  qk_status_t status = tool->ops->info(tool->ctx, &info);
  if (status != QK_OK) return status;
  *of = (qk_tune_case_t){.links = config->check.digest,
                         .boundary_t = o->boundary_t,
                         .tol = o->tol,
                         .slots = o->slots,
                         .threads = info.threads};
  memcpy(of->dims, config->info.dims, sizeof of->dims);
  qk_comm_grid(tool->comm, of->grid, coord);
  qk_values_text(&o->values, QK_TEXT_CANONICAL, of->op);
  snprintf(of->backend, sizeof of->backend, "%s", tool->ops->name);
  qk_err_quote(info.name, of->device, sizeof of->device);
  snprintf(of->precision, sizeof of->precision, "single");
  snprintf(of->version, sizeof of->version, "%s", qk_version());
  return QK_OK;
}

/* Before an hour is spent: whether a file can be made where `out` is wanted. */
static qk_status_t check_out(const qk_tool_t *tool, const char *out, qk_err_t *err) {
  char folder[QK_FILE_PATH];
  qk_status_t status = QK_OK;
  if (tool->root && out) {
    const char *slash = strrchr(out, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - out + 1) : 1, slash ? out : ".");
    if (access(folder, W_OK | X_OK) != 0)
      status = qk_fail(err, QK_IO_ERROR, "--out=%s: %s: %s", out, folder, strerror(errno));
  }
  return qk_comm_agree(tool->comm, status, err);
}

static qk_status_t study(const qk_tool_t *tool, const qk_tune_options_t *o,
                         const qk_tool_config_t *config, qk_work_t *work, qk_operator_t *op,
                         qk_study_end_t *end, qk_err_t *err) {
  qk_study_t s = {
      .tool = tool,
      .options = o,
      .trial = {.op = op, .work = work, .tol = o->tol, .solves = o->solves, .nrhs = o->slots},
      .err = err};
  qk_status_t status = describe(tool, o, config, &s.of);
  if (status) return status;
  status = qk_study_run(&s, err);
  if (status == QK_OK && tool->root) status = qk_study_report(&s, err);
  status = qk_comm_agree(tool->comm, status, err);
  if (status == QK_OK) *end = s.end;
  qk_study_fini(&s);
  return status;
}

static qk_status_t make_operator(const qk_tool_t *tool, const qk_tune_options_t *o,
                                 const qk_tool_config_t *config, qk_work_t **work,
                                 qk_operator_t **op, qk_err_t *err) {
  const qk_action_params_t p = {.values = o->values,
                                .phase = {{1, 0}, {1, 0}, {1, 0}, {o->boundary_t, 0}},
                                .link_reals = {18, 12, 18},
                                .want = {true, true, true}};
  qk_status_t status = qk_work_create(&tool->dev, work);
  return status ? status : qk_operator_create(&tool->dev, *work, config->links, &p, op, err);
}

/* The grid that quarkd would take, of the defaults of this backend. */
static qk_status_t lay_out(qk_tool_t *tool, const qk_tune_options_t *o, const int dims[4],
                           qk_err_t *err) {
  static const qk_mg_params_t defaults;
  qk_tool_options_t options = o->tool;
  const qk_status_t status = qk_mg_choose_grid(qk_comm_size(tool->comm), dims, &defaults,
                                               tool->ops->tuning, options.grid, NULL, NULL, err);
  return status ? status : qk_tool_lay_out(tool, &options, dims, err);
}

/* What has been opened when it fails is closed by the caller. */
static qk_status_t load(qk_tool_t *tool, const qk_tune_options_t *o, qk_tool_config_t *config,
                        qk_work_t **work, qk_operator_t **op, qk_err_t *err) {
  const char *backend = o->tool.backend ? o->tool.backend : "auto";
  qk_status_t status = check_out(tool, o->out, err);
  if (status) return status;
  status = qk_tool_probe(tool, o->gauge, &o->tool, &config->info, err);
  if (status) return status;
  status = qk_tool_launch(tool, backend, err);
  if (status) return status;
  status = lay_out(tool, o, config->info.dims, err);
  if (status) return status;
  status = qk_tool_read(tool, o->gauge, config, err);
  if (status) return status;
  status = qk_tool_open_device(tool, backend, err);
  return status ? status : make_operator(tool, o, config, work, op, err);
}

static qk_status_t tune(qk_tool_t *tool, const qk_tune_options_t *o, qk_study_end_t *end,
                        qk_err_t *err) {
  qk_tool_config_t config = {0};
  qk_work_t *work = NULL;
  qk_operator_t *op = NULL;
  qk_status_t status = load(tool, o, &config, &work, &op, err);
  qk_free(config.links);
  config.links = NULL;
  if (status == QK_OK) status = study(tool, o, &config, work, op, end, err);
  if (op) op->ops->destroy(op);
  qk_work_destroy(work);
  return qk_tool_explain(tool, status, err);
}

int main(int argc, char **argv) {
  qk_tune_options_t o;
  qk_tool_t tool;
  qk_err_t err = {0};
  qk_study_end_t end = QK_STUDY_BETTER;
  qk_tune_options(argc, argv, &o);
  qk_status_t status = qk_tool_begin(&tool, "quark-tune", &o.tool, argc, argv, &err);
  if (status == QK_OK && !o.show)
    status = tune(&tool, &o, &end, &err);
  else if (status == QK_OK && tool.root)
    status = qk_tune_show(&tool, &o, &err);
  const int code = qk_tool_end(&tool, status, &err);
  return code == 0 && end == QK_STUDY_DEFAULTS ? EXIT_DEFAULTS : code;
}
