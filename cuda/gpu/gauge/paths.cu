/* Fat and long links, projection to U(3) on the GPU: a thread a site or link. */
#include "cuda/gpu/each.cuh"
#include "cuda/gpu/gauge/groups.cuh"

#include "cuda/body/links/paths_calls.h"
