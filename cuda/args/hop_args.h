/*
 * hop_args.h: whether the descriptors of a hop, pack or gauss call fit each other, or those of
 * any lattice. Pure.
 *
 * Returns NULL, or what does not fit, for the context's last error: the kernels may then trust the
 * arguments. Static storage.
 */
#ifndef QK_CUDA_HOP_ARGS_H
#define QK_CUDA_HOP_ARGS_H

#include "cuda/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

const char *qk_lattice_misfit(const qk_lattice_t *lat);
/* Of a field of tiles, 12 components of spinors or 4 of colour vectors a site. */
const char *qk_block_misfit(const qk_spinor_t *f, int ncomp);
const char *qk_hop_misfit(const qk_hop_args_t *args);
const char *qk_hop_each_misfit(const qk_hop_each_args_t *args);
/* The call of hop for field number k alone. */
qk_hop_args_t qk_hop_each_one(const qk_hop_each_args_t *args, int k);
/* That of all fields, but perhaps of out. */
qk_prec_t qk_hop_prec(const qk_hop_args_t *args);
const char *qk_pack_misfit(const qk_pack_args_t *args);
const char *qk_gauss_misfit(const qk_gauss_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
