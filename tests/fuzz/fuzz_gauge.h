/*
 * fuzz_gauge.h: what the fuzzers of gauge files share. The input stands in a file in memory; what
 * the parser accepts is also read, as parser and reader must agree on what is there.
 */
#ifndef QK_TESTS_FUZZ_GAUGE_H
#define QK_TESTS_FUZZ_GAUGE_H

#include "daemon/engine/gauge/gauge_format.h"

/* Aborts where a promise is broken: an error without a sentence, memory that stays held, a volume
 * that the input cannot hold. Returns 0. */
int fuzz_gauge(const uint8_t *data, size_t size, const int dims_hint[4], qk_gauge_probe_fn *probe);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
