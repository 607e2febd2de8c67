/*
 * gauge_lime.c: ILDG and SciDAC files in their LIME container.
 *
 * LIME is a chain of records: a header of 144 bytes, big endian (0 uint32 magic; 4 uint16 version
 * 1; 6 uint16 flags; 8 uint64 bytes of data; 16 char[128] type), then the data, padded to a
 * multiple of
 * 8. The links are the one record ildg-binary-data or scidac-binary-data: big endian, site by site
 * with x fastest, mu = x,y,z,t. Around it stand texts: extents and precision in ildg-format or in
 * the SciDAC private records, a checksum in scidac-checksum, a plaquette in xlf-info (tmLQCD) or
 * usqcdInfo.
 *
 * The texts are meant to be XML, but files with unbalanced quotes, leading newlines and trailing
 * NULs are about. So, like QIO, we look for <tag>value</tag> and parse no more; a tag that appears
 * twice is an error, and the value itself must be well formed. Nothing is ever expanded.
 */
#include "daemon/engine/gauge/gauge_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { LIME_HEADER = 144, LIME_RECORDS_MAX = 10000, VALUE_MAX = 64 };
static const uint32_t LIME_MAGIC = 0x456789ab;

typedef struct lime {
  const qk_gauge_file_t *file;
  qk_gauge_info_t *info;
  bool has_dims, has_bits, has_links, scidac;
  int64_t dims[4];
  int64_t bits;
  int64_t offset, bytes; /* the links */
} lime_t;

/* The text between <tag ...> and </, without blanks around it, into value[VALUE_MAX]. */
static qk_status_t xml_value(const char *text, const char *tag, char *value, bool *found,
                             qk_err_t *err) {
  static const char blanks[] = " \t\r\n";
  size_t ntag = strlen(tag);
  *found = false;
  for (const char *p = strchr(text, '<'); p != NULL; p = strchr(p + 1, '<')) {
    const char *q = p + 1 + ntag;
    if (strncmp(p + 1, tag, ntag) != 0 || (*q != '>' && strchr(blanks, *q) == NULL)) continue;
    q += strcspn(q, "<>");
    if (*q != '>') return qk_fail(err, QK_BAD_FORMAT, "<%s is not closed", tag);
    q += 1 + strspn(q + 1, blanks);
    const char *end = q + strcspn(q, "<");
    if (end[0] == '\0' || end[1] != '/')
      return qk_fail(err, QK_BAD_FORMAT, "<%s> holds more than a value", tag);
    while (end > q && strchr(blanks, end[-1]) != NULL) end--;
    if (*found) return qk_fail(err, QK_BAD_FORMAT, "<%s> appears twice", tag);
    if (end - q >= VALUE_MAX) return qk_fail(err, QK_BAD_FORMAT, "<%s> is too long", tag);
    memcpy(value, q, (size_t)(end - q));
    value[end - q] = '\0';
    if (!qk_gauge_printable(value)) return qk_fail(err, QK_BAD_FORMAT, "<%s> is not text", tag);
    *found = true;
  }
  return QK_OK;
}

static qk_status_t xml_need(const char *text, const char *tag, char *value, qk_err_t *err) {
  bool found;
  qk_status_t status = xml_value(text, tag, value, &found, err);
  if (status == QK_OK && !found) status = qk_fail(err, QK_BAD_FORMAT, "<%s> is missing", tag);
  return status;
}

static qk_status_t xml_int(const char *text, const char *tag, int64_t *v, qk_err_t *err) {
  char value[VALUE_MAX];
  qk_status_t status = xml_need(text, tag, value, err);
  if (status == QK_OK && !qk_gauge_parse_int(value, 0, INT64_MAX, v))
    status = qk_fail(err, QK_BAD_FORMAT, "<%s> = \"%s\" is not a number", tag, value);
  return status;
}

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
  char field[VALUE_MAX];
  bool found;
  int64_t bits, dims[4];
  qk_status_t status = xml_value(text, "field", field, &found, err);
  if (status != QK_OK) return status;
  if (found && strcmp(field, "su3gauge") != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<field> = %s: su3gauge is read", field);
  status = xml_int(text, "precision", &bits, err);
  for (int mu = 0; mu < 4 && status == QK_OK; mu++) status = xml_int(text, tag[mu], &dims[mu], err);
  if (status != QK_OK) return status;
  status = take_bits(lime, bits, err);
  return status == QK_OK ? take_dims(lime, dims, err) : status;
}

