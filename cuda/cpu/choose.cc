#include "cuda/cpu/variants.h"

#include <stdlib.h>

namespace {

const qk_ops_t *choose() {
#ifdef QK_HAVE_V3
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c");
  if (v3 && getenv("QK_CPU_BASE") == NULL) return qk_cpu_v3::cpu_table();
#endif
  return qk_cpu_base::cpu_table();
}

} // namespace

const qk_ops_t *qk_ops_cpu(void) {
  static const qk_ops_t *const table = choose();
  return table;
}
