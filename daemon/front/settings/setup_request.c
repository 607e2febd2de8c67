#include "daemon/front/settings/setup_request.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/front/settings/names.h"
#include "daemon/front/settings/operator.h"
#include "proto/choices.h"
#include "proto/control.h"
#include "proto/eigen_check.h"

static const char BUILTIN[] = "builtin:", DIGEST[] = "digest:";

/* ---- files --------------------------------------------------------------------------------- */

/* Whether path, below root, is a regular file that is still there with all links followed. */
static bool is_below(const char *root, const char *path, char found[QK_PATH_MAX + 1]) {
  char whole[2 * PATH_MAX + 2], real_root[PATH_MAX], real[PATH_MAX];
  struct stat st;
  snprintf(whole, sizeof whole, "%s/%s", root, path);
  if (!realpath(root, real_root) || !realpath(path[0] == '/' ? path : whole, real)) return false;
  const size_t n = strcmp(real_root, "/") == 0 ? 0 : strlen(real_root);
  if (strncmp(real, real_root, n) != 0 || real[n] != '/' || strlen(real) > QK_PATH_MAX)
    return false;
  if (stat(real, &st) != 0 || !S_ISREG(st.st_mode)) return false;
  snprintf(found, QK_PATH_MAX + 1, "%s", real);
  return true;
}

qk_status_t qk_setup_request_find(const char *roots, const char *path, char found[QK_PATH_MAX + 1],
                                  qk_err_t *err) {
  char name[QK_SETUP_GAUGE_MAX + 1], root[PATH_MAX];
  if (strlen(path) > QK_SETUP_GAUGE_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "gauge of %zu bytes: the limit is %d", strlen(path),
                   QK_SETUP_GAUGE_MAX);
  for (const char *p = roots; *p; p += strspn(p, ":")) {
    const size_t n = strcspn(p, ":");
    if (n < sizeof root) {
      snprintf(root, sizeof root, "%.*s", (int)n, p);
      if (is_below(root, path, found)) return QK_OK;
    }
    p += n;
  }
  qk_err_quote(path, name, sizeof name);
  return qk_fail(err, QK_NOT_FOUND, "gauge = %.300s: there is no such file below %.150s", name,
                 *roots ? roots : "any folder, as quarkd has no --gauge-roots");
}

/* Those that were given, or the folder of the daemon's own file. */
static void find_roots(const qk_settings_t *s, char roots[PATH_MAX]) {
  roots[0] = '\0';
  if (s->gauge_roots)
    snprintf(roots, PATH_MAX, "%s", s->gauge_roots);
  else if (strncmp(s->gauge, BUILTIN, strlen(BUILTIN)) != 0 && realpath(s->gauge, roots))
    *strrchr(roots + 1, '/') = '\0';
}

/* ---- numbers ------------------------------------------------------------------------------- */

static qk_status_t set_boundary(const char *text, qk_settings_t *s, qk_err_t *err) {
  char why[QK_WHY];
  if (!qk_boundary_parse(text, s->boundary, why)) return qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
  s->boundary_text = text;
  return QK_OK;
}

static qk_status_t set_dims(const Quark__Load *load, qk_settings_t *s, qk_err_t *err) {
  if (load->gauge) memset(s->dims, 0, sizeof s->dims); /* those were of the daemon's own file */
  if (load->n_dims == 0) return QK_OK;
  if (load->n_dims != 4)
    return qk_fail(err, QK_BAD_ARGUMENT, "dims of %zu numbers: 4 are needed", load->n_dims);
  for (int mu = 0; mu < 4; mu++) {
    if (load->dims[mu] < 1 || load->dims[mu] > 99999)
      return qk_fail(err, QK_BAD_ARGUMENT, "dims: the extent %u is outside 1 .. 99999",
                     load->dims[mu]);
    s->dims[mu] = (int)load->dims[mu];
  }
  return QK_OK;
}

/* Asked for of one file it does not hold for another. */
static void set_checksum(const Quark__Load *load, qk_settings_t *s) {
  if (load->gauge || load->has_ignore_checksum)
    s->ignore_checksum = load->has_ignore_checksum && load->ignore_checksum;
}

/* Clients know their own links by their digest, which another gauge changes. */
static qk_status_t set_fix(const Quark__Load *load, qk_settings_t *s, qk_err_t *err) {
  char why[QK_WHY];
  if (load->owner) s->fix = (qk_fix_recipe_t){.theta = s->fix.theta};
  if (!load->fix_gauge) return QK_OK;
  if (!qk_fix_read(load->fix_gauge, &s->fix, why)) return qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
  if (!load->owner || !(s->fix.landau || s->fix.coulomb)) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "fix_gauge = %s: a setup of one's own links has them as they were sent",
                 load->fix_gauge);
}

/* Which of the words `name` is. */
static qk_status_t choose(const char *key, const char *name, const qk_choice_t *choice, int *row,
                          qk_err_t *err) {
  char quoted[32];
  const int found = qk_choice_find(choice, name);
  if (found >= 0) {
    *row = found;
    return QK_OK;
  }
  qk_err_quote(name, quoted, sizeof quoted);
  return qk_fail(err, QK_BAD_ARGUMENT, "%s = \"%s\": must be one of %s", key, quoted, choice->list);
}

/* A name that quarkd was started with is one of its own operator. */
static qk_status_t set_deflation(const Quark__Load *load, qk_settings_t *s, qk_err_t *err) {
  char why[QK_WHY];
  if (s->deflate_from) s->deflate = 0;
  s->deflate_from = NULL;
  if (load->deflate_from && *load->deflate_from) {
    if (qk_eigen_check_name("deflate_from", load->deflate_from, why) != QK_OK)
      return qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
    s->deflate_from = load->deflate_from;
    s->deflate = 0;
  }
  if (load->has_deflate) s->deflate = load->deflate;
  return qk_settings_check_deflate(s, "deflate_from", err);
}

