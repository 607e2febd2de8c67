#include "client/analysis/corrfile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/files/h5kit.h"
#include "client/files/h5wall.h"
#include "client/files/publish.h"
#include "daemon/base/version.h"

enum { MOST_TIMES = 1 << 16 };
enum { PATH_BYTES = 3 * QK_CORR_NAME };
static const char format[] = "quarkd correlators";

#define REAL(name, count) QK_H5ATTR(qk_corrmeta_t, name, QK_H5_REAL, count)
#define INT(name, count) QK_H5ATTR(qk_corrmeta_t, name, QK_H5_INT, count)
#define TEXT(name) QK_H5ATTR_TEXT(qk_corrmeta_t, name)
static const qk_h5attr_t attributes[] = {
    TEXT(config),
    TEXT(quark),
    TEXT(label),
    TEXT(channels),
    TEXT(name),
    TEXT(source),
    TEXT(smear),
    TEXT(links),
    TEXT(sink),
    INT(origin, 4),
    INT(dims, 4),
    REAL(kappa, 1),
    REAL(mass, 1),
    REAL(csw, 1),
    REAL(boundary, 8),
    REAL(plaquette, 1),
    TEXT(gauge),
    TEXT(digest),
    TEXT(normalisation),
    TEXT(program),
    TEXT(part),
    TEXT(ama),
    TEXT(seed),
    TEXT(offset),
    TEXT(action),
    INT(site_reals, 1),
    REAL(tolerance, 1),
    REAL(tolerance_abs, 1),
    REAL(tolerance_hq, 1),
    REAL(residual, 1),
    INT(iterations, 1),
    REAL(seconds, 1),
    INT(flavour, 1),
};
#undef REAL
#undef INT
#undef TEXT
enum { NATTRIBUTE = sizeof attributes / sizeof attributes[0] };

struct qk_corrfile {
  hid_t file;
  char *path;
  int n;
  char (*name)[PATH_BYTES];
  char link[PATH_BYTES]; /* that stands where a piece might, and is not followed */
};

/* ---- pieces ---- */

void qk_corrmeta_init(qk_corrmeta_t *meta) {
  memset(meta, 0, sizeof *meta);
  meta->kappa = meta->mass = meta->csw = meta->plaquette = NAN;
  meta->tolerance = meta->residual = meta->seconds = NAN;
  meta->tolerance_abs = meta->tolerance_hq = NAN;
  meta->site_reals = QK_H5_SITE_REALS;
  for (int i = 0; i < 8; i++) meta->boundary[i] = NAN;
}

static int count_words(const char *text) {
  int n = 0;
  for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
    n++;
    text += strcspn(text, " ");
  }
  return n;
}

qk_status_t qk_corrpiece_create(const qk_corrmeta_t *meta, uint32_t nmom, qk_corrpiece_t *piece,
                                qk_err_t *err) {
  qk_corrpiece_t p = {.meta = *meta, .nmom = nmom, .n = count_words(meta->channels)};
  const int nt = meta->dims[3];
  if (p.n < 1 || nmom < 1 || nt < 1 || nt > MOST_TIMES)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%d channels, %u momenta and %d time slices: must all be positive, the last at "
                   "most %d",
                   p.n, nmom, nt, MOST_TIMES);
  p.momentum = calloc(nmom, sizeof *p.momentum);
  p.channel = calloc((size_t)p.n, sizeof *p.channel);
  p.c = calloc((size_t)p.n * nmom * (size_t)nt, sizeof *p.c);
  if (!p.momentum || !p.channel || !p.c) {
    qk_corrpiece_fini(&p);
    return qk_fail(err, QK_NO_MEMORY, "no memory for %d channels", p.n);
  }
  const char *text = p.meta.channels;
  for (int i = 0; i < p.n; i++) {
    text += strspn(text, " ");
    const size_t bytes = strcspn(text, " ");
    if (bytes >= sizeof p.channel[i]) {
      qk_corrpiece_fini(&p);
      return qk_fail(err, QK_BAD_ARGUMENT, "channel \"%.40s\" has %zu characters, at most %zu",
                     text, bytes, sizeof p.channel[i] - 1);
    }
    memcpy(p.channel[i], text, bytes);
    text += bytes;
  }
  *piece = p;
  return QK_OK;
}

