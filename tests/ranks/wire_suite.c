/*
 * Vectors in shared memory and the parts of the ranks (wire.h), under mpirun: `wire_suite RANKS`.
 * Every check runs twice: with all ranks on one host, and with the odd ranks made to believe that
 * they are on another, so that their parts go through rank 0.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/comm/comm_impl.h"
#include "daemon/engine/transfer/wire.h"

static int failures;

#define CHECK(expr)                                                                                \
  do {                                                                                             \
    if (!(expr)) {                                                                                 \
      failures++;                                                                                  \
      fprintf(stderr, "%s:%d: %s: failed on rank %d\n", __FILE__, __LINE__, #expr,                 \
              qk_comm_rank(comm));                                                                 \
    }                                                                                              \
  } while (0)

static char name[64];

/* All ranks come here before one goes on. */
static void meet(qk_comm_t *comm) {
  CHECK(qk_comm_agree(comm, QK_OK, NULL) == QK_OK);
}

/* Rank 0 makes the object with `bytes` bytes; all ranks leave together. */
static double *make(qk_comm_t *comm, size_t bytes) {
  double *v = NULL;
  if (qk_comm_rank(comm) == 0) {
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    v = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(v != MAP_FAILED);
    close(fd);
  }
  meet(comm);
  return v;
}

static void drop(qk_comm_t *comm, double *v, size_t bytes) {
  meet(comm);
  if (v == NULL) return;
  munmap(v, bytes);
  shm_unlink(name);
}

/* Number of real r of the global site, and the global site of a local one. */
static double value(int64_t site, int r) {
  return (double)(site * 24 + r) + 0.5;
}

static int64_t global_site(const qk_geom_t *g, int64_t local) {
  int64_t site = 0, stride = 1;
  for (int mu = 0; mu < 4; mu++) {
    site += (g->coord[mu] * g->lat.l[mu] + local % g->lat.l[mu]) * stride;
    local /= g->lat.l[mu];
    stride *= g->global[mu];
  }
  return site;
}

static void parts_are_read_and_written_in_place(qk_comm_t *comm, qk_wire_t *wire,
                                                const qk_geom_t *g) {
  size_t bytes = (size_t)g->volume * 24 * sizeof(double);
  double *v = make(comm, bytes), *part = malloc(qk_wire_part_bytes(wire, true));
  qk_segment_t segment;
  qk_err_t err = {0};
  if (v != NULL)
    for (int64_t i = 0; i < g->volume * 24; i++) v[i] = value(i / 24, (int)(i % 24));
  CHECK(qk_segment_open(wire, name, true, QK_FULL, true, &segment, &err) == QK_OK);
  CHECK(qk_segment_read(wire, &segment, part, &err) == QK_OK);
  int64_t wrong = 0;
  for (int64_t i = 0; i < g->local_volume; i++)
    for (int r = 0; r < 24; r++) wrong += part[i * 24 + r] != value(global_site(g, i), r);
  CHECK(wrong == 0);

  for (int64_t i = 0; i < g->local_volume * 24; i++) part[i] = -part[i];
  CHECK(qk_segment_write(wire, &segment, part, &err) == QK_OK);
  qk_segment_close(&segment);
  meet(comm);
  if (v != NULL) {
    wrong = 0;
    for (int64_t i = 0; i < g->volume * 24; i++) wrong += v[i] != -value(i / 24, (int)(i % 24));
    CHECK(wrong == 0);
  }
  free(part);
  drop(comm, v, bytes);
}

/* Sites of one parity in the order of all: the global site that stands at place k. */
static int64_t site_of_parity(const qk_geom_t *g, int64_t k, int odd) {
  const int64_t row = 2 * k / g->global[0];
  const int64_t y = row % g->global[1], z = row / g->global[1] % g->global[2];
  const int64_t t = row / g->global[1] / g->global[2];
  return 2 * k + ((y + z + t + odd) & 1);
}

static int parity_of_part(const qk_geom_t *g, int64_t local) {
  int64_t sum = 0;
  for (int mu = 0; mu < 4; mu++) {
    sum += g->coord[mu] * g->lat.l[mu] + local % g->lat.l[mu];
    local /= g->lat.l[mu];
  }
  return sum & 1;
}

