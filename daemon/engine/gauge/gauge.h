/*
 * gauge.h: a gauge configuration in host memory, and reading and writing of gauge files.
 *
 * Links: complex double, local lattice, [t][z][y][x][mu][3][3] (x fastest of the sites, row-major
 * 3x3, mu = x,y,z,t); U_mu(n) connects n to n+mu. Values are those of the file: links in single
 * precision are widened, not reunitarised; a third row that the file leaves out is reconstructed.
 *
 * The format of a file is found by its first bytes: gauge_probe.c has the table of formats,
 * docs/physics.md the conventions of each. "builtin:weak:XxYxZxT:seed" and "builtin:unit:XxYxZxT"
 * need no file; "memory:..." is a shared-memory object (gauge_memory.c). weak: U = 1 + 0.15 times
 * complex Gaussian noise of unit variance, rows orthonormalised by Gram-Schmidt, third row from the
 * other two. The noise is a function of seed, global site, direction and element only. Plaquette
 * about 0.887.
 */
#ifndef QK_ENGINE_GAUGE_H
#define QK_ENGINE_GAUGE_H

#include <stdbool.h>

#include "daemon/base/progress.h"
#include "daemon/engine/lattice/geom.h"

/* How the links stand in the file. Of interest to qk_gauge_read only. */
typedef struct qk_gauge_layout {
  enum { QK_GAUGE_SITES, QK_GAUGE_OPENQCD, QK_GAUGE_UNIT, QK_GAUGE_WEAK } order;
  enum { QK_GAUGE_SUM_NONE, QK_GAUGE_SUM_SCIDAC, QK_GAUGE_SUM_NERSC, QK_GAUGE_SUM_MILC } sum;
  uint32_t stated[2]; /* the checksum in the file: suma, sumb; sum; sum29, sum31 */
  bool big_endian;
  bool t_first; /* mu = t,z,y,x in the file */
  int rows;     /* 2 or 3 stored rows of a link */
  uint64_t seed;
} qk_gauge_layout_t;

/* What a file says of itself; filled by qk_gauge_probe without reading the links. */
typedef struct qk_gauge_info {
  char format[48];       /* for people: "ILDG", "NERSC 4D_SU3_GAUGE_3x3 IEEE64BIG" */
  int dims[4];           /* x, y, z, t */
  int bits;              /* 32 or 64: precision of the stored links */
  bool has_plaquette;    /* header states it */
  double plaquette;      /* average over 6 planes, 1 for unit links */
  double plaquette_unit; /* one in the last decimal that the header gives; 0 where it is binary */
  bool has_link_trace;
  double link_trace, link_trace_unit;
  bool has_checksum;
  char checksum_fault[128]; /* why the one that the file states cannot be read; "": it can */
  bool ignore_checksum; /* by the caller of qk_gauge_read: links that give another one are taken */
  int64_t data_offset, data_bytes; /* bytes of links in the file */
  qk_gauge_layout_t layout;
} qk_gauge_info_t;

/* Seconds of this rank, in files; reading and decoding go on side by side. */
typedef struct qk_gauge_times {
  double read, decode;
} qk_gauge_times_t;

/* What was found by reading it. */
typedef struct qk_gauge_check {
  double plaquette, plane[6]; /* xy, xz, xt, yz, yt, zt */
  double unitarity;           /* largest |U^+U - 1| element, but for links of open_boundary */
  double determinant;         /* largest |det U - 1|, likewise */
  double link_trace;          /* average Re tr U / 3 */
  bool checksum_ok;           /* meaningful with info.has_checksum */
  bool open_boundary;         /* all links of the last time slice in t are zero */
  uint64_t digest;            /* of the global links, see qk_gauge_measure */
  qk_gauge_times_t times;     /* of qk_gauge_read */
} qk_gauge_check_t;

enum { QK_GAUGE_FORMATS_MAX = 256 };

/* The names of the formats of files that can be read, separated by commas. Returns text. */
const char *qk_gauge_formats(char text[QK_GAUGE_FORMATS_MAX]);

