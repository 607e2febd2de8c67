/*
 * links.h: the links of a configuration as an action needs them: on the device with their halo, and
 * as links of the hop in the precisions and forms that are wanted.
 *
 * Errors: those of the device, QK_NO_MEMORY; what was allocated is then the caller's.
 */
#ifndef QK_ENGINE_LINKS_H
#define QK_ENGINE_LINKS_H

#include "daemon/engine/action/action.h"
#include "daemon/engine/gauge/link_smear.h"
#include "proto/action/links_text.h"

/* Of the parameter "links" of checked values; thin where the action has none. Pure. */
qk_links_recipe_t qk_links_recipe(const qk_values_t *values);

/* Whether the hop of these values may rebuild the third row of each link even in double: links that
 * are used as they are, with |U^+U - 1| and |det U - 1| of at most so much, so that the row is
 * there to 1e-14 either way. Nobody has looked at smeared ones. Pure. */
bool qk_links_are_exact(const qk_values_t *values, double unitarity, double determinant);

/* That links of its own are not given to a clover term that is not there (clover: it is). Pure.
 * QK_BAD_ARGUMENT. */
qk_status_t qk_links_check_apart(const qk_values_t *values, bool clover, qk_err_t *err);

/* links (gauge.h, host memory), smeared, on the device with their halo, in double; the caller
 * frees gauge->u.data. Collective. */
qk_status_t qk_links_upload(const qk_device_t *dev, const double *links,
                            const qk_link_smear_t *smear, qk_gauge_args_t *gauge, qk_err_t *err);

/* Into parts->links, of in->gauge as they are; with an open boundary those are 0 that begin or end
 * on an outer slice. */
qk_status_t qk_links_set(const qk_action_in_t *in, qk_eo_parts_t *parts);

/* Device memory of what these make: of upload, for hop and clover term; the most while links are
 * smeared, when nothing else of an operator is there. */
int64_t qk_links_upload_bytes(const qk_lattice_t *lat, const qk_links_recipe_t *recipe);
int64_t qk_links_smear_bytes(const qk_lattice_t *lat, const qk_links_recipe_t *recipe);
int64_t qk_links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                       const qk_action_params_t *params);

#endif
