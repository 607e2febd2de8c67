/*
 * peer_ops.h: memory that ranks of one host write into each other, without the host between them.
 *
 * A rank owns memory that others open by a handle: of a GPU through CUDA IPC, of the CPU as shared
 * memory. Halos use it in exchanges, which all ranks make in one order:
 *
 *   pack     stores faces straight into the neighbour's ghosts
 *   signal   tells the neighbours by a flag in their memory: exchange *epoch + 1 is there
 *   await    waits until all flags say so, then *epoch += 1
 *
 * The number of the exchange is a word in device memory, so that a graph can hold all three. Ghosts
 * are in two halves that take turns (qk_turns_t). No acknowledgement is needed: a rank writes
 * message e + 2 after its await e + 1, for which the neighbour has sent message e + 1, which it did
 * after it had read half e. Each rank must wait for all that it signals to, and the reverse.
 * Numbers wrap around at 2^32.
 *
 * A wait that takes longer than `seconds` ends with QK_COMM_ERROR, on a GPU at the next
 * queue_sync or queue_idle; later waits of that context then return at once.
 */
#ifndef QK_CUDA_PEER_OPS_H
#define QK_CUDA_PEER_OPS_H

#include <stddef.h>

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* QK_PEER_RANKS: ranks of a sum. QK_PEER_FLAGS: of an exchange. Flags and epochs stand
 * QK_PEER_LINE bytes apart. */
enum { QK_PEER_RANKS = 8, QK_PEER_FLAGS = 8, QK_PEER_LINE = 128 };

/* Means something to the processes of this host only. */
typedef struct qk_peer_handle {
  uint8_t bytes[96];
} qk_peer_handle_t;

/* signal: of flags in the neighbours' memory; await: of flags in one's own. */
typedef struct qk_signal_args {
  uint32_t *epoch;
  uint32_t *flag[QK_PEER_FLAGS];
  int32_t n;
  double seconds; /* of await */
} qk_signal_args_t;

/* peer_sum: v[0 .. n-1], the same on all ranks, becomes the sum over ranks 0 .. ranks-1, added in
 * that order, so that all have the same bits. box[r]: the mailbox of rank r, [2][ranks][most]
 * doubles; flag[r]: its flags, one a rank, QK_PEER_LINE bytes apart. n <= most. */
typedef struct qk_peer_sum_args {
  int32_t rank, ranks, n, most;
  double *v;
  uint32_t *epoch;
  double *box[QK_PEER_RANKS];
  uint8_t *flag[QK_PEER_RANKS];
  double seconds;
} qk_peer_sum_args_t;

#ifdef __cplusplus
}
#endif
#endif
