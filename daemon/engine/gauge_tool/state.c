#include "daemon/engine/gauge_tool/state.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "daemon/base/file.h"
#include "daemon/base/mem.h"

static const char KIND[] = "quark-gauge chain 1";
static const size_t DUMP = JSON_SORT_KEYS | JSON_INDENT(1) | JSON_REAL_PRECISION(17);
static const int64_t MAX_BYTES = 64 << 20;

static json_t *params_object(const qk_chain_params_t *p) {
  const int *d = p->dims;
  return json_pack("{s:[i,i,i,i], s:f, s:f, s:i, s:I, s:s, s:s, s:s, s:i, s:I}", "dims", d[0], d[1],
                   d[2], d[3], "beta", p->evolve.beta, "c1", p->evolve.c1, "or-per-hb",
                   p->evolve.or_per_hb, "seed", (json_int_t)p->evolve.seed, "start", p->start,
                   "out", p->out, "format", p->format, "bits", p->bits, "every",
                   (json_int_t)p->every);
}

static json_t *plaquettes_array(const qk_chain_state_t *state) {
  json_t *array = json_array();
  for (int64_t i = 0; i < state->sweep; i++)
    if (json_array_append_new(array, json_real(state->plaquettes[i])) != 0) {
      json_decref(array);
      return NULL;
    }
  return array;
}

