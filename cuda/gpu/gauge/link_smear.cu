/* Link smearing on the GPU. */
#include "cuda/gpu/each.cuh"

#include "cuda/body/links/link_smear_calls.h"
