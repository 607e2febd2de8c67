#include "tests/fuzz/fuzz_gauge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int dims[4] = {2, 2, 2, 2};
  fuzz_gauge(data, size, NULL, qk_gauge_lime_probe);
  return fuzz_gauge(data, size, dims, qk_gauge_lime_probe);
}
