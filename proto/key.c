#include "proto/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char Z85[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

bool qk_key_valid(const char *text) {
  return strlen(text) == QK_KEY_TEXT - 1 && strspn(text, Z85) == QK_KEY_TEXT - 1;
}

/* One line and nothing else. */
static qk_status_t read_line(int fd, const char *path, char secret[QK_KEY_TEXT], char *why,
                             size_t size) {
  char line[QK_KEY_TEXT + 2]; /* newline, and one byte that should not be there */
  const ssize_t n = read(fd, line, sizeof line);
  qk_status_t status = QK_OK;
  if (n < 0) {
    snprintf(why, size, "%s: %s", path, strerror(errno));
    return QK_IO_ERROR;
  }
  line[n < (ssize_t)sizeof line ? n : (ssize_t)sizeof line - 1] = '\0';
  if (n == QK_KEY_TEXT && line[n - 1] == '\n') line[n - 1] = '\0';
  if (qk_key_valid(line)) {
    memcpy(secret, line, QK_KEY_TEXT);
  } else {
    snprintf(why, size, "%s: not one line of %d characters as quarkctl keygen makes it", path,
             QK_KEY_TEXT - 1);
    status = QK_BAD_FORMAT;
  }
  explicit_bzero(line, sizeof line);
  return status;
}

qk_status_t qk_key_read_secret(const char *path, char secret[QK_KEY_TEXT], char *why, size_t size) {
  struct stat st;
  qk_status_t status = QK_DENIED;
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) {
    snprintf(why, size, "%s: %s", path, strerror(errno));
    status = QK_IO_ERROR;
  } else if (!S_ISREG(st.st_mode)) {
    snprintf(why, size, "%s: not a regular file", path);
  } else if (st.st_mode & (S_IRWXG | S_IRWXO)) {
    snprintf(why, size, "%s: mode %04o lets others at the secret key: chmod 600 it", path,
             (unsigned)st.st_mode & 07777);
  } else {
    status = read_line(fd, path, secret, why, size);
  }
  if (fd >= 0) close(fd);
  return status;
}
