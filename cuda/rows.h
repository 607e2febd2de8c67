/*
 * rows.h: the kernels of a backend, a row each. From the rows come the entries of qk_ops_t (ops.h),
 * their declarations (kernels.h) and the table of a backend (table.h). What a kernel computes
 * stands at its arguments in ops.h, coherent_ops.h, gauge_ops.h, linkfield_ops.h, mg_ops.h,
 * peer_ops.h, project_ops.h, shift_ops.h and vector_block_ops.h; README.md lists all with their
 * formulas.
 */
#ifndef QK_CUDA_ROWS_H
#define QK_CUDA_ROWS_H

/* X(name, arguments): qk_status_t name(qk_ops_ctx_t *ctx, const arguments *args), on queue 0. */
#define QK_WILSON_KERNELS(X)                                                                       \
  X(hop, qk_hop_args_t)                                                                            \
  X(hop_each, qk_hop_each_args_t)                                                                  \
  X(pack, qk_pack_args_t)                                                                          \
  X(gauss, qk_gauss_args_t)

#define QK_STAG_KERNELS(X)                                                                         \
  X(stag, qk_stag_args_t)                                                                          \
  X(stag_pack, qk_stag_pack_args_t)                                                                \
  X(stag_links, qk_stag_links_args_t)                                                              \
  X(stag_behind, qk_stag_behind_args_t)

#define QK_PEER_KERNELS(X)                                                                         \
  X(signal, qk_signal_args_t)                                                                      \
  X(await, qk_signal_args_t)                                                                       \
  X(peer_sum, qk_peer_sum_args_t)

#define QK_KRYLOV_KERNELS(X)                                                                       \
  X(blas, qk_blas_args_t)                                                                          \
  X(multi_dot, qk_multi_args_t)                                                                    \
  X(multi_axpy, qk_multi_args_t)                                                                   \
  X(gcr_step, qk_gcr_args_t)                                                                       \
  X(gram_solve, qk_gram_args_t)                                                                    \
  X(space_dots, qk_space_args_t)                                                                   \
  X(space_step, qk_space_args_t)                                                                   \
  X(site_ratios, qk_site_ratios_args_t)                                                            \
  X(shift_step, qk_shift_args_t)

#define QK_FIFTH_KERNELS(X)                                                                        \
  X(fifth_mix, qk_fifth_mix_args_t)                                                                \
  X(fifth_sum, qk_fifth_sum_args_t)

#define QK_COLUMN_KERNELS(X)                                                                       \
  X(rhs_import, qk_rhs_args_t)                                                                     \
  X(rhs_export, qk_rhs_args_t)                                                                     \
  X(rhs_copy, qk_rhs_copy_args_t)                                                                  \
  X(source, qk_source_args_t)                                                                      \
  X(noise, qk_noise_args_t)

#define QK_HADRON_KERNELS(X)                                                                       \
  X(contract, qk_contract_args_t)                                                                  \
  X(project, qk_project_args_t)

#define QK_GAUGE_KERNELS(X)                                                                        \
  X(plaquette, qk_plaquette_args_t)                                                                \
  X(unitarity, qk_unitarity_args_t)                                                                \
  X(links_set, qk_links_set_args_t)                                                                \
  X(links_from_field, qk_links_from_field_args_t)                                                  \
  X(links_convert, qk_links_convert_args_t)                                                        \
  X(clover_set, qk_clover_set_args_t)                                                              \
  X(diag_exp, qk_diag_exp_args_t)                                                                  \
  X(diag_invert, qk_diag_invert_args_t)                                                            \
  X(diag_convert, qk_diag_convert_args_t)                                                          \
  X(link_import, qk_link_copy_args_t)                                                              \
  X(link_export, qk_link_copy_args_t)                                                              \
  X(link_pack, qk_link_box_args_t)                                                                 \
  X(link_unpack, qk_link_box_args_t)                                                               \
  X(link_start, qk_link_start_args_t)                                                              \
  X(link_update, qk_link_update_args_t)                                                            \
  X(link_smear, qk_link_smear_args_t)                                                              \
  X(link_paths, qk_link_paths_args_t)                                                              \
  X(link_long, qk_link_long_args_t)                                                                \
  X(link_project, qk_link_project_args_t)                                                          \
  X(link_sums, qk_link_sums_args_t)                                                                \
  X(fix_relax, qk_fix_relax_args_t)                                                                \
  X(fix_sums, qk_fix_sums_args_t)                                                                  \
  X(fix_rotate, qk_fix_rotate_args_t)

