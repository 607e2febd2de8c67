/* Fat and long links, projection to U(3) on the CPU: four sites at a time, shared among the
 * threads. */
#include "cuda/cpu/each.h"
#include "cuda/cpu/links/groups.h"

#include "cuda/body/links/paths_calls.h"
