#include "daemon/engine/transfer/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/mem.h"

enum { REALS_MAX = 24, TAG_PART = 900 };

struct qk_wire {
  const qk_geom_t *geom;
  bool reaches;     /* this rank is on the host of rank 0 */
  bool local;       /* all are */
  uint64_t *remote; /* [ranks]: 1 for those that are not */
};

static size_t site_bytes(const qk_geom_t *geom, bool is_double) {
  return (size_t)qk_geom_wire_reals(geom) * (is_double ? sizeof(double) : sizeof(float));
}

static int vectors(const qk_wire_t *wire) {
  return wire->geom->inner > 1 ? wire->geom->inner : 1;
}

size_t qk_wire_vector_bytes(const qk_wire_t *wire, bool is_double) {
  return (size_t)wire->geom->local_volume * site_bytes(wire->geom, is_double);
}

size_t qk_wire_part_bytes(const qk_wire_t *wire, bool is_double) {
  return (size_t)vectors(wire) * qk_wire_vector_bytes(wire, is_double);
}

qk_status_t qk_wire_create(const qk_geom_t *geom, qk_wire_t **wire, qk_err_t *err) {
  int size = qk_comm_size(geom->comm), rank = qk_comm_rank(geom->comm);
  qk_wire_t *w = qk_calloc(1, sizeof *w);
  uint64_t *remote = qk_calloc((size_t)size, sizeof *remote);
  qk_status_t status = QK_OK;
  if (w == NULL || remote == NULL)
    status = qk_fail(err, QK_NO_MEMORY, "no memory for a table of %d ranks", size);
  status = qk_comm_agree(geom->comm, status, err);
  if (status != QK_OK) goto free_memory;

  w->geom = geom;
  w->remote = remote;
  w->reaches = qk_comm_host(geom->comm) == 0;
  remote[rank] = !w->reaches;
  status = qk_comm_sum_u64(geom->comm, remote, size);
  if (status != QK_OK) {
    qk_fail(err, status, "the ranks could not exchange their hosts");
    goto free_memory;
  }
  w->local = true;
  for (int i = 0; i < size; i++) w->local = w->local && remote[i] == 0;
  *wire = w;
  return QK_OK;

free_memory:
  qk_free(remote);
  qk_free(w);
  return status;
}

void qk_wire_destroy(qk_wire_t *wire) {
  if (wire == NULL) return;
  qk_free(wire->remote);
  qk_free(wire);
}

bool qk_wire_is_local(const qk_wire_t *wire) {
  return wire->local;
}

static qk_status_t open_here(const char *name, const char *what, int64_t want, bool writable,
                             int *fd, qk_err_t *err) {
  struct stat st;
  int f = shm_open(name, writable ? O_RDWR : O_RDONLY, 0);
  if (f < 0) return qk_fail(err, QK_BAD_ARGUMENT, "shared memory '%s': %s", name, strerror(errno));
  if (fstat(f, &st) != 0) {
    qk_fail(err, QK_BAD_ARGUMENT, "shared memory '%s': %s", name, strerror(errno));
  } else if (st.st_size != want) {
    qk_fail(err, QK_BAD_ARGUMENT, "shared memory '%s' has %lld bytes: %s has %lld", name,
            (long long)st.st_size, what, (long long)want);
  } else {
    *fd = f;
    return QK_OK;
  }
  close(f);
  return QK_BAD_ARGUMENT;
}

static qk_status_t open_segment(qk_wire_t *wire, const char *name, bool is_double,
                                qk_subset_t parity, int count, bool writable, qk_segment_t *segment,
                                qk_err_t *err) {
  qk_status_t status = QK_OK;
  const bool half = parity != QK_FULL;
  *segment = (qk_segment_t){.fd = -1, .is_double = is_double, .parity = parity};
  int64_t bytes =
      count * vectors(wire) * wire->geom->volume * (int64_t)site_bytes(wire->geom, is_double);
  if (half && vectors(wire) > 1)
    return qk_fail(err, QK_UNSUPPORTED, "fields of one parity: not of several vectors");
  if (half) bytes /= 2;
  if (wire->reaches)
    status = open_here(name, half ? "a field of one parity" : "a field", bytes, writable,
                       &segment->fd, err);
  status = qk_comm_agree(wire->geom->comm, status, err);
  if (status != QK_OK) qk_segment_close(segment);
  return status;
}

qk_status_t qk_segment_open(qk_wire_t *wire, const char *name, bool is_double, qk_subset_t parity,
                            bool writable, qk_segment_t *segment, qk_err_t *err) {
  return open_segment(wire, name, is_double, parity, 1, writable, segment, err);
}

