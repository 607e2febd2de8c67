#include <math.h>
#include <string.h>
#include <time.h>

#include "client/cli/operator.h"
#include "client/cli/solving.h"

int ctl_work_begin(ctl_work_t *work, const ctl_solve_options_t *options) {
  memset(work, 0, sizeof *work);
  work->options = options;
  work->params = options->params;
  work->described = options->params.smear;
  work->mass = NAN;
  work->out = options->out;
  if (options->file.path[0]) {
    work->params.sink_file =
        (quark_file_t){.path = options->file.path, .offset = options->file.offset};
    work->whole = true;
  }
  int code = ctl_connect(&options->common, options->has_client ? options->client : NULL, false,
                         &work->conn);
  if (code == 0) code = ctl_report(&options->common, work->conn, false, &work->report);
  if (code == 0) code = ctl_operator_check(&work->report);
  return code ? code : ctl_operator_check_five(&work->report, options->params.five_d);
}

void ctl_work_end(ctl_work_t *work) {
  quark_close(work->conn);
  qk_fieldfile_close(work->in);
}

int ctl_columns(const qk_source_t *source, const char *text, const quark_report_t *report,
                int64_t *n, quark_column_t **columns) {
  const qk_shape_t shape = ctl_operator_shape(report);
  qk_err_t err = {0};
  if (qk_source_columns(source, &shape, n, columns, &err) == QK_OK) return 0;
  if (err.code == QK_UNSUPPORTED) /* of this setup */
    ctl_complain("source %s, setup %s, %s: %s", text, report->setup.name, report->setup.action,
                 err.text);
  else
    ctl_complain("source %s: %s", text, err.text);
  return err.code == QK_NO_MEMORY ? EXIT_AGAIN : EXIT_USAGE;
}

qk_field_format_t ctl_work_format(const ctl_work_t *work) {
  const ctl_solve_options_t *o = work->options;
  return o->has_format ? o->format : qk_field_format_of(work->out);
}

int ctl_work_bits(const ctl_work_t *work) {
  return work->params.dtype == QUARK_F32 ? 32 : 64;
}

double ctl_work_patience(const ctl_work_t *work) {
  const double given = work->options->common.timeout;
  return isnan(given) ? 300 : given;
}

int ctl_work_upload(ctl_work_t *work, uint64_t request, int64_t first, uint32_t nrhs, void *field,
                    size_t bytes) {
  for (uint32_t i = 0; i < nrhs && !ctl_interrupted(); i++) {
    qk_err_t file_err = {0};
    quark_error_t err;
    if (qk_fieldfile_read(work->in, first + i, ctl_work_bits(work), field, &file_err) != QK_OK)
      return ctl_fail_file(&file_err);
    if (quark_upload(work->conn, request, field, bytes, &err) != QUARK_OK) return ctl_fail(&err);
  }
  return 0;
}

void ctl_pause(uint32_t ms) {
  const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&t, NULL);
}
