/* Links with their halo on the CPU. */
#include "cuda/cpu/each.h"

#include "cuda/body/links/linkfield_calls.h"
