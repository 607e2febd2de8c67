#include "daemon/engine/gauge_tool/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t signalled;

static void note_signal(int number) {
  (void)number;
  signalled = 1;
}

void qk_interrupt_catch(void) {
  struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

qk_status_t qk_interrupt_asked(qk_comm_t *comm, bool *yes, qk_err_t *err) {
  double any = signalled;
  qk_status_t status = qk_comm_max(comm, &any, 1);
  if (status != QK_OK) return qk_fail(err, status, "the ranks lost each other");
  *yes = any > 0;
  return QK_OK;
}