static void parts_of_one_parity_are_read_and_written(qk_comm_t *comm, qk_wire_t *wire,
                                                     const qk_geom_t *g, int odd) {
  const size_t bytes = (size_t)g->volume * 12 * sizeof(double);
  double *v = make(comm, bytes), *part = malloc(qk_wire_part_bytes(wire, true));
  qk_segment_t segment;
  qk_err_t err = {0};
  int64_t wrong = 0;
  if (v != NULL)
    for (int64_t i = 0; i < g->volume * 12; i++)
      v[i] = value(site_of_parity(g, i / 24, odd), (int)(i % 24));
  CHECK(qk_segment_open(wire, name, true, QK_FULL, true, &segment, &err) == QK_BAD_ARGUMENT);
  CHECK(qk_segment_open(wire, name, true, odd ? QK_ODD : QK_EVEN, true, &segment, &err) == QK_OK);
  memset(part, 0x5a, qk_wire_part_bytes(wire, true));
  CHECK(qk_segment_read(wire, &segment, part, &err) == QK_OK);
  for (int64_t i = 0; i < g->local_volume * 24; i++) {
    const bool is = parity_of_part(g, i / 24) == odd;
    wrong += part[i] != (is ? value(global_site(g, i / 24), (int)(i % 24)) : 0);
    part[i] = is ? -part[i] : 7;
  }
  CHECK(qk_segment_write(wire, &segment, part, &err) == QK_OK);
  qk_segment_close(&segment);
  meet(comm);
  for (int64_t i = 0; v != NULL && i < g->volume * 12; i++)
    wrong += v[i] != -value(site_of_parity(g, i / 24, odd), (int)(i % 24));
  CHECK(wrong == 0);
  free(part);
  drop(comm, v, bytes);
}

static void wrong_names_and_sizes_are_refused_on_all_ranks(qk_comm_t *comm, qk_wire_t *wire,
                                                           const qk_geom_t *g) {
  size_t bytes = (size_t)g->volume * 24 * sizeof(float) - 1;
  qk_segment_t segment;
  qk_err_t err = {0};
  CHECK(qk_segment_open(wire, "/qk-no-such-object", true, QK_FULL, false, &segment, &err) ==
        QK_BAD_ARGUMENT);
  CHECK(strstr(err.text, "/qk-no-such-object") != NULL && segment.fd == -1);
  double *v = make(comm, bytes);
  err = (qk_err_t){0};
  CHECK(qk_segment_open(wire, name, false, QK_FULL, false, &segment, &err) == QK_BAD_ARGUMENT);
  CHECK(strstr(err.text, "bytes") != NULL && segment.fd == -1);
  drop(comm, v, bytes);
}

static void an_object_that_shrinks_is_an_error(qk_comm_t *comm, qk_wire_t *wire,
                                               const qk_geom_t *g) {
  size_t bytes = (size_t)g->volume * 24 * sizeof(float);
  double *v = make(comm, bytes);
  void *part = malloc(qk_wire_part_bytes(wire, false));
  qk_segment_t segment;
  qk_err_t err = {0};
  CHECK(qk_segment_open(wire, name, false, QK_FULL, false, &segment, &err) == QK_OK);
  meet(comm);
  if (v != NULL) {
    int fd = shm_open(name, O_RDWR, 0);
    CHECK(ftruncate(fd, 64) == 0);
    close(fd);
  }
  meet(comm);
  CHECK(qk_segment_read(wire, &segment, part, &err) == QK_IO_ERROR);
  CHECK(err.code == QK_IO_ERROR);
  qk_segment_close(&segment);
  free(part);
  drop(comm, v, bytes);
}

/* Whether real i of the part, of two vectors, is in the span that its vector is said to have. */
static bool in_span(qk_wire_t *wire, const qk_segment_t *segment, int64_t i) {
  size_t at, bytes;
  const size_t place = (size_t)i * sizeof(double);
  qk_segment_span(wire, segment, place >= qk_wire_vector_bytes(wire, true), &at, &bytes);
  return place >= at && place < at + bytes;
}

