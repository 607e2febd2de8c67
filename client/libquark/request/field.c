/* field.c: links, clover terms and vectors from the memory of the client. */
#include <math.h>
#include <string.h>

#include "client/libquark/connection/error.h"
#include "client/libquark/request/pack.h"
#include "client/libquark/request/submit.h"
#include "daemon/base/links/clover_term.h"
#include "daemon/base/links/links.h"
#include "daemon/base/links/vectors.h"

_Static_assert((int)QUARK_FIELD_GAUGE == (int)QUARK__FIELD_KIND__FIELD_GAUGE &&
                   (int)QUARK_FIELD_CLOVER == (int)QUARK__FIELD_KIND__FIELD_CLOVER &&
                   (int)QUARK_FIELD_VECTORS == (int)QUARK__FIELD_KIND__FIELD_VECTORS,
               "kinds of fields agree");

void quark_field_params_init(quark_field_params_t *params) {
  *params = (quark_field_params_t){
      .kind = QUARK_FIELD_GAUGE, .dtype = QUARK_F64, .reals = 18, .plaquette = NAN, .part = -1};
}

void quark_gauge_digest(const void *links, quark_dtype_t dtype, uint32_t reals,
                        const uint64_t *site, size_t sites, uint64_t *sum) {
  const int bits = dtype == QUARK_F32 ? 32 : 64;
  const size_t bytes = (size_t)4 * reals * (size_t)bits / 8;
  qk_links_sum_t all = {0};
  double wide[QK_LINKS_SITE];
  for (size_t i = 0; i < sites; i++) {
    qk_links_widen((const char *)links + i * bytes, bits, (int)reals, wide);
    qk_links_add(wide, site ? site[i] : i, false, &all);
  }
  *sum += all.digest;
}

/* The digest of one site, whose global index this is. */
typedef uint64_t site_fn(const void *raw, int bits, uint64_t global);

static uint64_t of_clover(const void *raw, int bits, uint64_t global) {
  double wide[QK_CLOVER_TERM_SITE];
  qk_clover_term_sum_t one = {0};
  qk_clover_term_widen(raw, bits, wide);
  qk_clover_term_add(wide, global, &one);
  return one.digest;
}

static uint64_t of_vector(const void *raw, int bits, uint64_t global) {
  double wide[QK_VECTORS_SITE];
  qk_vectors_sum_t one = {0};
  qk_vectors_widen(raw, bits, wide);
  qk_vectors_add(wide, global, &one);
  return one.digest;
}

/* reals: of a site. */
static void add_sites(site_fn *of, const void *data, quark_dtype_t dtype, size_t reals,
                      const uint64_t *site, size_t sites, uint64_t *sum) {
  const int bits = dtype == QUARK_F32 ? 32 : 64;
  const size_t bytes = reals * (size_t)bits / 8;
  for (size_t i = 0; i < sites; i++)
    *sum += of((const char *)data + i * bytes, bits, site ? site[i] : i);
}

void quark_clover_digest(const void *term, quark_dtype_t dtype, const uint64_t *site, size_t sites,
                         uint64_t *sum) {
  add_sites(of_clover, term, dtype, QK_CLOVER_TERM_SITE, site, sites, sum);
}

void quark_vectors_digest(const void *vectors, quark_dtype_t dtype, const uint64_t *site,
                          size_t sites, uint64_t *sum) {
  add_sites(of_vector, vectors, dtype, QK_VECTORS_SITE, site, sites, sum);
}

static uint8_t *pack(uint64_t number, const quark_field_params_t *p, size_t *bytes) {
  Quark__FieldOpen open = QUARK__FIELD_OPEN__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  open.request = number;
  open.kind = (Quark__FieldKind)p->kind;
  open.n_dims = 4;
  open.dims = (uint32_t *)(uintptr_t)p->dims;
  open.dtype = (Quark__Dtype)p->dtype;
  open.has_reals = p->kind == QUARK_FIELD_GAUGE;
  open.reals = p->reals;
  open.has_count = p->kind == QUARK_FIELD_VECTORS;
  open.count = p->count;
  open.has_digest = p->has_digest;
  open.digest = p->digest;
  open.has_plaquette = !isnan(p->plaquette);
  open.plaquette = p->plaquette;
  open.n_grid = quark__has_grid(p->grid) ? 4 : 0;
  open.grid = (uint32_t *)(uintptr_t)p->grid;
  open.has_part = open.n_grid > 0 && p->part >= 0;
  open.part = (uint32_t)p->part;
  open.has_keep_ms = p->keep_ms > 0;
  open.keep_ms = p->keep_ms;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_FIELD_OPEN;
  message.field_open = &open;
  return qk_control_pack(&message.base, bytes);
}

quark_code_t quark_field_open(quark_connection_t *conn, const quark_field_params_t *params,
                              uint64_t *field, uint64_t *bytes, bool *present, quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK) {
    request_t *r = quark__request_new(conn, 1);
    if (r) {
      r->keep = true;
      r->feature = params->kind == QUARK_FIELD_VECTORS ? QK_FEATURE_VECTORS
                   : quark__has_grid(params->grid)     ? QK_FEATURE_JOIN
                                                       : QK_FEATURE_FIELDS;
      r->submit = pack(r->number, params, &r->submit_bytes);
    }
    code = quark__submit_locked(conn, r, "FIELD_OPEN", field, bytes, err);
    if (code == QUARK_OK) {
      const request_t *opened = quark__request_find_locked(conn, *field);
      *present = opened->up.capacity == 0 && !opened->has_token;
    }
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}
