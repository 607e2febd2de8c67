/* journal_writer.c: the threads that write the journal, and remove what it needs no more. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/state/journal_impl.h"

/* ---- the writer ------------------------------------------------------------------------------ */

/* What is written into a folder that nobody finds is lost. */
static bool is_there(qk_journal_t *j) {
  char text[QK_TEXT_MAX];
  if (qk_places_check(&j->places, text) && qk_places_check(&j->state, text)) return true;
  qk_fail(&j->err, QK_IO_ERROR, "%s", text);
  return false;
}

void qk_journal_do(qk_journal_t *j) {
  const double begun = qk_clock_now();
  j->err = (qk_err_t){0};
  if (j->errand == LOOK) {
    is_there(j);
    return;
  }
  if (j->errand == WRITE && !is_there(j)) return;
  qk_journal_follow(j, begun);
  if (j->errand == REST) {
    if (j->quiet) qk_journal_rest(j, begun);
    return;
  }
  qk_journal_write(j, &j->err);
  j->wrote_at = qk_clock_now();
  j->took = j->wrote_at - begun;
}

static void run_errand(qk_work_t *work) {
  qk_journal_do(QK_HOLDER(work, qk_journal_t, work));
}

static void end_errand(qk_work_t *work) {
  qk_journal_t *j = QK_HOLDER(work, qk_journal_t, work);
  j->over = true;
  j->times.writer += qk_clock_now() - j->handed;
}

void qk_journal_begin(qk_journal_t *j, errand_t errand, double now) {
  QK_ASSERT(!j->busy);
  j->errand = errand;
  j->busy = true;
  j->begun = now;
  j->handed = qk_clock_now();
  j->work.run = run_errand;
  j->work.done = end_errand;
  if (j->writer) {
    qk_worker_give(j->writer, &j->work);
    return;
  }
  run_errand(&j->work);
  end_errand(&j->work);
}

void qk_journal_own(qk_journal_t *j) {
  const double begun = qk_clock_now();
  while (j->busy && !j->over) qk_worker_wait(j->writer, 1);
  j->times.loop += qk_clock_now() - begun;
}

/* ---- the cleaner ----------------------------------------------------------------------------- */

static void run_cleaning(qk_work_t *work) {
  qk_journal_t *j = QK_HOLDER(work, qk_journal_t, cleaning);
  qk_gone_remove(j->going, j->spool);
}

static void end_cleaning(qk_work_t *work) {
  qk_journal_t *j = QK_HOLDER(work, qk_journal_t, cleaning);
  qk_gone_free(&j->going);
  j->cleans = false;
  qk_journal_clean_up(j);
}

void qk_journal_clean_up(qk_journal_t *j) {
  if (j->cleans || !j->left) return;
  j->cleans = true;
  j->going = j->left;
  j->left = NULL;
  j->cleaning.run = run_cleaning;
  j->cleaning.done = end_cleaning;
  if (j->cleaner) {
    qk_worker_give(j->cleaner, &j->cleaning);
    return;
  }
  run_cleaning(&j->cleaning);
  end_cleaning(&j->cleaning);
}

/* ---- both ------------------------------------------------------------------------------------ */

qk_status_t qk_journal_start(qk_journal_t *j, qk_loop_t *loop, qk_err_t *err) {
  if (!j) return QK_OK;
  const qk_status_t status = qk_worker_open(loop, "journal", 1, &j->writer, err);
  return status == QK_OK ? qk_worker_open(loop, "cleaner", 1, &j->cleaner, err) : status;
}

void qk_journal_stop(qk_journal_t *j) {
  if (!j) return;
  qk_worker_t *cleaner = j->cleaner;
  qk_worker_close(j->writer);
  j->writer = j->cleaner = NULL;
  qk_worker_close(cleaner);
}

/* ---- lines ----------------------------------------------------------------------------------- */

void qk_lines_init(lines_t *lines) {
  lines->first = NULL;
  lines->last = &lines->first;
}

void qk_lines_add(lines_t *lines, int statement, int64_t id, const char *key, const char *value) {
  const size_t bytes = strlen(key) + 1;
  line_t *line = qk_malloc(sizeof *line + bytes + strlen(value) + 1);
  if (!line) { /* it is as if quarkd were killed before it */
    qk_error("journal", "no memory: %s is not recorded", key[0] ? key : "a setup");
    return;
  }
  *line = (line_t){.statement = statement, .id = id, .value = line->key + bytes};
  memcpy(line->key, key, bytes);
  strcpy(line->value, value);
  *lines->last = line;
  lines->last = &line->next;
}

void qk_lines_move(lines_t *from, lines_t *to) {
  if (!from->first) return;
  *from->last = to->first;
  if (!to->first) to->last = from->last;
  to->first = from->first;
  qk_lines_init(from);
}

void qk_lines_drop_first(lines_t *lines) {
  line_t *line = lines->first;
  lines->first = line->next;
  if (!lines->first) qk_lines_init(lines);
  qk_free(line);
}

void qk_lines_free(lines_t *lines) {
  while (lines->first) qk_lines_drop_first(lines);
}
