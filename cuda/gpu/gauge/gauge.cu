/* Gauge field work on the GPU, done once per configuration. */
#include "cuda/gpu/each.cuh"

#include "cuda/body/gauge_calls.h"
