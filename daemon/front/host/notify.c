#include "daemon/front/host/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

enum { EXTEND_S = 30 }; /* asked for again well before they are over */

void qk_notify_init(qk_notify_t *n) {
  uint64_t microseconds = 0;
  *n = (qk_notify_t){.on = getenv("NOTIFY_SOCKET") != NULL};
  if (sd_watchdog_enabled(0, &microseconds) > 0) n->watchdog = 0.5e-6 * (double)microseconds;
}

static void tell_status(qk_notify_t *n, const char *status) {
  if (strcmp(n->status, status) == 0) return;
  snprintf(n->status, sizeof n->status, "%s", status);
  sd_notifyf(0, "STATUS=%s", n->status);
}

static void tell_phase(qk_notify_t *n, qk_notify_phase_t phase) {
  if (phase == QK_NOTIFY_SERVING && !n->ready) {
    sd_notify(0, "READY=1");
    n->ready = true;
  }
  if (phase == QK_NOTIFY_STOPPING && n->phase != phase) sd_notify(0, "STOPPING=1");
  if (n->phase != phase) n->extended_at = 0;
  n->phase = phase;
}

void qk_notify_tick(qk_notify_t *n, qk_notify_phase_t phase, const char *status, double now) {
  if (!n->on) return;
  tell_status(n, status);
  tell_phase(n, phase);
  const bool needs_time = phase == QK_NOTIFY_STOPPING || (phase == QK_NOTIFY_STARTING && !n->ready);
  if (needs_time && (n->extended_at == 0 || now - n->extended_at > EXTEND_S / 3.0)) {
    sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%d000000", EXTEND_S);
    n->extended_at = now;
  }
  if (n->watchdog > 0 && now - n->lived_at >= n->watchdog) {
    sd_notify(0, "WATCHDOG=1");
    n->lived_at = now;
  }
}