void qk_corrpiece_fini(qk_corrpiece_t *piece) {
  free(piece->momentum);
  free(piece->channel);
  free(piece->c);
  qk_wall_fini(&piece->wall);
  memset(piece, 0, sizeof *piece);
}

const double complex *qk_corrpiece_find(const qk_corrpiece_t *piece, const char *channel,
                                        const int32_t momentum[3]) {
  for (int i = 0; i < piece->n; i++)
    for (uint32_t p = 0; p < piece->nmom; p++)
      if (strcmp(piece->channel[i], channel) == 0 &&
          memcmp(piece->momentum[p], momentum, sizeof piece->momentum[p]) == 0)
        return piece->c + ((size_t)i * piece->nmom + p) * (size_t)piece->meta.dims[3];
  return NULL;
}

/* ---- writing ---- */

static qk_status_t create_file(const char *path, const char *part, hid_t *file, qk_err_t *err) {
  qk_h5_begin();
  errno = 0;
  *file = qk_h5_create(part);
  if (*file < 0)
    return qk_h5_fail(err, QK_IO_ERROR, path, "cannot be created: %s", strerror(errno));
  return qk_h5format_write(*file, path, format, QK_CORRFILE_VERSION, err);
}

static qk_status_t write_dataset(hid_t group, const char *path, const char *name, hid_t in_file,
                                 hid_t in_memory, hsize_t rows, hsize_t columns, const void *data,
                                 qk_err_t *err) {
  const hsize_t extent[2] = {rows, columns};
  const hid_t space = H5Screate_simple(2, extent, NULL);
  const hid_t dataset =
      space < 0 || in_file < 0 || in_memory < 0
          ? -1
          : H5Dcreate2(group, name, in_file, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const bool ok =
      dataset >= 0 && H5Dwrite(dataset, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
  qk_status_t status = QK_OK;
  if (!ok) status = qk_h5_fail(err, QK_IO_ERROR, path, "dataset %s cannot be written", name);
  if (dataset >= 0) H5Dclose(dataset);
  if (space >= 0) H5Sclose(space);
  return status;
}

static hid_t create_group(hid_t file, const char *name) {
  const hid_t create = H5Pcreate(H5P_LINK_CREATE);
  hid_t group = -1;
  if (create >= 0 && H5Pset_create_intermediate_group(create, 1) >= 0)
    group = H5Gcreate2(file, name, create, H5P_DEFAULT, H5P_DEFAULT);
  if (create >= 0) H5Pclose(create);
  return group;
}

static void name_of(const qk_corrmeta_t *meta, char name[PATH_BYTES + 2]) {
  snprintf(name, PATH_BYTES + 2, "%s/%s/%s", meta->config, meta->quark, meta->label);
}

static qk_status_t write_piece(hid_t file, const char *path, const qk_corrpiece_t *piece,
                               qk_err_t *err) {
  char name[PATH_BYTES + 2];
  name_of(&piece->meta, name);
  const hid_t group = create_group(file, name);
  const hid_t in_file = qk_h5_complex_type("r", "i", H5T_IEEE_F64LE),
              in_memory = qk_h5_complex_type("r", "i", H5T_NATIVE_DOUBLE);
  qk_status_t status;
  if (group < 0) {
    status = qk_h5_fail(err, QK_IO_ERROR, path, "group %s cannot be created", name);
    goto out;
  }
  qk_corrmeta_t meta = piece->meta;
  snprintf(meta.program, sizeof meta.program, "quarkd %s", qk_version());
  if ((status = qk_h5attr_write(group, path, attributes, NATTRIBUTE, &meta, err)) != QK_OK)
    goto out;
  status = write_dataset(group, path, "momenta", H5T_STD_I32LE, H5T_NATIVE_INT32, piece->nmom, 3,
                         piece->momentum, err);
  const size_t stride = (size_t)piece->nmom * (size_t)meta.dims[3];
  for (int i = 0; i < piece->n && status == QK_OK; i++)
    status = write_dataset(group, path, piece->channel[i], in_file, in_memory, piece->nmom,
                           (hsize_t)meta.dims[3], piece->c + (size_t)i * stride, err);
  if (status == QK_OK) status = qk_h5wall_write(group, path, &piece->wall, err);
out:
  if (in_memory >= 0) H5Tclose(in_memory);
  if (in_file >= 0) H5Tclose(in_file);
  if (group >= 0) H5Gclose(group);
  return status;
}

/* Closes an unfinished file: gives it its name, or removes it after an error. */
static qk_status_t finish_file(hid_t file, const char *part, const char *path, qk_status_t status,
                               qk_err_t *err) {
  if (file >= 0 && H5Fclose(file) < 0 && status == QK_OK)
    status = qk_h5_fail(err, QK_IO_ERROR, path, "cannot be completed");
  if (status == QK_OK) status = qk_publish(part, path, err);
  if (status != QK_OK) unlink(part);
  return status;
}

static qk_status_t check_names(const char *path, const qk_corrmeta_t *meta, qk_err_t *err) {
  const char *const names[3] = {meta->config, meta->quark, meta->label};
  for (int i = 0; i < 3; i++)
    if (!*names[i] || strchr(names[i], '/') || strcmp(names[i], ".") == 0)
      return qk_fail(err, QK_BAD_ARGUMENT, "%s: \"%s\" is no name of a group", path, names[i]);
  return QK_OK;
}

struct qk_corrwriter {
  hid_t file;
  char *path, *part;
};

static void free_writer(qk_corrwriter_t *w) {
  free(w->path);
  free(w->part);
  free(w);
}

qk_status_t qk_corrwriter_create(const char *path, qk_corrwriter_t **writer, qk_err_t *err) {
  qk_corrwriter_t *w = calloc(1, sizeof *w);
  if (!w || !(w->path = strdup(path)) ||
      asprintf(&w->part, "%s.%ld.part", path, (long)getpid()) < 0) {
    if (w) {
      w->part = NULL;
      free_writer(w);
    }
    return qk_fail(err, QK_NO_MEMORY, "%s: no memory for a name", path);
  }
  qk_status_t status = create_file(path, w->part, &w->file, err);
  if (status == QK_OK) {
    *writer = w;
    return QK_OK;
  }
  status = finish_file(w->file, w->part, path, status, err);
  free_writer(w);
  return status;
}

qk_status_t qk_corrwriter_add(qk_corrwriter_t *w, const qk_corrpiece_t *piece, qk_err_t *err) {
  const qk_status_t status = check_names(w->path, &piece->meta, err);
  return status == QK_OK ? write_piece(w->file, w->path, piece, err) : status;
}

static qk_status_t finish_writer(qk_corrwriter_t *w, qk_status_t status, qk_err_t *err) {
  status = finish_file(w->file, w->part, w->path, status, err);
  free_writer(w);
  return status;
}

qk_status_t qk_corrwriter_commit(qk_corrwriter_t *w, qk_err_t *err) {
  return finish_writer(w, QK_OK, err);
}

void qk_corrwriter_destroy(qk_corrwriter_t *w) {
  if (w) finish_writer(w, QK_CANCELLED, NULL);
}

qk_status_t qk_corrfile_write(const char *path, const qk_corrpiece_t *piece, qk_err_t *err) {
  qk_corrwriter_t *writer;
  qk_status_t status = check_names(path, &piece->meta, err);
  if (status == QK_OK) status = qk_corrwriter_create(path, &writer, err);
  if (status != QK_OK) return status;
  status = qk_corrwriter_add(writer, piece, err);
  return finish_writer(writer, status, err);
}

/* ---- merging ---- */

static bool has_piece(hid_t file, const char *name) {
  char prefix[PATH_BYTES + 2];
  for (const char *slash = strchr(name, '/');; slash = strchr(slash + 1, '/')) {
    snprintf(prefix, sizeof prefix, "%.*s", slash ? (int)(slash - name) : PATH_BYTES, name);
    if (H5Lexists(file, prefix, H5P_DEFAULT) <= 0) return false;
    if (!slash) return true;
  }
}

static qk_status_t copy_pieces(const char *from, hid_t to, qk_err_t *err) {
  qk_corrfile_t *source;
  qk_status_t status = qk_corrfile_open(from, &source, err);
  if (status != QK_OK) return status;
  const hid_t create = H5Pcreate(H5P_LINK_CREATE);
  if (create < 0 || H5Pset_create_intermediate_group(create, 1) < 0)
    status = qk_h5_fail(err, QK_NO_MEMORY, from, "cannot be copied");
  for (int i = 0; i < source->n && status == QK_OK; i++) {
    const char *name = source->name[i];
    if (has_piece(to, name)) continue;
    if (H5Ocopy(source->file, name, to, name, H5P_DEFAULT, create) < 0)
      status = qk_h5_fail(err, QK_IO_ERROR, from, "piece %s cannot be copied", name);
  }
  if (create >= 0) H5Pclose(create);
  qk_corrfile_close(source);
  return status;
}

qk_status_t qk_corrfile_merge(const char *path, const char *part, int n, const char *const *parts,
                              qk_err_t *err) {
  hid_t file = -1;
  qk_status_t status = create_file(path, part, &file, err);
  for (int i = 0; i < n && status == QK_OK; i++) status = copy_pieces(parts[i], file, err);
  if (status == QK_OK && access(path, F_OK) == 0) status = copy_pieces(path, file, err);
  return finish_file(file, part, path, status, err);
}

/* ---- reading ---- */

typedef struct walk {
  qk_corrfile_t *file;
  char prefix[PATH_BYTES];
  int depth;
  bool failed; /* no memory, or a name that is too long */
} walk_t;

/* Groups of the third level are pieces. */
static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *arg) {
  walk_t *w = arg, below = {.file = w->file, .depth = w->depth + 1};
  const int bytes =
      snprintf(below.prefix, sizeof below.prefix, "%s%s%s", w->prefix, w->depth ? "/" : "", name);
  if (bytes >= (int)sizeof below.prefix) goto fail;
  if (info->type != H5L_TYPE_HARD) {
    snprintf(w->file->link, sizeof w->file->link, "%s", below.prefix);
    return 1;
  }
  if (w->depth < 2) {
    const hid_t child = H5Gopen2(group, name, H5P_DEFAULT);
    if (child < 0) return 0;
    H5Literate(child, H5_INDEX_NAME, H5_ITER_INC, NULL, visit, &below);
    H5Gclose(child);
    w->failed |= below.failed;
    return w->failed;
  }
  qk_corrfile_t *f = w->file;
  if ((f->n & (f->n - 1)) == 0) { /* room doubles at powers of two */
    void *more = realloc(f->name, (f->n ? 2 * (size_t)f->n : 1) * sizeof *f->name);
    if (!more) goto fail;
    f->name = more;
  }
  strcpy(f->name[f->n++], below.prefix);
  return 0;
fail:
  w->failed = true;
  return 1;
}

bool qk_corrfile_is(const char *path) {
  bool ours = false;
  hid_t file;
  if (qk_h5_open(path, &file, NULL) != QK_OK) return false;
  const qk_status_t status = qk_h5format_read(file, path, format, QK_CORRFILE_VERSION, &ours, NULL);
  H5Fclose(file);
  return ours || status == QK_UNSUPPORTED;
}

qk_status_t qk_corrfile_open(const char *path, qk_corrfile_t **file, qk_err_t *err) {
  bool ours = false;
  qk_status_t status = QK_OK;
  qk_corrfile_t *f = calloc(1, sizeof *f);
  if (!f || !(f->path = strdup(path))) {
    free(f);
    return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  }
  f->file = -1;
  if ((status = qk_h5_open(path, &f->file, err)) != QK_OK) goto fail;
  status = qk_h5format_read(f->file, path, format, QK_CORRFILE_VERSION, &ours, err);
  if (status == QK_OK && !ours)
    status = qk_fail(err, QK_BAD_FORMAT, "%s: is not a file of correlators", path);
  if (status != QK_OK) goto fail;
  walk_t walk = {.file = f};
  const herr_t walked = H5Literate(f->file, H5_INDEX_NAME, H5_ITER_INC, NULL, visit, &walk);
  if (*f->link) {
    status = qk_fail(err, QK_DENIED, "%s: object \"%s\" is a link, which is not followed", path,
                     f->link);
    goto fail;
  }
  if (walked < 0 || walk.failed) {
    status = qk_h5_fail(err, QK_BAD_FORMAT, path, "its groups cannot be listed");
    goto fail;
  }
  *file = f;
  return QK_OK;
fail:
  qk_corrfile_close(f);
  return status;
}

void qk_corrfile_close(qk_corrfile_t *file) {
  if (!file) return;
  if (file->file >= 0) H5Fclose(file->file);
  free(file->name);
  free(file->path);
  free(file);
}

int qk_corrfile_count(const qk_corrfile_t *file) {
  return file->n;
}

/* Reads a dataset, which must have this shape. */
static qk_status_t read_dataset(const qk_corrfile_t *f, hid_t group, const char *name, hid_t type,
                                hsize_t rows, hsize_t columns, void *data, qk_err_t *err) {
  hsize_t extent[2] = {0, 0};
  hid_t dataset = -1;
  qk_status_t status = qk_h5_dataset(group, f->path, name, &dataset, err);
  if (status != QK_OK) return status;
  const hid_t space = H5Dget_space(dataset);
  if (space >= 0 && H5Sget_simple_extent_ndims(space) == 2)
    H5Sget_simple_extent_dims(space, extent, NULL);
  if (extent[0] != rows || extent[1] != columns)
    status = qk_fail(err, QK_BAD_FORMAT, "%s: dataset %s is [%llu][%llu], expected [%llu][%llu]",
                     f->path, name, (unsigned long long)extent[0], (unsigned long long)extent[1],
                     (unsigned long long)rows, (unsigned long long)columns);
  else if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
    status = qk_h5_fail(err, QK_BAD_FORMAT, f->path, "dataset %s cannot be read", name);
  if (space >= 0) H5Sclose(space);
  H5Dclose(dataset);
  return status;
}

/* Rows of the dataset of momenta; 0: there is none. */
static uint32_t count_momenta(hid_t group) {
  hsize_t extent[2] = {0, 0};
  hid_t dataset = -1;
  qk_h5_dataset(group, "", "momenta", &dataset, NULL);
  const hid_t space = dataset < 0 ? -1 : H5Dget_space(dataset);
  if (space >= 0 && H5Sget_simple_extent_ndims(space) == 2)
    H5Sget_simple_extent_dims(space, extent, NULL);
  if (space >= 0) H5Sclose(space);
  if (dataset >= 0) H5Dclose(dataset);
  return extent[0] < 1 << 16 ? (uint32_t)extent[0] : 0;
}

static qk_status_t read_group(const qk_corrfile_t *f, hid_t group, qk_corrpiece_t *piece,
                              qk_err_t *err) {
  qk_corrmeta_t meta;
  qk_corrmeta_init(&meta);
  qk_status_t status = qk_h5attr_read(group, f->path, attributes, NATTRIBUTE, &meta, err);
  if (status == QK_OK && meta.site_reals != QK_H5_COLOUR_SITE_REALS)
    status = qk_h5_check_site_reals(f->path, meta.site_reals, false, err);
  if (status != QK_OK) return status;
  status = qk_corrpiece_create(&meta, count_momenta(group), piece, err);
  if (status != QK_OK) {
    qk_err_prefix(err, "%s", f->path);
    return status;
  }
  const hid_t type = qk_h5_complex_type("r", "i", H5T_NATIVE_DOUBLE);
  status =
      read_dataset(f, group, "momenta", H5T_NATIVE_INT32, piece->nmom, 3, piece->momentum, err);
  const size_t stride = (size_t)piece->nmom * (size_t)meta.dims[3];
  for (int i = 0; i < piece->n && status == QK_OK; i++)
    status = read_dataset(f, group, piece->channel[i], type, piece->nmom, (hsize_t)meta.dims[3],
                          piece->c + (size_t)i * stride, err);
  if (type >= 0) H5Tclose(type);
  if (status == QK_OK)
    status = qk_h5wall_read(group, f->path, QK_PROPAGATOR_COLUMNS, meta.dims[3], &piece->wall, err);
  if (status != QK_OK) qk_corrpiece_fini(piece);
  return status;
}

qk_status_t qk_corrfile_read(const qk_corrfile_t *file, int i, qk_corrpiece_t *piece,
                             qk_err_t *err) {
  if (i < 0 || i >= file->n)
    return qk_fail(err, QK_NOT_FOUND, "%s: piece %d, the file has %d", file->path, i, file->n);
  qk_h5_begin();
  hid_t group;
  qk_status_t status = qk_h5_group(file->file, file->path, file->name[i], &group, err);
  if (status != QK_OK) return status;
  status = read_group(file, group, piece, err);
  H5Gclose(group);
  return status;
}
