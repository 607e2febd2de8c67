/*
 * gauge_lime.c: ILDG and SciDAC files in their LIME container (daemon/base/formats).
 *
 * The links are the one record ildg-binary-data or scidac-binary-data: big endian, site by site
 * with x fastest, mu = x,y,z,t. Around it stand texts: extents and precision in ildg-format or in
 * the SciDAC private records, a checksum in scidac-checksum, a plaquette in xlf-info (tmLQCD) or
 * usqcdInfo.
 */
#include "daemon/engine/gauge/gauge_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/formats/lime.h"
#include "daemon/base/formats/sum.h"
#include "daemon/base/formats/tag.h"
#include "daemon/base/mem.h"

typedef struct lime {
  const qk_gauge_file_t *file;
  qk_gauge_info_t *info;
  bool has_dims, has_bits, has_links, scidac;
  int64_t dims[4];
  int64_t bits;
  int64_t offset, bytes; /* the links */
} lime_t;

/* Two records may give the same number; they must agree. */
static qk_status_t take_dims(lime_t *lime, const int64_t dims[4], qk_err_t *err) {
  if (lime->has_dims && memcmp(lime->dims, dims, sizeof lime->dims) != 0) {
    const int64_t *a = lime->dims;
    return qk_fail(err, QK_BAD_GEOMETRY,
                   "extents %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
                   ", but the file said %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " before",
                   dims[0], dims[1], dims[2], dims[3], a[0], a[1], a[2], a[3]);
  }
  memcpy(lime->dims, dims, sizeof lime->dims);
  lime->has_dims = true;
  return qk_gauge_set_dims(dims, lime->info, err);
}

static qk_status_t take_bits(lime_t *lime, int64_t bits, qk_err_t *err) {
  if (bits != 32 && bits != 64)
    return qk_fail(err, QK_UNSUPPORTED, "precision %" PRId64 ": 32 and 64 bits are read", bits);
  if (lime->has_bits && lime->bits != bits) {
    return qk_fail(err, QK_BAD_FORMAT,
                   "precision %" PRId64 ", but the file said %" PRId64 " before", bits, lime->bits);
  }
  lime->bits = bits;
  lime->has_bits = true;
  return QK_OK;
}

