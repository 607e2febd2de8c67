/* gauge_write.c: ILDG and NERSC files, complete and read back before they get their name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge_format.h"

enum { PIECE = 8 << 20, HEADER_MAX = 1024, PATH_BYTES = 4096 };

static qk_status_t put(int fd, const void *data, int64_t bytes, qk_err_t *err) {
  const char *p = data;
  while (bytes > 0) {
    ssize_t n;
    if (qk_fault(QK_FAULT_WRITE)) {
      n = -1;
      errno = ENOSPC;
    } else {
      n = write(fd, p, (size_t)bytes);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return qk_fail(err, QK_IO_ERROR, "write of %" PRId64 " bytes: %s", bytes, strerror(errno));
    }
    p += n;
    bytes -= n;
  }
  return QK_OK;
}

/* fd < 0: only sums them up. */
static qk_status_t put_links(int fd, const qk_gauge_info_t *info, int64_t volume,
                             const double *links, qk_gauge_sum_t *sum, qk_err_t *err) {
  int64_t bytes = qk_gauge_site_bytes(info), piece = PIECE / bytes;
  if (piece > volume) piece = volume;
  uint8_t *raw = qk_malloc((size_t)(piece * bytes));
  if (raw == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory to write %" PRId64 " sites", piece);
  qk_status_t status = QK_OK;
  for (int64_t n = 0; n < volume && status == QK_OK; n += piece) {
    int64_t take = volume - n < piece ? volume - n : piece;
    qk_gauge_encode(info, 4 * take, links + n * QK_GAUGE_SITE_REALS, raw);
    qk_gauge_sum_add(&info->layout, n, take, bytes, raw, sum);
    if (fd >= 0) status = put(fd, raw, take * bytes, err);
  }
  qk_free(raw);
  return status;
}

/* flags: 0x8000 begins a LIME message, 0x4000 ends it. */
static qk_status_t put_record(int fd, const char *type, int flags, int64_t bytes, const char *text,
                              qk_err_t *err) {
  uint8_t head[144] = {0x45, 0x67, 0x89, 0xab, 0, 1, (uint8_t)(flags >> 8), (uint8_t)flags};
  static const char zeros[8];
  for (int i = 0; i < 8; i++) head[8 + i] = (uint8_t)(bytes >> (56 - 8 * i));
  memcpy(head + 16, type, strlen(type));
  qk_status_t status = put(fd, head, sizeof head, err);
  if (status == QK_OK && text != NULL) status = put(fd, text, bytes, err);
  if (status == QK_OK && text != NULL) status = put(fd, zeros, (8 - bytes % 8) % 8, err);
  return status;
}

static qk_status_t put_ildg(int fd, const qk_gauge_info_t *info, int64_t volume,
                            const double *links, qk_err_t *err) {
  static const char xml[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  char text[HEADER_MAX];
  uint32_t word[2];
  qk_gauge_sum_t sum = {0};
  int n = snprintf(text, sizeof text,
                   "%s<ildgFormat xmlns=\"http://www.lqcd.org/ildg\""
                   " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\""
                   " xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\">\n"
                   "  <version>1.0</version>\n  <field>su3gauge</field>\n"
                   "  <precision>%d</precision>\n  <lx>%d</lx>\n  <ly>%d</ly>\n  <lz>%d</lz>\n"
                   "  <lt>%d</lt>\n</ildgFormat>\n",
                   xml, info->bits, info->dims[0], info->dims[1], info->dims[2], info->dims[3]);
  qk_status_t status = put_record(fd, "ildg-format", 0x8000, n, text, err);
  if (status == QK_OK) {
    int64_t bytes = volume * qk_gauge_site_bytes(info); /* a multiple of 8: no padding */
    status = put_record(fd, "ildg-binary-data", 0, bytes, NULL, err);
  }
  if (status == QK_OK) status = put_links(fd, info, volume, links, &sum, err);
  if (status != QK_OK) return status;
  qk_gauge_sum_words(&info->layout, &sum, word);
  n = snprintf(text, sizeof text,
               "%s<scidacChecksum><version>1.0</version><suma>%08" PRIx32 "</suma><sumb>%08" PRIx32
               "</sumb></scidacChecksum>\n",
               xml, word[0], word[1]);
  return put_record(fd, "scidac-checksum", 0x4000, n, text, err);
}

/* The checksum stands before the links: one pass to find it, another to write. */
static qk_status_t put_nersc(int fd, const qk_gauge_info_t *info, int64_t volume,
                             const double *links, const qk_gauge_check_t *check, qk_err_t *err) {
  char text[HEADER_MAX];
  uint32_t word[2];
  qk_gauge_sum_t sum = {0};
  qk_status_t status = put_links(-1, info, volume, links, &sum, err);
  if (status != QK_OK) return status;
  qk_gauge_sum_words(&info->layout, &sum, word);
  const int *d = info->dims;
  int n =
      snprintf(text, sizeof text,
               "BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = 4D_SU3_GAUGE_3x3\n"
               "STORAGE_FORMAT = 1.0\nDIMENSION_1 = %d\nDIMENSION_2 = %d\nDIMENSION_3 = %d\n"
               "DIMENSION_4 = %d\nLINK_TRACE = %.12f\nPLAQUETTE = %.12f\n"
               "BOUNDARY_1 = PERIODIC\nBOUNDARY_2 = PERIODIC\nBOUNDARY_3 = PERIODIC\n"
               "BOUNDARY_4 = PERIODIC\nCHECKSUM = %08" PRIx32 "\nFLOATING_POINT = IEEE%dBIG\n"
               "END_HEADER\n",
               d[0], d[1], d[2], d[3], check->link_trace, check->plaquette, word[0], info->bits);
  status = put(fd, text, n, err);
  return status == QK_OK ? put_links(fd, info, volume, links, &sum, err) : status;
}

/* Reads the file again: it must verify itself and hold the links to the last bit of `bits`. */
static qk_status_t verify(const char *path, const qk_geom_t *geom, int bits, const double *links,
                          qk_err_t *err) {
  qk_gauge_info_t info;
  qk_gauge_check_t check;
  int64_t reals = geom->local_volume * QK_GAUGE_SITE_REALS, differ = 0;
  double *back = qk_malloc((size_t)reals * sizeof *back);
  if (back == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory to read the file back");
  qk_status_t status = qk_gauge_probe(path, NULL, &info, err);
  if (status == QK_OK) status = qk_gauge_read(path, &info, geom, back, &check, NULL, NULL, err);
  for (int64_t i = 0; i < reals && status == QK_OK; i++) {
    double want = bits == 32 ? (float)links[i] : links[i];
    differ += memcmp(&want, &back[i], sizeof want) != 0;
  }
  if (status == QK_OK && differ > 0)
    status = qk_fail(err, QK_IO_ERROR, "%" PRId64 " numbers differ when read back", differ);
  qk_free(back);
  return status;
}

static void sync_folder(const char *path) {
  char folder[PATH_BYTES];
  const char *slash = strrchr(path, '/');
  snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path + 1),
           slash == NULL ? "." : path);
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

qk_status_t qk_gauge_write(const char *path, const char *format, int bits, const qk_geom_t *geom,
                           const double *links, qk_err_t *err) {
  bool ildg = strcmp(format, "ildg") == 0;
  char temp[PATH_BYTES];
  qk_gauge_check_t check;
  qk_gauge_info_t info = {.bits = bits, .layout = {.big_endian = true, .rows = 3}};
  info.layout.sum = ildg ? QK_GAUGE_SUM_SCIDAC : QK_GAUGE_SUM_NERSC;
  memcpy(info.dims, geom->global, sizeof info.dims);
  if (qk_comm_size(geom->comm) != 1)
    return qk_fail(err, QK_UNSUPPORTED, "%s: gauge files are written by a single rank", path);
  if (!ildg && strcmp(format, "nersc") != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "format = %s: ildg and nersc are written", format);
  if (bits != 32 && bits != 64)
    return qk_fail(err, QK_BAD_ARGUMENT, "bits = %d: 32 and 64 are written", bits);
  int n = snprintf(temp, sizeof temp, "%s.%ld.tmp", path, (long)getpid());
  if (n < 0 || (size_t)n >= sizeof temp)
    return qk_fail(err, QK_BAD_ARGUMENT, "path of %d bytes: the limit is %d", n, PATH_BYTES - 1);
  qk_status_t status = qk_gauge_measure(geom, links, &check, err);
  if (status != QK_OK) return status;
  int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "cannot create %s: %s", temp, strerror(errno));
  status = ildg ? put_ildg(fd, &info, geom->volume, links, err)
                : put_nersc(fd, &info, geom->volume, links, &check, err);
  if (status == QK_OK && fsync(fd) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: fsync: %s", temp, strerror(errno));
  if (close(fd) != 0 && status == QK_OK)
    status = qk_fail(err, QK_IO_ERROR, "%s: close: %s", temp, strerror(errno));
  if (status == QK_OK) status = verify(temp, geom, bits, links, err);
  if (status == QK_OK && rename(temp, path) != 0)
    status = qk_fail(err, QK_IO_ERROR, "cannot rename %s to %s: %s", temp, path, strerror(errno));
  if (status != QK_OK) {
    unlink(temp);
    return status;
  }
  sync_folder(path);
  return QK_OK;
}
