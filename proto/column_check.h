/*
 * column_check.h: whether a generated source, the momenta of a contraction or a smearing is legal:
 * front and engine ask the same functions. Pure.
 *
 * Each returns QK_OK, QK_BAD_ARGUMENT or QK_TOO_LARGE; `why` is then a sentence that begins with
 * `what` ("column 3") and names field, value and limit.
 */
#ifndef QK_PROTO_COLUMN_CHECK_H
#define QK_PROTO_COLUMN_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/action/operator_text.h"
#include "proto/quark.pb-c.h"
#include "proto/shape.h"
#include "proto/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A time slice, spin or colour of a column that stands for all of them. */
enum { QK_COLUMN_EVERY = -1 };

bool qk_source_is_noise(Quark__SourceKind source);

/* All of a column. */
qk_status_t qk_column_check(Quark__SourceKind source, const Quark__Column *column,
                            const qk_shape_t *shape, const char *what, char why[QK_WHY]);

/* Its parts. any_t: the time may be QK_COLUMN_EVERY. */
qk_status_t qk_site_check(const int64_t site[4], bool any_t, const uint32_t dims[4],
                          const char *what, char why[QK_WHY]);
qk_status_t qk_momentum_check(const int32_t momentum[3], const uint32_t dims[4], const char *what,
                              char why[QK_WHY]);
qk_status_t qk_t_every_check(uint32_t t_every, const uint32_t dims[4], const char *what,
                             char why[QK_WHY]);

/* Momenta and origin of a contraction. */
qk_status_t qk_momenta_check(const Quark__Contraction *c, const uint32_t dims[4], char why[QK_WHY]);
qk_status_t qk_origin_check(const Quark__Contraction *c, const uint32_t dims[4], char why[QK_WHY]);

/* smear NULL: there is none, which is legal. */
qk_status_t qk_smearing_check(const Quark__Smearing *smear, const char *what, char why[QK_WHY]);

#ifdef __cplusplus
}
#endif
#endif
