/*
 * numa.h: binds the threads of an engine to cores near its device, so that what they touch first,
 * and staging buffers that they pin, is memory of that NUMA node. On the CPU replicas of a setup
 * take equal shares of the cores. Nothing here fails: where something is not known the engine is
 * not bound, and the log says so.
 *
 * `sys` is the root of sysfs: "/sys", or what a test has made.
 */
#ifndef QK_ENGINE_NUMA_H
#define QK_ENGINE_NUMA_H

#include <sched.h>
#include <stdbool.h>

#include "cuda/ops.h"
#include "daemon/comm/comm.h"

/* Processors of a list as "0-15,32-47"; false: it is none. */
bool qk_numa_read_list(const char *text, cpu_set_t *cpus);
/* The node of a device at that place on the PCI bus; -1: not known. */
int qk_numa_node(const char *sys, const char *bus);
/* Processors of a node; false: not known. */
bool qk_numa_node_cpus(const char *sys, int node, cpu_set_t *cpus);
/* The part of `allowed` that is a replica's: whole cores, neighbours on a node, as far as there are
 * as many cores as replicas. False: there are fewer processors than replicas. */
bool qk_numa_share(const char *sys, const cpu_set_t *allowed, int replicas, int replica,
                   cpu_set_t *share);

/* Binds all threads of this process, and sets how many OpenMP has. What the environment says
 * (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY, OMP_NUM_THREADS) stays. */
void qk_numa_bind(const qk_comm_t *comm, const qk_ops_t *ops, qk_ops_ctx_t *ctx, int replicas,
                  int replica);

#endif
