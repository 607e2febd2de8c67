#include "tests/fuzz/fuzz_gauge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz_gauge(data, size, NULL, qk_gauge_openqcd_probe);
}
