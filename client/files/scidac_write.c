/* scidac_write.c: writes SciDAC files of propagators (scidac.h). */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/files/publish.h"
#include "client/files/scidac_text.h"
#include "daemon/base/file.h"
#include "daemon/base/formats/lime.h"
#include "daemon/base/formats/sum.h"
#include "daemon/base/mem.h"
#include "daemon/base/version.h"

enum { COLUMNS = QK_SCIDAC_COLUMNS, SPIN = 4, COLOUR = 3, FERMION = SPIN * COLOUR };

struct qk_scidac_out {
  char *path, *part; /* part: where it is being written; NULL when it has its name */
  int fd, copies;    /* copies: columns that do not stay where they are; -1: none yet */
  bool usqcd;
  int bits;
  int64_t sites;
  qk_h5meta_t meta;
  qk_h5column_t column[COLUMNS];
  const uint8_t *data[COLUMNS]; /* NULL: not written */
  bool mapped[COLUMNS];         /* data is our mapping of `copies` */
};

static size_t column_bytes(const qk_scidac_out_t *f) {
  return (size_t)f->sites * FERMION * 2 * ((size_t)f->bits / 8);
}

/* ---- what such a file can hold ---- */

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* The one complex number a site that the form of MILC has for a source: not after smearing, whose
 * links mix the colours. */
static qk_status_t check_source(const char *path, const qk_h5meta_t *meta, qk_err_t *err) {
  const bool plain = begins(meta->source, "point:") || begins(meta->source, "wall:");
  if (strcmp(meta->kind, "propagator") == 0 && plain && !*meta->smear && !*meta->sequential)
    return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "%s: the format usqcd has its source as one number a site: of a point or wall "
                 "without smearing only, not of %.100s%s%s; write --format=scidac or hdf5",
                 path, *meta->source ? meta->source : "other columns",
                 *meta->smear ? " with smearing" : "",
                 *meta->sequential ? ", which is sequential" : "");
}

qk_status_t qk_scidac_check(const char *path, bool usqcd, const qk_h5meta_t *meta, int64_t nrhs,
                            qk_err_t *err) {
  if (meta->site_reals != QK_H5_SITE_REALS)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: a SciDAC file has fields of %d real numbers at a site, not of %d (%s); "
                   "write --format=hdf5",
                   path, QK_H5_SITE_REALS, meta->site_reals,
                   meta->site_reals == QK_H5_COLOUR_SITE_REALS ? "colour alone" : "two flavours");
  if (meta->slices)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: a SciDAC file has fields of four dimensions, not of five (--five-d); write "
                   "--format=hdf5",
                   path);
  if (nrhs != COLUMNS)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: a SciDAC file has the %d columns of a propagator, not %lld; write "
                   "--format=hdf5",
                   path, COLUMNS, (long long)nrhs);
  if (strcmp(meta->basis, "degrand-rossi") != 0)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: a SciDAC file is in the basis degrand-rossi, not %s; write --format=hdf5, "
                   "or have the fields in that basis",
                   path, *meta->basis ? meta->basis : "one that is not known");
  return usqcd ? check_source(path, meta, err) : QK_OK;
}

static qk_status_t check_shape(const char *path, const int32_t *dims, int64_t *sites,
                               qk_err_t *err) {
  int64_t n = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (dims[mu] < 1 || dims[mu] > QK_H5FILE_MAX_EXTENT || n > INT32_MAX / dims[mu])
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "%s: dims = %d x %d x %d x %d: 1 to %d each, at most 2147483647 sites", path,
                     dims[0], dims[1], dims[2], dims[3], QK_H5FILE_MAX_EXTENT);
    n *= dims[mu];
  }
  *sites = n;
  return QK_OK;
}

/* ---- columns ---- */

void qk_scidac_discard(qk_scidac_out_t *f) {
  if (!f) return;
  for (int i = 0; i < COLUMNS; i++)
    if (f->mapped[i]) munmap((void *)(uintptr_t)f->data[i], column_bytes(f));
  if (f->copies >= 0) close(f->copies);
  if (f->fd >= 0) close(f->fd);
  if (f->part) unlink(f->part);
  free(f->part);
  free(f->path);
  free(f);
}

