#include "tests/fuzz/fuzz_gauge.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

static void read_links(int fd, const qk_gauge_info_t *info) {
  static const int grid[4] = {1, 1, 1, 1};
  char path[64];
  qk_comm_t *comm = NULL;
  qk_geom_t geom;
  qk_gauge_check_t check;
  qk_err_t err = {0};
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  QK_ASSERT(qk_comm_self_create(&comm, NULL) == QK_OK);
  QK_ASSERT(qk_comm_set_grid(comm, grid, NULL) == QK_OK);
  QK_ASSERT(qk_geom_init(&geom, comm, info->dims, NULL) == QK_OK);
  double *links = qk_malloc((size_t)geom.volume * QK_GAUGE_SITE_REALS * sizeof *links);
  QK_ASSERT(links != NULL);
  qk_status_t status = qk_gauge_read(path, info, &geom, links, &check, NULL, NULL, &err);
  if (info->checksum_fault[0]) {
    QK_ASSERT(status == QK_BAD_FORMAT);
  } else {
    QK_ASSERT(status == QK_OK || status == QK_BAD_CHECKSUM);
  }
  if (status != QK_OK) { /* nothing but the checksum was wrong */
    qk_gauge_info_t ignored = *info;
    ignored.ignore_checksum = true;
    status = qk_gauge_read(path, &ignored, &geom, links, &check, NULL, NULL, &err);
    QK_ASSERT(status == QK_OK && !check.checksum_ok);
  }
  qk_gauge_judge(info, &check, false, &err);
  qk_free(links);
  qk_comm_destroy(comm);
}

int fuzz_gauge(const uint8_t *data, size_t size, const int dims_hint[4], qk_gauge_probe_fn *probe) {
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  QK_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  qk_gauge_file_t file = {.in = {.fd = fd, .size = (int64_t)size}, .dims_hint = dims_hint};
  qk_gauge_info_t info = {.bits = 64, .layout.rows = 3};
  qk_err_t err = {0};
  qk_status_t status = probe(&file, &info, &err);
  QK_ASSERT(status == err.code && (status == QK_OK || err.text[0] != '\0'));
  if (status == QK_OK) {
    QK_ASSERT(info.data_offset >= 0 && info.data_bytes > 0);
    QK_ASSERT(info.data_offset + info.data_bytes <= (int64_t)size);
    read_links(fd, &info);
  }
  QK_ASSERT(qk_mem_bytes() == 0);
  close(fd);
  return 0;
}
