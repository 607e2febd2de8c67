/*
 * engine_loop.h: the main loop of the engine: carries out the requests of the front,
 * round after round.
 *
 * Rank 0 receives the messages of the front. In each round it broadcasts them to the other ranks,
 * and all of them carry them out: load, fill, cancel, one interval of the solver, results. If no
 * slot runs, rank 0 sleeps until a message comes, and the others until rank 0 broadcasts.
 */
#ifndef QK_ENGINE_LOOP_H
#define QK_ENGINE_LOOP_H

#include "daemon/comm/comm.h"
#include "daemon/engine/serve/channel.h"

/* Returns QK_OK when told to stop (STOP or SIGTERM); QK_TIMEOUT when the front has been silent for
 * too long; DEVICE and PROCESS statuses, also those of one rank alone, when the process
 * cannot go on. channel: on rank 0, NULL elsewhere. Collective. */
qk_status_t qk_engine_loop_run(qk_comm_t *comm, qk_channel_t *channel, qk_err_t *err);

#endif
