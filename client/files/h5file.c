#include "client/files/h5file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/files/h5meta_impl.h"
#include "client/files/h5wall.h"
#include "client/files/publish.h"
#include "daemon/base/version.h"

enum { RANK = 8, SPIN = 4, COLOUR = 3, CHUNK_BYTES = 1 << 26, MAX_RHS = 1 << 24 };

struct qk_h5file {
  hid_t file, dataset;
  int fd;            /* of HDF5, of a file that is written; -1: not known */
  char *path, *part; /* part: where it is being written; NULL when open for reading or committed */
  char name[2][8];   /* of the two members of a complex number */
  qk_h5meta_t meta;
  qk_h5column_t *column;
  const qk_wall_t *wall; /* NULL: none */
  int64_t nrhs;
  hsize_t extent[RANK]; /* rhs, [flavour or s,] t, z, y, x, [spin,] colour */
  int rank;             /* 8 of two flavours and of five dimensions, 6 of colour vectors, else 7 */
  bool five;            /* five dimensions */
  hsize_t slices;       /* of a chunk; of a file that is written */
  bool single;          /* the dataset has no axis for right-hand sides */
  int bits;
};

/* Held while a right-hand side is read or written. */
static pthread_mutex_t hdf5 = PTHREAD_MUTEX_INITIALIZER;

static qk_h5file_t *file_new(const char *path) {
  qk_h5file_t *f = calloc(1, sizeof *f);
  if (!f || !(f->path = strdup(path))) {
    free(f);
    return NULL;
  }
  f->file = f->dataset = -1;
  f->fd = -1;
  strcpy(f->name[0], "r");
  strcpy(f->name[1], "i");
  qk_h5meta_init(&f->meta);
  qk_h5_begin();
  return f;
}

void qk_h5file_close(qk_h5file_t *file) {
  if (!file) return;
  if (file->dataset >= 0) H5Dclose(file->dataset);
  if (file->file >= 0) H5Fclose(file->file);
  if (file->part) unlink(file->part);
  free(file->part);
  free(file->path);
  free(file->column);
  free(file);
}

const char *qk_h5file_axes(int32_t site_reals) {
  return site_reals == QK_H5_TWO_SITE_REALS
             ? "8 dimensions [rhs][flavour][t][z][y][x][spin][colour]"
         : site_reals == QK_H5_COLOUR_SITE_REALS ? "6 dimensions [rhs][t][z][y][x][colour]"
                                                 : "7 dimensions [rhs][t][z][y][x][spin][colour]";
}

static bool is_two(const qk_h5file_t *f) {
  return f->meta.site_reals == QK_H5_TWO_SITE_REALS;
}

static bool is_colour(const qk_h5file_t *f) {
  return f->meta.site_reals == QK_H5_COLOUR_SITE_REALS;
}

/* The rank of what site_reals says. */
static int rank_of(const qk_h5file_t *f) {
  return f->five || is_two(f) ? RANK : is_colour(f) ? RANK - 2 : RANK - 1;
}

/* Fields of spin and colour in a right-hand side: flavours, or slices of a fifth dimension. */
static hsize_t parts_of(const qk_h5file_t *f) {
  return f->rank == RANK ? f->extent[1] : 1;
}

/* What the axes must be; said: as in open_dataset. */
static const char *expected_axes(const qk_h5file_t *f, int32_t said) {
  return f->five ? "8 dimensions [rhs][s][t][z][y][x][spin][colour]" : qk_h5file_axes(said);
}

/* The axis t. */
static int axis_t(const qk_h5file_t *f) {
  return f->rank - (is_colour(f) ? 5 : 6);
}

/* Chunks are whole right-hand sides, each flavour or slice one, or as many time slices as fit
 * CHUNK_BYTES and divide the extent in t: a chunk that is used in part would be written whole. */
static hsize_t slices_of_chunk(const qk_h5file_t *f) {
  const hsize_t nt = f->extent[axis_t(f)];
  hsize_t slice = (hsize_t)f->bits / 4;
  for (int i = axis_t(f) + 1; i < f->rank; i++) slice *= f->extent[i];
  hsize_t n = CHUNK_BYTES / slice;
  if (n > nt) n = nt;
  while (n > 1 && nt % n != 0) n--;
  return n < 1 ? 1 : n;
}

