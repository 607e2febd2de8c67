/* setups_room.c: how many setups there may be, and which of them goes for another one. */

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/service/setups/setups_impl.h"

static int free_index(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (!service->setup[m]) return m;
  return -1;
}

qk_status_t qk_setups_place(qk_setup_t *setup, qk_err_t *err) {
  const int index = free_index(setup->service);
  if (index < 0)
    return qk_fail(err, QK_BUSY, "all %d setups are in use until an engine has ended",
                   QK_SETUPS_MAX);
  setup->index = index;
  setup->service->setup[index] = setup;
  return QK_OK;
}

void qk_setups_end(qk_setup_t *setup) {
  setup->ending = true;
  qk_setup_stop(setup, qk_service_now(setup->service));
}

static bool keeps_something(const qk_setup_t *setup) {
  const qk_sessions_t *sessions = &setup->service->sessions;
  if (!qk_link_alone(&setup->eigen)) return true;
  for (int i = 0; i < sessions->count; i++) {
    const qk_link_t *jobs = &sessions->at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
      if (job->setup == setup && qk_kept_count(job) > 0) return true;
    }
  }
  return false;
}

/* Private setups go before public ones, those that were idle longer before others. */
static bool goes_before(const qk_setup_t *a, const qk_setup_t *b) {
  if (!a->owner[0] != !b->owner[0]) return a->owner[0];
  return a->used_at < b->used_at;
}

/* Whose setups may go for another one. */
typedef struct whose {
  bool private;      /* public ones stay: they are the operator's */
  const char *owner; /* NULL: anybody's */
} whose_t;

/* One that is idle, but not `other`; NULL: there is none. */
static qk_setup_t *find_idle(const qk_service_t *service, const qk_setup_t *other, whose_t whose) {
  qk_setup_t *oldest = NULL;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (!setup || setup == service->primary || setup == other || !qk_setup_serves(setup)) continue;
    if (!qk_setup_info(setup)->loaded || setup->open > 0 || keeps_something(setup)) continue;
    if (whose.private && !setup->owner[0]) continue;
    if (whose.owner && strcmp(setup->owner, whose.owner) != 0) continue;
    if (!oldest || goes_before(setup, oldest)) oldest = setup;
  }
  return oldest;
}

/* Who has loaded the setup is told what goes for it. limit: why. */
static void tell_dropped(qk_setup_t *setup, const qk_setup_t *idle, const char *limit) {
  const double seconds = qk_service_now(setup->service) - idle->used_at;
  const bool named = !idle->owner[0] || strcmp(idle->owner, setup->owner) == 0;
  const size_t n = strlen(setup->text);
  qk_info("setups", "dropping %s to make room for %s (%s): idle for %.0f s", idle->site_name,
          setup->site_name, limit, seconds);
  snprintf(setup->text + n, sizeof setup->text - n,
           "%ssetup %s was dropped to make room: idle for %.0f s (%s)", n ? "; " : "",
           named ? idle->name : "of another user", seconds, limit);
}

/* Lets one go that is idle. False: there is none. */
static bool evict(qk_setup_t *setup, whose_t whose, const char *limit) {
  qk_setup_t *idle = find_idle(setup->service, setup, whose);
  if (!idle) return false;
  tell_dropped(setup, idle, limit);
  qk_setups_drop_record(idle);
  qk_setups_end(idle);
  return true;
}

/* It can come beside the others. */
static qk_status_t make_place(qk_setup_t *setup, qk_err_t *err) {
  qk_service_t *service = setup->service;
  const int most = (int)service->settings->max_setups;
  const bool private = setup->owner[0];
  char limit[48];
  int n = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *other = service->setup[m];
    n += other && other->failed == QK_OK && !other->ending;
  }
  snprintf(limit, sizeof limit, "--max-setups %d", most);
  if (n >= most && !evict(setup, (whose_t){.private = private}, limit))
    return qk_fail(err, QK_BUSY,
                   private ? "%d setups of %d (max-setups) are loaded, and no private one is idle"
                           : "%d setups of %d (max-setups) are loaded, and none but the default is "
                             "idle: drop one",
                   n, most);
  for (int m = 0; m < QK_SETUPS_MAX && free_index(service) < 0; m++)
    if (service->setup[m]->failed != QK_OK && !service->setup[m]->ending)
      qk_setups_end(service->setup[m]);
  return QK_OK;
}

/* Of private setups of one user. *idle: the one that goes for it, where it can be succeeded now. */
static qk_status_t check_quota(qk_setup_t *setup, qk_setup_t **idle, qk_err_t *err) {
  qk_service_t *service = setup->service;
  const int most = (int)service->settings->user_setups;
  const whose_t whose = {.owner = setup->owner};
  char limit[48];
  int n = 0;
  *idle = NULL;
  if (!setup->owner[0]) return QK_OK;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *other = service->setup[m];
    n += other && other->failed == QK_OK && !other->ending &&
         strcmp(other->owner, setup->owner) == 0;
  }
  if (most == 0)
    return qk_fail(err, QK_DENIED, "this daemon loads no setups of users (--user-setups 0)");
  if (n < most) return QK_OK;
  snprintf(limit, sizeof limit, "--user-setups %d", most);
  qk_setup_t *first = find_idle(service, setup, whose);
  if (first && !setup->source && qk_setups_is_free(first)) {
    tell_dropped(setup, first, limit);
    *idle = first;
    return QK_OK;
  }
  if (evict(setup, whose, limit)) return QK_OK;
  return qk_fail(err, QK_BUSY,
                 "%d setups of this user are loaded, the limit is %d (--user-setups), and none is "
                 "idle: drop one",
                 n, most);
}

bool qk_setups_make_room(qk_setup_t *setup, qk_status_t status) {
  if (status != QK_DEVICE_MEMORY && status != QK_NO_MEMORY) return false;
  setup->again = evict(setup, (whose_t){.private = setup->owner[0]}, "memory");
  return setup->again;
}

qk_status_t qk_setups_find_place(qk_setup_t *setup, qk_setup_t **at, qk_err_t *err) {
  qk_setup_t *idle;
  qk_status_t status = check_quota(setup, &idle, err);
  *at = idle ? idle : setup;
  if (status == QK_OK && idle) return qk_setups_succeed(idle, setup, err);
  if (status == QK_OK) status = make_place(setup, err);
  if (status == QK_OK) status = qk_setups_record(setup, err);
  return status == QK_OK ? qk_setups_place(setup, err) : status;
}
