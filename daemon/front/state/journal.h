/*
 * journal.h: accepted work on disk, for the next front: sessions, requests, right-hand sides and
 * their results (SQLite in WAL mode, DIR/journal.db). It has no fields: rows name shared-memory
 * objects (shm.h), which survive the process but not the machine, and files of the spool (spool.h),
 * which survive both.
 *
 * Memory is the truth, the journal its mirror. Code that changes a job marks it (marks.h); in each
 * turn of the loop qk_journal_step takes what is marked as a snapshot (snapshot.h), which a thread
 * writes in one transaction while the loop goes on. Messages to clients wait for that (reply.c):
 * clients are never told what is not in the journal. After a failed commit all is marked again, and
 * the next one tries again. A commit also fails if the folder is not the one that was opened: its
 * files have been removed, moved or covered, and nobody would find what is written there. Shared
 * memory that no row names any more goes with the commit, files behind it, by another thread.
 *
 * Sync     A transaction with new requests is on disk when it is told. Newly spooled fields, for
 *          which nobody waits, get one that is at most once a second, or with such a transaction;
 *          those that are solved behind it (--spool all) get one at once.
 *          Others survive the end of the process at once, and the end of the machine soon after.
 * Times    are wall-clock seconds in the file, and seconds of the loop's clock in memory. If the
 *          wall clock is set, the rows are changed accordingly. Within one boot the loop's clock
 *          counts, also for the next front.
 * Loss     of data that is only in the write-ahead log is noticed at opening (mark.h).
 *
 * A NULL journal accepts marks and ignores them. All functions are the loop's.
 */
#ifndef QK_FRONT_JOURNAL_H
#define QK_FRONT_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/front/job/marks.h"
#include "daemon/front/storage/aside.h"
#include "proto/limits.h"
#include "proto/quark.pb-c.h"
#include "proto/shape.h"

typedef struct qk_journal qk_journal_t;

/* Ids of rows: no journal comes near it. */
#define QK_JOURNAL_ID_MAX (INT64_MAX / 2)
/* Of iterations and applications: the journal has signed integers. */
#define QK_JOURNAL_COUNT_MAX INT64_MAX

/* Opens or makes DIR/journal.db; dir, and the state folder if that is another one, must be locked
 * by the caller. spool is borrowed: files that no
 * row names any more are removed from it; so is aside, which takes what does not fit. now: seconds
 * of the loop's clock.
 * A file that is damaged is set aside, and what can be read of it goes on (salvage.h).
 * Errors: QK_IO_ERROR, QK_UNSUPPORTED (of a later version), QK_BAD_ARGUMENT (folder.h),
 * QK_NO_MEMORY. */
qk_status_t qk_journal_open(const char *dir, const char *state, qk_spool_t *spool,
                            qk_aside_t *aside, double now, qk_journal_t **journal, qk_err_t *err);
/* Commits nothing. Jobs that are left may still be marked. NULL-safe. */
void qk_journal_close(qk_journal_t *journal);
/* From now on nothing is recorded: memory is taken down while what is promised stays. NULL-safe. */
void qk_journal_seal(qk_journal_t *journal);
bool qk_journal_sealed(const qk_journal_t *journal);

/* What is to be written: marks.h. NULL for NULL. */
qk_marks_t *qk_journal_marks(qk_journal_t *journal);
/* Whether all that was marked is in the file. True for NULL. */
bool qk_journal_clean(const qk_journal_t *journal);
/* Threads write it from now on, and remove what it needs no more; before and after that the caller
 * does. NULL-safe. QK_NO_MEMORY. */
qk_status_t qk_journal_start(qk_journal_t *journal, qk_loop_t *loop, qk_err_t *err);
/* Before the loop ends; waits for what they have begun. NULL-safe. */
void qk_journal_stop(qk_journal_t *journal);
/* In each turn: takes in what the writer has done, and hands it what is marked. Once a commit has
 * failed, it tries no more than twice a second, also where nothing is marked: then the disk alone
 * is tried. What is wrong is logged once a minute. NULL-safe. */
void qk_journal_step(qk_journal_t *journal, double now);
/* Where the threads have been stopped: all that is marked, at once. QK_IO_ERROR with the cause. */
qk_status_t qk_journal_commit(qk_journal_t *journal, double now, qk_err_t *err);
/* A few times a second: looks once a second whether the folder is still the one that was opened,
 * follows the wall clock where it is set, and empties the write-ahead log when nothing was written
 * for a second. NULL-safe. */
void qk_journal_tick(qk_journal_t *journal, double now);
/* Whether the writer has waited for its disk longer than disks usually take. */
bool qk_journal_waits(const qk_journal_t *journal, double now);
/* Whether files are still to be removed. */
bool qk_journal_cleans(const qk_journal_t *journal);

/* Seconds since the start: of the loop with the journal, waits included, and of its writer. */
typedef struct qk_journal_times {
  double loop, writer;
} qk_journal_times_t;
const qk_journal_times_t *qk_journal_times(const qk_journal_t *journal);
/* Why nothing can be recorded now: file, cause, what to do. NULL: it can. */
const char *qk_journal_trouble(const qk_journal_t *journal);

/* Notes of outputs that are to be removed (filing.h): this and 16 hexadecimal digits. */
#define QK_OUTPUT_NOTE "output "
enum { QK_OUTPUT_KEY = sizeof QK_OUTPUT_NOTE + 16 };

/* Notes of eigenvectors (service/eigen.h): this, the id of their setup, a blank, their name. */
#define QK_EIGEN_NOTE "eigen "
enum { QK_EIGEN_PACKED_MAX = 400 }; /* a problem in them */

