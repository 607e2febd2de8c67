/*
 * gauge_format.h: what the gauge file formats share. Internal to gauge_*.c and their fuzzers.
 *
 * One file per format holds its header parser, qk_gauge_<format>_probe: it fills *info (zeroed by
 * the caller) from an open file and reads no links. qk_gauge_<format>_is says by the first bytes
 * whether that parser is to be asked. The table in gauge_probe.c lists both. A parser trusts
 * nothing: every number is parsed strictly, no more than QK_LIME_TEXT_MAX bytes of text are held
 * at a time, and extents are checked against each other and the size of the file before anybody
 * allocates by them. Not collective. Errors: as qk_gauge_probe.
 */
#ifndef QK_ENGINE_GAUGE_FORMAT_H
#define QK_ENGINE_GAUGE_FORMAT_H

#include "daemon/base/formats/infile.h"
#include "daemon/base/formats/parse.h"
#include "daemon/engine/gauge/gauge.h"

enum {
  QK_GAUGE_SITE_REALS = 72, /* 4 links of 9 complex numbers */
  QK_GAUGE_HEAD = 24,       /* first bytes by which a format is found */
};

typedef struct qk_gauge_file {
  qk_infile_t in;
  const int *dims_hint; /* x, y, z, t, as the caller gives them; NULL: not given */
} qk_gauge_file_t;

/* `bytes` is QK_GAUGE_HEAD, or less for a file that is shorter: zeros follow. */
typedef bool qk_gauge_is_fn(const uint8_t head[QK_GAUGE_HEAD], int64_t bytes);
typedef qk_status_t qk_gauge_probe_fn(const qk_gauge_file_t *file, qk_gauge_info_t *info,
                                      qk_err_t *err);

/* A header without extents needs the hint; with others they are compared by the caller. */
qk_gauge_is_fn qk_gauge_lime_is, qk_gauge_nersc_is, qk_gauge_milc_is, qk_gauge_openqcd_is;
qk_gauge_probe_fn qk_gauge_lime_probe, qk_gauge_nersc_probe, qk_gauge_milc_probe,
    qk_gauge_openqcd_probe;
/* "builtin:..." */
qk_status_t qk_gauge_builtin_probe(const char *path, qk_gauge_info_t *info, qk_err_t *err);
/* "memory:/NAME:f64:18:XxYxZxT[:PLAQUETTE]": a shared-memory object, f32 or f64, 18 or 12 real
 * numbers a link. Its size is checked. */
bool qk_gauge_is_memory(const char *path);
qk_status_t qk_gauge_memory_probe(const char *path, qk_gauge_info_t *info, qk_err_t *err);
qk_status_t qk_gauge_memory_open(const char *path, qk_gauge_file_t *file, qk_err_t *err);

/* Extents into info->dims: even, >= 2, at most 2^31 - 1 sites. QK_BAD_GEOMETRY, QK_TOO_LARGE. */
qk_status_t qk_gauge_set_dims(const int64_t dims[4], qk_gauge_info_t *info, qk_err_t *err);
/* Where the links stand, from dims, bits and layout.rows; `present` bytes are there for them.
 * QK_TRUNCATED where they are too few, QK_BAD_GEOMETRY where they are too many. */
qk_status_t qk_gauge_set_data(int64_t offset, int64_t present, qk_gauge_info_t *info,
                              qk_err_t *err);

/* Who is told of the bytes that were read, and what takes the time; progress may be NULL. */
typedef struct qk_gauge_watch {
  qk_progress_fn *progress;
  void *arg;
  qk_gauge_times_t *times;
} qk_gauge_watch_t;
static inline void qk_gauge_watch(const qk_gauge_watch_t *watch, int64_t done, int64_t total) {
  if (watch->progress != NULL) watch->progress(watch->arg, "read", done, total);
}

/* The local part of the links of a file into links. gauge_openqcd.c. Not collective. */
qk_status_t qk_gauge_openqcd_read(const qk_gauge_file_t *file, const qk_gauge_info_t *info,
                                  const qk_geom_t *geom, double *links,
                                  const qk_gauge_watch_t *watch, qk_err_t *err);
/* The local part of a built-in configuration. Not collective. */
void qk_gauge_builtin_fill(const qk_gauge_info_t *info, const qk_geom_t *geom, double *links);

/* Partial checksum of some sites; parts of a lattice combine by xor of x[] and addition of sum. */
typedef struct qk_gauge_sum {
  uint32_t x[2];
  uint64_t sum;
} qk_gauge_sum_t;

/* Adds n sites, as they stand in the file from global site `first` on. */
void qk_gauge_sum_add(const qk_gauge_layout_t *layout, int64_t first, int64_t n, int64_t site_bytes,
                      const uint8_t *raw, qk_gauge_sum_t *sum);
/* The two words of the checksum as they stand in a header; the second is 0 for NERSC. */
void qk_gauge_sum_words(const qk_gauge_layout_t *layout, const qk_gauge_sum_t *sum,
                        uint32_t word[2]);

/* Bytes of a site in the file. n links from the file to memory, whole sites where layout.t_first;
 * and back, three rows and mu = x,y,z,t only. */
int64_t qk_gauge_site_bytes(const qk_gauge_info_t *info);
void qk_gauge_decode(const qk_gauge_info_t *info, int64_t n, const uint8_t *raw, double *links);
void qk_gauge_encode(const qk_gauge_info_t *info, int64_t n, const double *links, uint8_t *raw);

#endif
