/*
 * table.h: a backend's ops table, made of its memory and queue functions (the struct Memory, static
 * members) and of the kernels of namespace QK_NS. Every call that can fail first asks qk_ctx_begin,
 * so that a lost context stays lost and no call escapes the fault points.
 */
#ifndef QK_CUDA_TABLE_H
#define QK_CUDA_TABLE_H

#include "cuda/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {

template <auto fn> struct guarded;
template <class... A, qk_status_t (*fn)(qk_ops_ctx_t *, A...)> struct guarded<fn> {
  static qk_status_t call(qk_ops_ctx_t *ctx, A... a) {
    qk_status_t status = qk_ctx_begin(ctx);
    return status != QK_OK ? status : fn(ctx, a...);
  }
};

template <class Memory> qk_ops_t make_table(const char *name) {
  qk_ops_t t = {};
  t.name = name;
  t.open = Memory::open;
  t.close = Memory::close;
  t.info = guarded<Memory::info>::call;
  t.last_error = [](qk_ops_ctx_t *ctx) -> const char * { return ctx->error; };
  t.alloc = guarded<Memory::alloc>::call;
  t.free = Memory::free;
  t.alloc_host = guarded<Memory::alloc_host>::call;
  t.free_host = Memory::free_host;
  t.allocated = [](qk_ops_ctx_t *ctx) { return ctx->allocated; };
  t.copy = guarded<Memory::copy>::call;
  t.zero = guarded<Memory::zero>::call;
  t.queue_wait = guarded<Memory::queue_wait>::call;
  t.queue_sync = guarded<Memory::queue_sync>::call;
  t.queue_idle = guarded<Memory::queue_idle>::call;
  t.hop = guarded<hop>::call;
  t.pack = guarded<pack>::call;
  t.gauss = guarded<gauss>::call;
  t.plaquette = guarded<plaquette>::call;
  t.unitarity = guarded<unitarity>::call;
  t.links_bytes = links_bytes;
  t.links_set = guarded<links_set>::call;
  t.links_from_field = guarded<links_from_field>::call;
  t.links_convert = guarded<links_convert>::call;
  t.diag_bytes = diag_bytes;
  t.clover_set = guarded<clover_set>::call;
  t.diag_invert = guarded<diag_invert>::call;
  t.diag_convert = guarded<diag_convert>::call;
  t.blas = guarded<blas>::call;
  t.multi_dot = guarded<multi_dot>::call;
  t.multi_axpy = guarded<multi_axpy>::call;
  t.gcr_step = guarded<gcr_step>::call;
  t.gram_solve = guarded<gram_solve>::call;
  t.space_dots = guarded<space_dots>::call;
  t.space_step = guarded<space_step>::call;
  t.column_import = guarded<column_import>::call;
  t.column_export = guarded<column_export>::call;
  t.column_copy = guarded<column_copy>::call;
  t.source = guarded<source>::call;
  t.noise = guarded<noise>::call;
  t.contract = guarded<contract>::call;
  t.link_smear = guarded<link_smear>::call;
  t.link_import = guarded<link_import>::call;
  t.link_export = guarded<link_export>::call;
  t.link_pack = guarded<link_pack>::call;
  t.link_unpack = guarded<link_unpack>::call;
  t.link_sums = guarded<link_sums>::call;
  t.link_start = guarded<link_start>::call;
  t.link_update = guarded<link_update>::call;
  t.coarse = guarded<coarse>::call;
  t.coarse_pack = guarded<coarse_pack>::call;
  t.restrict_ = guarded<restrict_>::call;
  t.prolong = guarded<prolong>::call;
  t.chiral = guarded<chiral>::call;
  t.orthonormalise = guarded<orthonormalise>::call;
  t.transfer_set = guarded<transfer_set>::call;
  t.transfer_get = guarded<transfer_get>::call;
  t.galerkin = guarded<galerkin>::call;
  t.coarse_close = guarded<coarse_close>::call;
  t.coarse_face = guarded<coarse_face>::call;
  t.coarse_invert = guarded<coarse_invert>::call;
  t.coarse_times = guarded<coarse_times>::call;
  t.coarse_get = guarded<coarse_get>::call;
  t.coarse_set = guarded<coarse_set>::call;
  t.coarse_bytes = coarse_bytes;
  t.transfer_bytes = transfer_bytes;
  t.basis_dot = guarded<basis_dot>::call;
  t.basis_axpy = guarded<basis_axpy>::call;
  t.basis_rotate = guarded<basis_rotate>::call;
  t.sites_get = guarded<sites_get>::call;
  t.sites_set = guarded<sites_set>::call;
  t.graph_begin = guarded<Memory::graph_begin>::call;
  t.graph_end = Memory::graph_end;
  t.graph_launch = guarded<Memory::graph_launch>::call;
  t.graph_destroy = Memory::graph_destroy;
  return t;
}

} // namespace QK_NS

#endif
