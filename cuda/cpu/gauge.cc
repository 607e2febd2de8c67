/* Gauge field work on the CPU. */
#include "cuda/cpu/each.h"

#include "cuda/body/gauge_calls.h"
