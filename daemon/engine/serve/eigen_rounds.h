/*
 * eigen_rounds.h: eigenvectors in the rounds of the engine: what the front asks for, and what it is
 * told. Collective but for receive, which is rank 0's.
 */
#ifndef QK_ENGINE_EIGEN_ROUNDS_H
#define QK_ENGINE_EIGEN_ROUNDS_H

#include "daemon/engine/modes/eigens.h"
#include "daemon/engine/serve/channel.h"
#include "daemon/engine/serve/round.h"

typedef struct qk_eigen_rounds {
  qk_channel_t *channel; /* NULL on all ranks but rank 0 */
  qk_eigens_t *eigens;   /* NULL: nothing is loaded */
  double last_progress;
  int last_restart;
  double rest_until; /* rank 0: solves have their turn until then */
} qk_eigen_rounds_t;

static inline bool qk_eigen_rounds_busy(const qk_eigen_rounds_t *r) {
  return r->eigens != NULL && qk_eigens_busy(r->eigens);
}

/* Makes a round of the message, or answers it. setup: NULL if nothing is loaded. */
qk_status_t qk_eigen_rounds_receive(const qk_eigen_rounds_t *r, const qk_loaded_t *setup,
                                    const Quark__Engine__FrontMessage *message, qk_round_t *round);
/* Rank 0: whether solves, if there are any, have the round for themselves. A step takes as long as
 * many of theirs: they get as much time as it took. */
bool qk_eigen_rounds_rests(const qk_eigen_rounds_t *r, bool others);
/* What the round asks for, then a step of what is under way; an end is told. */
qk_status_t qk_eigen_rounds_advance(qk_eigen_rounds_t *r, const qk_round_t *round, qk_err_t *err);

#endif
