/* gauge_read.c: the links of a file, each rank its own part. */
#include <inttypes.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/gauge/gauge_ahead.h"
#include "daemon/engine/gauge/gauge_format.h"

enum { PIECE = 8 << 20 }; /* bytes read at a time */

/* Sites in a row of the local lattice that also follow one another in the file. */
static int64_t run_length(const qk_lattice_t *lat) {
  int64_t run = lat->l[0];
  for (int mu = 1; mu < 4 && lat->l[mu - 1] == lat->global[mu - 1]; mu++) run *= lat->l[mu];
  return run;
}

static int64_t global_site(const qk_lattice_t *lat, int64_t local) {
  int64_t site = 0, stride = 1;
  for (int mu = 0; mu < 4; mu++) {
    site += (lat->offset[mu] + local % lat->l[mu]) * stride;
    local /= lat->l[mu];
    stride *= lat->global[mu];
  }
  return site;
}

/* The sites of this rank in pieces of so many; each piece in parts that follow one another in the
 * file. */
typedef struct sites {
  const qk_gauge_file_t *file;
  const qk_gauge_info_t *info;
  const qk_geom_t *geom;
  int64_t run, bytes, piece; /* sites in a row, bytes of a site, sites of a piece */
} sites_t;

static int64_t end_of(const sites_t *s, int64_t piece) {
  const int64_t end = (piece + 1) * s->piece;
  return end < s->geom->local_volume ? end : s->geom->local_volume;
}

/* Sites of the part that begins at local site n. */
static int64_t part_of(const sites_t *s, int64_t n, int64_t end) {
  const int64_t left = s->run - n % s->run;
  return left < end - n ? left : end - n;
}

static qk_status_t read_piece(const void *arg, int64_t piece, uint8_t *raw, qk_err_t *err) {
  const sites_t *s = arg;
  const int64_t end = end_of(s, piece);
  qk_status_t status = QK_OK;
  for (int64_t n = piece * s->piece, take; n < end && status == QK_OK; n += take) {
    take = part_of(s, n, end);
    const int64_t at = s->info->data_offset + global_site(&s->geom->lat, n) * s->bytes;
    status = qk_infile_read(&s->file->in, raw, take * s->bytes, at, err);
    raw += take * s->bytes;
  }
  return status;
}

static void decode_piece(const sites_t *s, int64_t piece, const uint8_t *raw, double *links,
                         qk_gauge_sum_t *sum) {
  const int64_t first = piece * s->piece, end = end_of(s, piece);
  for (int64_t n = first, take; n < end; n += take) {
    take = part_of(s, n, end);
    qk_gauge_sum_add(&s->info->layout, global_site(&s->geom->lat, n), take, s->bytes,
                     raw + (n - first) * s->bytes, sum);
  }
  qk_gauge_decode(s->info, 4 * (end - first), raw, links + first * QK_GAUGE_SITE_REALS);
}

static qk_status_t read_sites(const qk_gauge_file_t *file, const qk_gauge_info_t *info,
                              const qk_geom_t *geom, double *links, qk_gauge_sum_t *sum,
                              const qk_gauge_watch_t *watch, qk_err_t *err) {
  const int64_t volume = geom->local_volume, bytes = qk_gauge_site_bytes(info);
  sites_t s = {file, info, geom, run_length(&geom->lat), bytes, PIECE / bytes};
  if (volume < s.piece) s.piece = volume;
  const int64_t pieces = (volume + s.piece - 1) / s.piece;
  qk_gauge_ahead_t *ahead = NULL;
  qk_status_t status = qk_gauge_ahead_begin(read_piece, &s, pieces, s.piece * bytes, &ahead, err);
  for (int64_t k = 0; k < pieces && status == QK_OK; k++) {
    const uint8_t *raw;
    status = qk_gauge_ahead_next(ahead, &raw, err);
    if (status != QK_OK) break;
    const double start = qk_clock_now();
    decode_piece(&s, k, raw, links, sum);
    watch->times->decode += qk_clock_now() - start;
    qk_gauge_watch(watch, end_of(&s, k) * bytes, volume * bytes);
  }
  watch->times->read += qk_gauge_ahead_end(ahead);
  return status;
}

