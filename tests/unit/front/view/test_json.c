/* Messages as JSON. */
#include <criterion/criterion.h>
#include <math.h>

#include "daemon/front/view/json.h"
#include "proto/quark.pb-c.h"

Test(json, holds_every_kind_of_field) {
  double boundary[3] = {1, NAN, -0.5};
  uint32_t dims[4] = {4, 6, 8, 10};
  Quark__MultigridLevel level[2] = {QUARK__MULTIGRID_LEVEL__INIT, QUARK__MULTIGRID_LEVEL__INIT};
  Quark__MultigridLevel *levels[2] = {&level[0], &level[1]};
  Quark__MultigridReport mg = QUARK__MULTIGRID_REPORT__INIT;
  Quark__SetupReport m = QUARK__SETUP_REPORT__INIT;
  level[1].seconds = 0.25;
  mg.level = levels;
  mg.n_level = 2;
  mg.restored = 1;
  mg.bytes = 1ull << 40;
  m.name = "a\"<b>\n\xff";
  m.gauge = m.solver = m.precision = "";
  m.kappa = INFINITY;
  m.boundary = boundary;
  m.n_boundary = 3;
  m.dims = dims;
  m.n_dims = 4;
  m.has_digest = 1;
  m.digest = 0xfedcba9876543210;
  m.multigrid = &mg;
  json_t *o = qk_json_message(&m.base);
  char *text = json_dumps(o, JSON_COMPACT);
  cr_expect_str_eq(
      text,
      "{\"name\":\"a\\\"<b>??\",\"gauge\":\"\",\"mass\":0.0,\"kappa\":null,\"csw\":0.0,"
      "\"boundary\":[1.0,null,-0.5],\"solver\":\"\",\"precision\":\"\",\"link_reals\":0,"
      "\"dims\":[4,6,8,10],\"format\":null,\"plaquette\":null,\"digest\":\"fedcba9876543210\","
      "\"unitarity\":null,\"load_seconds\":null,\"multigrid\":{\"level\":["
      "{\"dims\":[],\"block\":[],\"vectors\":null,\"smoother\":null,\"pre\":null,\"post\":null,"
      "\"iterations\":null,\"orthonormality\":null,\"galerkin\":null,\"representation\":null,"
      "\"null_residual\":null,\"seconds\":0.0},"
      "{\"dims\":[],\"block\":[],\"vectors\":null,\"smoother\":null,\"pre\":null,\"post\":null,"
      "\"iterations\":null,\"orthonormality\":null,\"galerkin\":null,\"representation\":null,"
      "\"null_residual\":null,\"seconds\":0.25}],"
      "\"seconds\":0.0,\"restored\":true,\"attempts\":0,\"convergence\":null,\"bytes\":"
      "1099511627776,"
      "\"refined\":0,\"rebuilt\":0,\"checkpoint\":null,\"checkpoint_written\":null,"
      "\"checkpoint_trouble\":null,\"iterations_per_digit\":null,"
      "\"iterations_per_digit_first\":null,\"checkpoint_writing\":null,"
      "\"origin\":null,\"origin_trouble\":null},"
      "\"action\":null,\"parameter\":[],\"site_reals\":null,\"columns\":null,\"checksum_ignored\":"
      "null,\"clock\":[],\"eigen\":[],\"deflation\":null,\"deflate\":null,"
      "\"deflate_from\":null,\"fix_gauge\":null,\"sign\":null}");
  free(text);
  json_decref(o);
}

Test(json, names_enumerators_and_shows_signed_numbers) {
  int32_t momentum[3] = {-1, 0, 2};
  Quark__Channel channel = QUARK__CHANNEL__INIT, *channels = &channel;
  Quark__Contraction m = QUARK__CONTRACTION__INIT;
  channel.kind = QUARK__CHANNEL_KIND__CHANNEL_NUCLEON;
  m.request_a = 3;
  m.channel = &channels;
  m.n_channel = 1;
  m.momentum = momentum;
  m.n_momentum = 3;
  json_t *o = qk_json_message(&m.base);
  const json_t *first = json_array_get(json_object_get(o, "channel"), 0);
  cr_expect_str_eq(json_string_value(json_object_get(first, "kind")), "CHANNEL_NUCLEON");
  cr_expect_eq(json_integer_value(json_array_get(json_object_get(o, "momentum"), 0)), -1);
  cr_expect(json_is_null(json_object_get(o, "sink")));
  json_decref(o);
}
