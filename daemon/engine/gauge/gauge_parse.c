/* gauge_parse.c: what header parsers share: extents, and sizes against the file. */
#include <inttypes.h>

#include "daemon/engine/gauge/gauge_format.h"

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
