/*
 * show.h: the trials of a protocol (book.h), printed.
 */
#ifndef QK_TUNE_SHOW_H
#define QK_TUNE_SHOW_H

#include "daemon/engine/tune/options.h"

/* Those of options->show, case by case, the least cost first, as text or JSON. Lines that cannot be
 * read are told on stderr. QK_NOT_FOUND, QK_IO_ERROR, QK_NO_MEMORY; QK_BAD_FORMAT where there is
 * not one that can. Rank 0. */
qk_status_t qk_tune_show(const qk_tool_t *tool, const qk_tune_options_t *options, qk_err_t *err);

#endif
