#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/links/links.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/lattice/peers.h"
#include "daemon/engine/launch/launch.h"
#include "daemon/engine/tool/tool.h"

qk_status_t qk_tool_begin(qk_tool_t *tool, const char *program, const qk_tool_options_t *options,
                          int argc, char **argv, qk_err_t *err) {
  *tool = (qk_tool_t){.program = program, .json = options->json, .root = true};
  qk_log_init(program, -1, QK_LOG_WARN);
  qk_status_t status = qk_launch_comm("auto", &argc, &argv, &tool->comm, err);
  if (status != QK_OK) return status;
  tool->root = qk_comm_rank(tool->comm) == 0;
  if (qk_comm_size(tool->comm) > 1) qk_log_init(program, qk_comm_rank(tool->comm), QK_LOG_WARN);
  qk_launch_threads(tool->comm);
  return QK_OK;
}

static int exit_code(qk_status_t status) {
  switch (status) {
  case QK_OK:
    return EX_OK;
  case QK_BAD_ARGUMENT:
    return EX_USAGE;
  case QK_NO_DEVICE:
    return EX_UNAVAILABLE;
  case QK_DEVICE_ERROR:
  case QK_COMM_ERROR:
  case QK_INTERNAL:
    return EX_SOFTWARE;
  case QK_NO_MEMORY:
  case QK_DEVICE_MEMORY:
  case QK_SHUTTING_DOWN:
    return EX_TEMPFAIL;
  default:
    return EX_DATAERR;
  }
}

int qk_tool_end(qk_tool_t *tool, qk_status_t status, const qk_err_t *err) {
  if (status != QK_OK && tool->root) {
    fprintf(stderr, "%s: %s\n", tool->program, err->text);
    if (tool->json)
      qk_tool_print(tool,
                    json_pack("{s:s, s:s}", "status", qk_status_name(status), "error", err->text));
  }
  if (exit_code(status) != EX_SOFTWARE) qk_peers_destroy(&tool->dev);
  qk_device_fini(&tool->dev);
  if (tool->ctx != NULL) tool->ops->close(tool->ctx);
  int code = exit_code(status);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "%s: cannot write to stdout\n", tool->program);
    if (code == EX_OK) code = EX_DATAERR;
  }
  if (code == EX_SOFTWARE && tool->comm != NULL) qk_comm_abort(tool->comm, code);
  qk_comm_destroy(tool->comm);
  return code;
}

qk_status_t qk_tool_lay_out(qk_tool_t *tool, const qk_tool_options_t *options, const int dims[4],
                            qk_err_t *err) {
  int grid[4];
  memcpy(grid, options->grid, sizeof grid);
  qk_status_t status = qk_comm_choose_grid(qk_comm_size(tool->comm), dims, NULL, NULL, grid, err);
  if (status != QK_OK) return status;
  status = qk_comm_set_grid(tool->comm, grid, err);
  return status == QK_OK ? qk_geom_init(&tool->geom, tool->comm, dims, err) : status;
}

qk_status_t qk_tool_launch(qk_tool_t *tool, const char *backend, qk_err_t *err) {
  if (tool->ctx != NULL) return QK_OK;
  return qk_launch_device(tool->comm, backend, NULL, &tool->ops, &tool->ctx, err);
}

qk_status_t qk_tool_open_device(qk_tool_t *tool, const char *backend, qk_err_t *err) {
  qk_status_t status = qk_tool_launch(tool, backend, err);
  if (status != QK_OK) return status;
  status = qk_device_init(&tool->dev, tool->ops, tool->ctx, &tool->geom);
  status = qk_comm_agree(tool->comm, status, err);
  return status == QK_OK ? qk_peers_create(&tool->dev, err) : status;
}

