/* gauge_write.c: writes ILDG and NERSC files, and SciDAC files of a matrix a site, complete and
 * read back before they get their name. Rank 0 writes; the others send it their parts in the order
 * of the file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/base/formats/lime.h"
#include "daemon/base/formats/sum.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gauge_format.h"

enum { PIECE = 8 << 20, HEADER_MAX = 1024, TAG = 0x6c69 };

typedef struct output {
  qk_gauge_info_t info;
  enum { ILDG, NERSC, TRANSFORM } kind;
  const qk_geom_t *geom;
  const double *links;
} output_t;

/* 3x3 matrices of a site. */
static int matrices(const output_t *o) {
  return o->kind == TRANSFORM ? 1 : 4;
}

static int64_t site_bytes(const output_t *o) {
  return qk_gauge_site_bytes(&o->info) / 4 * matrices(o);
}

/* fd < 0: nowhere, as on ranks other than 0. */
static qk_status_t put(int fd, const void *data, int64_t bytes, qk_err_t *err) {
  return fd < 0 ? QK_OK : qk_file_put(fd, data, bytes, err);
}

/* Consecutive xy planes of the file: those of time slice t from z on. They are also contiguous
 * in the memory of each rank that has a part of them. */
typedef struct slab {
  int t, z, planes;
  uint8_t *raw;  /* rank 0: as it stands in the file */
  uint8_t *part; /* of one rank */
} slab_t;

static bool has_part(const output_t *o, const slab_t *slab, int rank) {
  const int *l = o->geom->lat.l;
  int coord[4];
  qk_comm_coord_of(o->geom->comm, rank, coord);
  return slab->t / l[3] == coord[3] && slab->z / l[2] == coord[2];
}

static void encode_part(const output_t *o, const slab_t *slab, uint8_t *part) {
  const int *l = o->geom->lat.l;
  int64_t plane = (int64_t)l[0] * l[1], first = ((int64_t)(slab->t % l[3]) * l[2] + slab->z % l[2]);
  qk_gauge_encode(&o->info, matrices(o) * plane * slab->planes,
                  o->links + first * plane * matrices(o) * 18, part);
}

static void place_part(const output_t *o, const slab_t *slab, int rank) {
  const int *l = o->geom->lat.l, *g = o->geom->global;
  int64_t bytes = site_bytes(o), row = l[0] * bytes;
  int coord[4];
  qk_comm_coord_of(o->geom->comm, rank, coord);
  for (int64_t i = 0; i < (int64_t)slab->planes * l[1]; i++) {
    int64_t y = i / l[1] * g[1] + coord[1] * l[1] + i % l[1];
    memcpy(slab->raw + (y * g[0] + coord[0] * l[0]) * bytes, slab->part + i * row, (size_t)row);
  }
}

/* The slab on rank 0. */
static qk_status_t gather(const output_t *o, const slab_t *slab) {
  qk_comm_t *comm = o->geom->comm;
  const int *l = o->geom->lat.l;
  size_t bytes = (size_t)(slab->planes * l[0] * l[1] * site_bytes(o));
  qk_status_t status = QK_OK;
  if (slab->raw == NULL) { /* not rank 0 */
    if (!has_part(o, slab, qk_comm_rank(comm))) return QK_OK;
    encode_part(o, slab, slab->part);
    return qk_comm_send(comm, slab->part, bytes, 0, TAG);
  }
  for (int rank = 0; rank < qk_comm_size(comm) && status == QK_OK; rank++) {
    if (!has_part(o, slab, rank)) continue;
    if (rank == 0) {
      encode_part(o, slab, slab->part);
    } else {
      status = qk_comm_recv(comm, slab->part, bytes, rank, TAG);
    }
    if (slab->part != slab->raw) place_part(o, slab, rank);
  }
  return status;
}

