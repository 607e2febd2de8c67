#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/links/su3.h"
#include "proto/limits.h"
#include "tests/unit/client/libquark/libquark_kit.h"

static quark_field_params_t links_of(uint32_t x) {
  quark_field_params_t p;
  quark_field_params_init(&p);
  for (int mu = 0; mu < 4; mu++) p.dims[mu] = x;
  return p;
}

Test(libquark, links_are_announced_sent_and_loaded) {
  quark_field_params_t p = links_of(6);
  quark_error_t err;
  quark_result_t result;
  uint64_t field, bytes;
  bool present = true;
  uint8_t *stream = lq_stream();
  lq_fake.script.feature = QK_FEATURE_FIELDS;
  quark_connection_t *conn = lq_connect(NULL);
  p.dims[3] = 8;
  p.dtype = QUARK_F32;
  p.reals = 12;
  p.plaquette = 0.5;
  p.keep_ms = 1000;
  cr_assert_eq(quark_field_open(conn, &p, &field, &bytes, &present, &err), QUARK_OK, "%s",
               err.text);
  cr_expect(!present && bytes == LQ_FIELD);
  const Quark__FieldOpen *said = lq_fake.last->field_open;
  cr_expect_eq(said->kind, QUARK__FIELD_KIND__FIELD_GAUGE);
  cr_expect(said->n_dims == 4 && said->dims[0] == 6 && said->dims[3] == 8);
  cr_expect_eq(said->dtype, QUARK__DTYPE__DTYPE_F32);
  cr_expect(said->reals == 12 && !said->has_digest && said->plaquette == 0.5 &&
            said->keep_ms == 1000);
  cr_assert_eq(quark_upload(conn, field, stream, LQ_FIELD, &err), QUARK_OK);
  cr_assert_eq(quark_wait(conn, field, 0, 20000, &result, &err), QUARK_OK);
  cr_expect_eq(result.status, QUARK_OK);
  quark_load_t load;
  quark_load_init(&load);
  load.name = "mine";
  load.gauge = "field:1";
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_OK);
  cr_expect_str_eq(lq_fake.last->load->gauge, "field:1");
  cr_expect_eq(quark_release(conn, field, &err), QUARK_OK);
  p = links_of(4);
  p.has_digest = true;
  p.digest = 7;
  cr_assert_eq(quark_field_open(conn, &p, &field, &bytes, &present, &err), QUARK_OK);
  cr_expect(present, "nothing is to be sent");
  p = links_of(4);
  p.kind = QUARK_FIELD_CLOVER;
  cr_assert_eq(quark_field_open(conn, &p, &field, &bytes, &present, &err), QUARK_OK);
  said = lq_fake.last->field_open;
  cr_expect_eq(said->kind, QUARK__FIELD_KIND__FIELD_CLOVER);
  cr_expect(!said->has_reals && !said->has_plaquette);
  free(stream);
  quark_close(conn);
}

Test(libquark, an_old_daemon_is_not_asked_for_links) {
  const quark_field_params_t p = links_of(4);
  quark_error_t err;
  quark_load_t load;
  uint64_t field;
  bool present;
  lq_fake.script.feature = QK_FEATURE_EVOLVE;
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect_eq(quark_field_open(conn, &p, &field, NULL, &present, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "links from memory"), "%s", err.text);
  quark_load_init(&load);
  load.name = "mine";
  load.gauge = "digest:0123456789abcdef";
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "links from memory"), "%s", err.text);
  quark_close(conn);
}

enum { SITES = 12 };

/* Rows of no group, which the digest does not mind. */
static void fill(double links[SITES][72]) {
  for (int i = 0; i < SITES; i++)
    for (int k = 0; k < 72; k++) links[i][k] = sin(1 + 72 * i + k);
}

Test(libquark, digests_of_parts_add_up) {
  double links[SITES][72];
  uint64_t whole = 0, parts = 0, place[SITES];
  fill(links);
  for (int i = 0; i < SITES; i++) place[i] = (uint64_t)i;
  quark_gauge_digest(links, QUARK_F64, 18, NULL, SITES, &whole);
  quark_gauge_digest(links[7], QUARK_F64, 18, place + 7, SITES - 7, &parts);
  cr_expect_neq(parts, whole);
  quark_gauge_digest(links, QUARK_F64, 18, place, 7, &parts);
  cr_expect_eq(parts, whole);
  uint64_t elsewhere = 0;
  quark_gauge_digest(links[7], QUARK_F64, 18, NULL, SITES - 7, &elsewhere);
  quark_gauge_digest(links, QUARK_F64, 18, NULL, 7, &elsewhere);
  cr_expect_neq(elsewhere, whole, "exchanged bricks");
}

Test(libquark, digests_of_clover_terms_are_made_as_those_of_links) {
  double term[SITES][72];
  float single[SITES][72];
  uint64_t whole = 0, links = 0, parts = 0, place[SITES], narrow = 0, wide = 0;
  fill(term);
  for (int i = 0; i < SITES; i++) place[i] = (uint64_t)i;
  quark_clover_digest(term, QUARK_F64, NULL, SITES, &whole);
  quark_gauge_digest(term, QUARK_F64, 18, NULL, SITES, &links);
  cr_expect_eq(whole, links);
  quark_clover_digest(term[5], QUARK_F64, place + 5, SITES - 5, &parts);
  quark_clover_digest(term, QUARK_F64, NULL, 5, &parts);
  cr_expect_eq(parts, whole);
  for (int i = 0; i < SITES; i++)
    for (int k = 0; k < 72; k++) term[i][k] = single[i][k] = (float)term[i][k];
  quark_clover_digest(single, QUARK_F32, NULL, SITES, &narrow);
  quark_clover_digest(term, QUARK_F64, NULL, SITES, &wide);
  cr_expect_eq(narrow, wide);
}

Test(libquark, digests_are_of_what_the_daemon_sees) {
  double links[SITES][72], wide[SITES][72];
  float single[SITES][48];
  uint64_t sent = 0, seen = 0;
  fill(links);
  for (int i = 0; i < SITES; i++) {
    for (int mu = 0; mu < 4; mu++) {
      double *u = wide[i] + 18 * mu;
      for (int k = 0; k < 12; k++) u[k] = single[i][12 * mu + k] = (float)links[i][18 * mu + k];
      qk_su3_third_row(u);
    }
  }
  quark_gauge_digest(single, QUARK_F32, 12, NULL, SITES, &sent);
  quark_gauge_digest(wide, QUARK_F64, 18, NULL, SITES, &seen);
  cr_expect_eq(sent, seen);
}
