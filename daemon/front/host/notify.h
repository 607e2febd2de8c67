/*
 * notify.h: tells systemd the state of the daemon (sd_notify(3)): ready, stopping, a status line,
 * alive, or needing more time. Sends nothing without NOTIFY_SOCKET in the environment.
 */
#ifndef QK_FRONT_NOTIFY_H
#define QK_FRONT_NOTIFY_H

#include <stdbool.h>

typedef enum qk_notify_phase {
  QK_NOTIFY_STARTING, /* needs time */
  QK_NOTIFY_SERVING,
  QK_NOTIFY_STOPPING /* needs time */
} qk_notify_phase_t;

typedef struct qk_notify {
  bool on, ready;
  double watchdog; /* seconds between signs of life; 0: none are wanted */
  double lived_at, extended_at;
  qk_notify_phase_t phase;
  char status[160];
} qk_notify_t;

void qk_notify_init(qk_notify_t *notify);
/* Call it a few times a second from the loop, so that systemd notices a loop that hangs. status:
 * one line. now: seconds. */
void qk_notify_tick(qk_notify_t *notify, qk_notify_phase_t phase, const char *status, double now);

#endif
