/*
 * fields.h: links and clover terms to the daemon, and what rank 0 tells the others of its requests.
 */
#ifndef QUARK_QUDA_FIELDS_H
#define QUARK_QUDA_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "client/quark.h"
#include "operator.h"

/* A request of rank 0, and how others join it. */
typedef struct qk_quda_ticket {
  uint64_t request; /* 0: there is none */
  bool joins;       /* each rank joins it; else its fields go through rank 0 */
  uint8_t owner[QUARK_CLIENT_ID_BYTES], token[QUARK_CLIENT_ID_BYTES];
  bool is_field; /* links or term of the operator: kind, dtype */
  quark_field_kind_t kind;
  quark_dtype_t dtype;
} qk_quda_ticket_t;

/* Rank 0: links, or the clover term, of the operator are with the daemon, sent in single precision
 * if that holds them; the number of the request. */
uint64_t qk_quda_field_send(const qk_quda_operator_t *op, quark_field_kind_t kind);
/* Rank 0: the request as others join it. */
void qk_quda_ticket(uint64_t request, bool joins, qk_quda_ticket_t *ticket);
/* Rank 0: ends the wait of the others. */
void qk_quda_dismiss(const qk_quda_ticket_t *ticket);
/* Other ranks: send of the fields what rank 0 asks for, until it dismisses them with *ticket. */
void qk_quda_attend(const qk_quda_operator_t *op, qk_quda_ticket_t *ticket);
/* Other ranks: the part of this rank in a request; its number on this connection. */
uint64_t qk_quda_join(const qk_quda_ticket_t *ticket, const qk_quda_shape_t *shape);

#endif