qk_status_t qk_tool_explain(const qk_tool_t *tool, qk_status_t status, qk_err_t *err) {
  if (status == QK_OK || err->text[0] != '\0') return status;
  const char *words = tool->ctx != NULL ? tool->ops->last_error(tool->ctx) : "";
  return qk_fail(err, status, "%s", words[0] != '\0' ? words : qk_status_text(status));
}

qk_status_t qk_tool_probe(qk_tool_t *tool, const char *path, const qk_tool_options_t *options,
                          qk_gauge_info_t *info, qk_err_t *err) {
  qk_gauge_info_t found = {0};
  qk_status_t status = QK_OK;
  if (tool->root)
    status = qk_gauge_probe(path, options->has_dims ? options->dims : NULL, &found, err);
  status = qk_comm_agree(tool->comm, status, err);
  if (status != QK_OK) return status;
  status = qk_comm_bcast(tool->comm, &found, sizeof found, 0);
  if (status != QK_OK) return status;
  *info = found;
  info->ignore_checksum = options->ignore_checksum;
  return QK_OK;
}

qk_status_t qk_tool_alloc_links(qk_tool_t *tool, double **links, qk_err_t *err) {
  size_t bytes = (size_t)tool->geom.local_volume * 72 * sizeof **links;
  double *p = qk_malloc(bytes);
  qk_status_t status = QK_OK;
  if (p == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory for %zu bytes of links", bytes);
  status = qk_comm_agree(tool->comm, status, err);
  if (status == QK_OK) {
    *links = p;
  } else {
    qk_free(p);
  }
  return status;
}

static void show_reading(void *arg, const char *phase, int64_t done, int64_t total) {
  (void)arg;
  enum { WIDTH = 40 };
  char bar[WIDTH + 1];
  double part = total > 0 ? (double)done / (double)total : 1;
  for (int i = 0; i < WIDTH; i++) bar[i] = i < part * WIDTH ? '#' : '.';
  bar[WIDTH] = '\0';
  fprintf(stderr, "\r%s [%s] %3.0f%% of %.1f MB", phase, bar, 100 * part, (double)total / 1e6);
  if (done == total) fputs("\r\033[K", stderr);
}

qk_status_t qk_tool_read(qk_tool_t *tool, const char *path, qk_tool_config_t *config,
                         qk_err_t *err) {
  bool shown = tool->root && isatty(STDERR_FILENO);
  qk_status_t status = qk_tool_alloc_links(tool, &config->links, err);
  if (status != QK_OK) return status;
  status = qk_gauge_read(path, &config->info, &tool->geom, config->links, &config->check,
                         shown ? show_reading : NULL, NULL, err);
  if (status == QK_OK) {
    status = qk_gauge_judge(&config->info, &config->check, false, err);
    if (status != QK_OK) qk_err_prefix(err, "%s", path);
  }
  if (status != QK_OK) {
    qk_free(config->links);
    config->links = NULL;
  }
  return status;
}

qk_status_t qk_tool_load(qk_tool_t *tool, const char *path, const qk_tool_options_t *options,
                         qk_tool_config_t *config, qk_err_t *err) {
  qk_status_t status = qk_tool_probe(tool, path, options, &config->info, err);
  if (status != QK_OK) return status;
  status = qk_tool_lay_out(tool, options, config->info.dims, err);
  return status == QK_OK ? qk_tool_read(tool, path, config, err) : status;
}

void qk_tool_tell_bits(const qk_tool_t *tool, const char *path, int bits,
                       const qk_gauge_check_t *check) {
  const double limit = qk_links_limit(bits);
  if (!tool->root || (check->unitarity <= limit && check->determinant <= limit)) return;
  fprintf(stderr,
          "%s: %s: its links are SU(3) to %.2g only: in a file of %d bits they are refused above "
          "%g; --bits=32 writes one that is taken\n",
          tool->program, path, fmax(check->unitarity, check->determinant), bits, limit);
}

void qk_tool_print(const qk_tool_t *tool, json_t *object) {
  if (tool->root) {
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    putchar('\n');
  }
  json_decref(object);
}