static qk_status_t set_solver(const Quark__Load *load, qk_settings_t *s, qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (load->solver) status = choose("solver", load->solver, &qk_choice_solvers, &s->solver, err);
  if (status == QK_OK && load->precision)
    status = choose("precision", load->precision, &qk_choice_precisions, &s->precision, err);
  if (status == QK_OK && load->has_slots && load->slots > QK_SLOTS_MAX)
    status =
        qk_fail(err, QK_TOO_LARGE, "slots = %u is over the limit of %d", load->slots, QK_SLOTS_MAX);
  if (load->has_slots) s->slots = load->slots;
  return status == QK_OK ? set_deflation(load, s, err) : status;
}

/* A private setup has one engine, whatever others have. */
static qk_status_t set_replicas(const Quark__Load *load, qk_settings_t *s, qk_err_t *err) {
  if (load->has_replicas && (load->replicas < 1 || load->replicas > QK_REPLICAS_MAX))
    return qk_fail(err, QK_BAD_ARGUMENT, "replicas = %u: must be 1 to %d", load->replicas,
                   QK_REPLICAS_MAX);
  if (load->owner && load->has_replicas && load->replicas > 1)
    return qk_fail(
        err, QK_UNSUPPORTED,
        "replicas = %u: a setup of one's own links has one engine, which loads others in "
        "place",
        load->replicas);
  if (load->devices && load->owner)
    return qk_fail(err, QK_DENIED, "devices = %.64s: needs a setup that is not private",
                   load->devices);
  if (load->owner)
    s->replicas = 1;
  else if (load->has_replicas)
    s->replicas = load->replicas;
  if (load->devices) s->devices_text = load->devices;
  return qk_settings_read_devices(s, err);
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* It is shown to clients and logged. */
static qk_status_t check_text(const char *gauge, qk_err_t *err) {
  for (const char *p = gauge; *p; p++)
    if (*p < ' ' || *p > '~')
      return qk_fail(err, QK_BAD_ARGUMENT, "gauge: must be printable ASCII");
  return QK_OK;
}

/* What needs no search: the setup's links are here already. */
static bool is_here(const char *gauge, const qk_settings_t *s) {
  return strncmp(gauge, DIGEST, strlen(DIGEST)) == 0 || strcmp(gauge, s->gauge) == 0 ||
         (strncmp(gauge, BUILTIN, strlen(BUILTIN)) == 0 && strlen(gauge) <= QK_SETUP_GAUGE_MAX);
}

static qk_status_t set_gauge(const Quark__Load *load, bool trusted, char gauge[QK_PATH_MAX + 1],
                             qk_settings_t *s, qk_err_t *err) {
  char roots[PATH_MAX];
  if (!load->gauge) return QK_OK;
  qk_status_t status = check_text(load->gauge, err);
  if (status != QK_OK) return status;
  find_roots(s, roots);
  if (trusted || is_here(load->gauge, s))
    snprintf(gauge, QK_PATH_MAX + 1, "%s", load->gauge);
  else
    status = qk_setup_request_find(roots, load->gauge, gauge, err);
  s->gauge = gauge;
  return status;
}

qk_status_t qk_setup_request_settings(const Quark__Load *load, const qk_settings_t *base,
                                      bool trusted, char gauge[QK_PATH_MAX + 1], qk_settings_t *out,
                                      qk_err_t *err) {
  qk_settings_t s = *base;
  qk_status_t status = qk_names_check("name", load->name, err);
  if (status == QK_OK) status = qk_operator_of_load(load, &base->op, &s.op, err);
  if (status == QK_OK && load->boundary) status = set_boundary(load->boundary, &s, err);
  if (status == QK_OK) status = set_dims(load, &s, err);
  set_checksum(load, &s);
  if (status == QK_OK) status = set_fix(load, &s, err);
  if (status == QK_OK) status = set_solver(load, &s, err);
  if (status == QK_OK) status = set_replicas(load, &s, err);
  if (status == QK_OK) status = set_gauge(load, trusted, gauge, &s, err);
  if (status == QK_OK) *out = s;
  return status;
}

uint8_t *qk_setup_request_pack(const Quark__Load *load, const qk_settings_t *s, size_t *bytes) {
  Quark__Load whole = *load;
  qk_operator_fields_t fields;
  uint32_t dims[4];
  char fix[QK_FIX_TEXT_MAX + 1];
  for (int mu = 0; mu < 4; mu++) dims[mu] = (uint32_t)s->dims[mu];
  whole.gauge = (char *)s->gauge;
  whole.n_dims = dims[0] > 0 ? 4 : 0;
  whole.dims = dims;
  whole.has_ignore_checksum = whole.ignore_checksum = s->ignore_checksum;
  whole.has_deflate = true;
  whole.deflate = (uint32_t)s->deflate;
  whole.deflate_from = (char *)s->deflate_from;
  if (s->replicas > 1) whole.has_replicas = true;
  whole.replicas = (uint32_t)s->replicas;
  whole.has_mass = whole.has_kappa = whole.has_csw = false;
  qk_operator_list(&s->op, QK_TEXT_GIVEN, &fields);
  whole.action = fields.action;
  whole.n_parameter = fields.n_parameter;
  whole.parameter = fields.parameter;
  whole.boundary = (char *)s->boundary_text;
  if (s->fix.landau || s->fix.coulomb || load->fix_gauge)
    whole.fix_gauge = qk_fix_text(&s->fix, fix);
  return qk_control_pack(&whole.base, bytes);
}