static qk_status_t read_local(const char *path, const qk_gauge_info_t *info, const qk_geom_t *geom,
                              double *links, qk_gauge_sum_t *sum, const qk_gauge_watch_t *watch,
                              qk_err_t *err) {
  for (int mu = 0; mu < 4; mu++) {
    if (info->dims[mu] == geom->global[mu]) continue;
    return qk_fail(err, QK_BAD_GEOMETRY, "extent of %c = %d, but the lattice has %d", "xyzt"[mu],
                   info -> dims[mu], geom -> global[mu]);
  }
  if (info->layout.order == QK_GAUGE_UNIT || info->layout.order == QK_GAUGE_WEAK) {
    qk_gauge_builtin_fill(info, geom, links);
    return QK_OK;
  }
  qk_gauge_file_t file = {.dims_hint = NULL};
  qk_status_t status = qk_gauge_is_memory(path) ? qk_gauge_memory_open(path, &file, err)
                                                : qk_infile_open(path, &file.in, err);
  if (status != QK_OK) return status;
  status = info->layout.order == QK_GAUGE_OPENQCD
               ? qk_gauge_openqcd_read(&file, info, geom, links, watch, err)
               : read_sites(&file, info, geom, links, sum, watch, err);
  qk_infile_close(&file.in);
  return status;
}

static qk_status_t fail_sum(const qk_gauge_info_t *info, const qk_gauge_check_t *check,
                            const uint32_t found[2], qk_err_t *err) {
  const uint32_t *stated = info->layout.stated;
  return qk_fail(err, QK_BAD_CHECKSUM,
                 "checksum mismatch: the file states %08" PRIx32 " %08" PRIx32
                 ", its links give %08" PRIx32 " %08" PRIx32
                 " (plaquette %.6g; largest deviation of a link from SU(3) %.2g%s)",
                 stated[0], stated[1], found[0], found[1], check->plaquette, check->unitarity,
                 qk_gauge_judge(info, check, true, NULL) == QK_NOT_UNITARY ? ": not unitary" : "");
}

/* The links, what they are, and whether their checksum is that of the file. */
static qk_status_t read_and_check(const char *path, const qk_gauge_info_t *info,
                                  const qk_geom_t *geom, double *links, qk_gauge_check_t *check,
                                  qk_progress_fn *progress, void *arg, qk_err_t *err) {
  const int64_t bytes = geom->local_volume * QK_GAUGE_SITE_REALS * (int64_t)sizeof *links;
  qk_gauge_sum_t sum = {0};
  qk_gauge_times_t times = {0};
  const qk_gauge_watch_t watch = {progress, arg, &times};
  uint32_t found[2];
  qk_status_t status = read_local(path, info, geom, links, &sum, &watch, err);
  status = qk_comm_agree(geom->comm, status, err);
  if (status != QK_OK) return status;
  status = qk_comm_xor_u32(geom->comm, sum.x, 2);
  if (status != QK_OK) return status;
  status = qk_comm_sum_u64(geom->comm, &sum.sum, 1);
  if (status != QK_OK) return status;
  if (progress != NULL) progress(arg, "check", 0, bytes);
  status = qk_gauge_measure(geom, links, check, err);
  check->times = times;
  if (progress != NULL) progress(arg, "check", bytes, bytes);
  if (status != QK_OK || !info->has_checksum || info->checksum_fault[0]) return status;
  qk_gauge_sum_words(&info->layout, &sum, found);
  check->checksum_ok = memcmp(found, info->layout.stated, sizeof found) == 0;
  if (check->checksum_ok || info->ignore_checksum) return QK_OK;
  return fail_sum(info, check, found, err);
}

qk_status_t qk_gauge_read(const char *path, const qk_gauge_info_t *info, const qk_geom_t *geom,
                          double *links, qk_gauge_check_t *check, qk_progress_fn *progress,
                          void *arg, qk_err_t *err) {
  qk_err_t cause = {0}; /* one to write into, also where the caller wants none */
  if (info->checksum_fault[0] && !info->ignore_checksum)
    return qk_fail(err, QK_BAD_FORMAT, "%s: %s", path, info->checksum_fault);
  qk_status_t status = read_and_check(path, info, geom, links, check, progress, arg, &cause);
  if (status == QK_OK) return QK_OK;
  qk_err_prefix(&cause, "%s", path);
  return qk_fail(err, status, "%s", cause.text);
}
