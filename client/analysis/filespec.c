#include "client/analysis/filespec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/analysis/scan.h"

/* The place where the keys begin. The path may contain commas. */
static const char *first_key(const char *text) {
  static const char *const keys[] = {",offset=", ",size=", ",nrhs="};
  const char *end = text + strlen(text);
  for (int i = 0; i < 3; i++) {
    const char *at = strstr(text, keys[i]);
    if (at && at < end) end = at;
  }
  return end;
}

static bool parse_keys(const char *p, bool source, qk_filespec_t *f) {
  while (*p) {
    uint64_t nrhs = 0;
    if (qk_scan_word(&p, ",offset=")) {
      if (!qk_scan_uint64(&p, &f->offset)) return false;
    } else if (source && qk_scan_word(&p, ",size=")) {
      if (!qk_scan_uint64(&p, &f->size) || f->size == 0) return false;
    } else if (source && qk_scan_word(&p, ",nrhs=")) {
      if (!qk_scan_uint64(&p, &nrhs) || nrhs < 1 || nrhs > QK_REQUEST_RHS_MAX) return false;
      f->nrhs = (uint32_t)nrhs;
    } else
      return false;
  }
  return true;
}

qk_status_t qk_filespec_parse(const char *text, bool source, qk_filespec_t *file, qk_err_t *err) {
  const char *path = text, *keys;
  char folder[QK_FILE_NAME_MAX] = "";
  qk_filespec_t f = {.offset = 0};
  if (!qk_scan_word(&path, "file:") || *path == '\0' || (keys = first_key(path)) == path ||
      !parse_keys(keys, source, &f))
    return qk_fail(err, QK_BAD_ARGUMENT, "%.200s: must be file:PATH[,offset=N]%s", text,
                   source ? "[,size=N][,nrhs=N], nrhs 1 to 1024" : "");
  if (*path != '/' && !getcwd(folder, sizeof folder))
    return qk_fail(err, QK_TOO_LARGE, "%.200s: the path of this folder is too long", text);
  const int n = snprintf(f.path, sizeof f.path, "%s%s%.*s", folder, *folder ? "/" : "",
                         (int)(keys - path), path);
  if (n >= (int)sizeof f.path)
    return qk_fail(err, QK_TOO_LARGE, "path of %d bytes: the limit is %d", n, QK_FILE_NAME_MAX);
  *file = f;
  return QK_OK;
}
