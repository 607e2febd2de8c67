/*
 * coarse_setup_calls.h: the entries for matrices of coarse operators that work element by element,
 * written once over the launcher that the file including this has defined in QK_NS:
 *
 *   qk_status_t each_element(ctx, nsites, n, body)   body.element(s, r, c) for s < nsites; r, c < n
 */
#ifndef QK_BODY_COARSE_SETUP_CALLS_H
#define QK_BODY_COARSE_SETUP_CALLS_H

#include "cuda/args/mg_setup_args.h"
#include "cuda/body/coarse_setup.h"
#include "cuda/kernels.h"

namespace QK_NS {

size_t coarse_bytes(const qk_lattice_t *lat, const qk_coarse_links_t *links) {
  return 2 * (size_t)lat->vcb * (size_t)coarse_matrix(links->n, links->ndir, 1, 0) *
         (size_t)qk_prec_bytes(links->prec);
}

size_t coarse_eight_bytes(const qk_lattice_t *lat, const qk_coarse_links_t *links) {
  const int64_t sites = 2 * (int64_t)lat->vcb;
  return (size_t)coarse_matrix(links->n, links->ndir, sites, 0) +
         (size_t)coarse_unit_at(links->n, links->ndir, sites, 0) * sizeof(float);
}

qk_status_t coarse_get(qk_ops_ctx_t *ctx, const qk_coarse_copy_args_t *a) {
  const qk_status_t status = qk_args_coarse_copy(ctx, a);
  return status == QK_OK ? each_element(ctx, (int)a->n, a->links.n, copy_to_plain{*a}) : status;
}

qk_status_t coarse_set(qk_ops_ctx_t *ctx, const qk_coarse_copy_args_t *a) {
  const qk_status_t status = qk_args_coarse_copy(ctx, a);
  return status == QK_OK ? each_element(ctx, (int)a->n, a->links.n, copy_from_plain{*a}) : status;
}

qk_status_t coarse_close(qk_ops_ctx_t *ctx, const qk_coarse_close_args_t *a) {
  const qk_status_t status = qk_args_coarse_close(ctx, a);
  return status == QK_OK ? each_element(ctx, 2 * a->lat.vcb, a->inner.n, closed{*a}) : status;
}

qk_status_t coarse_face(qk_ops_ctx_t *ctx, const qk_coarse_face_args_t *a) {
  const qk_status_t status = qk_args_coarse_face(ctx, a);
  if (status != QK_OK) return status;
  return each_element(ctx, 2 * a->lat.face[a->mu], a->ahead.n, face_copied{*a});
}

} // namespace QK_NS
#endif
