#include "tests/support/gauge_load.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/mem.h"

qk_status_t gauge_load(const char *path, const int dims_hint[4], gauge_load_t *g) {
  static const int grid[4] = {1, 1, 1, 1};
  *g = (gauge_load_t){0};
  qk_status_t status = qk_gauge_probe(path, dims_hint, &g->info, &g->err);
  if (status == QK_OK) status = qk_comm_self_create(&g->comm, &g->err);
  if (status == QK_OK) status = qk_comm_set_grid(g->comm, grid, &g->err);
  if (status == QK_OK) status = qk_geom_init(&g->geom, g->comm, g->info.dims, &g->err);
  if (status != QK_OK) return status;
  g->links = qk_malloc((size_t)g->geom.local_volume * 72 * sizeof(double));
  if (g->links == NULL) return qk_fail(&g->err, QK_NO_MEMORY, "no memory for the links");
  status = qk_gauge_read(path, &g->info, &g->geom, g->links, &g->check, NULL, NULL, &g->err);
  return status == QK_OK ? qk_gauge_judge(&g->info, &g->check, false, &g->err) : status;
}

void gauge_unload(gauge_load_t *g) {
  qk_free(g->links);
  qk_comm_destroy(g->comm);
  *g = (gauge_load_t){0};
}

void gauge_save(const char *path, const void *data, size_t n) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const char *p = data;
  while (fd >= 0 && n > 0) {
    ssize_t done = write(fd, p, n);
    if (done <= 0) abort();
    p += done;
    n -= (size_t)done;
  }
  if (fd < 0 || close(fd) != 0) abort();
}
