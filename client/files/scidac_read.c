/*
 * scidac_read.c: reads SciDAC files of propagators and fermions (scidac.h).
 *
 * The file is a chain of messages: first the extents, then a field each: what it is, a text of the
 * user, numbers, and their checksum. Nothing that a header says is believed before it is compared
 * with the bytes that are there.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/scidac_text.h"
#include "daemon/base/formats/bytes.h"
#include "daemon/base/formats/lime.h"
#include "daemon/base/formats/parse.h"
#include "daemon/base/formats/sum.h"
#include "daemon/base/formats/tag.h"
#include "daemon/base/mem.h"

enum { COLUMNS = QK_SCIDAC_COLUMNS, FERMION = 12 /* numbers */ };

typedef enum shape { NUMBER = 1, ONE_FERMION = FERMION, PROPAGATOR = FERMION * COLUMNS } shape_t;

/* A field of the file. */
typedef struct field {
  shape_t shape; /* complex numbers at a site */
  int bits;
  bool is_source;      /* of a pair, or of a propagator in the form of MILC */
  int64_t spin, color; /* -1: not said */
  int64_t offset, bytes;
  uint32_t sum[2];
} field_t;

struct qk_scidac_in {
  qk_infile_t file;
  char *path;
  qk_h5meta_t meta;
  qk_h5column_t *column; /* nrhs */
  int64_t sites, nrhs;
  bool has_dims, twelve; /* twelve: the form of MILC of a propagator */
  field_t *field;        /* in the order of the file */
  int fields, room;
  int *solution; /* of fermions: the field of each right-hand side */
  char *text;    /* with what quarkd knows, and what Chroma says; NULL: none */
  /* Of the message that is being read. */
  bool open, has_data, skipped; /* skipped: it is no field */
  field_t now;
};

/* ---- messages ---- */

static qk_status_t on_lattice(qk_scidac_in_t *f, const char *text, qk_err_t *err) {
  int64_t dims[4], sites = 1;
  const qk_status_t status = qk_tag_dims(text, dims, err);
  if (status != QK_OK) return status;
  if (f->has_dims) return qk_fail(err, QK_BAD_FORMAT, "a second one");
  for (int mu = 0; mu < 4; mu++) {
    if (dims[mu] < 1 || dims[mu] > QK_H5FILE_MAX_EXTENT)
      return qk_fail(err, QK_BAD_GEOMETRY, "extent of %c = %" PRId64 ", must be 1 to %d",
                     "xyzt"[mu], dims[mu], QK_H5FILE_MAX_EXTENT);
    if (sites > INT32_MAX / dims[mu])
      return qk_fail(err, QK_BAD_GEOMETRY, "more than %d sites", INT32_MAX);
    sites *= dims[mu];
    f->meta.dims[mu] = (int32_t)dims[mu];
  }
  f->sites = sites;
  f->has_dims = true;
  return QK_OK;
}

/* The first text that may hold what is wanted of them is kept. */
static void keep_text(qk_scidac_in_t *f, char **text) {
  if (f->text || (!strstr(*text, "<quarkd>") && !strstr(*text, "<PropSource>"))) return;
  f->text = *text;
  *text = NULL;
}

static qk_status_t on_file_text(qk_scidac_in_t *f, char **text, qk_err_t *err) {
  static const char ours[] = "USQCD_DiracFermion_ScalarSource_TwelveSink";
  if (strstr(*text, "<usqcdPropFile>")) {
    char type[QK_TAG_VALUE];
    const qk_status_t status = qk_tag_need(*text, "type", type, err);
    if (status != QK_OK) return status;
    f->twelve = strcmp(type, ours) == 0;
  }
  keep_text(f, text);
  return QK_OK;
}

static qk_status_t find_shape(field_t *now, int64_t typesize, int64_t count, qk_err_t *err) {
  static const shape_t shapes[] = {PROPAGATOR, ONE_FERMION, NUMBER};
  const int64_t width = now->bits / 4;
  for (int i = 0; i < 3; i++)
    if (count > 0 && count <= PROPAGATOR && typesize <= PROPAGATOR * width &&
        typesize * count == shapes[i] * width) {
      now->shape = shapes[i];
      return QK_OK;
    }
  return qk_fail(err, QK_UNSUPPORTED,
                 "<typesize> = %" PRId64 ", <datacount> = %" PRId64 " in %d bits: a propagator has "
                 "%d bytes a site, a fermion %d",
                 typesize, count, now->bits, (int)(PROPAGATOR * width), (int)(FERMION * width));
}

