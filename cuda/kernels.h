/*
 * kernels.h: the kernels of one backend, as its table calls them (table.h). Each build of the
 * kernels (GPU, and the CPU once per instruction set) has its own namespace QK_NS. Arguments,
 * results and errors: ops.h. The table has already checked that the context is alive.
 */
#ifndef QK_CUDA_KERNELS_H
#define QK_CUDA_KERNELS_H

#include "cuda/ops.h"

namespace QK_NS {

qk_status_t blas(qk_ops_ctx_t *ctx, qk_blas_op_t op, const qk_blas_args_t *args);
qk_status_t multi_dot(qk_ops_ctx_t *ctx, const qk_multi_args_t *args);
qk_status_t multi_axpy(qk_ops_ctx_t *ctx, const qk_multi_args_t *args);
qk_status_t gcr_step(qk_ops_ctx_t *ctx, const qk_gcr_args_t *args);
qk_status_t gram_solve(qk_ops_ctx_t *ctx, const qk_gram_args_t *args);
qk_status_t space_dots(qk_ops_ctx_t *ctx, const qk_space_args_t *args);
qk_status_t space_step(qk_ops_ctx_t *ctx, const qk_space_args_t *args);
qk_status_t column_import(qk_ops_ctx_t *ctx, const qk_column_args_t *args);
qk_status_t column_export(qk_ops_ctx_t *ctx, const qk_column_args_t *args);
qk_status_t column_copy(qk_ops_ctx_t *ctx, const qk_column_copy_args_t *args);
qk_status_t source(qk_ops_ctx_t *ctx, const qk_source_args_t *args);
qk_status_t noise(qk_ops_ctx_t *ctx, const qk_noise_args_t *args);
qk_status_t contract(qk_ops_ctx_t *ctx, const qk_contract_args_t *args);

qk_status_t hop(qk_ops_ctx_t *ctx, const qk_hop_args_t *args);
qk_status_t pack(qk_ops_ctx_t *ctx, const qk_pack_args_t *args);
qk_status_t gauss(qk_ops_ctx_t *ctx, const qk_gauss_args_t *args);
qk_status_t plaquette(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, double plaq[6]);
qk_status_t unitarity(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, double *dev, double *det,
                      double *link_trace);
size_t links_bytes(const qk_lattice_t *lat, qk_prec_t prec, int reals);
qk_status_t links_set(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, qk_links_t *links);
qk_status_t links_from_field(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const qk_linkfield_t *u,
                             qk_links_t *out);
qk_status_t links_convert(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const qk_links_t *in,
                          qk_links_t *out);
size_t diag_bytes(const qk_lattice_t *lat, qk_prec_t prec);
qk_status_t clover_set(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, double csw, double diag,
                       qk_diag_t *out);
qk_status_t diag_invert(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const qk_diag_t *in,
                        qk_diag_t *out, int64_t *singular);
qk_status_t diag_convert(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const qk_diag_t *in,
                         qk_diag_t *out);

qk_status_t link_smear(qk_ops_ctx_t *ctx, const qk_link_smear_args_t *args);
qk_status_t link_import(qk_ops_ctx_t *ctx, const qk_link_copy_args_t *args);
qk_status_t link_export(qk_ops_ctx_t *ctx, const qk_link_copy_args_t *args);
qk_status_t link_pack(qk_ops_ctx_t *ctx, const qk_link_box_args_t *args);
qk_status_t link_unpack(qk_ops_ctx_t *ctx, const qk_link_box_args_t *args);
qk_status_t link_sums(qk_ops_ctx_t *ctx, const qk_link_sums_args_t *args, double sum[QK_LINK_SUMS]);
qk_status_t link_start(qk_ops_ctx_t *ctx, const qk_link_start_args_t *args);
qk_status_t link_update(qk_ops_ctx_t *ctx, const qk_link_update_args_t *args);

size_t coarse_bytes(const qk_lattice_t *lat, const qk_coarse_links_t *links);
qk_status_t coarse(qk_ops_ctx_t *ctx, const qk_coarse_args_t *args);
qk_status_t coarse_pack(qk_ops_ctx_t *ctx, const qk_coarse_pack_args_t *args);
size_t transfer_bytes(const qk_transfer_t *t);
qk_status_t restrict_(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args);
qk_status_t prolong(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args);
qk_status_t chiral(qk_ops_ctx_t *ctx, const qk_chiral_args_t *args);
qk_status_t orthonormalise(qk_ops_ctx_t *ctx, const qk_orthonormalise_args_t *args,
                           int64_t *dependent);
qk_status_t transfer_set(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args);
qk_status_t transfer_get(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args);
qk_status_t galerkin(qk_ops_ctx_t *ctx, const qk_galerkin_args_t *args);
qk_status_t coarse_close(qk_ops_ctx_t *ctx, const qk_coarse_close_args_t *args);
qk_status_t coarse_face(qk_ops_ctx_t *ctx, const qk_coarse_face_args_t *args);
qk_status_t coarse_invert(qk_ops_ctx_t *ctx, const qk_coarse_invert_args_t *args,
                          int64_t *singular);
qk_status_t coarse_times(qk_ops_ctx_t *ctx, const qk_coarse_times_args_t *args);
qk_status_t coarse_get(qk_ops_ctx_t *ctx, const qk_coarse_copy_args_t *args);
qk_status_t coarse_set(qk_ops_ctx_t *ctx, const qk_coarse_copy_args_t *args);

qk_status_t basis_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *args);
qk_status_t basis_axpy(qk_ops_ctx_t *ctx, const qk_basis_args_t *args);
qk_status_t basis_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *args);
qk_status_t sites_get(qk_ops_ctx_t *ctx, const qk_sites_args_t *args);
qk_status_t sites_set(qk_ops_ctx_t *ctx, const qk_sites_args_t *args);

} // namespace QK_NS

#endif
