#include "client/quarkctl/eigen_from.h"

#include <stdlib.h>

#include "client/cli/solving.h"
#include "client/files/eigenfile.h"

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
