/* gauge_read.c: the links of a file, each rank its own part. */
#include <inttypes.h>
#include <string.h>

#include "daemon/base/mem.h"
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

static qk_status_t read_sites(const qk_gauge_file_t *file, const qk_gauge_info_t *info,
                              const qk_geom_t *geom, double *links, qk_gauge_sum_t *sum,
                              qk_progress_fn *progress, void *arg, qk_err_t *err) {
  int64_t run = run_length(&geom->lat), bytes = qk_gauge_site_bytes(info);
  int64_t piece = run < PIECE / bytes ? run : PIECE / bytes, volume = geom->local_volume, last = 0;
  uint8_t *raw = qk_malloc((size_t)(piece * bytes));
  if (raw == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory to read %" PRId64 " sites", piece);
  qk_status_t status = QK_OK;
  for (int64_t n = 0, take; n < volume && status == QK_OK; n += take) {
    int64_t left = run - n % run, site = global_site(&geom->lat, n);
    take = left < piece ? left : piece;
    status = qk_gauge_file_read(file, raw, take * bytes, info->data_offset + site * bytes, err);
    if (status != QK_OK) break;
    qk_gauge_sum_add(&info->layout, site, take, bytes, raw, sum);
    qk_gauge_decode(info, 4 * take, raw, links + n * QK_GAUGE_SITE_REALS);
    bool due = (n + take - last) * bytes >= PIECE || n + take == volume;
    if (progress == NULL || !due) continue;
    last = n + take;
    progress(arg, "read", last * bytes, volume * bytes);
  }
  qk_free(raw);
  return status;
}

static qk_status_t read_local(const char *path, const qk_gauge_info_t *info, const qk_geom_t *geom,
                              double *links, qk_gauge_sum_t *sum, qk_progress_fn *progress,
                              void *arg, qk_err_t *err) {
  for (int mu = 0; mu < 4; mu++) {
    if (info->dims[mu] == geom->global[mu]) continue;
    return qk_fail(err, QK_BAD_GEOMETRY, "extent of %c = %d, but the lattice has %d", "xyzt"[mu],
                   info -> dims[mu], geom -> global[mu]);
  }
  if (info->layout.order == QK_GAUGE_UNIT || info->layout.order == QK_GAUGE_WEAK) {
    qk_gauge_builtin_fill(info, geom, links);
    return QK_OK;
  }
  qk_gauge_file_t file;
  qk_status_t status = qk_gauge_file_open(path, &file, err);
  if (status != QK_OK) return status;
  status = info->layout.order == QK_GAUGE_OPENQCD
               ? qk_gauge_openqcd_read(&file, info, geom, links, progress, arg, err)
               : read_sites(&file, info, geom, links, sum, progress, arg, err);
  qk_gauge_file_close(&file);
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
                 qk_gauge_judge(info, check, NULL) == QK_NOT_UNITARY ? ": not unitary" : "");
}

/* The links, what they are, and whether their checksum is that of the file. */
static qk_status_t read_and_check(const char *path, const qk_gauge_info_t *info,
                                  const qk_geom_t *geom, double *links, qk_gauge_check_t *check,
                                  qk_progress_fn *progress, void *arg, qk_err_t *err) {
  const int64_t bytes = geom->local_volume * QK_GAUGE_SITE_REALS * (int64_t)sizeof *links;
  qk_gauge_sum_t sum = {0};
  uint32_t found[2];
  qk_status_t status = read_local(path, info, geom, links, &sum, progress, arg, err);
  status = qk_comm_agree(geom->comm, status, err);
  if (status != QK_OK) return status;
  status = qk_comm_xor_u32(geom->comm, sum.x, 2);
  if (status != QK_OK) return status;
  status = qk_comm_sum_u64(geom->comm, &sum.sum, 1);
  if (status != QK_OK) return status;
  if (progress != NULL) progress(arg, "check", 0, bytes);
  status = qk_gauge_measure(geom, links, check, err);
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
