/* gauge_memory.c: links in a shared-memory object, which a client has sent to the daemon. */
#include "daemon/engine/gauge/gauge_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PREFIX[] = "memory:";

bool qk_gauge_is_memory(const char *path) {
  return strncmp(path, PREFIX, sizeof PREFIX - 1) == 0;
}

/* "memory:/NAME:f64:18:XxYxZxT" and ":PLAQUETTE" if the client has said it. */
static int split(const char *path, char text[256], char *word[7]) {
  char *save = NULL;
  int n = 0;
  if (strlen(path) >= 256) return 0;
  strcpy(text, path);
  for (char *w = strtok_r(text, ":", &save); w != NULL && n < 7; w = strtok_r(NULL, ":", &save))
    word[n++] = w;
  return n;
}

static qk_status_t open_object(const char *name, qk_gauge_file_t *file, qk_err_t *err) {
  struct stat st;
  const int fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "cannot open: %s", strerror(errno));
  if (fstat(fd, &st) != 0) {
    qk_fail(err, QK_IO_ERROR, "cannot stat: %s", strerror(errno));
    close(fd);
    return QK_IO_ERROR;
  }
  *file = (qk_gauge_file_t){.in = {.fd = fd, .size = st.st_size}};
  return QK_OK;
}

qk_status_t qk_gauge_memory_open(const char *path, qk_gauge_file_t *file, qk_err_t *err) {
  char text[256], *word[7];
  if (split(path, text, word) < 2)
    return qk_fail(err, QK_BAD_ARGUMENT, "names no object in shared memory");
  return open_object(word[1], file, err);
}

qk_status_t qk_gauge_memory_probe(const char *path, qk_gauge_info_t *info, qk_err_t *err) {
  char text[256], *word[7];
  int dims[4];
  int64_t reals = 0, wide[4];
  qk_gauge_file_t file;
  const int n = split(path, text, word);
  const bool f32 = n > 2 && strcmp(word[2], "f32") == 0;
  if (n < 5 || n > 6 || (!f32 && strcmp(word[2], "f64") != 0) ||
      !qk_parse_int(word[3], 12, 18, &reals) || (reals != 12 && reals != 18))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "links in memory are memory:/NAME:f32|f64:12|18:XxYxZxT[:PLAQUETTE]");
  if (n == 6 && !qk_parse_real(word[5], &info->plaquette, &info->plaquette_unit))
    return qk_fail(err, QK_BAD_ARGUMENT, "plaquette = %s is not a number", word[5]);
  qk_status_t status = qk_geom_parse_dims(word[4], dims, err);
  if (status != QK_OK) return status;
  for (int mu = 0; mu < 4; mu++) wide[mu] = dims[mu];
  status = qk_gauge_set_dims(wide, info, err);
  if (status != QK_OK) return status;
  info->has_plaquette = n == 6;
  info->plaquette_unit = 0; /* a number in binary, which was printed in full */
  info->bits = f32 ? 32 : 64;
  info->layout = (qk_gauge_layout_t){.order = QK_GAUGE_SITES, .rows = (int)reals / 6};
  snprintf(info->format, sizeof info->format, "memory, %d bits, %d rows", info->bits,
           info->layout.rows);
  status = open_object(word[1], &file, err);
  if (status != QK_OK) return status;
  status = qk_gauge_set_data(0, file.in.size, info, err);
  qk_infile_close(&file.in);
  return status;
}
