#include "daemon/engine/gauge/clover_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 256 };

/* What the text says. */
typedef struct place {
  char name[PATH_ROOM];
  int bits, dims[4];
} place_t;

static qk_status_t read_text(const char *path, place_t *place, qk_err_t *err) {
  char form[4], dims[64];
  if (strlen(path) >= PATH_ROOM ||
      sscanf(path, "memory:%255[^:]:%3[^:]:%63[0-9x]", place->name, form, dims) != 3 ||
      (strcmp(form, "f32") != 0 && strcmp(form, "f64") != 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "a clover term in memory is memory:/NAME:f32|f64:XxYxZxT");
  place->bits = strcmp(form, "f32") == 0 ? 32 : 64;
  return qk_geom_parse_dims(dims, place->dims, err);
}

static qk_status_t check_dims(const place_t *place, const qk_geom_t *geom, qk_err_t *err) {
  const int *d = place->dims, *g = geom->global;
  if (memcmp(d, g, sizeof place->dims) == 0) return QK_OK;
  return qk_fail(err, QK_BAD_GEOMETRY,
                 "the clover term is of %dx%dx%dx%d, and the links are of %dx%dx%dx%d", d[0], d[1],
                 d[2], d[3], g[0], g[1], g[2], g[3]);
}

static qk_status_t map(const place_t *place, size_t bytes, const uint8_t **data, qk_err_t *err) {
  struct stat st;
  const int fd = shm_open(place->name, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0 || fstat(fd, &st) != 0) {
    qk_fail(err, QK_IO_ERROR, "cannot open: %s", strerror(errno));
  } else if ((uint64_t)st.st_size != bytes) {
    qk_fail(err, QK_BAD_GEOMETRY, "a clover term of %lld bytes: %zu are needed",
            (long long)st.st_size, bytes);
  } else {
    void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED) {
      close(fd);
      *data = p;
      return QK_OK;
    }
    qk_fail(err, QK_IO_ERROR, "cannot map: %s", strerror(errno));
  }
  const qk_status_t status = err->code;
  if (fd >= 0) close(fd);
  return status;
}

static int64_t global_site(const qk_lattice_t *lat, int64_t local) {
  int64_t site = 0, stride = 1;
  for (int mu = 0; mu < 4; mu++, stride *= lat->global[mu - 1]) {
    site += (lat->offset[mu] + local % lat->l[mu]) * stride;
    local /= lat->l[mu];
  }
  return site;
}

static void copy(const uint8_t *data, int bits, const qk_geom_t *geom, double *term,
                 qk_clover_term_sum_t *sum) {
  const size_t bytes = (size_t)QK_CLOVER_TERM_SITE * (size_t)bits / 8;
  for (int64_t n = 0; n < geom->local_volume; n++, term += QK_CLOVER_TERM_SITE) {
    const int64_t global = global_site(&geom->lat, n);
    qk_clover_term_widen(data + (size_t)global * bytes, bits, term);
    qk_clover_term_add(term, (uint64_t)global, sum);
  }
}

static qk_status_t read_local(const char *path, const qk_geom_t *geom, double *term,
                              qk_clover_term_sum_t *sum, qk_err_t *err) {
  place_t place;
  const uint8_t *data = NULL;
  qk_status_t status = read_text(path, &place, err);
  if (status != QK_OK) return status;
  status = check_dims(&place, geom, err);
  if (status != QK_OK) return status;
  const size_t bytes = (size_t)geom->volume * QK_CLOVER_TERM_SITE * (size_t)place.bits / 8;
  status = map(&place, bytes, &data, err);
  if (status != QK_OK) return status;
  copy(data, place.bits, geom, term, sum);
  munmap((void *)(uintptr_t)data, bytes);
  if (sum->bad == 0) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "the clover term is not finite: number %d of site %" PRIu64,
                 sum->number, sum->site);
}

static qk_status_t add_up(qk_comm_t *comm, qk_clover_term_sum_t *sum) {
  const qk_status_t status = qk_comm_sum_u64(comm, &sum->digest, 1);
  if (status != QK_OK) return status;
  return qk_comm_sum(comm, &sum->squares, 1);
}

qk_status_t qk_clover_memory_read(const char *path, uint64_t digest, const qk_geom_t *geom,
                                  double *term, qk_clover_term_sum_t *sum, qk_err_t *err) {
  qk_err_t cause = {0}; /* one to write into, also where the caller wants none */
  qk_clover_term_sum_t all = {0};
  qk_status_t status = read_local(path, geom, term, &all, &cause);
  status = qk_comm_agree(geom->comm, status, &cause);
  if (status != QK_OK) return qk_fail(err, status, "%s", cause.text);
  status = add_up(geom->comm, &all);
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not add up a clover term");
  if (all.digest != digest)
    return qk_fail(err, QK_BAD_CHECKSUM,
                   "the clover term has the digest %016" PRIx64 ", and %016" PRIx64 " is wanted",
                   all.digest, digest);
  *sum = all;
  return QK_OK;
}