qk_status_t qk_scidac_create(const char *path, bool usqcd, const qk_h5meta_t *meta, int bits,
                             int64_t nrhs, qk_scidac_out_t **file, qk_err_t *err) {
  int64_t sites = 0;
  if (bits != 32 && bits != 64)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: bits = %d, must be 32 or 64", path, bits);
  qk_status_t status = qk_scidac_check(path, usqcd, meta, nrhs, err);
  if (status == QK_OK) status = check_shape(path, meta->dims, &sites, err);
  if (status != QK_OK) return status;
  qk_scidac_out_t *f = calloc(1, sizeof *f);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  *f = (qk_scidac_out_t){
      .fd = -1, .copies = -1, .usqcd = usqcd, .bits = bits, .sites = sites, .meta = *meta};
  snprintf(f->meta.program, sizeof f->meta.program, "quarkd %s", qk_version());
  for (int i = 0; i < COLUMNS; i++) qk_h5column_init(&f->column[i]);
  if (!(f->path = strdup(path)) || asprintf(&f->part, "%s.%ld.part", path, (long)getpid()) < 0) {
    f->part = NULL;
    status = qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  } else if ((f->fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
    status = qk_fail(err, QK_IO_ERROR, "%s: cannot be created: %s", path, strerror(errno));
    free(f->part); /* which is not ours */
    f->part = NULL;
  }
  if (status == QK_OK)
    *file = f;
  else
    qk_scidac_discard(f);
  return status;
}

/* A file that is gone when we are. */
static qk_status_t open_copies(qk_scidac_out_t *f, qk_err_t *err) {
  char *name;
  if (asprintf(&name, "%s.%ld.columns", f->path, (long)getpid()) < 0)
    return qk_fail(err, QK_NO_MEMORY, "%s: no memory", f->path);
  f->copies = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  qk_status_t status = QK_OK;
  if (f->copies < 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: columns cannot be put beside it: %s", f->path,
                     strerror(errno));
  else
    unlink(name);
  free(name);
  return status;
}

static qk_status_t copy_column(qk_scidac_out_t *f, int64_t rhs, const void *data, qk_err_t *err) {
  const size_t bytes = column_bytes(f), page = (size_t)sysconf(_SC_PAGESIZE);
  const off_t at = (off_t)(rhs * (int64_t)((bytes + page - 1) / page * page));
  qk_status_t status = f->copies < 0 ? open_copies(f, err) : QK_OK;
  if (status != QK_OK) return status;
  if (lseek(f->copies, at, SEEK_SET) < 0)
    return qk_fail(err, QK_IO_ERROR, "%s: %s", f->path, strerror(errno));
  if ((status = qk_file_put(f->copies, data, (int64_t)bytes, err)) != QK_OK) {
    qk_err_prefix(err, "%s: column %lld", f->path, (long long)rhs);
    return status;
  }
  if (f->mapped[rhs]) return QK_OK; /* as it was before, with other numbers */
  void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, f->copies, at);
  if (map == MAP_FAILED)
    return qk_fail(err, QK_NO_MEMORY, "%s: column %lld: %s", f->path, (long long)rhs,
                   strerror(errno));
  f->data[rhs] = map;
  f->mapped[rhs] = true;
  return QK_OK;
}

static qk_status_t check_rhs(const qk_scidac_out_t *f, int64_t rhs, qk_err_t *err) {
  if (rhs >= 0 && rhs < COLUMNS) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "%s: column %lld, the file has 0 to %d", f->path,
                 (long long)rhs, COLUMNS - 1);
}

qk_status_t qk_scidac_write(qk_scidac_out_t *f, int64_t rhs, const void *data, bool stays,
                            qk_err_t *err) {
  const qk_status_t status = check_rhs(f, rhs, err);
  if (status != QK_OK) return status;
  if (!stays) return copy_column(f, rhs, data, err);
  if (f->mapped[rhs]) munmap((void *)(uintptr_t)f->data[rhs], column_bytes(f));
  f->mapped[rhs] = false;
  f->data[rhs] = data;
  return QK_OK;
}

qk_status_t qk_scidac_set_column(qk_scidac_out_t *f, int64_t rhs, const qk_h5column_t *column,
                                 qk_err_t *err) {
  const qk_status_t status = check_rhs(f, rhs, err);
  if (status == QK_OK) f->column[rhs] = *column;
  return status;
}

/* ---- numbers of the file ---- */

/* Sites first .. first + n - 1 of a field as they stand in the file. */
typedef void fill_fn(const qk_scidac_out_t *f, int column, int64_t first, int64_t n, uint8_t *raw);

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are turned round");

/* One complex number. */
static inline void put_complex(uint8_t *to, const uint8_t *from, int bits) {
  if (bits == 32) {
    uint32_t w[2];
    memcpy(w, from, sizeof w);
    w[0] = __builtin_bswap32(w[0]);
    w[1] = __builtin_bswap32(w[1]);
    memcpy(to, w, sizeof w);
  } else {
    uint64_t w[2];
    memcpy(w, from, sizeof w);
    w[0] = __builtin_bswap64(w[0]);
    w[1] = __builtin_bswap64(w[1]);
    memcpy(to, w, sizeof w);
  }
}

