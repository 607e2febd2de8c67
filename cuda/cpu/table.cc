/* The CPU backend's table for one instruction set. */
#include "cuda/table.h"

#include "cuda/cpu/ctx.h"
#include "cuda/cpu/variants.h"

namespace QK_NS {

const qk_ops_t *cpu_table() {
  static const qk_ops_t table = make_table<qk_cpu_memory>("cpu");
  return &table;
}

} // namespace QK_NS
