/* setups_deflate.c: setups whose solves begin with eigenvectors that a setup keeps under a name, or
 * whose sign function projects some: those of a Wilson operator (qk_values_kernel).
 *
 * The file of the set is linked to one of the setup's own (link(2)), which its engines read: files
 * of sets are replaced, never written to. So EIGEN_DROP, or the end of the setup that has made
 * them, takes nothing from it. The own one goes with the setup. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/front/engines/eigen_path.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/setups/setups_impl.h"
#include "proto/eigen_check.h"

enum { SHOWN = 160 }; /* bytes of an operator in an error */

static bool is_deflated(const qk_setup_t *setup) {
  return setup->settings.deflate_from != NULL;
}

/* As whoever asked for it calls it. */
static const char *field_of(const qk_setup_t *setup) {
  return setup->load ? "deflate_from" : "deflate";
}

/* ---- which set ------------------------------------------------------------------------------- */

static bool serves(const qk_setup_t *other, const qk_setup_t *setup) {
  if (!other || other->failed != QK_OK) return false;
  return !other->owner[0] || strcmp(other->owner, setup->owner) == 0;
}

static bool same_boundary(const qk_settings_t *a, const qk_settings_t *b) {
  for (int i = 0; i < 8; i++)
    if (a->boundary[i] != b->boundary[i]) return false;
  return true;
}

/* What the engine compares again, with the links that it has read. */
static qk_status_t check_operator(const qk_setup_t *setup, const char *what,
                                  const qk_setup_t *other, qk_err_t *err) {
  char own[QK_OPERATOR_TEXT], theirs[QK_OPERATOR_TEXT];
  const uint64_t digest = setup->has_wanted ? setup->wanted : setup->digest;
  qk_values_t wanted = setup->settings.op;
  qk_values_kernel(&setup->settings.op, &wanted);
  qk_values_text(&wanted, QK_TEXT_CANONICAL, own);
  qk_values_text(&other->settings.op, QK_TEXT_CANONICAL, theirs);
  if (strcmp(own, theirs) != 0 &&
      !qk_values_share_vectors(&setup->settings.op, &other->settings.op))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s: those of setup %s are of another operator: %.*s, not %.*s", what,
                   other->name, SHOWN, theirs, SHOWN, own);
  if (!same_boundary(&setup->settings, &other->settings))
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: those of setup %s are of another boundary", what,
                   other->name);
  if (digest == 0 || other->digest == 0 || digest == other->digest) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "%s: those of setup %s are of other links: digest %016llx, not %016llx", what,
                 other->name, (unsigned long long)other->digest, (unsigned long long)digest);
}

static qk_status_t check_kind(const qk_setup_t *setup, const char *what, const qk_setup_t *other,
                              const qk_eigen_set_t *set, qk_err_t *err) {
  const bool dense = qk_values_action(&setup->settings.op)->is_dense;
  const Quark__EigenKind wanted =
      dense ? QUARK__EIGEN_KIND__EIGEN_GAMMA5 : QUARK__EIGEN_KIND__EIGEN_NORMAL;
  if (set->problem->kind == wanted) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "%s: those of setup %s are of kind %s, %s kind %s", what,
                 other->name, qk_eigen_kind_name((int)set->problem->kind),
                 dense ? "sgn(H) projects those of" : "solves begin with those of",
                 qk_eigen_kind_name((int)wanted));
}

/* Of the sign function one more than it projects, which is the bound of the others. */
static qk_status_t check_count(const qk_setup_t *setup, const qk_setup_t *other,
                               const qk_eigen_set_t *set, qk_err_t *err) {
  const bool dense = qk_values_action(&setup->settings.op)->is_dense;
  const int64_t modes = dense ? (int64_t)qk_value(&setup->settings.op, "modes") : 0;
  const int64_t n = setup->settings.deflate;
  if (dense && modes >= set->problem->count)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "modes = %lld: %s of setup %s has %u vectors, and modes + 1 are needed",
                   (long long)modes, setup->settings.deflate_from, other->name,
                   set->problem->count);
  if (n <= set->problem->count) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "deflate = %lld: %s of setup %s has %u vectors",
                 (long long)n, setup->settings.deflate_from, other->name, set->problem->count);
}

static qk_status_t check_set(const qk_setup_t *setup, const char *what, const qk_setup_t *other,
                             const qk_eigen_set_t *set, qk_err_t *err) {
  qk_status_t status = check_kind(setup, what, other, set, err);
  if (status != QK_OK) return status;
  status = check_operator(setup, what, other, err);
  if (status != QK_OK) return status;
  if (set->state == QUARK__EIGEN_STATE__EIGEN_MAKING)
    return qk_fail(err, QK_BUSY, "%s: those of setup %s are being made: wait for their request",
                   what, other->name);
  return check_count(setup, other, set, err);
}

/* The first that fits, of the setup's own user or public; *of: whose it is. Else why one of that
 * name does not: of this operator, if there is one. */
