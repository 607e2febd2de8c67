/* Links with their halo on the GPU. */
#include "cuda/gpu/each.cuh"

#include "cuda/body/links/linkfield_calls.h"
