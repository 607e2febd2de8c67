/*
 * engine_info.h: what an engine says of itself: READY, LOAD_PROGRESS, HEARTBEAT, MULTIGRID.
 */
#ifndef QK_FRONT_ENGINE_INFO_H
#define QK_FRONT_ENGINE_INFO_H

#include "daemon/front/engines/start_clocks.h"
#include "daemon/front/settings/settings.h"
#include "proto/engine.pb-c.h"
#include "proto/shape.h"

/* Kept after the engine is lost. */
typedef struct qk_engine_info {
  bool loaded; /* was READY at least once: shape to load_seconds are known */
  uint64_t pid;
  qk_shape_t shape;
  uint32_t ranks, grid[4], slots,
      inflight; /* inflight: 0 .. inflight-1 can be filled, slots of them are solved at a time */
  char backend[32], device[128], format[64], phase[64], solver[32], grid_why[256];
  uint64_t done, total; /* of phase */
  double plaquette, unitarity, load_seconds;
  char bus[24];     /* where the device is; "": not known */
  uint64_t refresh; /* the last order of multigrid that the engine had carried out when READY */
  uint64_t digest, device_bytes, host_bytes;
  uint32_t link_reals;
  uint64_t steps;                    /* of the solver, since it was loaded */
  double stepped_at;                 /* seconds of the loop's clock: when the steps last changed */
  Quark__MultigridReport *multigrid; /* NULL: there is none */
  Quark__MemoryReport *memory;
  Quark__DeflationReport *deflation; /* NULL: solves begin with no vectors */
  Quark__SignReport *sign;           /* NULL: no overlap fermions */
  qk_start_clocks_t start;           /* what load_seconds went on */
} qk_engine_info_t;

/* What is wrong with the message, and nothing has changed; NULL: nothing, and it is noted. */
const char *qk_engine_info_ready(qk_engine_info_t *info, const qk_settings_t *settings,
                                 const Quark__Engine__Ready *ready);
void qk_engine_info_progress(qk_engine_info_t *info, const Quark__Engine__LoadProgress *progress);
void qk_engine_info_heartbeat(qk_engine_info_t *info, const Quark__Engine__Heartbeat *heartbeat,
                              double now);
/* A copy of it, in place of the report before. NULL: there is none. */
void qk_engine_info_multigrid(qk_engine_info_t *info, const Quark__MultigridReport *multigrid);
/* Nothing of what it has loaded is known any more, only of its process. */
void qk_engine_info_clear(qk_engine_info_t *info);

#endif