qk_status_t qk_segment_open_many(qk_wire_t *wire, const char *name, bool is_double, int count,
                                 bool writable, qk_segment_t *segment, qk_err_t *err) {
  return open_segment(wire, name, is_double, QK_FULL, count, writable, segment, err);
}

qk_status_t qk_segment_open_input(qk_wire_t *wire, const qk_input_t *input, qk_segment_t *segment,
                                  qk_err_t *err) {
  const qk_slab_t *slab = &input->slab;
  const int64_t end = (int64_t)slab->first + slab->count, slices = wire->geom->global[3];
  if (slab->partial && end > slices) {
    *segment = (qk_segment_t){.fd = -1};
    return qk_fail(err, QK_BAD_ARGUMENT, "slab of %u time slices from %u on: the lattice has %lld",
                   slab->count, slab->first, (long long)slices);
  }
  const qk_status_t status =
      qk_segment_open(wire, input->name, input->is_double, input->parity, false, segment, err);
  if (status == QK_OK) segment->slab = *slab;
  return status;
}

void qk_segment_close(qk_segment_t *segment) {
  if (segment->fd >= 0) close(segment->fd);
  segment->fd = -1;
}

static qk_status_t move_bytes(int fd, char *buf, size_t bytes, off_t at, bool write,
                              qk_err_t *err) {
  while (bytes > 0) {
    ssize_t n = write ? pwrite(fd, buf, bytes, at) : pread(fd, buf, bytes, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ENOSPC)
      return qk_fail(err, QK_BUSY,
                     "/dev/shm is full (byte %lld of an object): give it more room, or lower "
                     "--max-memory",
                     (long long)at);
    if (n < 0)
      return qk_fail(err, QK_IO_ERROR, "shared memory, byte %lld: %s", (long long)at,
                     strerror(errno));
    if (n == 0) return qk_fail(err, QK_IO_ERROR, "shared memory ends at byte %lld", (long long)at);
    buf += n;
    at += n;
    bytes -= (size_t)n;
  }
  return QK_OK;
}

/* A piece: the longest run of sites that are contiguous in the object and in a part, at most a
 * time slice: directions up to the first one that is split. */
typedef struct run {
  int last; /* the direction that it ends with */
  int64_t sites;
} run_t;

static run_t run_of(const qk_geom_t *geom) {
  run_t run = {.sites = geom->lat.l[0]};
  while (run.last < 2 && geom->grid[run.last] == 1) run.sites *= geom->lat.l[++run.last];
  return run;
}

static int64_t pieces_of_vector(const qk_geom_t *geom) {
  return geom->local_volume / run_of(geom).sites;
}

/* ---- the slab -------------------------------------------------------------------------------- */

/* Time slices [begin, end) of a part. */
typedef struct slices {
  int begin, end;
} slices_t;

/* Of the slab, on the rank at coord. */
static slices_t local_slices(const qk_geom_t *geom, const int coord[4],
                             const qk_segment_t *segment) {
  const qk_slab_t *slab = &segment->slab;
  const int64_t extent = geom->lat.l[3], origin = coord[3] * extent;
  if (!slab->partial) return (slices_t){0, (int)extent};
  int64_t begin = (int64_t)slab->first - origin, end = begin + slab->count;
  if (begin < 0) begin = 0;
  if (end > extent) end = extent;
  return begin < end ? (slices_t){(int)begin, (int)end} : (slices_t){0, 0};
}

static int64_t pieces_of_slice(const qk_geom_t *geom) {
  return pieces_of_vector(geom) / geom->lat.l[3];
}

static int64_t pieces_at(const qk_wire_t *wire, const int coord[4], const qk_segment_t *segment) {
  const slices_t s = local_slices(wire->geom, coord, segment);
  return vectors(wire) * (s.end - s.begin) * pieces_of_slice(wire->geom);
}

int64_t qk_segment_pieces(const qk_wire_t *wire, const qk_segment_t *segment) {
  return pieces_at(wire, wire->geom->coord, segment);
}

static void span_at(const qk_wire_t *wire, const int coord[4], const qk_segment_t *segment,
                    int vector, size_t *at, size_t *bytes) {
  const slices_t s = local_slices(wire->geom, coord, segment);
  const size_t whole = qk_wire_vector_bytes(wire, segment->is_double);
  const size_t slice = whole / (size_t)wire->geom->lat.l[3];
  *at = (size_t)vector * whole + (size_t)s.begin * slice;
  *bytes = (size_t)(s.end - s.begin) * slice;
}

void qk_segment_span(const qk_wire_t *wire, const qk_segment_t *segment, int vector, size_t *at,
                     size_t *bytes) {
  span_at(wire, wire->geom->coord, segment, vector, at, bytes);
}