static hid_t create_dataset(const qk_h5file_t *f) {
  hsize_t chunk[RANK];
  memcpy(chunk, f->extent, sizeof chunk);
  for (int i = 0; i < axis_t(f); i++) chunk[i] = 1;
  chunk[axis_t(f)] = f->slices;

  const hid_t type =
      qk_h5_complex_type(f->name[0], f->name[1], f->bits == 32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE);
  const hid_t space = H5Screate_simple(f->rank, f->extent, NULL);
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  hid_t dataset = -1;
  if (type >= 0 && space >= 0 && create >= 0 && H5Pset_chunk(create, f->rank, chunk) >= 0)
    dataset = H5Dcreate2(f->file, "field", type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  if (create >= 0) H5Pclose(create);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return dataset;
}

static qk_status_t check_shape(const qk_h5file_t *f, qk_err_t *err) {
  for (int mu = 0; mu < 4; mu++)
    if (f->meta.dims[mu] < 1 || f->meta.dims[mu] > QK_H5FILE_MAX_EXTENT)
      return qk_fail(err, QK_BAD_GEOMETRY, "%s: dims[%d] = %d, must be 1 to %d", f->path, mu,
                     f->meta.dims[mu], QK_H5FILE_MAX_EXTENT);
  if (f->nrhs < 1 || f->nrhs > MAX_RHS)
    return qk_fail(err, QK_TOO_LARGE, "%s: %lld right-hand sides, must be 1 to %d", f->path,
                   (long long)f->nrhs, MAX_RHS);
  if (f->five && (f->meta.slices < 1 || f->meta.slices > QK_H5FILE_MAX_SLICES))
    return qk_fail(err, QK_BAD_GEOMETRY, "%s: %d slices of a fifth dimension, must be 1 to %d",
                   f->path, f->meta.slices, QK_H5FILE_MAX_SLICES);
  double sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= f->meta.dims[mu];
  if (sites > 2147483647.0)
    return qk_fail(err, QK_BAD_GEOMETRY, "%s: %.0f sites, at most 2147483647", f->path, sites);
  return QK_OK;
}

/* Of a field with these extents. */
static void set_extents(qk_h5file_t *f) {
  const int32_t *dims = f->meta.dims;
  f->rank = rank_of(f);
  f->extent[0] = (hsize_t)f->nrhs;
  f->extent[1] = f->five ? (hsize_t)f->meta.slices : 2; /* of neither it is overwritten */
  for (int mu = 0; mu < 4; mu++) f->extent[axis_t(f) + mu] = (hsize_t)dims[3 - mu];
  if (!is_colour(f)) f->extent[f->rank - 2] = SPIN;
  f->extent[f->rank - 1] = COLOUR;
}

qk_status_t qk_h5file_create(const char *path, const qk_h5meta_t *meta, int bits, int64_t nrhs,
                             qk_h5file_t **file, qk_err_t *err) {
  const qk_status_t known = qk_h5_check_site_reals(path, meta->site_reals, !meta->slices, err);
  if (known != QK_OK) return known;
  if (bits != 32 && bits != 64)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: bits = %d, must be 32 or 64", path, bits);
  qk_h5file_t *f = file_new(path);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  f->meta = *meta;
  f->five = meta->slices != 0;
  f->nrhs = nrhs;
  f->bits = bits;
  qk_status_t status = check_shape(f, err);
  if (status != QK_OK) goto fail;
  snprintf(f->meta.program, sizeof f->meta.program, "quarkd %s", qk_version());
  set_extents(f);
  f->slices = slices_of_chunk(f);
  f->column = malloc((size_t)nrhs * sizeof *f->column);
  if (!f->column || asprintf(&f->part, "%s.%ld.part", path, (long)getpid()) < 0) {
    f->part = NULL;
    status = qk_fail(err, QK_NO_MEMORY, "%s: no memory for %lld columns", path, (long long)nrhs);
    goto fail;
  }
  for (int64_t i = 0; i < nrhs; i++) qk_h5column_init(&f->column[i]);
  f->file = qk_h5_create(f->part);
  if (f->file < 0) {
    status = qk_h5_fail(err, QK_IO_ERROR, path, "cannot be created: %s", strerror(errno));
    goto fail;
  }
  f->fd = qk_h5_descriptor(f->file);
  if ((status = qk_h5meta_write(f->file, path, &f->meta, err)) != QK_OK) goto fail;
  if ((f->dataset = create_dataset(f)) < 0) {
    status = qk_h5_fail(err, QK_IO_ERROR, path, "dataset field cannot be created");
    goto fail;
  }
  *file = f;
  return QK_OK;
fail:
  qk_h5file_close(f);
  return status;
}

/* Reads one right-hand side from its hyperslab. */
static bool read_rhs(const qk_h5file_t *f, int64_t rhs, int bits, void *data) {
  hsize_t start[RANK] = {(hsize_t)rhs}, count[RANK];
  memcpy(count, f->extent, sizeof count);
  count[0] = 1;
  const int skip = f->single ? 1 : 0;
  const hid_t memory_type =
      qk_h5_complex_type(f->name[0], f->name[1], bits == 32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE);
  const hid_t file_space = H5Dget_space(f->dataset);
  const hid_t memory_space = H5Screate_simple(f->rank - 1, count + 1, NULL);
  const bool ok =
      memory_type >= 0 && file_space >= 0 && memory_space >= 0 &&
      H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start + skip, NULL, count + skip, NULL) >=
          0 &&
      H5Dread(f->dataset, memory_type, memory_space, file_space, H5P_DEFAULT, data) >= 0;
  if (memory_space >= 0) H5Sclose(memory_space);
  if (file_space >= 0) H5Sclose(file_space);
  if (memory_type >= 0) H5Tclose(memory_type);
  return ok;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "chunks are written as they are");

