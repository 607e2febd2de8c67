/*
 * cycle_vectors.h: a cycle as preconditioner of an operator whose right-hand sides have two vectors
 * (operator.h: base), the flavours of a doublet.
 *
 * The cycle works on one vector after the other, on the upper ones as right-hand sides of flavour
 * +1, on the lower ones of -1, and what it has made of the upper ones is in the right-hand sides of
 * the lower ones: a sweep of Gauss and Seidel (operator.h: vector_system).
 */
#ifndef QK_ENGINE_CYCLE_VECTORS_H
#define QK_ENGINE_CYCLE_VECTORS_H

#include "daemon/engine/multigrid/cycle.h"

typedef struct qk_cycle_vectors qk_cycle_vectors_t;

/* op: its base is what the hierarchy of the cycle is made of; *vectors: NULL if that is op itself.
 * Both are borrowed. Not collective. QK_NO_MEMORY, QK_DEVICE_MEMORY. */
qk_status_t qk_cycle_vectors_create(qk_cycle_t *cycle, qk_operator_t *op,
                                    qk_cycle_vectors_t **vectors);
void qk_cycle_vectors_destroy(qk_cycle_vectors_t *vectors); /* NULL-safe */

/* The preconditioner of op: the cycle itself, where vectors is NULL. Borrows both. With vectors it
 * takes work fields of op in the precision of the smoother: one of the system and, in the operator,
 * one of even and one of odd sites; and one for r if that has another precision, and the room of
 * qk_precond_t is too small. */
qk_precond_t qk_cycle_vectors_precond(qk_cycle_t *cycle, qk_cycle_vectors_t *vectors);

#endif
