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

/* The members of the table that are no calls are set by the caller. */
template <class Memory> qk_ops_t make_table() {
  qk_ops_t t = {};
  t.count = Memory::count;
  t.open = Memory::open;
  t.close = Memory::close;
  t.info = guarded<Memory::info>::call;
  t.last_error = [](qk_ops_ctx_t *ctx) -> const char * { return ctx->error; };
  t.alloc = guarded<Memory::alloc>::call;
  t.free = Memory::free;
  t.alloc_host = guarded<Memory::alloc_host>::call;
  t.free_host = Memory::free_host;
  t.allocated = [](qk_ops_ctx_t *ctx) { return ctx->allocated; };
  t.peer_alloc = guarded<Memory::peer_alloc>::call;
  t.peer_free = Memory::peer_free;
  t.peer_open = guarded<Memory::peer_open>::call;
  t.peer_close = Memory::peer_close;
  t.copy = guarded<Memory::copy>::call;
  t.zero = guarded<Memory::zero>::call;
  t.queue_wait = guarded<Memory::queue_wait>::call;
  t.queue_sync = guarded<Memory::queue_sync>::call;
  t.queue_idle = guarded<Memory::queue_idle>::call;
#define QK_SET(name, arguments) t.name = guarded<name>::call;
#define QK_SET_SIZE(name, parameters) t.name = name;
  QK_KERNELS(QK_SET)
  QK_KERNEL_SIZES(QK_SET_SIZE)
#undef QK_SET
#undef QK_SET_SIZE
  t.graph_begin = guarded<Memory::graph_begin>::call;
  t.graph_end = Memory::graph_end;
  t.graph_launch = guarded<Memory::graph_launch>::call;
  t.graph_destroy = Memory::graph_destroy;
  return t;
}

} // namespace QK_NS

#endif