static qk_status_t on_scidac_file(lime_t *lime, const char *text, qk_err_t *err) {
  char value[VALUE_MAX], *save = NULL;
  int64_t dims[4], volfmt;
  int n = 0;
  qk_status_t status = xml_int(text, "volfmt", &volfmt, err);
  if (status != QK_OK) return status;
  if (volfmt != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<volfmt> = %" PRId64 ": only 0, one file, is read",
                   volfmt);
  status = xml_need(text, "dims", value, err);
  if (status != QK_OK) return status;
  for (char *w = strtok_r(value, " \t\r\n", &save); w; w = strtok_r(NULL, " \t\r\n", &save), n++) {
    if (n == 4 || !qk_gauge_parse_int(w, 0, INT64_MAX, &dims[n]))
      return qk_fail(err, QK_BAD_GEOMETRY, "<dims> are not four numbers, at \"%s\"", w);
  }
  if (n != 4) return qk_fail(err, QK_BAD_GEOMETRY, "<dims> are %d numbers, not four", n);
  return take_dims(lime, dims, err);
}

static qk_status_t on_scidac_record(lime_t *lime, const char *text, qk_err_t *err) {
  char precision[VALUE_MAX];
  int64_t colors, count;
  qk_status_t status = xml_int(text, "colors", &colors, err);
  if (status != QK_OK) return status;
  status = xml_int(text, "datacount", &count, err);
  if (status != QK_OK) return status;
  status = xml_need(text, "precision", precision, err);
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

/* "1c231a18", or "0x1c231a18" by tmLQCD and its relatives, which is lower case then. */
static bool parse_sum(const char *value, uint32_t *sum) {
  if (strncmp(value, "0x", 2) != 0) return qk_gauge_parse_hex(value, sum);
  return strpbrk(value, "ABCDEF") == NULL && qk_gauge_parse_hex(value + 2, sum);
}

static qk_status_t take_sums(const char *text, uint32_t stated[2], qk_err_t *err) {
  static const char *const tag[2] = {"suma", "sumb"};
  for (int i = 0; i < 2; i++) {
    char value[VALUE_MAX];
    qk_status_t status = xml_need(text, tag[i], value, err);
    if (status != QK_OK) return status;
    if (!parse_sum(value, &stated[i]))
      return qk_fail(err, QK_BAD_FORMAT, "<%s> = \"%s\" is not 1 to 8 hex digits", tag[i], value);
  }
  return QK_OK;
}

static qk_status_t on_checksum(lime_t *lime, const char *text, qk_err_t *err) {
  qk_gauge_info_t *info = lime->info;
  qk_err_t fault = {0};
  if (info->has_checksum) return qk_fail(err, QK_BAD_FORMAT, "a second checksum");
  if (take_sums(text, info->layout.stated, &fault) != QK_OK)
    snprintf(info->checksum_fault, sizeof info->checksum_fault, "%.*s",
             (int)sizeof info->checksum_fault - 1, fault.text);
  info->layout.sum = QK_GAUGE_SUM_SCIDAC;
  info->has_checksum = true;
  return QK_OK;
}

static qk_status_t take_plaquette(lime_t *lime, const char *value, qk_err_t *err) {
  if (!qk_gauge_parse_real(value, &lime->info->plaquette, &lime->info->plaquette_unit)) {
    return qk_fail(err, QK_BAD_FORMAT, "plaquette = \"%s\" is not a number",
                   qk_gauge_printable(value) ? value : "?");
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
  char value[VALUE_MAX];
  snprintf(value, sizeof value, "%.*s", (int)strcspn(p, " \t\r\n,"), p);
  return take_plaquette(lime, value, err);
}

/* What a user writes here is free; only usqcdInfo says what its <plaq> means. */
static qk_status_t on_user_record(lime_t *lime, const char *text, qk_err_t *err) {
  char value[VALUE_MAX];
  bool found = false;
  if (strstr(text, "<usqcdInfo>") == NULL) return QK_OK;
  qk_status_t status = xml_value(text, "plaq", value, &found, err);
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
static qk_status_t read_text(lime_t *lime, const struct handler *handler, int64_t offset,
                             int64_t bytes, qk_err_t *err) {
  if (bytes > QK_GAUGE_TEXT_MAX) {
    if (!handler->needed) return QK_OK;
    return qk_fail(err, QK_TOO_LARGE, "LIME record %s of %" PRId64 " bytes: the limit is %d",
                   handler->type, bytes, QK_GAUGE_TEXT_MAX);
  }
  char *text = qk_malloc((size_t)bytes + 1);
  if (text == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for %" PRId64 " bytes", bytes);
  qk_status_t status = qk_gauge_file_read(lime->file, text, bytes, offset, err);
  if (status == QK_OK) {
    text[bytes] = '\0';
    status = handler->parse(lime, text, err);
    if (status != QK_OK) qk_err_prefix(err, "LIME record %s", handler->type);
  }
  qk_free(text);
  return status;
}

static qk_status_t on_record(lime_t *lime, const char *type, int64_t offset, int64_t bytes,
                             qk_err_t *err) {
  bool scidac = strcmp(type, "scidac-binary-data") == 0;
  if (scidac || strcmp(type, "ildg-binary-data") == 0) {
    if (lime->has_links)
      return qk_fail(err, QK_UNSUPPORTED, "the file holds more than one record of links");
    lime->has_links = true;
    lime->scidac = scidac;
    lime->offset = offset;
    lime->bytes = bytes;
    return QK_OK;
  }
  for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
    if (strcmp(type, handlers[i].type) == 0)
      return read_text(lime, &handlers[i], offset, bytes, err);
  }
  return QK_OK;
}

static qk_status_t walk(lime_t *lime, qk_err_t *err) {
  int64_t pos = 0, size = lime->file->size;
  for (int n = 0; pos < size; n++) {
    uint8_t head[LIME_HEADER];
    if (n == LIME_RECORDS_MAX)
      return qk_fail(err, QK_TOO_LARGE, "more than %d LIME records", LIME_RECORDS_MAX);
    qk_status_t status = qk_gauge_file_read(lime->file, head, sizeof head, pos, err);
    if (status != QK_OK) return status;
    uint32_t magic = qk_gauge_load_u32(head, true), version = (uint32_t)head[4] << 8 | head[5];
    if (magic != LIME_MAGIC || version != 1) {
      return qk_fail(err, QK_BAD_FORMAT,
                     "no LIME record at byte %" PRId64 ": magic %08" PRIx32 ", version %" PRIu32,
                     pos, magic, version);
    }
    uint64_t bytes =
        (uint64_t)qk_gauge_load_u32(head + 8, true) << 32 | qk_gauge_load_u32(head + 12, true);
    char type[129];
    memcpy(type, head + 16, 128);
    type[128] = '\0';
    pos += LIME_HEADER;
    if (bytes > (uint64_t)(size - pos)) {
      return qk_fail(err, QK_TRUNCATED,
                     "LIME record %.40s at byte %" PRId64 " says it holds %" PRIu64
                     " bytes, but the file ends after %" PRId64,
                     qk_gauge_printable(type) ? type : "?", pos - LIME_HEADER, bytes, size - pos);
    }
    status = on_record(lime, type, pos, (int64_t)bytes, err);
    if (status != QK_OK) return status;
    pos += (int64_t)(bytes + 7) / 8 * 8;
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
  return qk_gauge_load_u32(head, true) == LIME_MAGIC;
}

qk_status_t qk_gauge_lime_probe(const qk_gauge_file_t *file, qk_gauge_info_t *info, qk_err_t *err) {
  lime_t lime = {.file = file, .info = info};
  qk_status_t status = walk(&lime, err);
  return status == QK_OK ? settle(&lime, file->dims_hint, err) : status;
}
