/*
 * rows.h: whether what rows of the journal say fits together: journal_read.c has looked at their
 * types and limits. A row that does not fit is somebody's, or a disk's, and nothing may be done on
 * its strength. Errors: QK_BAD_FORMAT with the column.
 */
#ifndef QK_FRONT_ROWS_H
#define QK_FRONT_ROWS_H

#include "daemon/front/job/job.h"
#include "daemon/front/state/journal.h"

/* As it was recorded; source and solution name shared memory and are "" where there was none. */
struct qk_rhs_row {
  qk_rhs_t rhs; /* what the journal has of it */
  const char *source, *solution;
  bool damaged; /* only index, attempt and state (acknowledged or not) are known */
};

/* Shape and digest as qk_journal_lattice writes them; outputs stay as they are where text is "". */
qk_status_t qk_rows_lattice(const char *text, qk_shape_t *shape, uint64_t *digest, qk_err_t *err);
/* Notes of keys that this program does not know fit. */
qk_status_t qk_rows_check_note(const char *key, const char *value, qk_err_t *err);
/* job: made of the row. */
qk_status_t qk_rows_check_job(const qk_job_row_t *row, const qk_job_t *job, qk_err_t *err);
qk_status_t qk_rows_check_rhs(const qk_rhs_row_t *row, const qk_job_t *job, qk_err_t *err);

#endif
