/* Gauge fixing on the CPU: four sites at a time, shared among the threads. */
#include "cuda/cpu/links/groups.h"

#include "cuda/body/links/fix_calls.h"
