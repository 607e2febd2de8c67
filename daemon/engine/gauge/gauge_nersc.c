/*
 * gauge_nersc.c: NERSC archive files.
 *
 * Lines "KEY = VALUE" between BEGIN_HEADER and END_HEADER, then the links, site by site with x
 * fastest, mu = x,y,z,t, two rows (4D_SU3_GAUGE) or three (4D_SU3_GAUGE_3x3). CHECKSUM is the sum
 * of all 32-bit words modulo 2^32, PLAQUETTE and LINK_TRACE are averages of Re tr / 3.
 * FLOATING_POINT IEEE32 and IEEE64 without a byte order mean big endian.
 */
#include "daemon/engine/gauge/gauge_format.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { NERSC_HEADER_MAX = 64 << 10, NERSC_VALUE_MAX = 64 };

/* The header as a string, up to and without the line END_HEADER; *end is where the links begin. */
static qk_status_t read_header(const qk_gauge_file_t *file, char **text, int64_t *end,
                               qk_err_t *err) {
  int64_t n = file->in.size < NERSC_HEADER_MAX ? file->in.size : NERSC_HEADER_MAX;
  char *buf = qk_malloc((size_t)n + 1);
  if (buf == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for a header of %d bytes", (int)n);
  qk_status_t status = qk_infile_read(&file->in, buf, n, 0, err);
  if (status != QK_OK) goto fail;
  buf[n] = '\0';
  char *last = memmem(buf, (size_t)n, "\nEND_HEADER", 11);
  char *newline = last == NULL ? NULL : memchr(last + 11, '\n', (size_t)(n - (last + 11 - buf)));
  if (newline == NULL) {
    bool cut = n < NERSC_HEADER_MAX;
    status = qk_fail(err, cut ? QK_TRUNCATED : QK_BAD_FORMAT, "NERSC header without END_HEADER%s",
                     cut ? ": the file ends within it" : " in its first 65536 bytes");
    goto fail;
  }
  last[1] = '\0';
  if (strlen(buf) != (size_t)(last + 1 - buf)) {
    status = qk_fail(err, QK_BAD_FORMAT, "NERSC header holds a NUL byte");
    goto fail;
  }
  *text = buf;
  *end = newline + 1 - buf;
  return QK_OK;
fail:
  qk_free(buf);
  return status;
}

/* Value of `key`, without blanks around it, into value[NERSC_VALUE_MAX]. *found says whether the
 * key is there; a key twice or an overlong value is QK_BAD_FORMAT. */
static qk_status_t find(const char *text, const char *key, char *value, bool *found,
                        qk_err_t *err) {
  static const char blanks[] = " \t\r";
  size_t nkey = strlen(key);
  *found = false;
  for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
    const char *p = line + strspn(line, blanks), *eol = line + strcspn(line, "\n");
    if (strncmp(p, key, nkey) != 0) continue;
    p += nkey;
    p += strspn(p, blanks);
    if (*p++ != '=') continue;
    p += strspn(p, blanks);
    while (eol > p && strchr(blanks, eol[-1]) != NULL) eol--;
    if (*found) return qk_fail(err, QK_BAD_FORMAT, "NERSC header has %s twice", key);
    if (eol - p >= NERSC_VALUE_MAX || eol <= p)
      return qk_fail(err, QK_BAD_FORMAT, "NERSC header: value of %s is empty or too long", key);
    memcpy(value, p, (size_t)(eol - p));
    value[eol - p] = '\0';
    if (!qk_parse_printable(value))
      return qk_fail(err, QK_BAD_FORMAT, "NERSC header: value of %s is not text", key);
    *found = true;
  }
  return QK_OK;
}

static qk_status_t need(const char *text, const char *key, char *value, qk_err_t *err) {
  bool found;
  qk_status_t status = find(text, key, value, &found, err);
  if (status == QK_OK && !found)
    status = qk_fail(err, QK_BAD_FORMAT, "NERSC header without %s", key);
  return status;
}

static qk_status_t get_dims(const char *text, qk_gauge_info_t *info, qk_err_t *err) {
  static const char *const keys[4] = {"DIMENSION_1", "DIMENSION_2", "DIMENSION_3", "DIMENSION_4"};
  int64_t dims[4];
  for (int mu = 0; mu < 4; mu++) {
    const char *key = keys[mu];
    char value[NERSC_VALUE_MAX];
    qk_status_t status = need(text, key, value, err);
    if (status != QK_OK) return status;
    if (!qk_parse_int(value, 0, INT64_MAX, &dims[mu]))
      return qk_fail(err, QK_BAD_FORMAT, "NERSC header: %s = %s is not a number", key, value);
  }
  return qk_gauge_set_dims(dims, info, err);
}

