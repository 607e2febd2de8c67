/*
 * part.h: parts of an operator applied to one right-hand side: M, hop, T, T^-1, T^-1 hop, Mhat.
 *
 * Fields are full, of one right-hand side, in one precision that the operator holds; in, out and
 * room are three. The flavour is that of the block (operator.h). Collective. QK_BAD_ARGUMENT:
 * fields or a part that do not fit; those of the device.
 */
#ifndef QK_ENGINE_PART_H
#define QK_ENGINE_PART_H

#include "daemon/engine/operator/operator.h"

typedef enum qk_part_kind {
  QK_PART_M,
  QK_PART_HOP,
  QK_PART_DIAG,
  QK_PART_DIAG_INVERSE,
  QK_PART_DIAG_INVERSE_HOP, /* dagger: T^-1+ hop^+, not the adjoint of the product */
  QK_PART_SCHUR             /* Mhat = 1 - 1/4 T^-1 hop T^-1 hop on one parity */
} qk_part_kind_t;

typedef struct qk_part {
  qk_part_kind_t kind;
  bool dagger;
  bool asymmetric;    /* SCHUR: T Mhat */
  qk_subset_t parity; /* SCHUR: even or odd; fields of one vector */
} qk_part_t;

/* Whether a part needs room. */
static inline bool qk_part_needs_room(qk_part_kind_t kind) {
  return kind == QK_PART_DIAG_INVERSE_HOP || kind == QK_PART_SCHUR;
}

/* out = part in. room: overwritten; NULL where none is needed. SCHUR reads `in` on its parity
 * alone, and leaves out on the other one undefined. */
qk_status_t qk_part_apply(qk_operator_t *op, const qk_part_t *part, qk_field_t *out,
                          const qk_field_t *in, qk_field_t *room);

#endif