/* Named values: of the setup that the requests were made for, of engines, of outputs; value NULL:
 * there is none any more. Written at once, which may wait for the disk. */
qk_status_t qk_journal_put_note(qk_journal_t *journal, const char *key, const char *value,
                                qk_err_t *err);
/* With the next commit, as all that follows. */
void qk_journal_note_soon(qk_journal_t *journal, const char *key, const char *value);
/* At once, but with the next commit while one is being written. */
void qk_journal_note_now(qk_journal_t *journal, const char *key, const char *value);
/* At the start. False where there is none. */
bool qk_journal_note(qk_journal_t *journal, const char *key, char *value, size_t size);

/* Setups that were loaded beside the one of the command line: what an operator asks for is written
 * at once, the rest with the next commit. An id is not used again while a request that was for it
 * is there. QK_IO_ERROR. */
qk_status_t qk_journal_add_setup(qk_journal_t *journal, const uint8_t *load, size_t bytes,
                                 int64_t *id, qk_err_t *err);
void qk_journal_note_setup(qk_journal_t *journal, int64_t id, const char *lattice);
/* It is not to be loaded again, but for what is open; the row stays for the requests that were for
 * it. */
qk_status_t qk_journal_end_setup(qk_journal_t *journal, int64_t id, qk_err_t *err);
void qk_journal_leave_setup(qk_journal_t *journal, int64_t id); /* the same, soon */
/* No request is for it any more. */
void qk_journal_drop_setup(qk_journal_t *journal, int64_t id);

/* Extents, and the digest of the gauge configuration, as the journal writes them. */
enum { QK_LATTICE_MAX = 96 };
void qk_journal_lattice(const qk_shape_t *shape, uint64_t digest, char text[QK_LATTICE_MAX]);

/* ---- reading, before anything is marked ----
 *
 * No row is believed: each has its types and limits checked here, and what it means by the function
 * that takes it, which says false and why where it does not fit. Such rows are left out, and set
 * aside in the end.
 */

typedef struct qk_session_row {
  uint8_t client_id[QK_CLIENT_ID];
  char user[QK_USER_MAX + 1];
  uint64_t newest;
} qk_session_row_t;

typedef struct qk_setup_row {
  int64_t id;
  const uint8_t *load; /* packed LOAD */
  size_t load_bytes;
  const char *lattice; /* "": it was never loaded */
  bool dropped;
} qk_setup_row_t;

typedef struct qk_job_row {
  int64_t id, setup;
  uint8_t client_id[QK_CLIENT_ID];
  bool contraction, problem, field, joined, forgotten; /* none of the first four: a SUBMIT */
  const uint8_t *message;
  size_t message_bytes;
  double accepted_at, deadline; /* of the loop's clock, whose beginning may be after them */
  bool has_deadline;
  uint64_t upload_next;
  const char *lattice;    /* that it was accepted on; "": it was not noted */
  const uint8_t *token;   /* [QK_CLIENT_ID], with which others join it; NULL: none */
  const uint8_t *arrived; /* [nparts] numbers of 32 bits, little endian */
  uint32_t nparts;
} qk_job_row_t;

typedef struct qk_rhs_row qk_rhs_row_t; /* rows.h */

/* False: the row does not fit; QK_NO_MEMORY in why ends the reading. */
typedef bool qk_note_fn(void *arg, const char *key, const char *value, qk_err_t *why);
typedef bool qk_setup_row_fn(void *arg, const qk_setup_row_t *row, qk_err_t *why);
typedef bool qk_session_row_fn(void *arg, const qk_session_row_t *row, qk_err_t *why);
typedef bool qk_job_row_fn(void *arg, const qk_job_row_t *row, qk_err_t *why);
/* Called again for a row that does not fit where it says of which right-hand side it is:
 * `damaged`. */
typedef bool qk_rhs_row_fn(void *arg, const qk_rhs_row_t *row, qk_err_t *why);

/* Notes whose key begins with prefix. QK_IO_ERROR, QK_NO_MEMORY, all of them. */
qk_status_t qk_journal_each_note(qk_journal_t *journal, const char *prefix, qk_note_fn *fn,
                                 void *arg, qk_err_t *err);
/* In the order of their coming. */
qk_status_t qk_journal_each_setup(qk_journal_t *journal, qk_setup_row_fn *fn, void *arg,
                                  qk_err_t *err);
qk_status_t qk_journal_each_session(qk_journal_t *journal, qk_session_row_fn *fn, void *arg,
                                    qk_err_t *err);
qk_status_t qk_journal_each_job(qk_journal_t *journal, qk_job_row_fn *fn, void *arg, qk_err_t *err);
qk_status_t qk_journal_each_rhs(qk_journal_t *journal, int64_t job, uint32_t nrhs,
                                qk_rhs_row_fn *fn, void *arg, qk_err_t *err);

/* Right-hand sides of requests that are not there do not fit. */
void qk_journal_find_orphans(qk_journal_t *journal);
/* What did not fit is copied with the whole journal, then removed; where it cannot be, it stays.
 * The log tells of it. */
void qk_journal_set_aside(qk_journal_t *journal);
/* Whether there was none. */
bool qk_journal_is_new(const qk_journal_t *journal);
/* Whether it was damaged, and rows of any kind may be missing. */
bool qk_journal_is_recovered(const qk_journal_t *journal);
/* Whether rows may be missing that explain what is in the spool: it is new, or some did not fit. */
bool qk_journal_doubtful(const qk_journal_t *journal);

#endif