static void read_slab(qk_comm_t *comm, qk_wire_t *wire, const qk_geom_t *g, uint32_t first,
                      uint32_t count) {
  static const double BESIDE = -7;
  const int64_t vector = g->local_volume * 24;
  double *part = malloc(qk_wire_part_bytes(wire, true));
  const qk_input_t input = {name, true, QK_FULL, {true, first, count}};
  qk_segment_t segment;
  qk_err_t err = {0};
  int64_t wrong = 0, inside = 0;
  CHECK(qk_segment_open_input(wire, &input, &segment, &err) == QK_OK);
  for (int64_t i = 0; i < 2 * vector; i++) part[i] = BESIDE;
  CHECK(qk_segment_read(wire, &segment, part, &err) == QK_OK);
  for (int64_t i = 0; i < 2 * vector; i++) {
    const int64_t site = global_site(g, i % vector / 24), t = site / (g->volume / g->global[3]);
    const bool in = t >= first && t < (int64_t)first + count;
    inside += in;
    wrong += in != in_span(wire, &segment, i);
    if (in)
      wrong += part[i] != value(site + i / vector * g->volume, (int)(i % 24));
    else if (qk_comm_rank(comm) > 0)
      wrong += part[i] != BESIDE;
  }
  CHECK(wrong == 0);
  CHECK((qk_segment_pieces(wire, &segment) == 0) == (inside == 0));
  qk_segment_close(&segment);
  free(part);
}

static void no_more_than_the_slab_is_read(qk_comm_t *comm, qk_geom_t g) {
  const size_t bytes = 2 * (size_t)g.volume * 24 * sizeof(double);
  const uint32_t slices = (uint32_t)g.global[3];
  qk_wire_t *wire;
  qk_segment_t segment;
  qk_err_t err = {0};
  g.inner = 2;
  CHECK(qk_wire_create(&g, &wire, &err) == QK_OK);
  double *v = make(comm, bytes);
  for (int64_t i = 0; v != NULL && i < 2 * g.volume * 24; i++) v[i] = value(i / 24, (int)(i % 24));
  meet(comm);
  for (uint32_t first = 0; first <= slices; first++)
    for (uint32_t count = 0; first + count <= slices; count += count / 2 + 1)
      read_slab(comm, wire, &g, first, count);
  const qk_input_t beyond = {name, true, QK_FULL, {true, slices, 1}};
  CHECK(qk_segment_open_input(wire, &beyond, &segment, &err) == QK_BAD_ARGUMENT);
  CHECK(segment.fd == -1);
  drop(comm, v, bytes);
  qk_wire_destroy(wire);
}

static void run(qk_comm_t *comm, const int dims[4]) {
  qk_geom_t geom;
  qk_wire_t *wire;
  qk_err_t err = {0};
  int grid[4] = {0};
  CHECK(qk_comm_choose_grid(qk_comm_size(comm), dims, NULL, NULL, grid, &err) == QK_OK);
  CHECK(qk_comm_set_grid(comm, grid, &err) == QK_OK);
  CHECK(qk_geom_init(&geom, comm, dims, &err) == QK_OK);
  CHECK(qk_wire_create(&geom, &wire, &err) == QK_OK);
  parts_are_read_and_written_in_place(comm, wire, &geom);
  for (int odd = 0; odd < 2; odd++)
    parts_of_one_parity_are_read_and_written(comm, wire, &geom, odd);
  wrong_names_and_sizes_are_refused_on_all_ranks(comm, wire, &geom);
  an_object_that_shrinks_is_an_error(comm, wire, &geom);
  no_more_than_the_slab_is_read(comm, geom);
  qk_wire_destroy(wire);
}

int main(int argc, char **argv) {
  qk_comm_t *comm;
  qk_err_t err = {0};
  if (qk_comm_mpi_create(&argc, &argv, &comm, &err) != QK_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  int pid = (int)getpid();
  qk_comm_bcast(comm, &pid, sizeof pid, 0);
  snprintf(name, sizeof name, "/qk-wire-suite-%d", pid);
  CHECK(argc == 2 && qk_comm_size(comm) == atoi(argv[1]));
  int64_t before = qk_mem_bytes();
  for (int remote = 0; remote < 2; remote++) {
    comm->host = remote && comm->rank % 2 ? 1 : 0;
    run(comm, (int[]){4, 8, 8, 12});
    run(comm, (int[]){16, 8, 2, 2});
  }
  CHECK(qk_mem_bytes() == before);
  double total = failures;
  if (qk_comm_sum(comm, &total, 1) != QK_OK) total = 1;
  qk_comm_destroy(comm);
  return total > 0;
}