/* Of all pieces of the part that which is number i of the slab. */
static int64_t piece_of_part(const qk_geom_t *geom, const int coord[4], const qk_segment_t *segment,
                             int64_t i) {
  const slices_t s = local_slices(geom, coord, segment);
  const int64_t slice = pieces_of_slice(geom), count = (s.end - s.begin) * slice;
  return i / count * pieces_of_vector(geom) + s.begin * slice + i % count;
}

/* ---- one parity ------------------------------------------------------------------------------
 *
 * A row of x has half as many sites in the object, beginning with the first of its parity, which is
 * its site 0 or 1. */

/* Of a piece that begins at the global site `at`, with its rows of x. */
typedef struct rows {
  int64_t sites, length; /* of the whole lattice: in all, in a row */
  int32_t extent[3];     /* local */
  int at[4];
  int first; /* site of row 0 if y + z + t is even */
} rows_t;

static int first_site(const rows_t *r, int64_t row) {
  const int64_t y = row % r->extent[1], z = row / r->extent[1];
  return (int)((r->first + r->at[1] + y + r->at[2] + z + r->at[3]) & 1);
}

/* From the second half of `to`, where those of the parity stand, to their places; 0 elsewhere. No
 * place is behind the site that comes next. */
static void spread(const rows_t *r, char *to, size_t site) {
  char one[REALS_MAX * sizeof(double)];
  for (int64_t k = 0; k < r->sites / 2; k++) {
    const int first = first_site(r, 2 * k / r->length);
    memcpy(one, to + (size_t)(r->sites / 2 + k) * site, site);
    memset(to + (size_t)(2 * k + 1 - first) * site, 0, site);
    memcpy(to + (size_t)(2 * k + first) * site, one, site);
  }
}

/* The other way, to the first half. */
static void gather(const rows_t *r, char *part, size_t site) {
  for (int64_t k = 0; k < r->sites / 2; k++)
    memmove(part + (size_t)k * site,
            part + (size_t)(2 * k + first_site(r, 2 * k / r->length)) * site, site);
}