static qk_status_t get_real(const char *text, const char *key, bool *found, double *v, double *unit,
                            qk_err_t *err) {
  char value[NERSC_VALUE_MAX];
  qk_status_t status = find(text, key, value, found, err);
  if (status == QK_OK && *found && !qk_parse_real(value, v, unit))
    status = qk_fail(err, QK_BAD_FORMAT, "NERSC header: %s = %s is not a number", key, value);
  return status;
}

static qk_status_t get_types(const char *text, qk_gauge_info_t *info, qk_err_t *err) {
  static const struct {
    const char *name;
    int bits;
    bool big;
  } fp[] = {{"IEEE32BIG", 32, true}, {"IEEE32", 32, true}, {"IEEE32LITTLE", 32, false},
            {"IEEE64BIG", 64, true}, {"IEEE64", 64, true}, {"IEEE64LITTLE", 64, false}};
  char type[NERSC_VALUE_MAX], real[NERSC_VALUE_MAX];
  qk_status_t status = need(text, "DATATYPE", type, err);
  if (status != QK_OK) return status;
  status = need(text, "FLOATING_POINT", real, err);
  if (status != QK_OK) return status;
  if (strcmp(type, "4D_SU3_GAUGE") == 0) {
    info->layout.rows = 2;
  } else if (strcmp(type, "4D_SU3_GAUGE_3x3") == 0 || strcmp(type, "4D_SU3_GAUGE_3X3") == 0) {
    info->layout.rows = 3;
  } else {
    return qk_fail(err, QK_UNSUPPORTED,
                   "NERSC DATATYPE = %s: 4D_SU3_GAUGE and 4D_SU3_GAUGE_3x3 are read", type);
  }
  for (size_t i = 0; i < sizeof fp / sizeof *fp; i++) {
    if (strcmp(real, fp[i].name) != 0) continue;
    info->bits = fp[i].bits;
    info->layout.big_endian = fp[i].big;
    snprintf(info->format, sizeof info->format, "NERSC %.20s %s", type, fp[i].name);
    return QK_OK;
  }
  return qk_fail(err, QK_UNSUPPORTED,
                 "NERSC FLOATING_POINT = %s: IEEE32 and IEEE64, BIG or LITTLE, are read", real);
}

static qk_status_t parse(const char *text, qk_gauge_info_t *info, qk_err_t *err) {
  char value[NERSC_VALUE_MAX];
  qk_status_t status = get_types(text, info, err);
  if (status != QK_OK) return status;
  status = get_dims(text, info, err);
  if (status != QK_OK) return status;
  status = get_real(text, "PLAQUETTE", &info->has_plaquette, &info->plaquette,
                    &info->plaquette_unit, err);
  if (status != QK_OK) return status;
  status = get_real(text, "LINK_TRACE", &info->has_link_trace, &info->link_trace,
                    &info->link_trace_unit, err);
  if (status != QK_OK) return status;
  status = find(text, "CHECKSUM", value, &info->has_checksum, err);
  if (status != QK_OK || !info->has_checksum) return status;
  const char *digits = strncmp(value, "0x", 2) == 0 ? value + 2 : value;
  if (!qk_parse_hex(digits, &info->layout.stated[0]))
    snprintf(info->checksum_fault, sizeof info->checksum_fault,
             "NERSC header: CHECKSUM = %.64s is not 1 to 8 hex digits", value);
  info->layout.sum = QK_GAUGE_SUM_NERSC;
  return QK_OK;
}

bool qk_gauge_nersc_is(const uint8_t head[QK_GAUGE_HEAD], int64_t bytes) {
  (void)bytes;
  return memcmp(head, "BEGIN_HEADER", 12) == 0;
}

qk_status_t qk_gauge_nersc_probe(const qk_gauge_file_t *file, qk_gauge_info_t *info,
                                 qk_err_t *err) {
  char *text = NULL;
  int64_t end = 0;
  qk_status_t status = read_header(file, &text, &end, err);
  if (status != QK_OK) return status;
  info->layout.order = QK_GAUGE_SITES;
  status = parse(text, info, err);
  if (status == QK_OK) status = qk_gauge_set_data(end, file->in.size - end, info, err);
  qk_free(text);
  return status;
}