/* Memory for about PIECE, at least one plane; planes divides what a rank has in z. */
static qk_status_t reserve(const output_t *o, slab_t *slab, qk_err_t *err) {
  const int *l = o->geom->lat.l, *g = o->geom->global;
  int64_t bytes = site_bytes(o), plane = (int64_t)g[0] * g[1] * bytes;
  bool cut = l[0] != g[0] || l[1] != g[1], root = qk_comm_rank(o->geom->comm) == 0;
  int planes = l[2];
  while (planes > 1 && (l[2] % planes != 0 || planes * plane > PIECE)) planes--;
  slab->planes = planes;
  if (root) slab->raw = qk_malloc((size_t)(planes * plane));
  slab->part = root && !cut ? slab->raw : qk_malloc((size_t)(planes * l[0] * l[1] * bytes));
  if (slab->part != NULL && (slab->raw != NULL || !root)) return QK_OK;
  return qk_fail(err, QK_NO_MEMORY, "no memory to write %d planes of links", planes);
}

/* All links in the order of the file; the checksum on rank 0. status: of this rank so far; the
 * ranks first agree on it. After a failure rank 0 still receives what the others send. */
static qk_status_t put_links(const output_t *o, int fd, qk_status_t status, qk_gauge_sum_t *sum,
                             qk_err_t *err) {
  const int *g = o->geom->global;
  int64_t plane = (int64_t)g[0] * g[1], bytes = site_bytes(o);
  bool root = qk_comm_rank(o->geom->comm) == 0;
  slab_t slab = {0};
  if (status == QK_OK) status = reserve(o, &slab, err);
  status = qk_comm_agree(o->geom->comm, status, err);
  if (status != QK_OK) goto out;
  for (int64_t i = 0, n = (int64_t)g[2] * g[3]; i < n; i += slab.planes) {
    slab.t = (int)(i / g[2]);
    slab.z = (int)(i % g[2]);
    if (gather(o, &slab) != QK_OK) {
      status = qk_fail(err, QK_COMM_ERROR, "the ranks could not bring the links together");
      break;
    }
    if (!root || status != QK_OK) continue;
    qk_gauge_sum_add(&o->info.layout, i * plane, slab.planes * plane, bytes, slab.raw, sum);
    status = put(fd, slab.raw, slab.planes * plane * bytes, err);
  }
out:
  if (slab.part != slab.raw) qk_free(slab.part);
  qk_free(slab.raw);
  return status;
}

static int print_format(const output_t *o, char text[HEADER_MAX]) {
  const int *d = o->info.dims;
  return snprintf(text, HEADER_MAX,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\""
                  " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\""
                  " xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\">\n"
                  "  <version>1.0</version>\n  <field>su3gauge</field>\n"
                  "  <precision>%d</precision>\n  <lx>%d</lx>\n  <ly>%d</ly>\n  <lz>%d</lz>\n"
                  "  <lt>%d</lt>\n</ildgFormat>\n",
                  o->info.bits, d[0], d[1], d[2], d[3]);
}

/* fd < 0: nowhere. */
static qk_status_t put_record(int fd, const char *type, unsigned flags, int64_t bytes,
                              const char *text, qk_err_t *err) {
  return fd < 0 ? QK_OK : qk_lime_put(fd, type, flags, bytes, text, err);
}

static qk_status_t put_ildg(const output_t *o, int fd, qk_err_t *err) {
  char text[HEADER_MAX], checksum[QK_SCIDAC_SUM_TEXT];
  uint32_t word[2];
  qk_gauge_sum_t sum = {0};
  const int n = print_format(o, text);
  qk_status_t status = put_record(fd, "ildg-format", QK_LIME_BEGIN, n, text, err);
  if (status == QK_OK) { /* a multiple of 8: no padding */
    int64_t bytes = o->geom->volume * site_bytes(o);
    status = put_record(fd, "ildg-binary-data", 0, bytes, NULL, err);
  }
  status = put_links(o, fd, status, &sum, err);
  if (status != QK_OK) return status;
  qk_gauge_sum_words(&o->info.layout, &sum, word);
  const int bytes = qk_scidac_sum_print(word, checksum);
  return put_record(fd, "scidac-checksum", QK_LIME_END, bytes, checksum, err);
}

