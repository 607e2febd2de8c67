/* gauge_probe.c: the table of gauge file formats; finds that of a file by its first bytes. */
#include "daemon/engine/gauge/gauge_format.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"

/* In the order in which they are tried; openQCD has no magic number and takes what looks plausible,
 * so it stays the last one. The names stand in messages and in the help of quark-gauge. */
static const struct format {
  const char *name;
  qk_gauge_is_fn *is;       /* by the first bytes of the file */
  qk_gauge_probe_fn *probe; /* reads the header */
} formats[] = {
    {"ILDG, SciDAC", qk_gauge_lime_is, qk_gauge_lime_probe},
    {"NERSC", qk_gauge_nersc_is, qk_gauge_nersc_probe},
    {"MILC v5", qk_gauge_milc_is, qk_gauge_milc_probe},
    {"openQCD, DDalphaAMG", qk_gauge_openqcd_is, qk_gauge_openqcd_probe},
};

enum { FORMATS = sizeof formats / sizeof *formats };

const char *qk_gauge_formats(char text[QK_GAUGE_FORMATS_MAX]) {
  size_t n = 0;
  text[0] = '\0';
  for (int i = 0; i < FORMATS && n < QK_GAUGE_FORMATS_MAX; i++) {
    n += (size_t)snprintf(text + n, QK_GAUGE_FORMATS_MAX - n, "%s%s", i == 0 ? "" : ", ",
                          formats[i].name);
  }
  QK_ASSERT(n < QK_GAUGE_FORMATS_MAX);
  return text;
}

static qk_status_t probe_file(const qk_gauge_file_t *file, qk_gauge_info_t *info, qk_err_t *err) {
  uint8_t head[QK_GAUGE_HEAD] = {0};
  int64_t n = file->in.size < QK_GAUGE_HEAD ? file->in.size : QK_GAUGE_HEAD;
  qk_status_t status = qk_infile_read(&file->in, head, n, 0, err);
  if (status != QK_OK) return status;
  int i = 0;
  while (i < FORMATS && !formats[i].is(head, n)) i++;
  if (i == FORMATS) {
    char names[QK_GAUGE_FORMATS_MAX];
    return qk_fail(err, QK_BAD_FORMAT, "not a gauge file: its first bytes are those of none of %s",
                   qk_gauge_formats(names));
  }
  status = formats[i].probe(file, info, err);
  const int *hint = file->dims_hint;
  if (status == QK_OK && hint != NULL && memcmp(hint, info->dims, sizeof info->dims) != 0) {
    status =
        qk_fail(err, QK_BAD_GEOMETRY,
                "the header says %dx%dx%dx%d, but the given extents are %dx%dx%dx%d", info->dims[0],
                info->dims[1], info->dims[2], info->dims[3], hint[0], hint[1], hint[2], hint[3]);
  }
  return status;
}

qk_status_t qk_gauge_probe(const char *path, const int dims_hint[4], qk_gauge_info_t *info,
                           qk_err_t *err) {
  qk_gauge_info_t found = {.bits = 64, .layout.rows = 3};
  qk_status_t status;
  if (strncmp(path, "builtin:", 8) == 0) {
    status = qk_gauge_builtin_probe(path, &found, err);
  } else if (qk_gauge_is_memory(path)) {
    status = qk_gauge_memory_probe(path, &found, err);
  } else {
    qk_gauge_file_t file = {.dims_hint = dims_hint};
    status = qk_infile_open(path, &file.in, err);
    if (status == QK_OK) {
      status = probe_file(&file, &found, err);
      qk_infile_close(&file.in);
    }
  }
  if (status != QK_OK) {
    qk_err_prefix(err, "%s", path);
    return status;
  }
  *info = found;
  return QK_OK;
}