/* [spin][spin0][colour][colour0] */
static void fill_propagator(const qk_scidac_out_t *f, int column, int64_t first, int64_t n,
                            uint8_t *raw) {
  const int bits = f->bits, width = bits / 4;
  (void)column;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < COLUMNS; k++) {
      const uint8_t *from = f->data[k] + (first + i) * FERMION * width;
      uint8_t *to = raw + (i * FERMION * COLUMNS + k / 3 * 9 + k % 3) * width;
      for (int s = 0; s < SPIN; s++)
        for (int c = 0; c < COLOUR; c++)
          put_complex(to + (s * 36 + c * 3) * width, from + (3 * s + c) * width, bits);
    }
}

static void fill_fermion(const qk_scidac_out_t *f, int column, int64_t first, int64_t n,
                         uint8_t *raw) {
  const int bits = f->bits, width = bits / 4;
  const uint8_t *from = f->data[column] + first * FERMION * width;
  for (int64_t i = 0; i < n * FERMION; i++) put_complex(raw + i * width, from + i * width, bits);
}

/* Of a point: 1 there. Of a wall: exp(i 2 pi p x / L) on its time slice. */
static void fill_source(const qk_scidac_out_t *f, int column, int64_t first, int64_t n,
                        uint8_t *raw) {
  const qk_h5column_t *source = &f->column[column];
  const int32_t *dims = f->meta.dims;
  const int width = f->bits / 4;
  for (int64_t i = 0; i < n; i++) {
    int64_t left = first + i;
    double value[2] = {1, 0}, phase = 0;
    for (int mu = 0; mu < 4; mu++) {
      const int32_t x = (int32_t)(left % dims[mu]);
      left /= dims[mu];
      if (source->site[mu] >= 0 && source->site[mu] != x) value[0] = 0;
      if (mu < 3) phase += 2 * M_PI * source->momentum[mu] * x / dims[mu];
    }
    if (value[0] != 0 && phase != 0) {
      value[0] = cos(phase);
      value[1] = sin(phase);
    }
    const float single[2] = {(float)value[0], (float)value[1]};
    put_complex(raw + i * width, f->bits == 32 ? (const uint8_t *)single : (const uint8_t *)value,
                f->bits);
  }
}

/* ---- records ---- */

typedef struct field {
  qk_scidac_type_t type;
  fill_fn *fill;
  int column;
} field_t;

typedef void print_fn(FILE *out, const qk_scidac_out_t *f, const field_t *field);

static qk_scidac_story_t story(const qk_scidac_out_t *f) {
  return (qk_scidac_story_t){&f->meta, f->column, COLUMNS};
}

static void print_lattice(FILE *out, const qk_scidac_out_t *f, const field_t *field) {
  (void)field;
  qk_scidac_print_lattice(out, f->meta.dims);
}

static void print_file(FILE *out, const qk_scidac_out_t *f, const field_t *field) {
  const qk_scidac_story_t s = story(f);
  (void)field;
  if (f->usqcd)
    qk_scidac_print_usqcd_file(out, &s);
  else
    qk_scidac_print_file(out);
}

static void print_type(FILE *out, const qk_scidac_out_t *f, const field_t *field) {
  (void)f;
  qk_scidac_print_type(out, &field->type);
}

static void print_record(FILE *out, const qk_scidac_out_t *f, const field_t *field) {
  const qk_scidac_story_t s = story(f);
  if (field->fill == fill_propagator)
    qk_scidac_print_record(out, &s);
  else if (field->fill == fill_source)
    qk_scidac_print_usqcd_source(out, &s);
  else
    qk_scidac_print_usqcd_column(out, field->column);
}

static qk_status_t put_text(const qk_scidac_out_t *f, const char *type, unsigned flags,
                            print_fn *print, const field_t *field, qk_err_t *err) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (out) print(out, f, field);
  const bool bad = !out || ferror(out);
  const bool closed = out && fclose(out) == 0;
  qk_status_t status = QK_OK;
  if (bad || !closed)
    status = qk_fail(err, QK_NO_MEMORY, "no memory for a text");
  else
    status = qk_lime_put(f->fd, type, flags, (int64_t)bytes, text, err);
  free(text);
  return status;
}