/* The checksum stands before the links: one pass to find it, another to write. */
static qk_status_t put_nersc(const output_t *o, int fd, const qk_gauge_check_t *check,
                             qk_err_t *err) {
  char text[HEADER_MAX];
  uint32_t word[2];
  qk_gauge_sum_t sum = {0};
  qk_status_t status = put_links(o, -1, QK_OK, &sum, err);
  qk_gauge_sum_words(&o->info.layout, &sum, word);
  const int *d = o->info.dims;
  int n =
      snprintf(text, sizeof text,
               "BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = 4D_SU3_GAUGE_3x3\n"
               "STORAGE_FORMAT = 1.0\nDIMENSION_1 = %d\nDIMENSION_2 = %d\nDIMENSION_3 = %d\n"
               "DIMENSION_4 = %d\nLINK_TRACE = %.12f\nPLAQUETTE = %.12f\n"
               "BOUNDARY_1 = PERIODIC\nBOUNDARY_2 = PERIODIC\nBOUNDARY_3 = PERIODIC\n"
               "BOUNDARY_4 = PERIODIC\nCHECKSUM = %08" PRIx32 "\nFLOATING_POINT = IEEE%dBIG\n"
               "END_HEADER\n",
               d[0], d[1], d[2], d[3], check->link_trace, check->plaquette, word[0], o->info.bits);
  if (status == QK_OK) status = put(fd, text, n, err);
  return put_links(o, fd, status, &sum, err);
}

