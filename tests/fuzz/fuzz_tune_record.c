/*
 * Lines of protocols of quark-tune. What is accepted must be within the limits that record.h gives,
 * and be the same when it is written and read again; what is not is told in printable ASCII.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/tune/record.h"

static void promise(bool kept) {
  if (!kept) abort();
}

static void is_within_limits(const qk_tune_case_t *of, const qk_tune_record_t *r) {
  for (int mu = 0; mu < 4; mu++) promise(of->dims[mu] >= 1 && of->grid[mu] >= 1);
  promise(of->slots >= 1 && of->threads >= 0 && of->tol >= 0 && of->tol <= 1);
  promise(r->params.nlevel >= 2 && r->params.nlevel <= QK_MG_LEVELS_MAX);
  promise(isfinite(r->seconds) && isfinite(r->setup_seconds) && isfinite(r->residual));
  promise(r->seconds >= 0 && r->setup_seconds >= 0 && r->bytes >= 0);
  promise(r->outcome != QK_TUNE_GOOD || r->seconds > 0);
}

static void is_same(const qk_tune_record_t *a, const qk_tune_record_t *b) {
  promise(a->outcome == b->outcome && a->seconds == b->seconds && a->spread == b->spread);
  promise(a->alone == b->alone && a->setup_seconds == b->setup_seconds && a->bytes == b->bytes);
  promise(a->iterations == b->iterations && a->residual == b->residual);
  promise(strcmp(a->settings, b->settings) == 0 && strcmp(a->what, b->what) == 0);
  promise(strcmp(a->error, b->error) == 0 && strcmp(a->gauge, b->gauge) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  qk_tune_case_t of, again_of;
  qk_tune_record_t record, again;
  qk_err_t err = {0};
  const qk_status_t status = qk_tune_record_read((const char *)data, size, &of, &record, &err);
  if (status != QK_OK) {
    promise(err.code == status && err.text[0] != '\0');
    for (const char *c = err.text; *c; c++) promise(*c >= ' ' && *c <= '~');
    return 0;
  }
  is_within_limits(&of, &record);
  char *line = qk_tune_record_line(&of, &record);
  promise(line != NULL && strchr(line, '\n') == NULL);
  promise(qk_tune_record_read(line, strlen(line), &again_of, &again, &err) == QK_OK);
  is_same(&record, &again);
  free(line);
  return 0;
}