/* Chunks go into the file as they are. H5Dwrite would first fill each new one with zeros, in memory
 * and in the file; without fill values, right-hand sides that are never written would read as
 * anything. */
static bool write_rhs(const qk_h5file_t *f, int64_t rhs, const uint8_t *data) {
  const int t = axis_t(f);
  const hsize_t chunks = f->extent[t] / f->slices, parts = parts_of(f);
  const size_t bytes = qk_h5file_rhs_bytes(f, f->bits) / (parts * chunks);
  for (hsize_t i = 0; i < parts * chunks; i++, data += bytes) {
    hsize_t at[RANK] = {(hsize_t)rhs, i / chunks};
    at[t] = i % chunks * f->slices;
    if (H5Dwrite_chunk(f->dataset, H5P_DEFAULT, 0, at, bytes, data) < 0) return false;
  }
  return true;
}

static qk_status_t check_rhs(const qk_h5file_t *f, int64_t rhs, qk_err_t *err) {
  if (rhs >= 0 && rhs < f->nrhs) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "%s: right-hand side %lld, the file has 0 to %lld", f->path,
                 (long long)rhs, (long long)f->nrhs - 1);
}

qk_status_t qk_h5file_write(qk_h5file_t *file, int64_t rhs, const void *data, qk_err_t *err) {
  qk_status_t status = check_rhs(file, rhs, err);
  if (status != QK_OK) return status;
  pthread_mutex_lock(&hdf5);
  qk_h5_begin(); /* each thread has its own errors, if HDF5 knows threads */
  if (!write_rhs(file, rhs, data))
    status =
        qk_h5_fail(err, QK_IO_ERROR, file->path, "field[%lld] cannot be written", (long long)rhs);
  pthread_mutex_unlock(&hdf5);
  return status;
}

