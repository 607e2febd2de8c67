/*
 * report.h: what quark-tune prints of a study: table, verdict, configuration for quarkd.
 */
#ifndef QK_TUNE_REPORT_H
#define QK_TUNE_REPORT_H

#include "daemon/engine/tune/study.h"

/* To stdout, as text or JSON; the configuration, if one is wanted: QK_IO_ERROR. Rank 0. */
qk_status_t qk_study_report(const qk_study_t *study, qk_err_t *err);
#endif
