/*
 * engine_events.h: what engines report: that they are ready, were refused or lost, and how
 * right-hand sides in their slots end.
 */
#ifndef QK_FRONT_ENGINE_EVENTS_H
#define QK_FRONT_ENGINE_EVENTS_H

#include "daemon/front/service/service.h"

/* Their arg is the setup. */
extern const qk_supervisor_events_t QK_ENGINE_EVENTS;

/* Ends whatever is in slots; nobody is told. For the end of the server, when the engine is gone. */
void qk_engine_events_abandon(qk_setup_t *setup);

#endif
