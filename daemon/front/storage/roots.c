#include "daemon/front/storage/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/mem.h"

enum { PATIENCE = 16 /* with others who rename what is on the way */, SHOWN = 256 };

/* Beneath the folder, whatever links say. */
static int open_beneath(int folder, const char *path, int flags) {
  const struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  long fd = -1;
  for (int i = 0; i < PATIENCE; i++) {
    fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return (int)fd;
}

qk_status_t qk_roots_fail(int error, const char *path, qk_err_t *err) {
  char shown[SHOWN];
  const char *text = error == EXDEV ? "it leads out of its root" : strerror(error);
  qk_err_quote(path, shown, sizeof shown);
  switch (error) {
  case ENOENT:
  case ENOTDIR:
    return qk_fail(err, QK_NOT_FOUND, "%s: %s", shown, text);
  case EXDEV:
  case EACCES:
  case EPERM:
  case ELOOP:
    return qk_fail(err, QK_DENIED, "%s: %s", shown, text);
  default:
    return qk_fail(err, QK_IO_ERROR, "%s: %s", shown, text);
  }
}

/* ---- the folders --------------------------------------------------------------------------- */

static qk_status_t add(qk_roots_t *roots, char *dir, qk_err_t *err) {
  struct stat st;
  if (dir[0] == '\0')
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "file-roots: one of the folders has no name: is there a colon too many?");
  if (dir[0] != '/')
    return qk_fail(err, QK_BAD_ARGUMENT, "file-roots: \"%s\" is no absolute path", dir);
  if (dir[strspn(dir, "/")] == '\0')
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "file-roots: \"%s\" is the whole file system: name folders below it", dir);
  for (size_t n = strlen(dir); dir[n - 1] == '/'; n--) dir[n - 1] = '\0';
  if (stat(dir, &st) != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "file-roots: %s: %s", dir, strerror(errno));
  if (!S_ISDIR(st.st_mode)) return qk_fail(err, QK_BAD_ARGUMENT, "file-roots: %s: no folder", dir);
  if (roots->count == QK_FILE_ROOTS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "file-roots: more than %d folders", QK_FILE_ROOTS_MAX);
  roots->at[roots->count++] = dir;
  return QK_OK;
}

static qk_status_t probe(qk_err_t *err) {
  const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
            fd = root >= 0 ? open_beneath(root, ".", O_PATH | O_DIRECTORY) : -1;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (root >= 0) close(root);
  if (fd >= 0) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED, "file-roots: openat2, which keeps paths inside: %s",
                 strerror(error));
}

qk_status_t qk_roots_init(qk_roots_t *roots, const char *text, qk_err_t *err) {
  *roots = (qk_roots_t){.text = NULL};
  if (!text) return QK_OK;
  roots->text = qk_malloc(strlen(text) + 1);
  if (!roots->text) return qk_fail(err, QK_NO_MEMORY, "no memory for file-roots");
  memcpy(roots->text, text, strlen(text) + 1);
  qk_status_t status = probe(err);
  char *rest = roots->text;
  for (char *dir; status == QK_OK && (dir = strsep(&rest, ":"));) status = add(roots, dir, err);
  if (status != QK_OK) qk_roots_fini(roots);
  return status;
}

void qk_roots_fini(qk_roots_t *roots) {
  qk_free(roots->text);
  *roots = (qk_roots_t){.text = NULL};
}

/* ---- paths --------------------------------------------------------------------------------- */

/* The root that the path begins with, and the rest of it; NULL: none. */
static const char *root_of(const qk_roots_t *roots, const char *path, const char **rest) {
  for (int i = 0; i < roots->count; i++) {
    const size_t n = strlen(roots->at[i]);
    if (strncmp(path, roots->at[i], n) != 0 || path[n] != '/') continue;
    *rest = path + n + strspn(path + n, "/");
    return roots->at[i];
  }
  return NULL;
}

static bool has_dots(const char *path) {
  for (const char *p = path; *p; p += strspn(p, "/")) {
    const size_t n = strcspn(p, "/");
    if (n <= 2 && n > 0 && strspn(p, ".") >= n) return true;
    p += n;
  }
  return false;
}

static bool is_printable(const char *path) {
  for (const char *p = path; *p; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7f) return false;
  return true;
}

qk_status_t qk_roots_check(const qk_roots_t *roots, const char *what, const char *path,
                           qk_err_t *err) {
  const char *rest, *last = strrchr(path, '/');
  char shown[SHOWN];
  qk_err_quote(path, shown, sizeof shown);
  if (roots->count == 0)
    return qk_fail(err, QK_DENIED, "%s: this daemon opens no files for clients (--file-roots)",
                   what);
  if (strlen(path) > QK_FILE_NAME_MAX)
    return qk_fail(err, QK_TOO_LARGE, "%s of %zu bytes: the limit is %d", what, strlen(path),
                   QK_FILE_NAME_MAX);
  if (!is_printable(path) || path[0] != '/' || has_dots(path))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s = %s: must be an absolute path without . and .. and control characters",
                   what, shown);
  if (!root_of(roots, path, &rest))
    return qk_fail(err, QK_DENIED, "%s = %s is below none of the file-roots", what, shown);
  if (last[1] == '\0' || strlen(last + 1) > QK_FILE_LAST_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = %s: its last part has %zu bytes, must be 1 to %d",
                   what, shown, strlen(last + 1), QK_FILE_LAST_MAX);
  return QK_OK;
}

static qk_status_t open_below(const qk_roots_t *roots, const char *path, const char *rest_of_it,
                              int flags, int *fd, qk_err_t *err) {
  const char *rest, *root = root_of(roots, path, &rest);
  const int folder = root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  if (folder < 0) return qk_roots_fail(root ? errno : EACCES, path, err);
  *fd = open_beneath(folder, rest_of_it ? rest_of_it : rest, flags);
  const int error = errno;
  close(folder);
  return *fd >= 0 ? QK_OK : qk_roots_fail(error, path, err);
}

qk_status_t qk_roots_open(const qk_roots_t *roots, const char *path, int *fd, qk_err_t *err) {
  struct stat st;
  int file;
  const qk_status_t status =
      open_below(roots, path, NULL, O_RDONLY | O_NONBLOCK | O_NOCTTY, &file, err);
  if (status != QK_OK) return status;
  if (fstat(file, &st) == 0 && S_ISREG(st.st_mode)) {
    *fd = file;
    return QK_OK;
  }
  close(file);
  char shown[SHOWN];
  qk_err_quote(path, shown, sizeof shown);
  return qk_fail(err, QK_BAD_ARGUMENT, "%s is not a regular file", shown);
}

qk_status_t qk_roots_open_folder(const qk_roots_t *roots, const char *path, int *fd,
                                 const char **name, qk_err_t *err) {
  const char *rest;
  char folder[QK_FILE_NAME_MAX + 1] = ".";
  const char *last = strrchr(path, '/');
  if (root_of(roots, path, &rest) && last > rest) {
    memcpy(folder, rest, (size_t)(last - rest));
    folder[last - rest] = '\0';
  }
  const qk_status_t status = open_below(roots, path, folder, O_RDONLY | O_DIRECTORY, fd, err);
  if (status == QK_OK) *name = last + 1;
  return status;
}
