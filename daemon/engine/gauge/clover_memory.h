/*
 * clover_memory.h: clover terms in shared-memory objects, which clients have sent to the daemon
 * (daemon/base/links/clover_term.h: a site).
 */
#ifndef QK_ENGINE_CLOVER_MEMORY_H
#define QK_ENGINE_CLOVER_MEMORY_H

#include "daemon/base/links/clover_term.h"
#include "daemon/engine/lattice/geom.h"

/* "memory:/NAME:f32|f64:XxYxZxT" into term [local sites, x fastest][QK_CLOVER_TERM_SITE], and the
 * digest and the squares of the whole lattice into *sum. digest: which the term must have.
 * Collective. Errors, the same on all ranks: QK_BAD_ARGUMENT (the text; NaN or Inf),
 * QK_BAD_GEOMETRY (another lattice, another size), QK_BAD_CHECKSUM, QK_IO_ERROR. */
qk_status_t qk_clover_memory_read(const char *path, uint64_t digest, const qk_geom_t *geom,
                                  double *term, qk_clover_term_sum_t *sum, qk_err_t *err);

#endif
