/*
 * dispatch.h: right-hand sides from the queue into slots: who goes next, and where.
 */
#ifndef QK_FRONT_DISPATCH_H
#define QK_FRONT_DISPATCH_H

#include "daemon/front/service/service.h"

/* Fills free slots of the setup's engine, and notes how many are left empty while something
 * waits. */
void qk_dispatch_feed(qk_setup_t *setup);

#endif
