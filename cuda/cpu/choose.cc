#include "cuda/cpu/variants.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

namespace {

struct variant {
  const char *name;
  bool here; /* whether this processor has its instructions */
  const qk_ops_t *(*table)();
};

bool has_v3() {
#ifdef QK_HAVE_V3
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

bool has_v4() {
#ifdef QK_HAVE_V4
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

/* The best one of this processor, or that of the environment. */
variant choose() {
  const variant all[] = {
#ifdef QK_HAVE_V4
      {"v4", has_v4(), qk_cpu_v4::cpu_table},
#endif
#ifdef QK_HAVE_V3
      {"v3", has_v3(), qk_cpu_v3::cpu_table},
#endif
      {"base", true, qk_cpu_base::cpu_table},
  };
  const char *const wanted = getenv("QK_CPU_VARIANT");
  const variant *best = nullptr;
  for (const variant &v : all) {
    if (!v.here) continue;
    if (wanted != NULL && strcmp(v.name, wanted) == 0) return v;
    if (best == nullptr) best = &v;
  }
  if (wanted != NULL)
    qk_warn("device", "QK_CPU_VARIANT=%s is not among the kernels that run here; %s is used",
            wanted, best->name);
  return *best;
}

const variant &chosen() {
  static const variant v = choose();
  return v;
}

} // namespace

const qk_ops_t *qk_ops_cpu(void) {
  return chosen().table();
}

const char *qk_cpu_variant(void) {
  return chosen().name;
}
