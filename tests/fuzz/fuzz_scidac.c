/*
 * fuzz_scidac.c: SciDAC files of propagators and fermions. What is accepted is read to the end, and
 * its checksums must have been right; nothing is held by what a header says.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/files/scidac.h"
#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Texts end within their room, and numbers are those of a file of this size. */
static void check(const qk_scidac_in_t *f, size_t size) {
  const qk_h5meta_t *m = qk_scidac_meta(f);
  const qk_h5column_t *c = qk_scidac_columns(f);
  size_t sites = 1;
  for (int mu = 0; mu < 4; mu++) {
    QK_ASSERT(m->dims[mu] >= 1 && m->dims[mu] <= QK_H5FILE_MAX_EXTENT);
    sites *= (size_t)m->dims[mu];
  }
  QK_ASSERT(sites * 96 * (size_t)qk_scidac_nrhs(f) <= size);
  QK_ASSERT(strcmp(m->basis, "degrand-rossi") == 0 && m->site_reals == QK_H5_SITE_REALS);
  QK_ASSERT(memchr(m->action, 0, sizeof m->action) && memchr(m->gauge, 0, sizeof m->gauge));
  for (int64_t i = 0; i < qk_scidac_nrhs(f); i++) {
    QK_ASSERT(memchr(c[i].source, 0, sizeof c[i].source) != NULL);
    QK_ASSERT(!isinf(c[i].true_residual) && c[i].iterations >= 0);
  }
  double *field = malloc(sites * 24 * sizeof *field);
  QK_ASSERT(field != NULL);
  for (int64_t i = 0; i < qk_scidac_nrhs(f); i++)
    QK_ASSERT(qk_scidac_read(f, i, i % 2 ? 32 : 64, field, NULL) == QK_OK);
  free(field);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  char path[64];
  qk_scidac_in_t *f = NULL;
  qk_err_t err = {0};
  QK_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const qk_status_t status = qk_scidac_open(path, &f, &err);
  QK_ASSERT(status == err.code && (status == QK_OK || strstr(err.text, path) == err.text));
  if (status == QK_OK) check(f, size);
  qk_scidac_close(f);
  QK_ASSERT(qk_mem_bytes() == 0);
  close(fd);
  return 0;
}
