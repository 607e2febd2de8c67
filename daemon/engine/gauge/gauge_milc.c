/*
 * gauge_milc.c: MILC version 5 files.
 *
 * 96 bytes, then the links, single precision, site by site with x fastest, mu = x,y,z,t, all in the
 * byte order of the writer, which the magic number shows:
 *   0 int32 20103; 4 int32 extents x,y,z,t; 20 char[64] date; 84 int32 order of sites (0: natural);
 *   88 uint32 sum29; 92 uint32 sum31: xor over all 32-bit words i of the links of the word rotated
 *   left by i mod 29 and i mod 31.
 */
#include "daemon/base/formats/bytes.h"
#include "daemon/engine/gauge/gauge_format.h"

#include <inttypes.h>
#include <stdio.h>

enum { MILC_MAGIC = 20103, MILC_HEADER = 96 };

bool qk_gauge_milc_is(const uint8_t head[QK_GAUGE_HEAD], int64_t bytes) {
  (void)bytes;
  return qk_bytes_u32(head, true) == MILC_MAGIC || qk_bytes_u32(head, false) == MILC_MAGIC;
}

qk_status_t qk_gauge_milc_probe(const qk_gauge_file_t *file, qk_gauge_info_t *info, qk_err_t *err) {
  uint8_t head[MILC_HEADER];
  qk_status_t status = qk_infile_read(&file->in, head, sizeof head, 0, err);
  if (status != QK_OK) return status;
  bool big = qk_bytes_u32(head, true) == MILC_MAGIC;
  if (!big && qk_bytes_u32(head, false) != MILC_MAGIC)
    return qk_fail(err, QK_BAD_FORMAT, "no MILC magic number %d", MILC_MAGIC);
  uint32_t order = qk_bytes_u32(head + 84, big);
  if (order != 0) {
    return qk_fail(err, QK_UNSUPPORTED,
                   "MILC file with site order %" PRIu32 ": only 0 (natural) is read", order);
  }
  int64_t dims[4];
  for (int mu = 0; mu < 4; mu++) dims[mu] = (int32_t)qk_bytes_u32(head + 4 + 4 * mu, big);
  status = qk_gauge_set_dims(dims, info, err);
  if (status != QK_OK) return status;
  snprintf(info->format, sizeof info->format, "MILC v5");
  info->bits = 32;
  info->has_checksum = true;
  info->layout = (qk_gauge_layout_t){
      .order = QK_GAUGE_SITES,
      .sum = QK_GAUGE_SUM_MILC,
      .stated = {qk_bytes_u32(head + 88, big), qk_bytes_u32(head + 92, big)},
      .big_endian = big,
      .rows = 3,
  };
  return qk_gauge_set_data(MILC_HEADER, file->in.size - MILC_HEADER, info, err);
}
