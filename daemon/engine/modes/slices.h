/*
 * slices.h: eigenvectors of the Laplacian, computed on one time slice after the other and put into
 * what is kept. Of each vector of a slice the first number of at least root mean square modulus,
 * in the order of sites and colours, is real and positive.
 *
 * Collective. Errors: those of laplacian.h and lanczos.h.
 */
#ifndef QK_ENGINE_SLICES_H
#define QK_ENGINE_SLICES_H

#include "daemon/engine/eigen/lanczos.h"
#include "daemon/engine/modes/kept.h"
#include "daemon/engine/setup/loaded.h"

typedef struct qk_slices qk_slices_t;

/* From slice `first` on; made has those before. Borrows setup and made. */
qk_status_t qk_slices_create(qk_loaded_t *setup, const qk_link_smear_t *links,
                             const qk_lanczos_params_t *params, qk_kept_t *made, int first,
                             qk_slices_t **slices, qk_err_t *err);
void qk_slices_destroy(qk_slices_t *slices); /* NULL-safe */

/* A new block of Lanczos, or a slice's beginning or end. */
qk_status_t qk_slices_step(qk_slices_t *slices, qk_err_t *err);

typedef struct qk_slices_news {
  bool over;
  bool finished;           /* a slice, by the last step */
  int done;                /* slices */
  int restarts, converged; /* of the slice under way */
  int64_t applications;    /* of the Laplacian to eight vectors */
} qk_slices_news_t;
qk_slices_news_t qk_slices_news(const qk_slices_t *slices);

/* Device bytes that it takes at most. Pure. */
int64_t qk_slices_bytes(const qk_geom_t *geom, const qk_link_smear_t *links,
                        const qk_lanczos_params_t *params);

#endif