void qk_h5file_push(const qk_h5file_t *file) {
  /* It is advice: what fails here fails again in commit, which says why. */
  if (file->fd >= 0) sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

qk_status_t qk_h5file_set_column(qk_h5file_t *file, int64_t rhs, const qk_h5column_t *column,
                                 qk_err_t *err) {
  const qk_status_t status = check_rhs(file, rhs, err);
  if (status == QK_OK) file->column[rhs] = *column;
  return status;
}

void qk_h5file_set_wall(qk_h5file_t *file, const qk_wall_t *wall) {
  file->wall = wall;
}

qk_status_t qk_h5file_commit(qk_h5file_t *file, qk_err_t *err) {
  H5Eclear2(H5E_DEFAULT);
  qk_status_t status =
      qk_h5column_write(file->file, file->path, is_two(file), file->column, file->nrhs, err);
  if (status == QK_OK && file->wall)
    status = qk_h5wall_write(file->file, file->path, file->wall, err);
  if (status != QK_OK) return status;
  herr_t bad = H5Dclose(file->dataset);
  file->dataset = file->fd = -1;
  bad |= H5Fclose(file->file);
  file->file = -1;
  if (bad < 0) return qk_h5_fail(err, QK_IO_ERROR, file->path, "cannot be completed");
  if ((status = qk_publish(file->part, file->path, err)) != QK_OK) return status;
  free(file->part);
  file->part = NULL;
  return QK_OK;
}

typedef struct search {
  char name[256], link[256]; /* link: the last one, which is not followed */
  int least, most;           /* dimensions */
  int found;
} search_t;

/* Counts the datasets with that many dimensions in the root group and keeps the last one's name. */
static herr_t find_dataset(hid_t root, const char *name, const H5L_info_t *info, void *arg) {
  search_t *s = arg;
  if (info->type != H5L_TYPE_HARD) {
    snprintf(s->link, sizeof s->link, "%s", name);
    return 0;
  }
  const hid_t object = H5Oopen(root, name, H5P_DEFAULT);
  if (object < 0) return 0;
  if (H5Iget_type(object) == H5I_DATASET) {
    const hid_t space = H5Dget_space(object);
    const int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
    if (rank >= s->least && rank <= s->most && strlen(name) < sizeof s->name) {
      s->found++;
      strcpy(s->name, name);
    }
    if (space >= 0) H5Sclose(space);
  }
  H5Oclose(object);
  return 0;
}

/* said: the attribute site_reals; 0: it is not there. least: dimensions of one right-hand side. */
static qk_status_t open_dataset(qk_h5file_t *f, const char *name, int32_t said, int least,
                                qk_err_t *err) {
  search_t s = {.least = least, .most = RANK};
  if (said == QK_H5_SITE_REALS && !f->five) s.most = RANK - 1;
  if (said == QK_H5_COLOUR_SITE_REALS) s.most = RANK - 2;
  if (!name) {
    name = "field";
    if (H5Lexists(f->file, name, H5P_DEFAULT) <= 0) {
      H5Literate(f->file, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, find_dataset, &s);
      if (s.found == 0 && *s.link) return qk_h5_dataset(f->file, f->path, s.link, &f->dataset, err);
      if (s.found != 1)
        return qk_fail(err, QK_BAD_FORMAT,
                       "%s: no dataset \"field\" and %d others with the %s, expected one", f->path,
                       s.found, expected_axes(f, said));
      name = s.name;
    }
  }
  return qk_h5_dataset(f->file, f->path, name, &f->dataset, err);
}

/* A compound of two floats of 32 or 64 bits. */
static qk_status_t read_type(qk_h5file_t *f, qk_err_t *err) {
  const hid_t type = H5Dget_type(f->dataset);
  const char *wrong = NULL;
  if (type < 0 || H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2)
    wrong = "not a compound of two";
  for (unsigned i = 0; i < 2 && !wrong; i++) {
    const hid_t member = H5Tget_member_type(type, i);
    char *name = H5Tget_member_name(type, i);
    const size_t size = member < 0 ? 0 : H5Tget_size(member);
    if (member < 0 || H5Tget_class(member) != H5T_FLOAT || (size != 4 && size != 8))
      wrong = "its members are not 32 or 64 bit floats";
    else if (!name || strlen(name) >= sizeof f->name[i] || name[0] != "ri"[i])
      wrong = "its members are not r and i";
    else {
      f->bits = 8 * (int)size;
      strcpy(f->name[i], name);
    }
    H5free_memory(name);
    if (member >= 0) H5Tclose(member);
  }
  if (type >= 0) H5Tclose(type);
  if (wrong)
    return qk_fail(err, QK_BAD_FORMAT,
                   "%s: field: expected complex numbers as compounds {r, i}: %s", f->path, wrong);
  return QK_OK;
}

/* The extents of the dataset, whose axes the attribute decides, or without it their number. */
static qk_status_t read_extents(qk_h5file_t *f, int32_t said, int least, qk_err_t *err) {
  const hid_t space = H5Dget_space(f->dataset);
  const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
  const bool two = said ? said == QK_H5_TWO_SITE_REALS : rank == RANK && !f->five;
  f->meta.site_reals = two                               ? QK_H5_TWO_SITE_REALS
                       : said == QK_H5_COLOUR_SITE_REALS ? QK_H5_COLOUR_SITE_REALS
                                                         : QK_H5_SITE_REALS;
  f->rank = rank_of(f);
  f->single = rank == f->rank - 1 && rank >= least;
  f->extent[0] = 1;
  const bool fits = rank == f->rank || f->single;
  if (fits) H5Sget_simple_extent_dims(space, f->extent + (f->single ? 1 : 0), NULL);
  if (space >= 0) H5Sclose(space);
  if (fits) return QK_OK;
  char and[32] = "";
  if (said) snprintf(and, sizeof and, " and site_reals = %d", f->meta.site_reals);
  return qk_fail(err, QK_BAD_FORMAT, "%s: field has %d dimensions%s, expected the %s", f->path,
                 rank, and, expected_axes(f, f->meta.site_reals));
}

static qk_status_t check_site(const qk_h5file_t *f, qk_err_t *err) {
  const unsigned long long spins = f->extent[f->rank - 2], colours = f->extent[f->rank - 1];
  if (is_colour(f) && colours != COLOUR)
    return qk_fail(err, QK_BAD_FORMAT, "%s: field ends in [%llu], expected [3 colours]", f->path,
                   colours);
  if (is_colour(f) || (spins == SPIN && colours == COLOUR)) return QK_OK;
  return qk_fail(err, QK_BAD_FORMAT,
                 "%s: field ends in [%llu][%llu], expected [4 spins][3 colours]", f->path, spins,
                 colours);
}

static qk_status_t read_shape(qk_h5file_t *f, int32_t said, int least, qk_err_t *err) {
  qk_status_t status = read_extents(f, said, least, err);
  if (status == QK_OK) status = check_site(f, err);
  if (status != QK_OK) return status;
  if (is_two(f) && f->extent[1] != 2)
    return qk_fail(err, QK_BAD_FORMAT, "%s: field has %llu flavours, expected 2 in the %s", f->path,
                   (unsigned long long)f->extent[1], qk_h5file_axes(f->meta.site_reals));
  if (f->five && f->extent[1] > QK_H5FILE_MAX_SLICES)
    return qk_fail(err, QK_BAD_GEOMETRY, "%s: field has %llu slices in s, must be 1 to %d", f->path,
                   (unsigned long long)f->extent[1], QK_H5FILE_MAX_SLICES);
  f->meta.slices = f->five ? (int32_t)f->extent[1] : 0;
  for (int mu = 0; mu < 4; mu++) {
    const hsize_t n = f->extent[axis_t(f) + 3 - mu];
    if (n > QK_H5FILE_MAX_EXTENT) /* which dims cannot tell */
      return qk_fail(err, QK_BAD_GEOMETRY, "%s: field has %llu sites in %c, must be 1 to %d",
                     f->path, (unsigned long long)n, "xyzt"[mu], QK_H5FILE_MAX_EXTENT);
    f->meta.dims[mu] = (int32_t)n;
  }
  if (f->extent[0] > MAX_RHS)
    return qk_fail(err, QK_TOO_LARGE, "%s: field has %llu right-hand sides, must be 1 to %d",
                   f->path, (unsigned long long)f->extent[0], MAX_RHS);
  f->nrhs = (int64_t)f->extent[0];
  return check_shape(f, err);
}

static qk_status_t read_meta(qk_h5file_t *f, qk_err_t *err) {
  int32_t dims[4];
  memcpy(dims, f->meta.dims, sizeof dims);
  qk_status_t status = qk_h5meta_read(f->file, f->path, &f->meta, err);
  if (status != QK_OK) return status;
  for (int mu = 0; mu < 4; mu++)
    if (f->meta.dims[mu] != dims[mu])
      return qk_fail(err, QK_BAD_GEOMETRY, "%s: attribute dims[%d] = %d, but field has %d", f->path,
                     mu, f->meta.dims[mu], dims[mu]);
  return qk_h5column_read(f->file, f->path, f->nrhs, &f->column, err);
}

/* What the attributes say of the axes must be what is asked for. *least: dimensions that a single
 * right-hand side has, as far as they are told from those of several. */
static qk_status_t check_axes(const qk_h5file_t *f, int32_t said, int *least, qk_err_t *err) {
  bool told = false;
  const qk_status_t status = qk_h5meta_five(f->file, f->path, &told, err);
  if (status != QK_OK) return status;
  if (told && !f->five)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: attribute axes = \"" QK_H5FILE_AXES_FIVE "\": its fields have five "
                   "dimensions, where those of four are expected; quarkctl solve --five-d reads it",
                   f->path);
  if (f->five && said && said != QK_H5_SITE_REALS)
    return qk_h5_check_site_reals(f->path, said, false, err);
  *least = f->five ? told ? RANK - 1 : RANK : RANK - 2;
  if (said == QK_H5_TWO_SITE_REALS) *least = RANK - 1;
  if (said == QK_H5_COLOUR_SITE_REALS) *least = RANK - 3;
  return QK_OK;
}

