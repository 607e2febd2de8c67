#include "daemon/front/state/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/job/bricks.h"
#include "proto/action/operator_text.h"

qk_status_t qk_rows_lattice(const char *text, qk_shape_t *shape, uint64_t *digest, qk_err_t *err) {
  qk_shape_t s = qk_shape_usual();
  uint32_t *d = s.dims;
  unsigned long long n;
  char same[QK_LATTICE_MAX] = "";
  if (!text[0]) return QK_OK;
  if (sscanf(text, "%10u %10u %10u %10u %16llx %10u %10u", &d[0], &d[1], &d[2], &d[3], &n,
             &s.site_reals, &s.columns) >= 5)
    qk_journal_lattice(&s, n, same);
  if (strcmp(text, same) != 0)
    return qk_fail(err, QK_BAD_FORMAT, "lattice = %.60s: not four extents and a digest", text);
  const char *wrong = qk_shape_check(&s);
  if (wrong) return qk_fail(err, QK_BAD_FORMAT, "lattice = %.60s: %s", text, wrong);
  *shape = s;
  *digest = n;
  return QK_OK;
}

/* ---- notes --------------------------------------------------------------------------------- */

static bool is_number(const char *value) {
  return value[0] && strlen(value) < 11 && !value[strspn(value, "0123456789")];
}

/* "ACTION;key=value;... boundary ...", or "kappa K csw C boundary ..." of version 0.1. */
static bool is_operator(const char *value) {
  char text[QK_OPERATOR_TEXT], why[QK_WHY];
  qk_values_t values;
  const char *boundary = strstr(value, " boundary ");
  if (!boundary) return false;
  if (strncmp(value, "kappa ", strlen("kappa ")) == 0) return true;
  return snprintf(text, sizeof text, "%.*s", (int)(boundary - value), value) < (int)sizeof text &&
         qk_values_parse(&values, text, why);
}

/* A private folder of a front (runtime.h): sockets in it are removed. */
static bool is_folder(const char *value) {
  const char *slash = strrchr(value, '/');
  return value[0] == '/' && slash && strncmp(slash, "/quarkd", strlen("/quarkd")) == 0;
}

/* Where an engine is (adopt.h): what it names may be removed. */
static bool is_engine(const char *value) {
  const char *ipc = strstr(value, " ipc://"), *path = ipc ? ipc + strlen(" ipc://") : "";
  const char *slash = strrchr(path, '/');
  char folder[QK_PATH_MAX + 1];
  if (!slash ||
      snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path) >= (int)sizeof folder)
    return false;
  return is_folder(folder);
}

/* A file without a name of its own (filing.h), which may be removed: it is below one of the roots
 * then, and its name has the number. */
static bool is_output(const char *key, const char *value) {
  const char *tag = key + strlen(QK_OUTPUT_NOTE);
  return strlen(tag) == 16 && !tag[strspn(tag, "0123456789abcdef")] && value[0] == '/';
}

/* Two texts of hexadecimal digits (service/eigen.h). */
static bool is_eigen(const char *value) {
  const char *blank = strchr(value, ' ');
  return blank && strspn(value, "0123456789abcdef") == (size_t)(blank - value) &&
         !blank[1 + strspn(blank + 1, "0123456789abcdef")];
}

qk_status_t qk_rows_check_note(const char *key, const char *value, qk_err_t *err) {
  qk_shape_t shape;
  uint64_t digest;
  bool fits = true;
  if (strcmp(key, "front") == 0)
    fits = is_number(value) && strtoull(value, NULL, 10) < UINT32_MAX;
  else if (strcmp(key, "commits") == 0)
    fits = value[0] && strlen(value) < 20 && !value[strspn(value, "0123456789")];
  else if (strcmp(key, "default") == 0)
    fits = !value[strspn(value, "0123456789")];
  else if (strcmp(key, "operator") == 0)
    fits = is_operator(value);
  else if (strcmp(key, "runtime") == 0)
    fits = is_folder(value);
  else if (strncmp(key, QK_OUTPUT_NOTE, strlen(QK_OUTPUT_NOTE)) == 0)
    fits = is_output(key, value);
  else if (strncmp(key, QK_EIGEN_NOTE, strlen(QK_EIGEN_NOTE)) == 0)
    fits = is_eigen(value);
  else if (strncmp(key, "engine ", strlen("engine ")) == 0)
    fits = is_engine(value);
  else if (strcmp(key, "lattice") == 0)
    return qk_rows_lattice(value, &shape, &digest, err);
  return fits ? QK_OK
              : qk_fail(err, QK_BAD_FORMAT, "value = %.200s: not a value of this note", value);
}