/* Numbers that are there must be these. */
static qk_status_t check_number(const char *text, const char *tag, int64_t want, qk_err_t *err) {
  char value[QK_TAG_VALUE];
  bool found;
  int64_t v;
  qk_status_t status = qk_tag_value(text, tag, value, sizeof value, &found, err);
  if (status != QK_OK || !found) return status;
  if ((status = qk_tag_int(text, tag, &v, err)) != QK_OK) return status;
  if (v == want) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED, "<%s> = %" PRId64 ", must be %" PRId64, tag, v, want);
}

static qk_status_t on_record_type(qk_scidac_in_t *f, const char *text, qk_err_t *err) {
  char precision[QK_TAG_VALUE];
  int64_t kind, typesize, count;
  if (f->open) return qk_fail(err, QK_BAD_FORMAT, "the field before it has no checksum");
  if (!f->has_dims) return qk_fail(err, QK_BAD_FORMAT, "no scidac-private-file-xml before it");
  f->now = (field_t){.spin = -1, .color = -1};
  f->open = true;
  f->has_data = false;
  qk_status_t status = qk_tag_int(text, "recordtype", &kind, err);
  if (status != QK_OK) return status;
  f->skipped = kind == 1; /* numbers of the whole lattice */
  if (f->skipped) return QK_OK;
  if (kind != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<recordtype> = %" PRId64 ": fields, 0, are read", kind);
  if ((status = qk_tag_need(text, "precision", precision, err)) != QK_OK) return status;
  if (strcmp(precision, "F") != 0 && strcmp(precision, "D") != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<precision> = %s: F and D are read", precision);
  f->now.bits = precision[0] == 'D' ? 64 : 32;
  if ((status = qk_tag_int(text, "typesize", &typesize, err)) != QK_OK) return status;
  if ((status = qk_tag_int(text, "datacount", &count, err)) != QK_OK) return status;
  if ((status = find_shape(&f->now, typesize, count, err)) != QK_OK) return status;
  if (f->now.shape == NUMBER) return QK_OK;
  status = check_number(text, "colors", 3, err);
  return status == QK_OK ? check_number(text, "spins", 4, err) : status;
}

static qk_status_t on_record_text(qk_scidac_in_t *f, char **text, qk_err_t *err) {
  if (!f->open || f->skipped) return QK_OK;
  f->now.is_source = strstr(*text, "<usqcdSourceInfo>") != NULL;
  if (strstr(*text, "<usqcdPropInfo>")) {
    qk_status_t status = qk_tag_int(*text, "spin", &f->now.spin, err);
    if (status == QK_OK) status = qk_tag_int(*text, "color", &f->now.color, err);
    if (status != QK_OK) return status;
    if (f->now.spin > 3 || f->now.color > 2)
      return qk_fail(err, QK_BAD_FORMAT,
                     "<spin> = %" PRId64 ", <color> = %" PRId64 ": 0 to 3, 0 "
                     "to 2",
                     f->now.spin, f->now.color);
  }
  keep_text(f, text);
  return QK_OK;
}

static qk_status_t on_data(qk_scidac_in_t *f, const qk_lime_record_t *record, qk_err_t *err) {
  if (!f->open || f->has_data)
    return qk_fail(err, QK_BAD_FORMAT, "numbers without a scidac-private-record-xml before them");
  const int64_t want = f->sites * f->now.shape * (f->now.bits / 4);
  f->has_data = true;
  if (f->skipped) return QK_OK;
  if (record->bytes != want)
    return qk_fail(err, record->bytes < want ? QK_TRUNCATED : QK_BAD_GEOMETRY,
                   "%" PRId64 " bytes of numbers, but a lattice of %d x %d x %d x %d with %d bytes "
                   "a site needs %" PRId64,
                   record->bytes, f->meta.dims[0], f->meta.dims[1], f->meta.dims[2],
                   f->meta.dims[3], (int)f->now.shape * (f->now.bits / 4), want);
  f->now.offset = record->offset;
  f->now.bytes = record->bytes;
  return QK_OK;
}

static qk_status_t on_sum(qk_scidac_in_t *f, const char *text, qk_err_t *err) {
  if (!f->open || !f->has_data)
    return qk_fail(err, QK_BAD_FORMAT, "a checksum without numbers before it");
  f->open = false;
  if (f->skipped) return QK_OK;
  const qk_status_t status = qk_scidac_sum_parse(text, f->now.sum, err);
  if (status != QK_OK) return status;
  field_t *grown = qk_grow(f->field, &f->room, f->fields + 1, sizeof *grown);
  if (!grown) return qk_fail(err, QK_NO_MEMORY, "no memory for %d fields", f->fields + 1);
  f->field = grown;
  f->field[f->fields++] = f->now;
  return QK_OK;
}

/* A text that is too long is an error, unless it is of the user. */
static qk_status_t on_text(qk_scidac_in_t *f, const qk_lime_record_t *record, qk_err_t *err) {
  const char *type = record->type;
  const bool users = strcmp(type, "scidac-file-xml") == 0 || strcmp(type, "scidac-record-xml") == 0;
  char *text;
  if (users && record->bytes > QK_LIME_TEXT_MAX) return QK_OK;
  qk_status_t status = qk_lime_text(&f->file, record, &text, err);
  if (status != QK_OK) return status;
  if (strcmp(type, "scidac-private-file-xml") == 0)
    status = on_lattice(f, text, err);
  else if (strcmp(type, "scidac-file-xml") == 0)
    status = on_file_text(f, &text, err);
  else if (strcmp(type, "scidac-private-record-xml") == 0)
    status = on_record_type(f, text, err);
  else if (strcmp(type, "scidac-record-xml") == 0)
    status = on_record_text(f, &text, err);
  else if (strcmp(type, "scidac-checksum") == 0)
    status = on_sum(f, text, err);
  qk_free(text);
  return status;
}

static qk_status_t on_record(qk_scidac_in_t *f, const qk_lime_record_t *record, qk_err_t *err) {
  if (strcmp(record->type, "ildg-binary-data") == 0)
    return qk_fail(err, QK_UNSUPPORTED, "a gauge configuration, expected fermion fields");
  if (strcmp(record->type, "scidac-binary-data") == 0) return on_data(f, record, err);
  return strncmp(record->type, "scidac-", 7) == 0 ? on_text(f, record, err) : QK_OK;
}

static qk_status_t walk(qk_scidac_in_t *f, qk_err_t *err) {
  qk_lime_cursor_t cursor = {.file = &f->file};
  while (!qk_lime_ends(&cursor)) {
    qk_lime_record_t record;
    qk_status_t status = qk_lime_next(&cursor, &record, err);
    if (status != QK_OK) return status;
    if ((status = on_record(f, &record, err)) == QK_OK) continue;
    qk_err_prefix(err, "LIME record %s", record.type); /* one of those that are known */
    return status;
  }
  if (f->open) return qk_fail(err, QK_TRUNCATED, "the last field has no checksum");
  return QK_OK;
}

/* ---- what the fields are ---- */

static qk_status_t verify(const qk_scidac_in_t *f, const field_t *field, uint8_t *raw,
                          qk_err_t *err) {
  const int64_t site = field->shape * (field->bits / 4), most = QK_SCIDAC_SLAB / site;
  uint32_t sum[2] = {0, 0};
  for (int64_t at = 0, n; at < f->sites; at += n) {
    n = f->sites - at < most ? f->sites - at : most;
    const qk_status_t status =
        qk_infile_read(&f->file, raw, n * site, field->offset + at * site, err);
    if (status != QK_OK) return status;
    qk_scidac_sum_add(at, n, site, raw, sum);
  }
  if (memcmp(sum, field->sum, sizeof sum) == 0) return QK_OK;
  return qk_fail(err, QK_BAD_CHECKSUM,
                 "field %d: checksum %08" PRIx32 " %08" PRIx32 ", but the file says %08" PRIx32
                 " %08" PRIx32,
                 (int)(field - f->field), sum[0], sum[1], field->sum[0], field->sum[1]);
}

static qk_status_t verify_all(const qk_scidac_in_t *f, qk_err_t *err) {
  const int64_t most = f->sites * PROPAGATOR * 16;
  uint8_t *raw = qk_malloc((size_t)(most < QK_SCIDAC_SLAB ? most : QK_SCIDAC_SLAB));
  if (!raw) return qk_fail(err, QK_NO_MEMORY, "no memory for a slab of the file");
  qk_status_t status = QK_OK;
  for (int i = 0; i < f->fields && status == QK_OK; i++) status = verify(f, &f->field[i], raw, err);
  qk_free(raw);
  return status;
}

/* The place of a solution among the right-hand sides; -1: none is left. */
static int64_t place(const qk_scidac_in_t *f, const field_t *field, int64_t next) {
  if (!f->twelve) return next;
  const int64_t at = 3 * field->spin + field->color;
  return field->spin >= 0 && f->solution[at] < 0 ? at : -1;
}

static qk_status_t list_fermions(qk_scidac_in_t *f, qk_err_t *err) {
  int64_t n = 0;
  f->solution = qk_malloc((size_t)f->nrhs * sizeof *f->solution);
  if (!f->solution) return qk_fail(err, QK_NO_MEMORY, "no memory for the list of fields");
  for (int64_t i = 0; i < f->nrhs; i++) f->solution[i] = -1;
  for (int i = 0; i < f->fields; i++) {
    const field_t *field = &f->field[i];
    if (field->is_source || field->shape == NUMBER) continue;
    const int64_t at = place(f, field, n++);
    if (at < 0)
      return qk_fail(err, QK_BAD_FORMAT,
                     "field %d: spin %" PRId64 ", colour %" PRId64 " of the source is there twice, "
                     "or not said",
                     i, field->spin, field->color);
    f->solution[at] = i;
  }
  return QK_OK;
}

static qk_status_t count_rhs(qk_scidac_in_t *f, qk_err_t *err) {
  int propagators = 0;
  for (int i = 0; i < f->fields; i++) {
    const field_t *field = &f->field[i];
    if (field->shape == NUMBER && !field->is_source)
      return qk_fail(err, QK_UNSUPPORTED, "field %d: one number a site, and not a source", i);
    propagators += field->shape == PROPAGATOR;
    f->nrhs += !field->is_source && field->shape == ONE_FERMION;
  }
  if (propagators > 1 || (propagators == 1 && f->fields > 1))
    return qk_fail(err, QK_UNSUPPORTED, "%d fields with a propagator among them: one is read",
                   f->fields);
  if (propagators == 1) f->nrhs = COLUMNS;
  if (f->nrhs == 0)
    return qk_fail(err, QK_BAD_FORMAT, "no field of fermions, or it has no checksum");
  if (f->twelve && f->nrhs != COLUMNS)
    return qk_fail(err, QK_BAD_FORMAT, "%" PRId64 " fermions, but its type says twelve", f->nrhs);
  return propagators == 1 ? QK_OK : list_fermions(f, err);
}

/* ---- what is told of them ---- */

/* From the texts of Chroma, which are free otherwise: what is not as expected stays unknown. */
static void read_place(const char *text, const int32_t *dims, int32_t site[4]) {
  char value[QK_TAG_VALUE];
  char *save = NULL;
  int64_t x[4];
  bool found;
  if (qk_tag_value(text, "t_srce", value, sizeof value, &found, NULL) != QK_OK || !found) return;
  for (int mu = 0; mu < 4; mu++) {
    const char *word = strtok_r(mu ? NULL : value, " ", &save);
    if (!word || !qk_parse_int(word, 0, dims[mu] - 1, &x[mu])) return;
  }
  for (int mu = 0; mu < 4 && !strtok_r(NULL, " ", &save); mu++) site[mu] = (int32_t)x[mu];
}

static void describe(qk_scidac_in_t *f) {
  const bool pairs = f->solution != NULL;
  int32_t site[4] = {-1, -1, -1, -1};
  strcpy(f->meta.basis, "degrand-rossi");
  strcpy(f->meta.kind, f->nrhs == COLUMNS ? "propagator" : "solution");
  if (f->text) read_place(f->text, f->meta.dims, site);
  for (int64_t i = 0; i < f->nrhs; i++) {
    qk_h5column_t *c = &f->column[i];
    qk_h5column_init(c);
    strcpy(c->source, "file");
    memcpy(c->site, site, sizeof site);
    const field_t *field = pairs ? &f->field[f->solution[i]] : NULL;
    c->spin = field ? (int32_t)field->spin : (int32_t)(i / 3);
    c->colour = field ? (int32_t)field->color : (int32_t)(i % 3);
  }
}

static qk_status_t read_story(qk_scidac_in_t *f, qk_err_t *err) {
  qk_h5meta_t meta = f->meta;
  const int columns = f->nrhs == COLUMNS ? COLUMNS : 0; /* as they are written */
  bool found = false;
  const qk_status_t status =
      f->text ? qk_scidac_read_tag(f->text, &meta, f->column, columns, &found, err) : QK_OK;
  if (status != QK_OK || !found) return status;
  if (memcmp(meta.dims, f->meta.dims, sizeof meta.dims) != 0)
    return qk_fail(err, QK_BAD_GEOMETRY, "<quarkd>: <dims> are not the extents of the file");
  if (meta.site_reals != QK_H5_SITE_REALS || strcmp(meta.basis, f->meta.basis) != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<quarkd>: site_reals = %d, basis %s: %d and %s are read",
                   meta.site_reals, meta.basis, QK_H5_SITE_REALS, f->meta.basis);
  f->meta = meta;
  return QK_OK;
}

/* ---- the file ---- */

void qk_scidac_close(qk_scidac_in_t *f) {
  if (!f) return;
  if (f->file.fd >= 0) qk_infile_close(&f->file);
  qk_free(f->text);
  qk_free(f->solution);
  qk_free(f->field);
  qk_free(f->column);
  free(f->path);
  free(f);
}

qk_status_t qk_scidac_open(const char *path, qk_scidac_in_t **file, qk_err_t *err) {
  qk_err_t cause = {0};
  qk_scidac_in_t *f = calloc(1, sizeof *f);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  f->file.fd = -1;
  qk_h5meta_init(&f->meta);
  f->path = strdup(path);
  qk_status_t status = f->path ? QK_OK : qk_fail(&cause, QK_NO_MEMORY, "no memory");
  if (status == QK_OK) status = qk_infile_open(path, &f->file, &cause);
  if (status == QK_OK) status = walk(f, &cause);
  if (status == QK_OK) status = count_rhs(f, &cause);
  if (status == QK_OK && !(f->column = qk_malloc((size_t)f->nrhs * sizeof *f->column)))
    status = qk_fail(&cause, QK_NO_MEMORY, "no memory for %" PRId64 " columns", f->nrhs);
  if (status == QK_OK) {
    describe(f);
    status = read_story(f, &cause);
  }
  if (status == QK_OK) status = verify_all(f, &cause);
  if (status == QK_OK) {
    *file = f;
    return QK_OK;
  }
  qk_scidac_close(f);
  return qk_fail(err, status, "%s: %s", path, cause.text);
}

const qk_h5meta_t *qk_scidac_meta(const qk_scidac_in_t *f) {
  return &f->meta;
}

const qk_h5column_t *qk_scidac_columns(const qk_scidac_in_t *f) {
  return f->column;
}

int64_t qk_scidac_nrhs(const qk_scidac_in_t *f) {
  return f->nrhs;
}

int qk_scidac_bits(const qk_scidac_in_t *f) {
  return f->solution ? f->field[f->solution[0]].bits : f->field[0].bits;
}

static double load_real(const uint8_t *p, int bits) {
  if (bits == 32) {
    const uint32_t w = qk_bytes_u32(p, true);
    float x;
    memcpy(&x, &w, sizeof x);
    return x;
  }
  const uint64_t w = qk_bytes_u64(p, true);
  double x;
  memcpy(&x, &w, sizeof x);
  return x;
}

/* n sites of a column, from [site][spin][spin0][colour][colour0] or [site][spin][colour]. */
static void take_sites(const field_t *field, int64_t column, int64_t n, const uint8_t *raw,
                       int bits, uint8_t *out) {
  const int width = field->bits / 8;
  const bool all = field->shape == PROPAGATOR;
  const int64_t first = all ? column / 3 * 9 + column % 3 : 0;
  const int64_t spin = all ? 36 : 3, colour = all ? 3 : 1;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < FERMION * 2; k++) {
      const int64_t number = i * field->shape + first + k / 6 * spin + k / 2 % 3 * colour;
      const double x = load_real(raw + (2 * number + k % 2) * width, field->bits);
      if (bits == 64)
        ((double *)(void *)out)[i * FERMION * 2 + k] = x;
      else
        ((float *)(void *)out)[i * FERMION * 2 + k] = (float)x;
    }
}

qk_status_t qk_scidac_read(const qk_scidac_in_t *f, int64_t rhs, int bits, void *data,
                           qk_err_t *err) {
  if (rhs < 0 || rhs >= f->nrhs)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: right-hand side %lld, the file has 0 to %lld",
                   f->path, (long long)rhs, (long long)f->nrhs - 1);
  if (bits != 32 && bits != 64)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: bits = %d, must be 32 or 64", f->path, bits);
  const field_t *field = &f->field[f->solution ? f->solution[rhs] : 0];
  const int64_t site = field->shape * (field->bits / 4), most = QK_SCIDAC_SLAB / site;
  uint8_t *raw = qk_malloc((size_t)((f->sites < most ? f->sites : most) * site)), *out = data;
  if (!raw) return qk_fail(err, QK_NO_MEMORY, "%s: no memory for a slab of the file", f->path);
  qk_status_t status = QK_OK;
  for (int64_t at = 0, n; at < f->sites; at += n) {
    n = f->sites - at < most ? f->sites - at : most;
    status = qk_infile_read(&f->file, raw, n * site, field->offset + at * site, err);
    if (status != QK_OK) break;
    take_sites(field, rhs, n, raw, bits, out);
    out += n * FERMION * (bits / 4);
  }
  if (status != QK_OK) qk_err_prefix(err, "%s", f->path);
  qk_free(raw);
  return status;
}
