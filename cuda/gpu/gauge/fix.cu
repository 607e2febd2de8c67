/* Gauge fixing on the GPU: a thread a site. */
#include "cuda/gpu/gauge/groups.cuh"

#include "cuda/body/links/fix_calls.h"
