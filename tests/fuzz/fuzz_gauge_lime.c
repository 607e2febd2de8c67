#include "tests/fuzz/fuzz_gauge.h"

static qk_status_t without_hint(const qk_gauge_file_t *file, qk_gauge_info_t *info, qk_err_t *err) {
  return qk_gauge_lime_probe(file, NULL, info, err);
}

static qk_status_t with_hint(const qk_gauge_file_t *file, qk_gauge_info_t *info, qk_err_t *err) {
  static const int dims[4] = {2, 2, 2, 2};
  return qk_gauge_lime_probe(file, dims, info, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_gauge(data, size, without_hint);
  return fuzz_gauge(data, size, with_hint);
}