static qk_status_t put_data(const qk_scidac_out_t *f, const field_t *field, uint32_t sum[2],
                            qk_err_t *err) {
  const int64_t site = field->type.site_bytes, most = QK_SCIDAC_SLAB / site;
  qk_status_t status = qk_lime_put(f->fd, "scidac-binary-data", 0, f->sites * site, NULL, err);
  if (status != QK_OK) return status;
  uint8_t *raw = qk_malloc((size_t)((f->sites < most ? f->sites : most) * site));
  if (!raw) return qk_fail(err, QK_NO_MEMORY, "no memory for a slab of the file");
  for (int64_t at = 0, n; at < f->sites && status == QK_OK; at += n) {
    n = f->sites - at < most ? f->sites - at : most;
    field->fill(f, field->column, at, n, raw);
    qk_scidac_sum_add(at, n, site, raw, sum);
    status = qk_file_put(f->fd, raw, n * site, err);
    /* The disk works while the next slab is made; what fails here fails again in the end. */
    sync_file_range(f->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  qk_free(raw);
  return status;
}

/* A message: a field with its texts. The bytes of a field are a multiple of 8. */
static qk_status_t put_field(const qk_scidac_out_t *f, const field_t *field, qk_err_t *err) {
  uint32_t sum[2] = {0, 0};
  char text[QK_SCIDAC_SUM_TEXT];
  qk_status_t status =
      put_text(f, "scidac-private-record-xml", QK_LIME_BEGIN, print_type, field, err);
  if (status == QK_OK) status = put_text(f, "scidac-record-xml", 0, print_record, field, err);
  if (status == QK_OK) status = put_data(f, field, sum, err);
  if (status != QK_OK) return status;
  const int bytes = qk_scidac_sum_print(sum, text);
  return qk_lime_put(f->fd, "scidac-checksum", QK_LIME_END, bytes, text, err);
}

static qk_status_t put_all(const qk_scidac_out_t *f, qk_err_t *err) {
  const bool single = f->bits == 32;
  const char precision = single ? 'F' : 'D';
  const int width = f->bits / 4;
  qk_status_t status =
      put_text(f, "scidac-private-file-xml", QK_LIME_BEGIN, print_lattice, NULL, err);
  if (status == QK_OK) status = put_text(f, "scidac-file-xml", QK_LIME_END, print_file, NULL, err);
  if (status != QK_OK) return status;
  if (!f->usqcd)
    return put_field(
        f, &(field_t){{"Lattice", precision, 4, FERMION * COLUMNS * width}, fill_propagator, 0},
        err);
  const field_t source = {
      {single ? "USQCD_F_Complex" : "USQCD_D_Complex", precision, 0, width}, fill_source, 0};
  status = put_field(f, &source, err);
  for (int k = 0; k < COLUMNS && status == QK_OK; k++) {
    const field_t column = {
        {single ? "USQCD_F3_DiracFermion" : "USQCD_D3_DiracFermion", precision, 4, FERMION * width},
        fill_fermion,
        k};
    status = put_field(f, &column, err);
  }
  return status;
}

/* The components of one source, in their order: what the form of MILC says of them. */
static qk_status_t check_columns(const qk_scidac_out_t *f, qk_err_t *err) {
  for (int k = 0; k < COLUMNS; k++) {
    const qk_h5column_t *c = &f->column[k];
    if (!f->data[k])
      return qk_fail(err, QK_UNSUPPORTED,
                     "%s: column %d (spin %d, colour %d) has no solution, and a SciDAC file cannot "
                     "say so: nothing is written",
                     f->path, k, k / 3, k % 3);
    if (f->usqcd && (c->spin != k / 3 || c->colour != k % 3))
      return qk_fail(err, QK_UNSUPPORTED,
                     "%s: column %d is of spin %d, colour %d of its source, expected %d, %d",
                     f->path, k, c->spin, c->colour, k / 3, k % 3);
  }
  return QK_OK;
}

qk_status_t qk_scidac_commit(qk_scidac_out_t *f, qk_err_t *err) {
  qk_status_t status = check_columns(f, err);
  if (status != QK_OK) return status;
  if ((status = put_all(f, err)) != QK_OK) {
    qk_err_prefix(err, "%s", f->path);
    return status;
  }
  const int fd = f->fd;
  f->fd = -1;
  if (close(fd) != 0)
    return qk_fail(err, QK_IO_ERROR, "%s: cannot be completed: %s", f->path, strerror(errno));
  if ((status = qk_publish(f->part, f->path, err)) != QK_OK) return status;
  free(f->part);
  f->part = NULL;
  return QK_OK;
}
