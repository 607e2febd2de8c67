#include "client/cli/ticket.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/file.h"

static const char FORMAT[] = "quarkd ticket";
enum { VERSION = 1 };

int ctl_ticket_path(const char *out, char path[QK_PATH_MAX]) {
  if (snprintf(path, QK_PATH_MAX, "%s.ticket", out) >= QK_PATH_MAX - 16) {
    ctl_complain("--out=%.60s...: the path is too long", out);
    return EXIT_USAGE;
  }
  if (access(path, F_OK) != 0) return 0;
  ctl_complain("%s exists: its solutions have not been fetched; fetch them, or remove it", path);
  return EXIT_DATA;
}

int64_t ctl_ticket_nrhs(const ctl_ticket_t *ticket) {
  int64_t n = 0;
  for (int i = 0; i < ticket->parts; i++) n += ticket->part[i].nrhs;
  return n;
}

void ctl_ticket_client(const ctl_ticket_t *ticket, char text[2 * QUARK_CLIENT_ID_BYTES + 1]) {
  for (int i = 0; i < QUARK_CLIENT_ID_BYTES; i++)
    snprintf(text + 2 * i, 3, "%02x", ticket->client[i]);
}

/* ---- writing ------------------------------------------------------------------------------- */

json_t *ctl_ticket_parts(const ctl_ticket_t *ticket) {
  json_t *parts = json_array();
  for (int i = 0; i < ticket->parts; i++)
    json_array_append_new(parts,
                          json_pack("{s:I, s:i}", "request", (json_int_t)ticket->part[i].request,
                                    "nrhs", (int)ticket->part[i].nrhs));
  return parts;
}

static json_t *setup_json(const quark_report_t *r) {
  char digest[24];
  snprintf(digest, sizeof digest, "%016" PRIx64, r->setup.digest);
  json_t *dims = json_array(), *boundary = json_array();
  for (int mu = 0; mu < 4; mu++) json_array_append_new(dims, json_integer(r->setup.dims[mu]));
  for (int i = 0; i < 8; i++) json_array_append_new(boundary, json_real(r->setup.boundary[i]));
  return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "gauge",
                   r->setup.gauge, "digest", digest, "dims", dims, "boundary", boundary, "action",
                   r->setup.action, "parameters", r->setup.parameters, "site_reals",
                   (json_int_t)r->setup.site_reals, "columns", (json_int_t)r->setup.columns,
                   "kappa", ctl_number(r->setup.kappa), "mass", ctl_number(r->setup.mass), "csw",
                   ctl_number(r->setup.csw), "plaquette", ctl_number(r->setup.plaquette));
}

/* The mode is set before anything is written. */
static int save(const char *path, const char *text) {
  qk_err_t err = {0};
  const mode_t mask = umask(077);
  const qk_status_t status = qk_file_replace(path, text, (int64_t)strlen(text), &err);
  umask(mask);
  return status == QK_OK ? 0 : ctl_fail_file(&err);
}

