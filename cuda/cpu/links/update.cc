/* Markov chain updates on the CPU: four links at a time, shared among the threads. */
#include "cuda/cpu/links/groups.h"

#include "cuda/body/links/update_calls.h"
