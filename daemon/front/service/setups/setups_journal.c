/* setups_journal.c: setups in the journal. */
#include <stdio.h>
#include <string.h>

#include "daemon/front/service/setups/setups_impl.h"
#include "daemon/front/settings/operator.h"

/* After what says the action. */
static void add_boundary(const qk_settings_t *s, char text[QK_OPERATOR_MAX]) {
  size_t n = strlen(text);
  n += (size_t)snprintf(text + n, QK_OPERATOR_MAX - n, " boundary");
  for (int i = 0; i < 8; i++)
    n += (size_t)snprintf(text + n, QK_OPERATOR_MAX - n, " %.17g", s->boundary[i]);
}

static void write_operator(const qk_settings_t *s, char text[QK_OPERATOR_MAX]) {
  qk_values_text(&s->op, QK_TEXT_CANONICAL, text);
  add_boundary(s, text);
}

bool qk_setups_is_operator(const qk_settings_t *s, const char *note) {
  char now[QK_OPERATOR_MAX];
  write_operator(s, now);
  if (strcmp(note, now) == 0) return true;
  if (!qk_values_are_plain(&s->op)) return false;
  snprintf(now, sizeof now, "kappa %.17g csw %.17g", qk_values_kappa(&s->op),
           qk_operator_csw(&s->op)); /* as version 0.1 wrote it */
  add_boundary(s, now);
  return strcmp(note, now) == 0;
}

void qk_setups_note(const qk_setup_t *setup) {
  qk_journal_t *journal = setup->service->journal;
  char op[QK_OPERATOR_MAX], lattice[QK_LATTICE_MAX];
  qk_journal_lattice(&setup->shape, setup->digest, lattice);
  if (setup->id > 0) {
    qk_journal_note_setup(journal, setup->id, lattice);
    return;
  }
  write_operator(&setup->settings, op);
  qk_journal_note_soon(journal, "operator", op);
  qk_journal_note_soon(journal, "lattice", lattice);
}

static qk_status_t check_journal(const qk_setup_t *setup, qk_err_t *err) {
  const qk_journal_t *journal = setup->service->journal;
  const char *trouble = qk_journal_trouble(journal);
  if (trouble) return qk_fail(err, QK_BUSY, "%s", trouble);
  if (!qk_journal_waits(journal, qk_service_now(setup->service))) return QK_OK;
  return qk_fail(err, QK_BUSY,
                 "the journal waits for its disk, which is slow now: look at the disk of "
                 "%.300s, or try again",
                 setup->service->settings->state);
}

/* A new setup is there for the next front, too. */
qk_status_t qk_setups_record(qk_setup_t *setup, qk_err_t *err) {
  if (!setup->load) return QK_OK; /* it is there always */
  if (check_journal(setup, err) != QK_OK) return err->code;
  return qk_journal_add_setup(setup->service->journal, setup->load, setup->load_bytes, &setup->id,
                              err);
}

/* It is not any more, but for what is open. */
qk_status_t qk_setups_record_end(const qk_setup_t *setup, qk_err_t *err) {
  const qk_status_t status = check_journal(setup, err);
  return status == QK_OK ? qk_journal_end_setup(setup->service->journal, setup->id, err) : status;
}

/* The same where nobody is told. */
void qk_setups_drop_record(const qk_setup_t *setup) {
  qk_journal_leave_setup(setup->service->journal, setup->id);
}

void qk_setups_forget(const qk_setup_t *setup) {
  qk_journal_drop_setup(setup->service->journal, setup->id);
}

qk_status_t qk_setups_record_default(const qk_setup_t *setup, qk_err_t *err) {
  char id[24];
  const qk_status_t status = check_journal(setup, err);
  if (status != QK_OK) return status;
  snprintf(id, sizeof id, "%lld", (long long)setup->id);
  return qk_journal_put_note(setup->service->journal, "default", id, err);
}
