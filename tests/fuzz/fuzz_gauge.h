/*
 * fuzz_gauge.h: what the fuzzers of gauge files share. The input stands in a file in memory; what
 * the parser accepts is also read, as parser and reader must agree on what is there.
 */
#ifndef QK_TESTS_FUZZ_GAUGE_H
#define QK_TESTS_FUZZ_GAUGE_H

#include "daemon/engine/gauge/gauge_format.h"

typedef qk_status_t fuzz_gauge_fn(const qk_gauge_file_t *file, qk_gauge_info_t *info,
                                  qk_err_t *err);

/* Aborts where a promise is broken: an error without a sentence, memory that stays held, a volume
 * that the input cannot hold. Returns 0. */
int fuzz_gauge(const uint8_t *data, size_t size, fuzz_gauge_fn *probe);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
