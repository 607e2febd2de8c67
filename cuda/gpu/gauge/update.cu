/* Markov chain updates on the GPU: a thread a link. */
#include "cuda/gpu/gauge/groups.cuh"

#include "cuda/body/links/update_calls.h"
