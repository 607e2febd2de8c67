/* The CPU backend's table for one instruction set. */
#include "cuda/table.h"

#include "cuda/cpu/ctx.h"
#include "cuda/cpu/variants.h"

namespace QK_NS {

static qk_ops_t make() {
  qk_ops_t t = make_table<qk_cpu_memory>();
  t.name = "cpu";
  t.host_memory = true;
  t.piece = 1;
  t.tuning = &qk_tuning_cpu;
  return t;
}

const qk_ops_t *cpu_table() {
  static const qk_ops_t table = make();
  return &table;
}

} // namespace QK_NS