int ctl_ticket_write(const char *path, const ctl_ticket_t *t) {
  char client[2 * QUARK_CLIENT_ID_BYTES + 1];
  ctl_ticket_client(t, client);
  json_t *root =
      json_pack("{s:s, s:i, s:s, s:s*, s:s, s:I, s:o, s:s, s:s, s:s*, s:s*, s:o}", "format", FORMAT,
                "version", VERSION, "endpoint", t->endpoint, "server_key", t->server_key, "client",
                client, "kept_seconds", (json_int_t)t->kept_s, "requests", ctl_ticket_parts(t),
                "kind", t->kind, "source", t->source, "input", t->input, "output_format", t->format,
                "setup", setup_json(&t->report));
  char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(root);
  if (!text) {
    ctl_complain("%s: no memory for a ticket, or a text that is not UTF-8", path);
    return EXIT_DATA;
  }
  const int code = save(path, text);
  free(text);
  return code;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool hex_of(const char *text, size_t bytes, uint8_t *out) {
  if (strlen(text) != 2 * bytes || strspn(text, "0123456789abcdef") != 2 * bytes) return false;
  for (size_t i = 0; i < bytes; i++) {
    const char pair[3] = {text[2 * i], text[2 * i + 1], 0};
    out[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  return true;
}

/* null: NaN. */
static bool number_of(const json_t *v, double *out) {
  *out = json_is_number(v) ? json_number_value(v) : NAN;
  return json_is_number(v) || json_is_null(v);
}

static bool read_parts(const json_t *list, ctl_ticket_t *t) {
  const size_t n = json_array_size(list);
  if (n < 1 || n > CTL_TICKET_PARTS) return false;
  for (size_t i = 0; i < n; i++) {
    json_int_t request = 0, nrhs = 0;
    if (json_unpack(json_array_get(list, i), "{s:I, s:I}", "request", &request, "nrhs", &nrhs) ||
        request < 1 || nrhs < 1 || nrhs > QK_REQUEST_RHS_MAX)
      return false;
    t->part[i] = (ctl_part_t){.request = (uint64_t)request, .nrhs = (uint32_t)nrhs};
  }
  t->parts = (int)n;
  return true;
}

/* Tickets of earlier programs do not have it: the setup was then as that of an old daemon. */
static bool read_action(json_t *setup, quark_report_t *r) {
  const char *action = "", *parameters = "";
  json_int_t site_reals = QK_H5_SITE_REALS, columns = QK_SOURCE_COMPONENTS;
  if (json_unpack(setup, "{s?s, s?s, s?I, s?I}", "action", &action, "parameters", &parameters,
                  "site_reals", &site_reals, "columns", &columns) ||
      strlen(action) >= sizeof r->setup.action ||
      strlen(parameters) >= sizeof r->setup.parameters || site_reals < 1 ||
      site_reals > UINT32_MAX || columns < 1 || columns > UINT32_MAX)
    return false;
  strcpy(r->setup.action, action);
  strcpy(r->setup.parameters, parameters);
  r->setup.site_reals = (uint32_t)site_reals;
  r->setup.columns = (uint32_t)columns;
  return true;
}

static bool read_setup(json_t *setup, quark_report_t *r) {
  const char *gauge, *digest;
  json_t *dims, *boundary;
  if (json_unpack(setup, "{s:s, s:s, s:o, s:o}", "gauge", &gauge, "digest", &digest, "dims", &dims,
                  "boundary", &boundary) ||
      json_array_size(dims) != 4 || json_array_size(boundary) != 8 || !read_action(setup, r))
    return false;
  snprintf(r->setup.gauge, sizeof r->setup.gauge, "%s", gauge);
  r->setup.digest = strtoull(digest, NULL, 16);
  for (size_t mu = 0; mu < 4; mu++) {
    const json_int_t extent = json_integer_value(json_array_get(dims, mu));
    if (extent < 1 || extent > QK_H5FILE_MAX_EXTENT) return false;
    r->setup.dims[mu] = (uint32_t)extent;
  }
  for (size_t i = 0; i < 8; i++)
    if (!number_of(json_array_get(boundary, i), &r->setup.boundary[i])) return false;
  return number_of(json_object_get(setup, "kappa"), &r->setup.kappa) &&
         number_of(json_object_get(setup, "mass"), &r->setup.mass) &&
         number_of(json_object_get(setup, "csw"), &r->setup.csw) &&
         number_of(json_object_get(setup, "plaquette"), &r->setup.plaquette);
}

static bool read_root(ctl_ticket_t *t) {
  const char *format, *client;
  json_int_t version, kept;
  json_t *requests, *setup;
  if (json_unpack(t->root, "{s:s, s:I, s:s, s?s, s:s, s:I, s:o, s:s, s:s, s?s, s?s, s:o}", "format",
                  &format, "version", &version, "endpoint", &t->endpoint, "server_key",
                  &t->server_key, "client", &client, "kept_seconds", &kept, "requests", &requests,
                  "kind", &t->kind, "source", &t->source, "input", &t->input, "output_format",
                  &t->format, "setup", &setup))
    return false;
  t->kept_s = (uint64_t)kept;
  return strcmp(format, FORMAT) == 0 && version == VERSION && kept > 0 &&
         hex_of(client, sizeof t->client, t->client) && read_parts(requests, t) &&
         read_setup(setup, &t->report);
}

int ctl_ticket_read(const char *path, ctl_ticket_t *ticket) {
  json_error_t err;
  *ticket = (ctl_ticket_t){.root = NULL};
  if (access(path, R_OK) != 0) {
    ctl_complain("%s: %s%s", path, strerror(errno),
                 errno == ENOENT ? ": fetched, or never written" : "");
    return EXIT_DATA;
  }
  ticket->root = json_load_file(path, 0, &err);
  if (!ticket->root)
    ctl_complain("%s is not a ticket: line %d: %s", path, err.line, err.text);
  else if (!read_root(ticket))
    ctl_complain("%s is not a ticket of version %d, or is damaged", path, VERSION);
  else
    return 0;
  return EXIT_DATA;
}

void ctl_ticket_fini(ctl_ticket_t *ticket) {
  json_decref(ticket->root);
}

/* ---- the end ------------------------------------------------------------------------------- */

bool ctl_ticket_release(const ctl_ticket_t *ticket, quark_connection_t *conn, quark_error_t *err) {
  for (int i = 0; i < ticket->parts; i++)
    if (quark_forget(conn, ticket->part[i].request, err) != QUARK_OK) return false;
  return true;
}