static qk_status_t open_as(const char *path, const char *dataset, bool five, qk_h5file_t **file,
                           qk_err_t *err) {
  qk_h5file_t *f = file_new(path);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  qk_status_t status;
  int32_t said = 0;
  int least = RANK;
  f->five = five;
  if ((status = qk_h5_open(path, &f->file, err)) != QK_OK) goto fail;
  if ((status = qk_h5meta_site_reals(f->file, path, &said, err)) != QK_OK) goto fail;
  if ((status = check_axes(f, said, &least, err)) != QK_OK) goto fail;
  if ((status = open_dataset(f, dataset, said, least, err)) != QK_OK) goto fail;
  if ((status = read_shape(f, said, least, err)) != QK_OK) goto fail;
  if ((status = read_type(f, err)) != QK_OK) goto fail;
  if ((status = read_meta(f, err)) != QK_OK) goto fail;
  *file = f;
  return QK_OK;
fail:
  qk_h5file_close(f);
  return status;
}

qk_status_t qk_h5file_open(const char *path, const char *dataset, qk_h5file_t **file,
                           qk_err_t *err) {
  return open_as(path, dataset, false, file, err);
}

qk_status_t qk_h5file_open_five(const char *path, const char *dataset, qk_h5file_t **file,
                                qk_err_t *err) {
  return open_as(path, dataset, true, file, err);
}

