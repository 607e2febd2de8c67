#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/front/state/journal_impl.h"

static const double STEP = 0.5;  /* seconds by which the wall clock may be off */
static const double QUIET = 1.0; /* seconds after the last transaction */
static const double SLOW = 10;   /* times that it took, where that is more */
static const double REMIND = 60; /* seconds between lines of the log while it cannot be emptied */

/* Of the wall clock to that of the loop, which tells its time only once a turn. */
static double wall_offset(void) {
  struct timespec wall, loop;
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_MONOTONIC, &loop);
  return (double)(wall.tv_sec - loop.tv_sec) + (double)(wall.tv_nsec - loop.tv_nsec) * 1e-9;
}

/* ---- the wall clock ------------------------------------------------------------------------ */

/* The loop's clock goes on through all of one boot, in whatever process. */
static bool note_clock(qk_journal_t *j, double wall) {
  char value[64];
  qk_err_t err = {0};
  snprintf(value, sizeof value, "%s %.6f", j->mark.boot[0] ? j->mark.boot : "?", wall);
  return qk_journal_write_note(j, "clock", value, &err) == QK_OK;
}

static bool move_times(qk_journal_t *j, double by) {
  static const char UPDATE[] = "UPDATE job SET accepted=accepted+?1,"
                               " deadline=CASE WHEN deadline>0 THEN deadline+?1 ELSE deadline END"
                               " WHERE typeof(accepted)='real' AND typeof(deadline)='real'";
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(j->db, UPDATE, -1, &s, NULL) != SQLITE_OK) return false;
  sqlite3_bind_double(s, 1, by);
  const bool done = sqlite3_step(s) == SQLITE_DONE;
  sqlite3_finalize(s);
  return done;
}

double qk_journal_behind(const qk_journal_t *j) {
  const double by = wall_offset() - j->wall;
  return fabs(by) < STEP ? 0 : by;
}

void qk_journal_follow(qk_journal_t *j, double now) {
  qk_err_t err = {0};
  const double by = qk_journal_behind(j), wall = j->wall + by;
  if (by == 0) return;
  if (qk_journal_execute(j, "BEGIN IMMEDIATE", &err) != QK_OK) return;
  if (!move_times(j, by) || !note_clock(j, wall) ||
      qk_journal_execute(j, "COMMIT", &err) != QK_OK) {
    sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
    return;
  }
  j->wall = wall;
  j->wrote_at = now;
  qk_info("journal", "the wall clock was set by %.1f s: deadlines are as far away as before", by);
}

void qk_journal_find_clock(qk_journal_t *j, double now) {
  char value[64], boot[QK_MARK_BOOT];
  double wall;
  j->wall = wall_offset();
  const bool noted = qk_journal_note(j, "clock", value, sizeof value) &&
                     sscanf(value, "%36s %lf", boot, &wall) == 2 && isfinite(wall);
  if (noted && strcmp(boot, j->mark.boot) == 0)
    j->wall = wall;
  else
    note_clock(j, j->wall);
  qk_journal_follow(j, now);
}

/* ---- quiet times --------------------------------------------------------------------------- */

bool qk_journal_is_quiet(const qk_journal_t *j, double now) {
  /* a disk that was slow may keep those waiting who come meanwhile */
  return j->wrote_at > 0 && now - j->wrote_at > fmax(QUIET, SLOW * j->took);
}

/* Brings all into the file itself: a write-ahead log that is lost later costs nothing of it. */
void qk_journal_rest(qk_journal_t *j, double now) {
  if (sqlite3_wal_checkpoint_v2(j->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK) {
    j->wrote_at = now; /* in a while again */
    if (now >= j->rest_remind_at) {
      qk_warn(
          "journal",
          "%s: SQLite cannot copy the write-ahead log (%s-wal) into it: %s: nothing is lost, but "
          "the log grows: look at the disk",
          j->path, j->path, sqlite3_errmsg(j->db));
      j->rest_remind_at = now + REMIND;
    }
    return;
  }
  j->rest_remind_at = 0;
  j->wrote_at = 0;
  qk_mark_put(&j->mark, j->commits, true);
}