/* ---- requests ------------------------------------------------------------------------------ */

/* What a request is made of was there before it. */
static qk_status_t check_order(const qk_job_t *job, qk_err_t *err) {
  const Quark__Contraction *c = job->contraction;
  uint64_t newest = c && c->request_b > c->request_a ? c->request_b : c ? c->request_a : 0;
  for (uint32_t i = 0; job->column && i < job->nrhs; i++)
    if (job->column[i].request > newest) newest = job->column[i].request;
  if (newest < job->request) return QK_OK;
  return qk_fail(err, QK_BAD_FORMAT, "message: request %llu uses the later request %llu",
                 (unsigned long long)job->request, (unsigned long long)newest);
}

/* As many parts as the message says, none of them beyond the end. */
static qk_status_t check_parts(const qk_job_row_t *row, const qk_job_t *job, qk_err_t *err) {
  const uint32_t count = job->bricks ? job->bricks->count : 0;
  if ((row->token != NULL) != (count > 0) || row->nparts != count)
    return qk_fail(err, QK_BAD_FORMAT, "arrived: %u parts, the message has %u", row->nparts, count);
  for (uint32_t p = 0; p < count; p++) {
    uint32_t arrived;
    memcpy(&arrived, row->arrived + p * sizeof arrived, sizeof arrived);
    if (arrived > job->nrhs)
      return qk_fail(err, QK_BAD_FORMAT, "arrived = %u is outside 0 .. %u", arrived, job->nrhs);
  }
  return QK_OK;
}

qk_status_t qk_rows_check_job(const qk_job_row_t *row, const qk_job_t *job, qk_err_t *err) {
  const uint64_t most = qk_job_is_upload(job) ? job->nrhs * job->part_bytes : 0;
  if (row->upload_next > most)
    return qk_fail(err, QK_BAD_FORMAT, "upload_next = %llu is outside 0 .. %llu",
                   (unsigned long long)row->upload_next, (unsigned long long)most);
  const qk_status_t status = check_parts(row, job, err);
  return status == QK_OK ? check_order(job, err) : status;
}

/* ---- right-hand sides ---------------------------------------------------------------------- */

qk_status_t qk_rows_check_rhs(const qk_rhs_row_t *row, const qk_job_t *job, qk_err_t *err) {
  const qk_rhs_t *r = &row->rhs;
  const bool upload = qk_job_is_upload(job),
             file = !qk_job_is_beside(job) && job->source == QUARK__SOURCE_KIND__SOURCE_FILE,
             spills =
                 job->sink == QUARK__SINK__SINK_DOWNLOAD || job->sink == QUARK__SINK__SINK_KEEP;
  if (r->state == QK_RHS_UPLOADING && !upload && !file)
    return qk_fail(err, QK_BAD_FORMAT, "state = %d: its source is neither upload nor file",
                   (int)r->state);
  if (r->spooled && !upload)
    return qk_fail(err, QK_BAD_FORMAT, "spooled: its source is not an upload");
  if (r->spilled && (!spills || r->state < QK_RHS_ENDED))
    return qk_fail(err, QK_BAD_FORMAT, "spooled: it has no solution to spill");
  if (r->outcome.written && (r->state < QK_RHS_ENDED || job->sink == QUARK__SINK__SINK_NONE))
    return qk_fail(err, QK_BAD_FORMAT, "written = 1 in state %d", (int)r->state);
  return QK_OK;
}