/* dims_hint: for LIME files without an ildg-format record (NULL: none given). Reads only
 * headers, in bounded memory. Not collective. Errors: QK_IO_ERROR, QK_BAD_FORMAT, QK_TRUNCATED,
 * QK_TOO_LARGE, QK_BAD_GEOMETRY. */
qk_status_t qk_gauge_probe(const char *path, const int dims_hint[4], qk_gauge_info_t *info,
                           qk_err_t *err);

/* Each rank reads its own part into links[local_volume*4*9*2]. Verifies the file's checksum
 * (QK_BAD_CHECKSUM: links and check are filled in all the same, so that the caller can say more;
 * QK_BAD_FORMAT: it is no number), unless info->ignore_checksum: check->checksum_ok tells then.
 * info from probe, the same on all ranks. Other errors: QK_IO_ERROR, QK_TRUNCATED, QK_BAD_GEOMETRY
 * (info is of another lattice), QK_NO_MEMORY. Collective.
 * progress: from time to time on each rank, bytes of its own part; phases "read", then "check" at
 * its beginning and end. */
qk_status_t qk_gauge_read(const char *path, const qk_gauge_info_t *info, const qk_geom_t *geom,
                          double *links, qk_gauge_check_t *check, qk_progress_fn *progress,
                          void *arg, qk_err_t *err);

/* Writes ILDG (bits 32 or 64, with scidac-checksum) or NERSC 3x3 ("ildg", "nersc"), both big
 * endian; the bytes are the same on any grid. Rank 0 writes. All ranks must see the file, and
 * need memory for a second copy of it. The file gets its name only when it is complete and was
 * read back and compared. Errors: QK_IO_ERROR, QK_BAD_ARGUMENT, QK_NO_MEMORY, QK_COMM_ERROR; an
 * existing file is then unchanged. Collective. */
qk_status_t qk_gauge_write(const char *path, const char *format, int bits, const qk_geom_t *geom,
                           const double *links, qk_err_t *err);

/* Writes a matrix a site, g[local_volume][3][3] complex, as a SciDAC field of one colour matrix
 * (QDP_D3_ColorMatrix, 64 bits), as qk_gauge_write does, whose errors it has. */
qk_status_t qk_gauge_write_transform(const char *path, const qk_geom_t *geom, const double *g,
                                     qk_err_t *err);

/* The local links with the halo that the kernels need (qk_gauge_ext_t), exchanged between ranks.
 * *ext is host memory of qk_malloc, given to the caller; e[mu] = l + 2*split. Collective. */
qk_status_t qk_gauge_extend(const qk_geom_t *geom, const double *links, double **ext, int e[4],
                            qk_err_t *err);

/* Plaquette, unitarity, determinant, link trace and digest of links; checksum_ok becomes false.
 * The digest is the sum modulo 2^64 over all sites n of XXH3_64bits_withSeed(the 576 bytes of
 * the site's links as little-endian doubles in the order [mu][3][3][re, im], seed = global index
 * of n, x fastest). It is the same on any grid. Sums are taken in a fixed order: the same call
 * gives the same bits. Errors: QK_NO_MEMORY, QK_COMM_ERROR. Collective. */
qk_status_t qk_gauge_measure(const qk_geom_t *geom, const double *links, qk_gauge_check_t *check,
                             qk_err_t *err);

/* Judges check against info: header plaquette and link trace to the precision stored in the header
 * and links (QK_BAD_PLAQUETTE: two units of the last decimal and 1e-10, 1e-5 for 32 bit links),
 * unitarity and determinant below 1e-5 for 32 bit, 1e-9 for 64 bit links (QK_NOT_UNITARY; the worst
 * deviation is named, or an open boundary, unless that is asked for). NaN passes nothing. Pure. */
qk_status_t qk_gauge_judge(const qk_gauge_info_t *info, const qk_gauge_check_t *check, bool open,
                           qk_err_t *err);

#endif
