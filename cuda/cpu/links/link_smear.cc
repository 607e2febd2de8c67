/* Link smearing on the CPU. */
#include "cuda/cpu/each.h"

#include "cuda/body/links/link_smear_calls.h"