/* transfer_set: t = v, transfer_get: v = t; coarse_set: links = plain, coarse_get: the reverse. */
#define QK_COARSE_KERNELS(X)                                                                       \
  X(coarse, qk_coarse_args_t)                                                                      \
  X(coarse_pack, qk_coarse_pack_args_t)                                                            \
  X(part_put, qk_part_args_t)                                                                      \
  X(part_get, qk_part_args_t)                                                                      \
  X(restrict_, qk_transfer_args_t)                                                                 \
  X(prolong, qk_transfer_args_t)                                                                   \
  X(chiral, qk_chiral_args_t)                                                                      \
  X(transfer_set, qk_transfer_copy_args_t)                                                         \
  X(transfer_get, qk_transfer_copy_args_t)                                                         \
  X(orthonormalise, qk_orthonormalise_args_t)                                                      \
  X(principal, qk_principal_args_t)                                                                \
  X(galerkin, qk_galerkin_args_t)                                                                  \
  X(coarse_close, qk_coarse_close_args_t)                                                          \
  X(coarse_face, qk_coarse_face_args_t)                                                            \
  X(coarse_invert, qk_coarse_invert_args_t)                                                        \
  X(coarse_times, qk_coarse_times_args_t)                                                          \
  X(coarse_eight, qk_coarse_eight_args_t)                                                          \
  X(coarse_get, qk_coarse_copy_args_t)                                                             \
  X(coarse_set, qk_coarse_copy_args_t)

/* sites_get: plain = field, sites_set: field = plain. */
#define QK_BASIS_KERNELS(X)                                                                        \
  X(basis_dot, qk_basis_args_t)                                                                    \
  X(basis_axpy, qk_basis_args_t)                                                                   \
  X(basis_rotate, qk_basis_args_t)                                                                 \
  X(sites_get, qk_sites_args_t)                                                                    \
  X(sites_set, qk_sites_args_t)                                                                    \
  X(coherent_restrict, qk_coherent_args_t)                                                         \
  X(coherent_prolong, qk_coherent_args_t)

#define QK_KERNELS(X)                                                                              \
  QK_WILSON_KERNELS(X)                                                                             \
  QK_STAG_KERNELS(X)                                                                               \
  QK_PEER_KERNELS(X)                                                                               \
  QK_KRYLOV_KERNELS(X)                                                                             \
  QK_FIFTH_KERNELS(X)                                                                              \
  QK_COLUMN_KERNELS(X)                                                                             \
  QK_HADRON_KERNELS(X)                                                                             \
  QK_GAUGE_KERNELS(X)                                                                              \
  QK_COARSE_KERNELS(X)                                                                             \
  QK_BASIS_KERNELS(X)

/* X(name, parameters): size_t name parameters, the bytes that something takes. No context, no
 * errors. lat: of the level that matrices are of. */
#define QK_KERNEL_SIZES(X)                                                                         \
  X(links_bytes, (const qk_lattice_t *lat, qk_prec_t prec, int reals))                             \
  X(diag_bytes, (const qk_lattice_t *lat, qk_prec_t prec))                                         \
  X(coarse_bytes, (const qk_lattice_t *lat, const qk_coarse_links_t *links))                       \
  X(coarse_eight_bytes, (const qk_lattice_t *lat, const qk_coarse_links_t *links))                 \
  X(transfer_bytes, (const qk_transfer_t *t))

#endif
