#include "daemon/engine/operator/part.h"

#include "daemon/engine/lattice/scalars.h"

static qk_status_t inverse_hop(qk_operator_t *op, bool dagger, qk_field_t *out,
                               const qk_field_t *in, qk_field_t *between) {
  const qk_status_t status = op->ops->hop(op, between, in, dagger);
  return status == QK_OK ? op->ops->diag(op, out, between, true, dagger) : status;
}

static qk_field_t half(const qk_field_t *field, qk_subset_t parity) {
  return (qk_field_t){.dev = field->dev, .v = qk_field_parity(field, parity)};
}

/* sum = x - 1/4 sum */
static qk_status_t subtract_from(const qk_field_t *x, const qk_field_t *sum) {
  qk_scalars_t quarter = {0};
  qk_status_t status = qk_scalars_init(&quarter, sum->dev, 1, sum->v.nrhs);
  if (status == QK_OK) {
    qk_scalars_fill(&quarter, 0, -0.25);
    qk_dev_blas(sum->dev, QK_BLAS_XPAY,
                (qk_blas_args_t){.f = {sum->v, x->v}, .c = {qk_scalars_at(&quarter, 0)}});
    qk_dev_sync(sum->dev);
    status = qk_dev_status(sum->dev);
  }
  qk_scalars_fini(&quarter);
  return status;
}

/* Halves: p of the parity, q of the other one. */
typedef struct halves {
  qk_field_t out_p, out_q, room_p, room_q, in_p;
} halves_t;

/* room_p = hop T^-1 hop first */
static qk_status_t there_and_back(qk_operator_t *op, bool dagger, halves_t *h,
                                  const qk_field_t *first) {
  const qk_status_t status = inverse_hop(op, dagger, &h->room_q, first, &h->out_q);
  return status == QK_OK ? op->ops->hop(op, &h->room_p, &h->room_q, dagger) : status;
}

/* out_p = x - 1/4 room_p */
static qk_status_t finish(const halves_t *h, const qk_field_t *x) {
  const qk_status_t status = subtract_from(x, &h->room_p);
  qk_dev_blas(x->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {h->out_p.v, h->room_p.v}});
  return status == QK_OK ? qk_dev_status(x->dev) : status;
}

/* T Mhat = T - 1/4 hop T^-1 hop, or with daggers. */
static qk_status_t asymmetric(qk_operator_t *op, bool dagger, halves_t *h) {
  qk_status_t status = there_and_back(op, dagger, h, &h->in_p);
  if (status == QK_OK) status = op->ops->diag(op, &h->out_p, &h->in_p, false, dagger);
  return status == QK_OK ? finish(h, &h->out_p) : status;
}

/* Mhat = 1 - 1/4 T^-1 hop T^-1 hop */
static qk_status_t symmetric(qk_operator_t *op, halves_t *h) {
  qk_status_t status = there_and_back(op, false, h, &h->in_p);
  if (status == QK_OK) status = op->ops->diag(op, &h->out_p, &h->room_p, true, false);
  return status == QK_OK ? subtract_from(&h->in_p, &h->out_p) : status;
}

/* Mhat^+ = 1 - 1/4 hop^+ T^-1+ hop^+ T^-1+ */
static qk_status_t symmetric_dagger(qk_operator_t *op, halves_t *h) {
  qk_status_t status = op->ops->diag(op, &h->out_p, &h->in_p, true, true);
  if (status == QK_OK) status = there_and_back(op, true, h, &h->out_p);
  return status == QK_OK ? finish(h, &h->in_p) : status;
}

static qk_status_t schur(qk_operator_t *op, const qk_part_t *part, const qk_field_t *out,
                         const qk_field_t *in, const qk_field_t *room) {
  const qk_subset_t p = part->parity, q = p == QK_EVEN ? QK_ODD : QK_EVEN;
  if (p == QK_FULL || !room || qk_field_vectors(in) > 1 || out == in || room == in || room == out ||
      in->v.subset != QK_FULL || out->v.subset != QK_FULL || room->v.subset != QK_FULL)
    return QK_BAD_ARGUMENT;
  halves_t h = {half(out, p), half(out, q), half(room, p), half(room, q), half(in, p)};
  if (part->asymmetric) return asymmetric(op, part->dagger, &h);
  return part->dagger ? symmetric_dagger(op, &h) : symmetric(op, &h);
}

qk_status_t qk_part_apply(qk_operator_t *op, const qk_part_t *part, qk_field_t *out,
                          const qk_field_t *in, qk_field_t *room) {
  const bool dagger = part->dagger;
  if (!op->ops->hop) return QK_BAD_ARGUMENT;
  switch (part->kind) {
  case QK_PART_M:
    return op->ops->apply(op, out, in, dagger, NULL, 0);
  case QK_PART_HOP:
    return op->ops->hop(op, out, in, dagger);
  case QK_PART_DIAG:
    return op->ops->diag(op, out, in, false, dagger);
  case QK_PART_DIAG_INVERSE:
    return op->ops->diag(op, out, in, true, dagger);
  case QK_PART_DIAG_INVERSE_HOP:
    return room ? inverse_hop(op, dagger, out, in, room) : QK_BAD_ARGUMENT;
  case QK_PART_SCHUR:
    return schur(op, part, out, in, room);
  default:
    return QK_BAD_ARGUMENT;
  }
}