/* Of the object as it is written, without its checksum; malloc'd; NULL: no memory. */
static char *dump_with_sum(json_t *object) {
  char sum[17];
  char *text = json_dumps(object, DUMP);
  if (text == NULL) return NULL;
  snprintf(sum, sizeof sum, "%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text)));
  free(text);
  if (json_object_set_new(object, "checksum", json_string(sum)) != 0) return NULL;
  return json_dumps(object, DUMP);
}

qk_status_t qk_state_save(const char *path, const qk_chain_params_t *params,
                          const qk_chain_state_t *state, qk_err_t *err) {
  char digest[17], *text = NULL;
  qk_status_t status;
  snprintf(digest, sizeof digest, "%016" PRIx64, state->digest);
  json_t *p = params_object(params);
  if (p == NULL) return qk_fail(err, QK_BAD_ARGUMENT, "%s: the names of files must be UTF-8", path);
  json_t *object =
      json_pack("{s:s, s:o, s:I, s:s, s:s, s:o}", "kind", KIND, "parameters", p, "sweep",
                (json_int_t)state->sweep, "configuration", state->configuration, "digest", digest,
                "plaquettes", plaquettes_array(state));
  if (object != NULL) text = dump_with_sum(object);
  status = text == NULL ? qk_fail(err, QK_NO_MEMORY, "%s: no memory for the state", path)
                        : qk_file_replace(path, text, (int64_t)strlen(text), err);
  free(text);
  json_decref(object);
  return status;
}

static qk_status_t read_object(const char *path, json_t **object, qk_err_t *err) {
  struct stat st;
  json_error_t at;
  if (stat(path, &st) != 0)
    return qk_fail(err, errno == ENOENT ? QK_NOT_FOUND : QK_IO_ERROR, "%s: %s", path,
                   strerror(errno));
  if (!S_ISREG(st.st_mode)) return qk_fail(err, QK_BAD_FORMAT, "%s: not a file", path);
  if (st.st_size > MAX_BYTES)
    return qk_fail(err, QK_TOO_LARGE,
                   "%s: %" PRId64 " bytes, the state of a chain has at most %" PRId64, path,
                   (int64_t)st.st_size, MAX_BYTES);
  *object = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
  if (*object != NULL) return QK_OK;
  return qk_fail(err, QK_BAD_FORMAT, "%s: damaged, or not the state of a chain: line %d: %.160s",
                 path, at.line, at.text);
}

/* What the object holds, checked against its own checksum, which is taken out of it. */
static qk_status_t check_sum(const char *path, json_t *object, qk_err_t *err) {
  char found[17];
  const char *kind = json_string_value(json_object_get(object, "kind"));
  const char *stated = json_string_value(json_object_get(object, "checksum"));
  if (kind == NULL || strcmp(kind, KIND) != 0 || stated == NULL)
    return qk_fail(err, QK_BAD_FORMAT, "%s: not the state of a chain (\"kind\": \"%s\")", path,
                   KIND);
  char given[17];
  snprintf(given, sizeof given, "%s", stated);
  json_object_del(object, "checksum");
  char *text = json_dumps(object, DUMP);
  if (text == NULL) return qk_fail(err, QK_NO_MEMORY, "%s: no memory for the state", path);
  snprintf(found, sizeof found, "%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text)));
  free(text);
  if (strcmp(found, given) == 0) return QK_OK;
  return qk_fail(err, QK_BAD_CHECKSUM, "%s: damaged: it states the checksum %s, and has %s", path,
                 given, found);
}

static qk_status_t compare_params(const char *path, const json_t *stored,
                                  const qk_chain_params_t *params, qk_err_t *err) {
  qk_status_t status = QK_OK;
  const char *key;
  json_t *want;
  json_t *wanted = params_object(params);
  if (wanted == NULL)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: the names of files must be UTF-8", path);
  json_object_foreach(wanted, key, want) {
    json_t *have = json_object_get(stored, key);
    if (json_equal(want, have)) continue;
    const size_t how = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15);
    char *asked = json_dumps(want, how), *was = have != NULL ? json_dumps(have, how) : NULL;
    status =
        qk_fail(err, QK_BAD_ARGUMENT,
                "%s: %s = %.120s, but the chain was begun with %.120s: it goes on with the same "
                "value only",
                path, key, asked != NULL ? asked : "?", was != NULL ? was : "none");
    free(asked);
    free(was);
    break;
  }
  json_decref(wanted);
  return status;
}

static bool read_plaquettes(const json_t *array, int64_t n, double *out) {
  if (!json_is_array(array) || (int64_t)json_array_size(array) != n) return false;
  for (int64_t i = 0; i < n; i++) {
    const json_t *v = json_array_get(array, (size_t)i);
    if (!json_is_real(v)) return false;
    out[i] = json_real_value(v);
  }
  return true;
}

static bool is_digest(const char *text) {
  return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

/* A name, without folders. */
static bool plain_name(const char *name) {
  return name[0] != '\0' && strlen(name) < QK_STATE_NAME && strchr(name, '/') == NULL;
}

static qk_status_t read_state(const char *path, json_t *object, qk_chain_state_t *state,
                              qk_err_t *err) {
  qk_chain_state_t s = {0};
  const char *name, *digest;
  json_t *array;
  json_int_t sweep;
  qk_status_t status = QK_OK;
  if (json_unpack(object, "{s:I, s:s, s:s, s:o}", "sweep", &sweep, "configuration", &name, "digest",
                  &digest, "plaquettes", &array) != 0 ||
      sweep < 1 || sweep > QK_STATE_SWEEPS || !plain_name(name))
    return qk_fail(err, QK_BAD_FORMAT, "%s: sweep, configuration or digest are no such", path);
  s.sweep = sweep;
  s.digest = strtoull(digest, NULL, 16);
  strcpy(s.configuration, name);
  s.plaquettes = qk_malloc((size_t)s.sweep * sizeof *s.plaquettes);
  if (s.plaquettes == NULL) {
    status = qk_fail(err, QK_NO_MEMORY, "%s: no memory for %" PRId64 " plaquettes", path, s.sweep);
  } else if (!is_digest(digest) || !read_plaquettes(array, s.sweep, s.plaquettes)) {
    status = qk_fail(err, QK_BAD_FORMAT, "%s: there must be a digest and %" PRId64 " plaquettes",
                     path, s.sweep);
  }
  if (status == QK_OK) {
    *state = s;
  } else {
    qk_free(s.plaquettes);
  }
  return status;
}

qk_status_t qk_state_load(const char *path, const qk_chain_params_t *params,
                          qk_chain_state_t *state, qk_err_t *err) {
  json_t *object = NULL;
  qk_status_t status = read_object(path, &object, err);
  if (status != QK_OK) return status;
  status = check_sum(path, object, err);
  if (status == QK_OK && params != NULL)
    status = compare_params(path, json_object_get(object, "parameters"), params, err);
  if (status == QK_OK) status = read_state(path, object, state, err);
  json_decref(object);
  return status;
}
