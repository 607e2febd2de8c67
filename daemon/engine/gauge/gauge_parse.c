/* gauge_parse.c: what header parsers share: strict parsing, sizes against the file. */
#include "daemon/engine/gauge/gauge_format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"

qk_status_t qk_gauge_file_open(const char *path, qk_gauge_file_t *file, qk_err_t *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not make us wait */
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "cannot open: %s", strerror(errno));
  struct stat st;
  if (fstat(fd, &st) != 0) {
    qk_fail(err, QK_IO_ERROR, "cannot stat: %s", strerror(errno));
    close(fd);
    return QK_IO_ERROR;
  }
  if (!S_ISREG(st.st_mode)) {
    close(fd);
    return qk_fail(err, QK_IO_ERROR, "not a regular file");
  }
  *file = (qk_gauge_file_t){.fd = fd, .size = st.st_size};
  return QK_OK;
}

void qk_gauge_file_close(qk_gauge_file_t *file) {
  close(file->fd);
  file->fd = -1;
}

qk_status_t qk_gauge_file_read(const qk_gauge_file_t *file, void *buf, int64_t bytes,
                               int64_t offset, qk_err_t *err) {
  char *p = buf;
  while (bytes > 0) {
    ssize_t n;
    if (qk_fault(QK_FAULT_READ)) {
      n = -1;
      errno = EIO;
    } else {
      n = pread(file->fd, p, (size_t)bytes, offset);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return qk_fail(err, QK_IO_ERROR, "read of %" PRId64 " bytes at offset %" PRId64 ": %s", bytes,
                     offset, strerror(errno));
    }
    if (n == 0) {
      return qk_fail(err, QK_TRUNCATED,
                     "the file ends %" PRId64 " bytes early: at byte %" PRId64
                     ", within a part that should reach byte %" PRId64,
                     bytes, offset, offset + bytes);
    }
    p += n;
    bytes -= n;
    offset += n;
  }
  return QK_OK;
}

bool qk_gauge_printable(const char *text) {
  while (*text >= ' ' && *text <= '~') text++;
  return *text == '\0';
}

bool qk_gauge_parse_int(const char *text, int64_t lo, int64_t hi, int64_t *value) {
  size_t n = strlen(text), digits = strspn(text, "0123456789");
  if (n == 0 || n > 18 || digits != n) return false;
  int64_t v = strtoll(text, NULL, 10);
  if (v < lo || v > hi) return false;
  *value = v;
  return true;
}

bool qk_gauge_parse_hex(const char *text, uint32_t *value) {
  size_t n = strlen(text);
  if (n == 0 || n > 8 || strspn(text, "0123456789abcdefABCDEF") != n) return false;
  *value = (uint32_t)strtoul(text, NULL, 16);
  return true;
}

bool qk_gauge_parse_real(const char *text, double *value, double *unit) {
  const char *p = text + (*text == '-' || *text == '+');
  size_t whole = strspn(p, "0123456789"), decimals = 0;
  p += whole;
  if (*p == '.') {
    decimals = strspn(++p, "0123456789");
    p += decimals;
  }
  if (whole + decimals == 0 || whole + decimals > 40) return false;
  long exponent = 0;
  if (*p == 'e' || *p == 'E') {
    p++;
    size_t sign = *p == '-' || *p == '+', n = strspn(p + sign, "0123456789");
    if (n == 0 || n > 3) return false;
    exponent = strtol(p, NULL, 10);
    p += sign + n;
  }
  if (*p != '\0') return false;
  double v = strtod(text, NULL);
  if (!isfinite(v)) return false;
  *value = v;
  *unit = pow(10.0, (double)(exponent - (long)decimals));
  return true;
}

uint32_t qk_gauge_load_u32(const uint8_t *p, bool big_endian) {
  uint32_t b[4] = {p[0], p[1], p[2], p[3]};
  return big_endian ? b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]
                    : b[3] << 24 | b[2] << 16 | b[1] << 8 | b[0];
}

qk_status_t qk_gauge_set_dims(const int64_t dims[4], qk_gauge_info_t *info, qk_err_t *err) {
  int64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (dims[mu] < 2 || dims[mu] % 2 != 0) {
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "extent of %c = %" PRId64 ": extents must be even and at least 2", "xyzt"[mu],
                     dims[mu]);
    }
    if (dims[mu] > INT32_MAX / volume) {
      return qk_fail(err, QK_TOO_LARGE,
                     "lattice %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
                     ": more than %d sites are not supported",
                     dims[0], dims[1], dims[2], dims[3], INT32_MAX);
    }
    volume *= dims[mu];
  }
  for (int mu = 0; mu < 4; mu++) info->dims[mu] = (int)dims[mu];
  return QK_OK;
}

int64_t qk_gauge_site_bytes(const qk_gauge_info_t *info) {
  return 4 * info->layout.rows * 3 * 2 * (info->bits / 8);
}

qk_status_t qk_gauge_set_data(int64_t offset, int64_t present, qk_gauge_info_t *info,
                              qk_err_t *err) {
  const int *d = info->dims;
  int64_t want = (int64_t)d[0] * d[1] * d[2] * d[3] * qk_gauge_site_bytes(info);
  if (present != want) {
    return qk_fail(err, present < want ? QK_TRUNCATED : QK_BAD_GEOMETRY,
                   "the file holds %" PRId64 " bytes of links from byte %" PRId64
                   " on, but a %dx%dx%dx%d lattice with %d bits and %d rows a link needs %" PRId64,
                   present, offset, d[0], d[1], d[2], d[3], info->bits, info->layout.rows, want);
  }
  info->data_offset = offset;
  info->data_bytes = want;
  return QK_OK;
}
