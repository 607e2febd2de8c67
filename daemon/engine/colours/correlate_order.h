/*
 * correlate_order.h: a CONTRACT of the front as a plain struct, which rank 0 broadcasts
 * (serve/round.h).
 */
#ifndef QK_ENGINE_CORRELATE_ORDER_H
#define QK_ENGINE_CORRELATE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/engine/hadron/contract.h"
#include "daemon/engine/hadron/smear_cache.h"
#include "proto/limits.h"

typedef struct qk_correlate {
  uint64_t serial;
  char a[QK_PROPAGATOR_COLUMNS][QK_SHM_NAME_MAX + 1];
  char b[QK_PROPAGATOR_COLUMNS][QK_SHM_NAME_MAX + 1]; /* empty names: a */
  bool a_double, b_double;
  int32_t nchannel, nmom;
  qk_channel_id_t channel[QK_CHANNELS_MAX];
  int mom[QK_MOMENTA_MAX][3];
  int origin[4];
  qk_smearing_t sink;
  unsigned shift; /* of colour vectors a, after the smearing of the sink: qk_gauss_shift */
  char shm_out[QK_SHM_NAME_MAX + 1];
} qk_correlate_t;

#endif