static qk_status_t on_ildg_format(lime_t *lime, const char *text, qk_err_t *err) {
  static const char *const tag[4] = {"lx", "ly", "lz", "lt"};
  char field[QK_TAG_VALUE];
  bool found;
  int64_t bits, dims[4];
  qk_status_t status = qk_tag_value(text, "field", field, sizeof field, &found, err);
  if (status != QK_OK) return status;
  if (found && strcmp(field, "su3gauge") != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<field> = %s: su3gauge is read", field);
  status = qk_tag_int(text, "precision", &bits, err);
  for (int mu = 0; mu < 4 && status == QK_OK; mu++)
    status = qk_tag_int(text, tag[mu], &dims[mu], err);
  if (status != QK_OK) return status;
  status = take_bits(lime, bits, err);
  return status == QK_OK ? take_dims(lime, dims, err) : status;
}

static qk_status_t on_scidac_file(lime_t *lime, const char *text, qk_err_t *err) {
  int64_t dims[4];
  const qk_status_t status = qk_tag_dims(text, dims, err);
  return status == QK_OK ? take_dims(lime, dims, err) : status;
}

static qk_status_t on_scidac_record(lime_t *lime, const char *text, qk_err_t *err) {
  char precision[QK_TAG_VALUE];
  int64_t colors, count;
  qk_status_t status = qk_tag_int(text, "colors", &colors, err);
  if (status != QK_OK) return status;
  status = qk_tag_int(text, "datacount", &count, err);
  if (status != QK_OK) return status;
  status = qk_tag_need(text, "precision", precision, err);
  if (status != QK_OK) return status;
  if (colors != 3 || count != 4) {
    return qk_fail(err, QK_UNSUPPORTED,
                   "%" PRId64 " matrices of %" PRId64 " colours a site: 4 of 3 are read", count,
                   colors);
  }
  if (strcmp(precision, "F") != 0 && strcmp(precision, "D") != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<precision> = %s: F and D are read", precision);
  return take_bits(lime, precision[0] == 'D' ? 64 : 32, err);
}

static qk_status_t on_checksum(lime_t *lime, const char *text, qk_err_t *err) {
  qk_gauge_info_t *info = lime->info;
  qk_err_t fault = {0};
  if (info->has_checksum) return qk_fail(err, QK_BAD_FORMAT, "a second checksum");
  if (qk_scidac_sum_parse(text, info->layout.stated, &fault) != QK_OK)
    snprintf(info->checksum_fault, sizeof info->checksum_fault, "%.*s",
             (int)sizeof info->checksum_fault - 1, fault.text);
  info->layout.sum = QK_GAUGE_SUM_SCIDAC;
  info->has_checksum = true;
  return QK_OK;
}

static qk_status_t take_plaquette(lime_t *lime, const char *value, qk_err_t *err) {
  if (!qk_parse_real(value, &lime->info->plaquette, &lime->info->plaquette_unit)) {
    return qk_fail(err, QK_BAD_FORMAT, "plaquette = \"%s\" is not a number",
                   qk_parse_printable(value) ? value : "?");
  }
  lime->info->has_plaquette = true;
  return QK_OK;
}

/* tmLQCD: "plaquette = 0.571077" on the first line. */
static qk_status_t on_xlf_info(lime_t *lime, const char *text, qk_err_t *err) {
  static const char key[] = "plaquette = ";
  const char *p = strstr(text, key);
  if (p == NULL) return QK_OK;
  p += sizeof key - 1;
  char value[QK_TAG_VALUE];
  snprintf(value, sizeof value, "%.*s", (int)strcspn(p, " \t\r\n,"), p);
  return take_plaquette(lime, value, err);
}

/* What a user writes here is free; only usqcdInfo says what its <plaq> means. */
static qk_status_t on_user_record(lime_t *lime, const char *text, qk_err_t *err) {
  char value[QK_TAG_VALUE];
  bool found = false;
  if (strstr(text, "<usqcdInfo>") == NULL) return QK_OK;
  qk_status_t status = qk_tag_value(text, "plaq", value, sizeof value, &found, err);
  return status == QK_OK && found ? take_plaquette(lime, value, err) : status;
}

static const struct handler {
  const char *type;
  bool needed; /* too long a text is an error */
  qk_status_t (*parse)(lime_t *lime, const char *text, qk_err_t *err);
} handlers[] = {
    {"ildg-format", true, on_ildg_format},
    {"scidac-private-file-xml", true, on_scidac_file},
    {"scidac-private-record-xml", true, on_scidac_record},
    {"scidac-checksum", true, on_checksum},
    {"xlf-info", false, on_xlf_info},
    {"scidac-record-xml", false, on_user_record},
};

/* A record of text that is wanted: read it whole and hand it to its parser. */
static qk_status_t read_text(lime_t *lime, const struct handler *handler,
                             const qk_lime_record_t *record, qk_err_t *err) {
  char *text;
  if (record->bytes > QK_LIME_TEXT_MAX && !handler->needed) return QK_OK;
  qk_status_t status = qk_lime_text(&lime->file->in, record, &text, err);
  if (status != QK_OK) return status;
  status = handler->parse(lime, text, err);
  if (status != QK_OK) qk_err_prefix(err, "LIME record %s", handler->type);
  qk_free(text);
  return status;
}

static qk_status_t on_record(lime_t *lime, const qk_lime_record_t *record, qk_err_t *err) {
  const char *type = record->type;
  bool scidac = strcmp(type, "scidac-binary-data") == 0;
  if (scidac || strcmp(type, "ildg-binary-data") == 0) {
    if (lime->has_links)
      return qk_fail(err, QK_UNSUPPORTED, "the file holds more than one record of links");
    lime->has_links = true;
    lime->scidac = scidac;
    lime->offset = record->offset;
    lime->bytes = record->bytes;
    return QK_OK;
  }
  for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
    if (strcmp(type, handlers[i].type) == 0) return read_text(lime, &handlers[i], record, err);
  }
  return QK_OK;
}

static qk_status_t walk(lime_t *lime, qk_err_t *err) {
  qk_lime_cursor_t cursor = {.file = &lime->file->in};
  while (!qk_lime_ends(&cursor)) {
    qk_lime_record_t record;
    qk_status_t status = qk_lime_next(&cursor, &record, err);
    if (status != QK_OK || (status = on_record(lime, &record, err)) != QK_OK) return status;
  }
  return QK_OK;
}

/* Extents and precision from what the file says, or from the hint and the length of the record. */
static qk_status_t settle(lime_t *lime, const int dims_hint[4], qk_err_t *err) {
  qk_gauge_info_t *info = lime->info;
  if (!lime->has_links) {
    return qk_fail(err, QK_BAD_FORMAT,
                   "LIME file without a record ildg-binary-data or scidac-binary-data");
  }
  if (dims_hint != NULL) {
    int64_t dims[4] = {dims_hint[0], dims_hint[1], dims_hint[2], dims_hint[3]};
    qk_status_t status = take_dims(lime, dims, err);
    if (status != QK_OK) {
      qk_err_prefix(err, "given extents");
      return status;
    }
  }
  if (!lime->has_dims) {
    return qk_fail(err, QK_BAD_GEOMETRY,
                   "LIME file without a record ildg-format: its %" PRId64
                   " bytes of links do not say the extents; give them (--dims XxYxZxT)",
                   lime->bytes);
  }
  int64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) volume *= info->dims[mu];
  if (!lime->has_bits) lime->bits = lime->bytes <= volume * QK_GAUGE_SITE_REALS * 4 ? 32 : 64;
  info->bits = (int)lime->bits;
  info->layout.order = QK_GAUGE_SITES;
  info->layout.big_endian = true;
  info->layout.rows = 3;
  snprintf(info->format, sizeof info->format, "%s", lime->scidac ? "SciDAC" : "ILDG");
  return qk_gauge_set_data(lime->offset, lime->bytes, info, err);
}

bool qk_gauge_lime_is(const uint8_t head[QK_GAUGE_HEAD], int64_t bytes) {
  (void)bytes;
  return qk_lime_is(head);
}

qk_status_t qk_gauge_lime_probe(const qk_gauge_file_t *file, qk_gauge_info_t *info, qk_err_t *err) {
  lime_t lime = {.file = file, .info = info};
  qk_status_t status = walk(&lime, err);
  return status == QK_OK ? settle(&lime, file->dims_hint, err) : status;
}
