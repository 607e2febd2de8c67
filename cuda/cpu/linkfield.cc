/* Links with their halo on the CPU. */
#include "cuda/cpu/each.h"

#include "cuda/body/linkfield_calls.h"