static qk_status_t move_half(const qk_geom_t *geom, const qk_segment_t *segment, const rows_t *r,
                             int64_t site, char *part, bool write, qk_err_t *err) {
  const size_t bytes = site_bytes(geom, segment->is_double), n = (size_t)(r->sites / 2) * bytes;
  const off_t at = site / 2 * (off_t)bytes;
  if (write) {
    gather(r, part, bytes);
    return move_bytes(segment->fd, part, n, at, true, err);
  }
  qk_status_t status = move_bytes(segment->fd, part + n, n, at, false, err);
  if (status == QK_OK) spread(r, part, bytes);
  return status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Piece number `piece` of the slab, in the part of the rank at coord. vectors: of a right-hand
 * side. */
static qk_status_t move_piece(const qk_geom_t *geom, int vectors, const int coord[4],
                              const qk_segment_t *segment, int64_t piece, char *part, bool write,
                              qk_err_t *err) {
  const int64_t i = piece_of_part(geom, coord, segment, piece);
  const int32_t *l = geom->lat.l;
  const run_t run = run_of(geom);
  const size_t bytes = (size_t)run.sites * site_bytes(geom, segment->is_double);
  const int64_t n = pieces_of_vector(geom);
  int64_t rest = i % n, stride = 1,
          site = ((int64_t)segment->first * vectors + i / n) * geom->volume;
  rows_t rows = {.sites = run.sites,
                 .length = l[0],
                 .extent = {l[0], l[1], l[2]},
                 .first = segment->parity == QK_ODD};
  for (int mu = 0; mu < 4; mu++) {
    int64_t x = (int64_t)coord[mu] * l[mu];
    if (mu > run.last) {
      x += rest % l[mu];
      rest /= l[mu];
    }
    site += x * stride;
    stride *= geom->global[mu];
    rows.at[mu] = (int)x;
  }
  if (segment->parity != QK_FULL)
    return move_half(geom, segment, &rows, site, part + (size_t)i * bytes, write, err);
  off_t at = site * (off_t)site_bytes(geom, segment->is_double);
  return move_bytes(segment->fd, part + (size_t)i * bytes, bytes, at, write, err);
}

qk_status_t qk_segment_move_piece(const qk_wire_t *wire, const qk_segment_t *segment, int64_t piece,
                                  void *part, bool write, qk_err_t *err) {
  return move_piece(wire->geom, vectors(wire), wire->geom->coord, segment, piece, part, write, err);
}

/* The part of the rank at coord. */
static qk_status_t move_part(const qk_wire_t *wire, const int coord[4], const qk_segment_t *segment,
                             char *part, bool write, qk_err_t *err) {
  const int64_t n = pieces_at(wire, coord, segment);
  qk_status_t status = QK_OK;
  for (int64_t i = 0; i < n && status == QK_OK; i++)
    status = move_piece(wire->geom, vectors(wire), coord, segment, i, part, write, err);
  return status;
}

/* The spans of the part of the rank at coord, from that rank or to it. */
static qk_status_t exchange(const qk_wire_t *wire, const int coord[4], const qk_segment_t *segment,
                            char *part, bool receive, int rank) {
  qk_comm_t *comm = wire->geom->comm;
  qk_status_t status = QK_OK;
  for (int v = 0; v < vectors(wire) && status == QK_OK; v++) {
    size_t at, bytes;
    span_at(wire, coord, segment, v, &at, &bytes);
    if (bytes == 0) continue;
    status = receive ? qk_comm_recv(comm, part + at, bytes, rank, TAG_PART)
                     : qk_comm_send(comm, part + at, bytes, rank, TAG_PART);
  }
  return status;
}

/* Rank 0 on behalf of the ranks of other hosts, one after the other through its own part. A
 * transfer that fails still sends, so that no rank waits for ever; qk_comm_agree tells them all. */
static qk_status_t relay(const qk_wire_t *wire, const qk_segment_t *segment, char *part, bool write,
                         qk_err_t *err) {
  qk_comm_t *comm = wire->geom->comm;
  qk_status_t status = QK_OK;
  for (int rank = 1; rank < qk_comm_size(comm); rank++) {
    if (!wire->remote[rank]) continue;
    int coord[4];
    qk_comm_coord_of(comm, rank, coord);
    qk_status_t sent = QK_OK;
    if (write) sent = exchange(wire, coord, segment, part, true, rank);
    if (sent != QK_OK) return qk_fail(err, sent, "no part of a solution from rank %d", rank);
    if (status == QK_OK) status = move_part(wire, coord, segment, part, write, err);
    if (!write) sent = exchange(wire, coord, segment, part, false, rank);
    if (sent != QK_OK) return qk_fail(err, sent, "no part of a source to rank %d", rank);
  }
  return status;
}

qk_status_t qk_segment_read(qk_wire_t *wire, const qk_segment_t *segment, void *part,
                            qk_err_t *err) {
  qk_comm_t *comm = wire->geom->comm;
  qk_status_t status = QK_OK;
  if (qk_comm_rank(comm) == 0) status = relay(wire, segment, part, false, err);
  if (!wire->reaches) {
    status = exchange(wire, wire->geom->coord, segment, part, true, 0);
    if (status != QK_OK) qk_fail(err, status, "no part of a source from rank 0");
  } else if (status == QK_OK) {
    status = move_part(wire, wire->geom->coord, segment, part, false, err);
  }
  return qk_comm_agree(comm, status, err);
}

qk_status_t qk_segment_write(qk_wire_t *wire, const qk_segment_t *segment, void *part,
                             qk_err_t *err) {
  qk_comm_t *comm = wire->geom->comm;
  qk_status_t status = QK_OK;
  if (wire->reaches) {
    status = move_part(wire, wire->geom->coord, segment, part, true, err);
  } else {
    status = exchange(wire, wire->geom->coord, segment, part, false, 0);
    if (status != QK_OK) qk_fail(err, status, "no part of a solution to rank 0");
  }
  if (qk_comm_rank(comm) == 0) {
    qk_status_t relayed = relay(wire, segment, part, true, err);
    if (status == QK_OK) status = relayed;
  }
  return qk_comm_agree(comm, status, err);
}

qk_status_t qk_object_open(qk_wire_t *wire, const char *name, int64_t bytes, qk_object_t *object,
                           qk_err_t *err) {
  qk_comm_t *comm = wire->geom->comm;
  qk_status_t status = QK_OK;
  *object = (qk_object_t){.fd = -1, .bytes = bytes};
  if (qk_comm_rank(comm) == 0)
    status = open_here(name, "the result", bytes, true, &object->fd, err);
  status = qk_comm_agree(comm, status, err);
  if (status != QK_OK) qk_object_close(object);
  return status;
}

void qk_object_close(qk_object_t *object) {
  if (object->fd >= 0) close(object->fd);
  object->fd = -1;
}

qk_status_t qk_object_write(qk_wire_t *wire, const qk_object_t *object, const void *data,
                            qk_err_t *err) {
  qk_comm_t *comm = wire->geom->comm;
  qk_status_t status = QK_OK;
  if (qk_comm_rank(comm) == 0)
    status = move_bytes(object->fd, (char *)data, (size_t)object->bytes, 0, true, err);
  return qk_comm_agree(comm, status, err);
}