const qk_h5meta_t *qk_h5file_meta(const qk_h5file_t *file) {
  return &file->meta;
}

int64_t qk_h5file_nrhs(const qk_h5file_t *file) {
  return file->nrhs;
}

int qk_h5file_bits(const qk_h5file_t *file) {
  return file->bits;
}

size_t qk_h5file_rhs_bytes(const qk_h5file_t *file, int bits) {
  size_t n = (size_t)bits / 4;
  for (int i = 1; i < file->rank; i++) n *= (size_t)file->extent[i];
  return n;
}

qk_status_t qk_h5file_read(qk_h5file_t *file, int64_t rhs, int bits, void *data, qk_err_t *err) {
  qk_status_t status = check_rhs(file, rhs, err);
  if (status != QK_OK) return status;
  if (bits != 32 && bits != 64)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: bits = %d, must be 32 or 64", file->path, bits);
  pthread_mutex_lock(&hdf5);
  qk_h5_begin();
  if (!read_rhs(file, rhs, bits, data))
    status = qk_h5_fail(err, QK_IO_ERROR, file->path, "field[%lld] cannot be read", (long long)rhs);
  pthread_mutex_unlock(&hdf5);
  return status;
}

qk_status_t qk_h5file_column(qk_h5file_t *file, int64_t rhs, qk_h5column_t *column, qk_err_t *err) {
  const qk_status_t status = check_rhs(file, rhs, err);
  if (status != QK_OK) return status;
  if (!file->column) return qk_fail(err, QK_NOT_FOUND, "%s: no dataset columns", file->path);
  *column = file->column[rhs];
  return QK_OK;
}
