#include "client/quarkctl/eigen_vectors.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/solving.h"

static int open_field(quark_connection_t *conn, const qk_vectorsfile_t *file, uint64_t *field) {
  quark_field_params_t p;
  quark_error_t err;
  bool present;
  quark_field_params_init(&p);
  p.kind = QUARK_FIELD_VECTORS;
  p.dtype = file->bits == 32 ? QUARK_F32 : QUARK_F64;
  p.count = file->count;
  for (int mu = 0; mu < 4; mu++) p.dims[mu] = (uint32_t)file->dims[mu];
  return quark_field_open(conn, &p, field, NULL, &present, &err) == QUARK_OK ? 0 : ctl_fail(&err);
}

static int upload(quark_connection_t *conn, const qk_vectorsfile_t *file, uint64_t field,
                  void *vector) {
  const uint64_t all = (uint64_t)file->dims[3] * file->count;
  const size_t bytes = qk_vectorsfile_bytes(file);
  quark_error_t err;
  qk_err_t why = {0};
  for (uint64_t i = 0; i < all && !ctl_interrupted(); i++) {
    const uint32_t t = (uint32_t)(i / file->count), n = (uint32_t)(i % file->count);
    if (qk_vectorsfile_read(file, t, n, vector, &why) != QK_OK) return ctl_fail_file(&why);
    if (quark_upload(conn, field, vector, bytes, &err) != QUARK_OK) return ctl_fail(&err);
  }
  return ctl_interrupted() ? EXIT_AGAIN : 0;
}

static int wait_for(quark_connection_t *conn, const char *path, uint64_t field) {
  char text[CTL_RESULT_MAX];
  quark_result_t result;
  quark_error_t err;
  if (quark_wait(conn, field, 0, -1, &result, &err) != QUARK_OK) return ctl_fail(&err);
  if (result.status == QUARK_OK) return 0;
  ctl_complain("%s: %s", path, ctl_result_text(&result, text));
  return EXIT_DATA;
}

static int send_file(quark_connection_t *conn, const qk_vectorsfile_t *file, uint64_t *field) {
  void *vector = malloc(qk_vectorsfile_bytes(file));
  if (!vector) {
    ctl_complain("no memory for a vector");
    return EXIT_AGAIN;
  }
  int code = open_field(conn, file, field);
  if (code == 0) {
    code = upload(conn, file, *field, vector);
    if (code == 0) code = wait_for(conn, file->path, *field);
    if (code != 0) quark_release(conn, *field, NULL);
  }
  free(vector);
  return code;
}

int ctl_eigen_send(quark_connection_t *conn, const char *path, uint64_t *field, uint32_t *count,
                   bool *single) {
  qk_vectorsfile_t file;
  qk_err_t why = {0};
  const bool opened = qk_vectorsfile_open(path, &file, &why) == QK_OK;
  const int code = opened ? send_file(conn, &file, field) : ctl_fail_file(&why);
  *count = file.count;
  *single = file.bits == 32;
  qk_vectorsfile_close(&file);
  return code;
}

/* ---- back ------------------------------------------------------------------------------------ */

enum { SPINS = 4, COLOURS = 3 };

/* Of a field with all of its vector in the first spin. */
static void pick_spin(const void *field, int bits, uint64_t sites, void *to) {
  const size_t bytes = (size_t)COLOURS * 2 * (size_t)bits / 8;
  for (uint64_t n = 0; n < sites; n++)
    memcpy((char *)to + n * bytes, (const char *)field + n * SPINS * bytes, bytes);
}

static int fetch(quark_connection_t *conn, const char *name, uint32_t n, int bits, void *field,
                 size_t bytes) {
  const quark_column_t column = {.vector = n, .t = -1};
  char text[CTL_RESULT_MAX];
  quark_params_t p;
  quark_result_t result;
  quark_error_t err;
  uint64_t request;
  quark_params_init(&p);
  p.nrhs = 1;
  p.source = QUARK_VECTOR;
  p.work = QUARK_WORK_SMEAR;
  p.vectors = name;
  p.column = &column;
  p.dtype = bits == 32 ? QUARK_F32 : QUARK_F64;
  if (quark_submit(conn, &p, &request, NULL, &err) != QUARK_OK) return ctl_fail(&err);
  int code = 0;
  if (quark_wait(conn, request, 0, -1, &result, &err) != QUARK_OK) {
    code = ctl_fail(&err);
  } else if (result.status != QUARK_OK) {
    ctl_complain("vector %u: %s", n, ctl_result_text(&result, text));
    code = EXIT_DATA;
  } else if (quark_download(conn, request, 0, field, bytes, &err) != QUARK_OK) {
    code = ctl_fail(&err);
  }
  quark_release(conn, request, NULL);
  return code;
}

static int fetch_all(quark_connection_t *conn, const char *name, qk_vectorsfile_t *file) {
  const size_t slices = (size_t)file->dims[3] * qk_vectorsfile_bytes(file);
  const uint64_t sites = slices / ((size_t)COLOURS * 2 * (size_t)file->bits / 8);
  void *field = malloc(SPINS * slices), *picked = malloc(slices);
  qk_err_t why = {0};
  int code = field && picked ? 0 : EXIT_AGAIN;
  if (code) ctl_complain("no memory for a vector");
  for (uint32_t n = 0; n < file->count && code == 0 && !ctl_interrupted(); n++) {
    code = fetch(conn, name, n, file->bits, field, SPINS * slices);
    if (code) break;
    pick_spin(field, file->bits, sites, picked);
    if (qk_vectorsfile_write(file, n, picked, &why) != QK_OK) code = ctl_fail_file(&why);
  }
  free(picked);
  free(field);
  if (code == 0 && ctl_interrupted()) code = EXIT_AGAIN;
  if (code == 0 && qk_vectorsfile_commit(file, &why) != QK_OK) code = ctl_fail_file(&why);
  return code;
}

int ctl_eigen_fetch(quark_connection_t *conn, const char *path, const qk_eigenmeta_t *meta,
                    uint32_t count, bool single) {
  qk_vectorsfile_t file;
  qk_err_t why = {0};
  const bool there =
      qk_vectorsfile_create(path, meta, count, single ? 32 : 64, &file, &why) == QK_OK;
  const int code = there ? fetch_all(conn, meta->name, &file) : ctl_fail_file(&why);
  qk_vectorsfile_close(&file);
  return code;
}
