#include "client/files/fieldfile.h"

#include <stdlib.h>
#include <string.h>

#include "client/files/h5file.h"
#include "client/files/scidac.h"
#include "daemon/base/formats/infile.h"
#include "daemon/base/formats/lime.h"

/* One of them is there. */
struct qk_fieldfile {
  qk_h5file_t *h5;
  qk_scidac_out_t *out;
  qk_scidac_in_t *in;
};

static const char *const names[] = {"hdf5", "scidac", "usqcd"};

bool qk_field_format_parse(const char *text, qk_field_format_t *format) {
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *format = (qk_field_format_t)i;
      return true;
    }
  return false;
}

const char *qk_field_format_name(qk_field_format_t format) {
  return names[format];
}

qk_field_format_t qk_field_format_of(const char *path) {
  const char *dot = strrchr(path, '.');
  const bool scidac = dot && (strcmp(dot, ".lime") == 0 || strcmp(dot, ".scidac") == 0);
  return scidac ? QK_FIELD_SCIDAC : QK_FIELD_HDF5;
}

qk_status_t qk_field_format_check(qk_field_format_t format, const char *path,
                                  const qk_h5meta_t *meta, int64_t nrhs, qk_err_t *err) {
  if (format == QK_FIELD_HDF5) return QK_OK;
  return qk_scidac_check(path, format == QK_FIELD_USQCD, meta, nrhs, err);
}

/* ---- writing ---- */

qk_status_t qk_fieldfile_create(const char *path, qk_field_format_t format, const qk_h5meta_t *meta,
                                int bits, int64_t nrhs, qk_fieldfile_t **file, qk_err_t *err) {
  qk_fieldfile_t *f = calloc(1, sizeof *f);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  const qk_status_t status =
      format == QK_FIELD_HDF5
          ? qk_h5file_create(path, meta, bits, nrhs, &f->h5, err)
          : qk_scidac_create(path, format == QK_FIELD_USQCD, meta, bits, nrhs, &f->out, err);
  if (status == QK_OK)
    *file = f;
  else
    free(f);
  return status;
}

bool qk_fieldfile_gathers(const qk_fieldfile_t *f) {
  return f->out != NULL;
}

qk_status_t qk_fieldfile_write(qk_fieldfile_t *f, int64_t rhs, const void *data, bool stays,
                               qk_err_t *err) {
  return f->out ? qk_scidac_write(f->out, rhs, data, stays, err)
                : qk_h5file_write(f->h5, rhs, data, err);
}

void qk_fieldfile_push(const qk_fieldfile_t *f) {
  if (f->h5) qk_h5file_push(f->h5);
}

qk_status_t qk_fieldfile_set_column(qk_fieldfile_t *f, int64_t rhs, const qk_h5column_t *column,
                                    qk_err_t *err) {
  return f->out ? qk_scidac_set_column(f->out, rhs, column, err)
                : qk_h5file_set_column(f->h5, rhs, column, err);
}

void qk_fieldfile_set_wall(qk_fieldfile_t *f, const qk_wall_t *wall) {
  if (f->h5) qk_h5file_set_wall(f->h5, wall);
}

qk_status_t qk_fieldfile_commit(qk_fieldfile_t *f, qk_err_t *err) {
  return f->out ? qk_scidac_commit(f->out, err) : qk_h5file_commit(f->h5, err);
}

/* ---- reading ---- */

/* What cannot be read is for HDF5 to tell. */
static bool is_lime(const char *path) {
  qk_infile_t file;
  uint8_t head[4];
  if (qk_infile_open(path, &file, NULL) != QK_OK) return false;
  const bool is = qk_infile_read(&file, head, sizeof head, 0, NULL) == QK_OK && qk_lime_is(head);
  qk_infile_close(&file);
  return is;
}

qk_status_t qk_fieldfile_open(const char *path, const char *dataset, qk_fieldfile_t **file,
                              qk_err_t *err) {
  const bool scidac = is_lime(path);
  if (scidac && dataset)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s: dataset %.100s, but this is a SciDAC file, which has "
                   "none",
                   path, dataset);
  qk_fieldfile_t *f = calloc(1, sizeof *f);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  const qk_status_t status =
      scidac ? qk_scidac_open(path, &f->in, err) : qk_h5file_open(path, dataset, &f->h5, err);
  if (status == QK_OK)
    *file = f;
  else
    free(f);
  return status;
}

qk_status_t qk_fieldfile_open_five(const char *path, const char *dataset, qk_fieldfile_t **file,
                                   qk_err_t *err) {
  if (is_lime(path))
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: a SciDAC file, whose fields have four dimensions, where those of five are "
                   "expected (--five-d), in HDF5",
                   path);
  qk_fieldfile_t *f = calloc(1, sizeof *f);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  const qk_status_t status = qk_h5file_open_five(path, dataset, &f->h5, err);
  if (status == QK_OK)
    *file = f;
  else
    free(f);
  return status;
}

const qk_h5meta_t *qk_fieldfile_meta(const qk_fieldfile_t *f) {
  return f->in ? qk_scidac_meta(f->in) : qk_h5file_meta(f->h5);
}

int64_t qk_fieldfile_nrhs(const qk_fieldfile_t *f) {
  return f->in ? qk_scidac_nrhs(f->in) : f->out ? QK_SCIDAC_COLUMNS : qk_h5file_nrhs(f->h5);
}

int qk_fieldfile_bits(const qk_fieldfile_t *f) {
  return f->in ? qk_scidac_bits(f->in) : qk_h5file_bits(f->h5);
}

size_t qk_fieldfile_rhs_bytes(const qk_fieldfile_t *f, int bits) {
  if (!f->in) return qk_h5file_rhs_bytes(f->h5, bits);
  const int32_t *dims = qk_scidac_meta(f->in)->dims;
  return (size_t)dims[0] * (size_t)dims[1] * (size_t)dims[2] * (size_t)dims[3] * QK_SITE_REALS *
         ((size_t)bits / 8);
}

qk_status_t qk_fieldfile_read(qk_fieldfile_t *f, int64_t rhs, int bits, void *data, qk_err_t *err) {
  return f->in ? qk_scidac_read(f->in, rhs, bits, data, err)
               : qk_h5file_read(f->h5, rhs, bits, data, err);
}

qk_status_t qk_fieldfile_column(qk_fieldfile_t *f, int64_t rhs, qk_h5column_t *column,
                                qk_err_t *err) {
  if (!f->in) return qk_h5file_column(f->h5, rhs, column, err);
  if (rhs < 0 || rhs >= qk_scidac_nrhs(f->in))
    return qk_fail(err, QK_BAD_ARGUMENT, "column %lld of %lld", (long long)rhs,
                   (long long)qk_scidac_nrhs(f->in));
  *column = qk_scidac_columns(f->in)[rhs];
  return QK_OK;
}

void qk_fieldfile_close(qk_fieldfile_t *f) {
  if (!f) return;
  qk_h5file_close(f->h5);
  qk_scidac_discard(f->out);
  qk_scidac_close(f->in);
  free(f);
}
