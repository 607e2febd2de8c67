/*
 * halo.h: the halo of a spinor block, exchanged with the neighbours in split directions.
 *
 * begin packs the faces (U^+ applied by the sender where it holds the link), into the memory of
 * neighbours that are peers (peers.h), else for messages; the caller then launches the interior;
 * end waits for what arrives, ready for the boundary. Faces: half-spinors for the hop, whole
 * spinors for coarse operators and, across x, y, z, for Gaussian smearing, colour vectors of one or
 * three slices for the staggered hop; layout in cuda/ops.h (qk_hop_args_t.ghost) and
 * cuda/stag_ops.h. Messages leave from device memory if MPI reads it, as on the CPU backend;
 * else they are staged through pinned host memory on queue 3.
 *
 * Buffers are allocated at the first exchange of a kind (precision, nrhs, parities, components)
 * and kept until destroy. Collective, one exchange at a time. With no split direction every call
 * is empty. Errors: QK_DEVICE_MEMORY (nothing changed), QK_DEVICE_ERROR, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_HALO_H
#define QK_ENGINE_HALO_H

#include "daemon/engine/lattice/field.h"

typedef struct qk_halo qk_halo_t;

qk_status_t qk_halo_create(const qk_device_t *dev, qk_halo_t **halo);
void qk_halo_destroy(qk_halo_t *halo); /* NULL-safe */

bool qk_halo_needed(const qk_halo_t *halo);

/* Device memory of the faces of a block, those that leave and those that arrive. components: of a
 * site of a face, with all slices. Pure. */
int64_t qk_halo_bytes(const qk_geom_t *geom, qk_prec_t prec, int nrhs, int components);

/* Fills args->ghost; reads args->in, links, dagger. */
qk_status_t qk_halo_begin(qk_halo_t *halo, qk_hop_args_t *args);
/* The buffers of begin_gauss for fields like `in`: once they are there it needs no memory. Not
 * collective. */
qk_status_t qk_halo_reserve_gauss(qk_halo_t *halo, const qk_spinor_t *in);
/* Fills args->ghost; reads args->in, links. Empty where x, y and z are not split. */
qk_status_t qk_halo_begin_gauss(qk_halo_t *halo, qk_gauss_args_t *args);
/* Fills args->ghost with whole spinors; reads args->in. */
qk_status_t qk_halo_begin_coarse(qk_halo_t *halo, qk_coarse_args_t *args);
/* Fills args->ghost; reads args->in, whether there are long links, and whether t is split: a caller
 * that hops in space alone says that it is not. */
qk_status_t qk_halo_begin_stag(qk_halo_t *halo, qk_stag_args_t *args);
qk_status_t qk_halo_end(qk_halo_t *halo);

#endif
