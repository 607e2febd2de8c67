/* Link smearing on the GPU. */
#include "cuda/gpu/each.cuh"

#include "cuda/body/link_smear_calls.h"