static qk_status_t find(const qk_setup_t *setup, const qk_setup_t **of, qk_err_t *err) {
  const qk_service_t *service = setup->service;
  const char *name = setup->settings.deflate_from;
  char what[QK_EIGEN_NAME_MAX + 24];
  qk_err_t why = {0};
  snprintf(what, sizeof what, "%s = %s", field_of(setup), name);
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *other = service->setup[m];
    const qk_eigen_set_t *set = serves(other, setup) ? qk_eigen_find(other, name) : NULL;
    if (!set) continue;
    qk_err_t found = {0};
    if (check_set(setup, what, other, set, &found) == QK_OK) {
      *of = other;
      return QK_OK;
    }
    if (why.code == QK_OK || check_operator(setup, what, other, NULL) == QK_OK) why = found;
  }
  if (why.code != QK_OK) return qk_fail(err, why.code, "%s", why.text);
  return qk_fail(err, QK_NOT_FOUND, "%s: no setup has eigenvectors of this name", what);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Of the setup by its number in the journal: one that succeeds it has another. Names of setups and
 * of sets have no '='. number -1: before it has one. */
static qk_status_t write_path(const qk_setup_t *setup, int64_t number, char path[QK_PATH_MAX + 1],
                              qk_err_t *err) {
  char folder_and_site[QK_PATH_MAX + 1];
  qk_eigen_path(&setup->settings, setup->site_name, NULL, folder_and_site);
  const int n = snprintf(path, QK_PATH_MAX + 1, "%s=%lld=%s", folder_and_site, (long long)number,
                         setup->settings.deflate_from);
  if (folder_and_site[0] && n <= QK_PATH_MAX) return QK_OK;
  path[0] = '\0';
  return qk_fail(err, QK_TOO_LARGE, "state = %s: no room for names of files in its path",
                 setup->settings.state);
}

static qk_status_t link_file(const qk_setup_t *setup, const qk_setup_t *of, const char *path,
                             qk_err_t *err) {
  const char *name = setup->settings.deflate_from;
  char source[QK_PATH_MAX + 1];
  qk_eigen_path(&of->settings, of->site_name, name, source);
  unlink(path);
  if (source[0] && link(source, path) == 0) return QK_OK;
  if (!source[0] || errno == ENOENT)
    return qk_fail(err, QK_NOT_FOUND,
                   "%s = %s: setup %s has them in memory alone: they are in no file of the state "
                   "folder",
                   field_of(setup), name, of->name);
  return qk_fail(err, QK_IO_ERROR, "%s: link to %s: %s", path, name, strerror(errno));
}

qk_status_t qk_setups_deflate_begin(qk_setup_t *setup, qk_err_t *err) {
  const qk_setup_t *of;
  char path[QK_PATH_MAX + 1];
  if (!is_deflated(setup)) return QK_OK;
  qk_status_t status = find(setup, &of, err);
  if (status == QK_OK) status = write_path(setup, -1, path, err);
  if (status == QK_OK) status = link_file(setup, of, path, err);
  if (status == QK_OK) snprintf(setup->vectors, sizeof setup->vectors, "%s", path);
  return status;
}

void qk_setups_deflate_recorded(qk_setup_t *setup) {
  char path[QK_PATH_MAX + 1];
  if (!is_deflated(setup)) return;
  if (write_path(setup, setup->id, path, NULL) == QK_OK && rename(setup->vectors, path) == 0)
    snprintf(setup->vectors, sizeof setup->vectors, "%s", path);
  else
    qk_warn("setups", "%s: %s cannot be renamed: %s", setup->site_name, setup->vectors,
            strerror(errno));
}

void qk_setups_deflate_forget(qk_setup_t *setup) {
  if (is_deflated(setup) && setup->vectors[0]) unlink(setup->vectors);
}

/* ---- the next front -------------------------------------------------------------------------- */

qk_status_t qk_setups_deflate_bring_back(qk_setup_t *setup, qk_err_t *err) {
  const qk_setup_t *of = NULL;
  qk_err_t why = {0};
  char fresh[QK_PATH_MAX + 1];
  if (!is_deflated(setup)) return QK_OK;
  qk_status_t status = write_path(setup, setup->id, setup->vectors, err);
  if (status != QK_OK) return status;
  const bool there = access(setup->vectors, F_OK) == 0;
  if (there && setup->load) return QK_OK;
  /* that of the command line: vectors that were made since come before its link */
  status = find(setup, &of, &why);
  if (status == QK_OK) status = write_path(setup, -1, fresh, &why);
  if (status == QK_OK) status = link_file(setup, of, fresh, &why);
  if (status == QK_OK && rename(fresh, setup->vectors) != 0)
    status = qk_fail(&why, QK_IO_ERROR, "%s: %s", setup->vectors, strerror(errno));
  if (status == QK_OK || there) return QK_OK;
  if (!setup->load) return qk_fail(err, why.code, "%s", why.text);
  qk_warn("setups", "%s: %s", setup->site_name, why.text); /* its engine will say so, too */
  return QK_OK;
}

static bool is_file_of(const qk_setup_t *setup, const char *path) {
  return setup && is_deflated(setup) && strcmp(setup->vectors, path) == 0;
}

static bool is_used(const qk_service_t *service, const char *path) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = service->setup[m];
    if (is_file_of(setup, path) || (setup && is_file_of(setup->successor, path))) return true;
  }
  return false;
}

void qk_setups_deflate_sweep(const qk_service_t *service) {
  char folder[QK_PATH_MAX + 1], path[QK_PATH_MAX + 1];
  const struct dirent *e;
  qk_eigen_path(service->settings, "", NULL, folder);
  DIR *dir = folder[0] ? opendir(folder) : NULL;
  if (!dir) return;
  while ((e = readdir(dir)) != NULL) {
    if (!strchr(e->d_name, '=')) continue;
    const int n = snprintf(path, sizeof path, "%s%s", folder, e->d_name);
    if (n < (int)sizeof path && !is_used(service, path)) unlink(path);
  }
  closedir(dir);
}
