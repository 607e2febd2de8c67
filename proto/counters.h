/*
 * counters.h: the counters of a status report by name: those of CounterReport in quark.proto, where
 * their meaning is. X(name)
 */
#ifndef QK_PROTO_COUNTERS_H
#define QK_PROTO_COUNTERS_H

/* What there is now. */
#define QK_COUNTERS_NOW(X)                                                                         \
  X(sessions) X(requests) X(queued) X(running) X(held) X(kept) X(kept_bytes)

/* What there has been since the start. */
/* clang-format off */
#define QK_COUNTERS_SINCE(X)                                                                       \
  X(accepted) X(rejected) X(converged) X(failed) X(cancelled) X(lost) X(iterations)                \
  X(applications) X(bytes_in) X(bytes_out) X(dropped) X(contracted) X(denied) X(refused)           \
  X(bytes_local)
/* clang-format on */

#define QK_COUNTERS(X) QK_COUNTERS_NOW(X) QK_COUNTERS_SINCE(X)

#endif
