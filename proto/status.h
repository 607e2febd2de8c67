/*
 * status.h: every way a call can end, in ranges by what is lost.
 *
 *   REQUEST 100..  the request was not carried out; nothing changed; correct it and send it again.
 *   JOB     200..  this right-hand side ended without a solution; its neighbours go on.
 *   DEVICE  300..  the engine process is lost or must be; it is restarted, work may be repeated.
 *   PROCESS 400..  this process cannot go on, or is leaving.
 *
 * The table is the only list: numbers, names, retryability and texts are made from it. Numbers are
 * wire format and never change.  X(NAME, number, retryable, text)
 */
#ifndef QK_PROTO_STATUS_H
#define QK_PROTO_STATUS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QK_STATUS_TABLE(X)                                                                         \
  X(OK, 0, false, "success")                                                                       \
  X(BAD_ARGUMENT, 100, false, "an argument is out of range or malformed")                          \
  X(BAD_GEOMETRY, 101, false, "lattice extents or process grid do not fit")                        \
  X(BAD_FORMAT, 102, false, "the file or message is not in a known format")                        \
  X(TRUNCATED, 103, false, "the file or field ends early")                                         \
  X(BAD_CHECKSUM, 104, false, "checksum mismatch")                                                 \
  X(BAD_PLAQUETTE, 105, false, "the plaquette does not agree with the header")                     \
  X(NOT_UNITARY, 106, false, "links are not SU(3) within the stored precision")                    \
  X(TOO_LARGE, 107, false, "a size is over its limit")                                             \
  X(UNSUPPORTED, 108, false, "not supported by this build or version")                             \
  X(NOT_FOUND, 109, false, "no such object")                                                       \
  X(BUSY, 110, true, "no room now: try again later")                                               \
  X(DENIED, 111, false, "not allowed")                                                             \
  X(BAD_PROTOCOL, 112, false, "the message does not follow the protocol")                          \
  X(IO_ERROR, 113, false, "a file or socket operation failed")                                     \
  X(NOT_READY, 114, true, "the daemon is not ready to take work yet")                              \
  X(NOT_CONVERGED, 200, false, "the tolerance was not reached within the iteration limit")         \
  X(BREAKDOWN, 201, false, "the iteration broke down and could not be restarted")                  \
  X(NAN_INPUT, 202, false, "the source holds NaN or Inf")                                          \
  X(CANCELLED, 203, false, "cancelled by the client")                                              \
  X(DEADLINE, 204, false, "the deadline passed")                                                   \
  X(EXPIRED, 205, false, "the result was kept for its time and dropped")                           \
  X(DEVICE_MEMORY, 300, false, "not enough device memory")                                         \
  X(DEVICE_ERROR, 301, true, "the device reported an error")                                       \
  X(NO_DEVICE, 302, false, "no usable device")                                                     \
  X(ENGINE_LOST, 303, true, "the engine process died; it is being restarted")                      \
  X(NO_MEMORY, 400, true, "not enough host memory")                                                \
  X(INTERNAL, 401, false, "internal error: please report it")                                      \
  X(COMM_ERROR, 402, true, "communication between ranks failed")                                   \
  X(SHUTTING_DOWN, 403, true, "the daemon is shutting down")                                       \
  X(TIMEOUT, 404, true, "no answer in time")

typedef enum qk_status {
#define X(name, number, retryable, text) QK_##name = number,
  QK_STATUS_TABLE(X)
#undef X
} qk_status_t;

/* "NAN_INPUT"; "UNKNOWN" for a number that is not in the table. Static storage. */
const char *qk_status_name(qk_status_t status);

/* One lower-case sentence without a full stop. Static storage. */
const char *qk_status_text(qk_status_t status);

/* Whether the same request may succeed later without being changed. */
bool qk_status_retryable(qk_status_t status);

#ifdef __cplusplus
}
#endif
#endif