/* The texts of QIO before the matrices. */
static qk_status_t put_scidac_texts(const output_t *o, int fd, qk_err_t *err) {
  static const char xml[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  static const char about[] = "<title>gauge transformation</title>";
  char text[HEADER_MAX];
  const int *d = o->info.dims;
  int n = snprintf(text, sizeof text,
                   "%s<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>%d %d %d %d "
                   "</dims><volfmt>0</volfmt></scidacFile>",
                   xml, d[0], d[1], d[2], d[3]);
  qk_status_t status = put_record(fd, "scidac-private-file-xml", QK_LIME_BEGIN, n, text, err);
  if (status != QK_OK) return status;
  n = snprintf(text, sizeof text, "%s%s", xml, about);
  status = put_record(fd, "scidac-file-xml", QK_LIME_END, n, text, err);
  if (status != QK_OK) return status;
  n = snprintf(text, sizeof text,
               "%s<scidacRecord><version>1.1</version><recordtype>0</recordtype>"
               "<datatype>QDP_D3_ColorMatrix</datatype><precision>D</precision><colors>3</colors>"
               "<typesize>%d</typesize><datacount>1</datacount></scidacRecord>",
               xml, (int)site_bytes(o));
  status = put_record(fd, "scidac-private-record-xml", QK_LIME_BEGIN, n, text, err);
  if (status != QK_OK) return status;
  n = snprintf(text, sizeof text, "%s%s", xml, about);
  return put_record(fd, "scidac-record-xml", 0, n, text, err);
}

static qk_status_t put_transform(const output_t *o, int fd, qk_err_t *err) {
  char checksum[QK_SCIDAC_SUM_TEXT];
  uint32_t word[2];
  qk_gauge_sum_t sum = {0};
  qk_status_t status = put_scidac_texts(o, fd, err);
  if (status == QK_OK) /* a multiple of 8: no padding */
    status = put_record(fd, "scidac-binary-data", 0, o->geom->volume * site_bytes(o), NULL, err);
  status = put_links(o, fd, status, &sum, err);
  if (status != QK_OK) return status;
  qk_gauge_sum_words(&o->info.layout, &sum, word);
  const int bytes = qk_scidac_sum_print(word, checksum);
  return put_record(fd, "scidac-checksum", QK_LIME_END, bytes, checksum, err);
}

static qk_status_t compare(const output_t *o, const double *back, qk_err_t *err) {
  int64_t reals = o->geom->local_volume * QK_GAUGE_SITE_REALS;
  uint64_t differ = 0;
  for (int64_t i = 0; i < reals; i++) {
    double want = o->info.bits == 32 ? (float)o->links[i] : o->links[i];
    differ += memcmp(&want, &back[i], sizeof want) != 0;
  }
  if (qk_comm_sum_u64(o->geom->comm, &differ, 1) != QK_OK)
    return qk_fail(err, QK_COMM_ERROR, "the ranks could not compare what they read back");
  if (differ == 0) return QK_OK;
  return qk_fail(err, QK_IO_ERROR, "%" PRIu64 " numbers differ when read back", differ);
}

static qk_status_t read_back(const output_t *o, const char *path, const qk_gauge_info_t *info,
                             double *back, qk_err_t *err) {
  qk_gauge_check_t check;
  qk_status_t status = qk_gauge_read(path, info, o->geom, back, &check, NULL, NULL, err);
  return status == QK_OK ? compare(o, back, err) : status;
}

/* Reads the file again: it must verify itself and hold the links to the last bit of `bits`. */
static qk_status_t verify(const output_t *o, const char *path, qk_err_t *err) {
  qk_gauge_info_t info;
  qk_status_t status = qk_gauge_probe(path, NULL, &info, err);
  int64_t reals = o->geom->local_volume * QK_GAUGE_SITE_REALS;
  double *back = qk_malloc((size_t)reals * sizeof *back);
  if (back == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory to read the file back");
  status = qk_comm_agree(o->geom->comm, status, err);
  if (status == QK_OK && back != NULL) status = read_back(o, path, &info, back, err);
  qk_free(back);
  return status;
}

/* The sum of a record of matrices. */
static qk_status_t sum_record(const output_t *o, const qk_infile_t *in,
                              const qk_lime_record_t *record, qk_gauge_sum_t *sum, qk_err_t *err) {
  const int64_t bytes = site_bytes(o), most = PIECE / bytes, sites = o->geom->volume;
  uint8_t *raw = qk_malloc((size_t)(most * bytes));
  qk_status_t status = QK_OK;
  if (raw == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory to read the file back");
  for (int64_t first = 0, n; first < sites && status == QK_OK; first += n) {
    n = sites - first < most ? sites - first : most;
    status = qk_infile_read(in, raw, n * bytes, record->offset + first * bytes, err);
    if (status == QK_OK) qk_gauge_sum_add(&o->info.layout, first, n, bytes, raw, sum);
  }
  qk_free(raw);
  return status;
}

static qk_status_t stated_sum(const qk_infile_t *in, const qk_lime_record_t *record,
                              uint32_t word[2], qk_err_t *err) {
  char *text = NULL;
  qk_status_t status = qk_lime_text(in, record, &text, err);
  if (status != QK_OK) return status;
  status = qk_scidac_sum_parse(text, word, err);
  qk_free(text);
  return status;
}

/* Compares the matrices in the file with the checksum behind them. */
static qk_status_t check_transform(const output_t *o, const qk_infile_t *in, qk_err_t *err) {
  qk_lime_cursor_t cursor = {.file = in};
  qk_gauge_sum_t sum = {0};
  uint32_t stated[2] = {0}, found[2];
  while (!qk_lime_ends(&cursor)) {
    qk_lime_record_t record;
    qk_status_t status = qk_lime_next(&cursor, &record, err);
    if (status != QK_OK) return status;
    if (strcmp(record.type, "scidac-binary-data") == 0)
      status = sum_record(o, in, &record, &sum, err);
    else if (strcmp(record.type, "scidac-checksum") == 0)
      status = stated_sum(in, &record, stated, err);
    if (status != QK_OK) return status;
  }
  qk_gauge_sum_words(&o->info.layout, &sum, found);
  return memcmp(stated, found, sizeof found) == 0
             ? QK_OK
             : qk_fail(err, QK_IO_ERROR, "the checksum is another one when read back");
}

/* Rank 0 reads the file again. */
static qk_status_t verify_transform(const output_t *o, const char *path, qk_err_t *err) {
  qk_infile_t in;
  qk_status_t status = QK_OK;
  if (qk_comm_rank(o->geom->comm) == 0) {
    status = qk_infile_open(path, &in, err);
    if (status == QK_OK) {
      status = check_transform(o, &in, err);
      qk_infile_close(&in);
    }
  }
  return qk_comm_agree(o->geom->comm, status, err);
}

static qk_status_t put_all(const output_t *o, int fd, const qk_gauge_check_t *check,
                           qk_err_t *err) {
  switch (o->kind) {
  case ILDG:
    return put_ildg(o, fd, err);
  case NERSC:
    return put_nersc(o, fd, check, err);
  default:
    return put_transform(o, fd, err);
  }
}

/* *fd >= 0 on rank 0. */
static qk_status_t create_file(const char *temp, const qk_geom_t *geom, int *fd, qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (qk_comm_rank(geom->comm) == 0) {
    *fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0) status = qk_fail(err, QK_IO_ERROR, "cannot create %s: %s", temp, strerror(errno));
  }
  return qk_comm_agree(geom->comm, status, err);
}

static qk_status_t close_file(const char *temp, int fd, qk_status_t status, qk_err_t *err) {
  if (fd < 0) return status;
  if (status == QK_OK && fsync(fd) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: fsync: %s", temp, strerror(errno));
  if (close(fd) != 0 && status == QK_OK)
    status = qk_fail(err, QK_IO_ERROR, "%s: close: %s", temp, strerror(errno));
  return status;
}

static qk_status_t write_file(const output_t *o, const char *path, const char *temp,
                              const qk_gauge_check_t *check, qk_err_t *err) {
  int fd = -1;
  qk_comm_t *comm = o->geom->comm;
  qk_status_t status = create_file(temp, o->geom, &fd, err);
  if (status != QK_OK) return status;
  status = put_all(o, fd, check, err);
  if (status != QK_OK) qk_err_prefix(err, "%s", path);
  status = qk_comm_agree(comm, close_file(temp, fd, status, err), err);
  if (status == QK_OK)
    status = o->kind == TRANSFORM ? verify_transform(o, temp, err) : verify(o, temp, err);
  if (status == QK_OK && fd >= 0 && rename(temp, path) != 0)
    status = qk_fail(err, QK_IO_ERROR, "cannot rename %s to %s: %s", temp, path, strerror(errno));
  status = qk_comm_agree(comm, status, err);
  if (fd >= 0 && status != QK_OK) unlink(temp);
  if (fd >= 0 && status == QK_OK) qk_file_sync_folder(path);
  return status;
}

/* temp: the name that rank 0 gives it until it is complete. */
static qk_status_t measure_and_write(const output_t *o, const char *path, char temp[QK_FILE_PATH],
                                     qk_err_t *err) {
  qk_gauge_check_t check = {0};
  qk_status_t status = QK_OK;
  if (o->kind != TRANSFORM) status = qk_gauge_measure(o->geom, o->links, &check, err);
  if (status != QK_OK) return status;
  status = qk_comm_bcast(o->geom->comm, temp, QK_FILE_PATH, 0);
  return status == QK_OK ? write_file(o, path, temp, &check, err) : status;
}

static qk_status_t write_output(output_t *o, const char *path, int bits, qk_err_t *err) {
  char temp[QK_FILE_PATH];
  qk_err_t cause = {0}; /* one to write into, also where the caller wants none */
  o->info = (qk_gauge_info_t){.bits = bits, .layout = {.big_endian = true, .rows = 3}};
  o->info.layout.sum = o->kind == NERSC ? QK_GAUGE_SUM_NERSC : QK_GAUGE_SUM_SCIDAC;
  memcpy(o->info.dims, o->geom->global, sizeof o->info.dims);
  int n = snprintf(temp, sizeof temp, "%s.%ld.tmp", path, (long)getpid());
  if (n < 0 || n > QK_FILE_PATH - 16) /* another rank's process id may have more digits */
    return qk_fail(err, QK_BAD_ARGUMENT, "path of %d bytes: the limit is %d", n, QK_FILE_PATH - 16);
  qk_status_t status = measure_and_write(o, path, temp, &cause);
  if (status == QK_OK) return QK_OK;
  return qk_fail(err, status, "%s", cause.text[0] != '\0' ? cause.text : qk_status_text(status));
}

qk_status_t qk_gauge_write(const char *path, const char *format, int bits, const qk_geom_t *geom,
                           const double *links, qk_err_t *err) {
  bool ildg = strcmp(format, "ildg") == 0;
  output_t o = {.kind = ildg ? ILDG : NERSC, .geom = geom, .links = links};
  if (!ildg && strcmp(format, "nersc") != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "format = %s: ildg and nersc are written", format);
  if (bits != 32 && bits != 64)
    return qk_fail(err, QK_BAD_ARGUMENT, "bits = %d: 32 and 64 are written", bits);
  return write_output(&o, path, bits, err);
}

qk_status_t qk_gauge_write_transform(const char *path, const qk_geom_t *geom, const double *g,
                                     qk_err_t *err) {
  output_t o = {.kind = TRANSFORM, .geom = geom, .links = g};
  return write_output(&o, path, 64, err);
}
