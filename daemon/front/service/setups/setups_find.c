/* setups_find.c: setups by name, as who asks for them sees them. */
#include <stdio.h>
#include <string.h>

#include "daemon/front/service/setups.h"

bool qk_setups_sees(const qk_viewer_t *viewer, const qk_setup_t *setup) {
  return !setup->owner[0] || viewer->operates ||
         (viewer->user && strcmp(viewer->user, setup->owner) == 0);
}

/* By which it is asked for: that of its successor, where it has one. */
static bool is_named(const qk_setup_t *setup, const char *name) {
  return strcmp(qk_setup_current(setup)->name, name) == 0;
}

qk_setup_t *qk_setups_named(const qk_service_t *service, const char *owner, const char *name) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (!setup || setup->ending || !is_named(setup, name)) continue;
    if (strcmp(setup->owner, owner ? owner : "") == 0) return setup;
  }
  return NULL;
}

/* USER/NAME: names of setups have no '/'. NULL: there is none that the viewer sees. */
static qk_setup_t *find_whole(const qk_service_t *service, const qk_viewer_t *viewer,
                              const char *name, const char *slash) {
  char owner[QK_USER_MAX + 1];
  const size_t n = (size_t)(slash - name);
  if (n >= sizeof owner) return NULL;
  memcpy(owner, name, n);
  owner[n] = '\0';
  qk_setup_t *found = qk_setups_named(service, owner, slash + 1);
  return found && qk_setups_sees(viewer, found) ? found : NULL;
}

/* As the viewer can name it; one that does not fit is left out, and all behind it. */
static void add_name(const qk_viewer_t *viewer, const qk_setup_t *setup, char *list, size_t size) {
  const bool own = viewer->user && strcmp(viewer->user, setup->owner) == 0;
  const char *owner = own ? "" : setup->owner_shown;
  const size_t n = strlen(list), room = strlen(", /") + strlen(owner) + strlen(setup->name);
  static const char MORE[] = ", ...";
  if (n >= strlen(MORE) && strcmp(list + n - strlen(MORE), MORE) == 0) return;
  if (n + room + strlen(MORE) < size)
    snprintf(list + n, size - n, "%s%s%s%s", n ? ", " : "", owner, *owner ? "/" : "", setup->name);
  else
    snprintf(list + n, size - n, "%s", MORE);
}

/* Those of others, for an operator. NULL: there is none, or there are several: *err says which. */
static qk_setup_t *find_of_others(const qk_service_t *service, const qk_viewer_t *viewer,
                                  const char *name, qk_err_t *err) {
  qk_setup_t *found = NULL;
  char list[256] = "";
  int count = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (!setup || setup->ending || !is_named(setup, name)) continue;
    add_name(viewer, setup, list, sizeof list);
    found = setup;
    count++;
  }
  if (count < 2) return found;
  qk_fail(err, QK_BAD_ARGUMENT, "setup = \"%s\": several users have one of this name: %s", name,
          list);
  return NULL;
}

/* Private ones of the viewer come first, then public ones; an operator finds those of others. */
static qk_setup_t *find(const qk_service_t *service, const qk_viewer_t *viewer, const char *name,
                        qk_err_t *err) {
  const char *slash = strrchr(name, '/');
  if (slash) return find_whole(service, viewer, name, slash);
  qk_setup_t *found = viewer->user ? qk_setups_named(service, viewer->user, name) : NULL;
  if (!found) found = qk_setups_named(service, "", name);
  return found || !viewer->operates ? found : find_of_others(service, viewer, name, err);
}

static void list_names(const qk_service_t *service, const qk_viewer_t *viewer, char *list,
                       size_t size) {
  list[0] = '\0';
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = service->setup[m];
    if (setup && qk_setup_serves(qk_setup_current(setup)) && qk_setups_sees(viewer, setup))
      add_name(viewer, qk_setup_current(setup), list, size);
  }
}

qk_setup_t *qk_setups_find(const qk_service_t *service, const qk_viewer_t *viewer, const char *name,
                           qk_err_t *err) {
  char list[256], quoted[QK_SETUP_NAME_MAX + 1];
  if (!name || strcmp(name, "default") == 0) return service->primary;
  qk_setup_t *setup = find(service, viewer, name, err);
  if (setup || err->code != QK_OK) return setup;
  list_names(service, viewer, list, sizeof list);
  qk_err_quote(name, quoted, sizeof quoted);
  qk_fail(err, QK_NOT_FOUND, "setup = \"%s\": there is no setup of this name; there are %s", quoted,
          list);
  return NULL;
}

qk_status_t qk_setups_check(const qk_setup_t *setup, qk_err_t *err) {
  if (setup->successor)
    return qk_fail(err, QK_NOT_READY,
                   "setup %s is to be loaded in place: %lld right-hand sides of the one before are "
                   "open",
                   setup->successor->name, (long long)setup->open);
  if (setup->failed != QK_OK)
    return qk_fail(err, QK_NOT_FOUND, "setup %s was not loaded: %.300s", setup->name, setup->text);
  if (!qk_setup_serves(setup))
    return qk_fail(err, QK_NOT_FOUND, "setup %s is being dropped", setup->name);
  if (qk_setup_state(setup) != QK_SUPERVISOR_READY)
    return qk_fail(err, QK_NOT_READY,
                   setup->shape.dims[0] > 0
                       ? "setup %s is being loaded again because its engine was lost"
                       : "setup %s is not loaded yet",
                   setup->name);
  return QK_OK;
}
