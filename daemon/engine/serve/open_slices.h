/*
 * open_slices.h: the outer time slices of an open boundary (action/open.h), t = 0 and T-1: sources
 * and solutions are 0 there.
 *
 * A source on one of them cannot be solved for and is refused; what stands on all time slices
 * (noise, parts of a solution) loses them. Every call is for any setup, and does nothing where the
 * boundary is not open. Those of fields are collective; they need one work field in double.
 */
#ifndef QK_ENGINE_OPEN_SLICES_H
#define QK_ENGINE_OPEN_SLICES_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"

/* Before a source is made. Pure. QK_BAD_ARGUMENT: it is on an outer slice alone; or its smearing,
 * as for qk_open_slices_smearing. */
qk_status_t qk_open_slices_fill(const qk_loaded_t *setup, const qk_fill_t *fill, qk_err_t *err);

/* Links that are 0 cannot be smeared together with others: QK_BAD_ARGUMENT where the file has such
 * and the smearing is not in space alone. Pure. */
qk_status_t qk_open_slices_smearing(const qk_loaded_t *setup, const qk_smearing_t *smearing,
                                    qk_err_t *err);

/* A source that has been made (one column, full, double). An upload that is not 0 on the outer
 * slices is refused: verdict QK_BAD_ARGUMENT, status QK_OK. Others become 0 there. A status: that
 * of the device or the communicator. */
qk_status_t qk_open_slices_source(const qk_loaded_t *setup, const qk_fill_t *fill,
                                  const qk_field_t *field, qk_err_t *verdict);

/* The field, of the same form, becomes 0 there. */
qk_status_t qk_open_slices_clear(const qk_loaded_t *setup, const qk_field_t *field);

#endif
