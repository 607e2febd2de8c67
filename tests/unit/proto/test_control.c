/* Control messages: the limits on both ways, and bodies that nobody knows. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/control.h"
#include "proto/limits.h"

static uint8_t *hello_of(size_t program_bytes, size_t *bytes) {
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Hello hello = QUARK__HELLO__INIT;
  uint8_t id[QK_CLIENT_ID] = {1, 2, 3};
  char *program = malloc(program_bytes + 1);
  memset(program, 'p', program_bytes);
  program[program_bytes] = '\0';
  hello.version = QK_PROTOCOL_VERSION;
  hello.client_id.data = id;
  hello.client_id.len = sizeof id;
  hello.program = program;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_HELLO;
  m.hello = &hello;
  uint8_t *data = qk_control_pack(&m.base, bytes);
  free(program);
  return data;
}

Test(control, unpacks_what_was_packed) {
  size_t bytes;
  uint8_t *data = hello_of(10, &bytes);
  Quark__ClientMessage *m = qk_control_unpack_client(data, bytes);
  cr_assert_not_null(m);
  cr_assert_eq(m->body_case, QUARK__CLIENT_MESSAGE__BODY_HELLO);
  cr_assert_eq(m->hello->client_id.len, QK_CLIENT_ID);
  cr_assert_eq(m->hello->client_id.data[2], 3);
  cr_assert_str_eq(m->hello->program, "pppppppppp");
  quark__client_message__free_unpacked(m, NULL);
  free(data);
}

Test(control, copies_a_message_with_all_it_holds) {
  double param[3] = {0.75, 0.6, 0.3};
  Quark__Smearing smear = QUARK__SMEARING__INIT;
  smear.alpha = 0.25;
  smear.steps = 7;
  smear.link_param = param;
  smear.n_link_param = 3;
  Quark__Smearing *copy = (Quark__Smearing *)qk_control_copy(&smear.base);
  cr_assert_not_null(copy);
  memset(param, 0, sizeof param);
  cr_assert(copy->alpha == 0.25 && copy->steps == 7 && copy->link_spatial);
  cr_assert(copy->n_link_param == 3 && copy->link_param[2] == 0.3);
  quark__smearing__free_unpacked(copy, NULL);
}

Test(control, packs_up_to_the_limit_and_not_beyond) {
  size_t bytes, at_limit = 0;
  for (size_t n = QK_CONTROL_MAX - 64; n <= QK_CONTROL_MAX; n++) {
    uint8_t *data = hello_of(n, &bytes);
    if (data) {
      at_limit = bytes;
      cr_assert_leq(bytes, QK_CONTROL_MAX);
      Quark__ClientMessage *m = qk_control_unpack_client(data, bytes);
      cr_assert_not_null(m);
      quark__client_message__free_unpacked(m, NULL);
    } else {
      cr_assert_eq(bytes, 0);
      cr_assert_gt(n + 64, QK_CONTROL_MAX);
    }
    free(data);
  }
  cr_assert_eq(at_limit, QK_CONTROL_MAX);
}

Test(control, refuses_bytes_over_the_limit_unread) {
  uint8_t *zeros = calloc(1, QK_CONTROL_MAX + 1);
  cr_assert_null(qk_control_unpack_client(zeros, QK_CONTROL_MAX + 1));
  cr_assert_null(qk_control_unpack_server(zeros, QK_CONTROL_MAX + 1));
  cr_assert_null(qk_control_unpack_front(zeros, QK_CONTROL_MAX + 1));
  cr_assert_null(qk_control_unpack_engine(zeros, QK_CONTROL_MAX + 1));
  free(zeros);
}

Test(control, refuses_every_truncation) {
  size_t bytes;
  uint8_t *data = hello_of(10, &bytes);
  for (size_t n = 0; n < bytes; n++)
    cr_assert_null(qk_control_unpack_client(data, n), "%zu bytes", n);
  free(data);
}

#define ACCEPTS(name, type)                                                                        \
  static bool accepts_##name(const uint8_t *data, size_t bytes) {                                  \
    type *m = qk_control_unpack_##name(data, bytes);                                               \
    const bool there = m != NULL;                                                                  \
    if (m) protobuf_c_message_free_unpacked(&m->base, NULL);                                       \
    return there;                                                                                  \
  }
ACCEPTS(client, Quark__ClientMessage)
ACCEPTS(server, Quark__ServerMessage)
ACCEPTS(front, Quark__Engine__FrontMessage)
ACCEPTS(engine, Quark__Engine__EngineMessage)

/* Replaces each byte of the words, one at a time: all must be refused. */
static void check_words(const ProtobufCMessage *message, const char *const words[],
                        bool (*accepts)(const uint8_t *data, size_t bytes)) {
  size_t bytes;
  uint8_t *data = qk_control_pack(message, &bytes);
  cr_assert(data && accepts(data, bytes));
  for (; *words; words++) {
    const size_t n = strlen(*words);
    uint8_t *at = memmem(data, bytes, *words, n);
    cr_assert_not_null(at, "%s", *words);
    for (size_t i = 0; i < n; i++) {
      at[i] = 0;
      cr_expect_not(accepts(data, bytes), "%s: byte %zu", *words, i);
      at[i] = (uint8_t)(*words)[i];
    }
  }
  free(data);
}

Test(control, refuses_strings_of_clients_with_a_nul_at_any_depth) {
  static const char *const words[] = {"heavy", "mass", "0.25", NULL};
  Quark__Setting mass = QUARK__SETTING__INIT, csw = QUARK__SETTING__INIT, *both[] = {&csw, &mass};
  csw.key = "csw";
  csw.value = "1.5";
  mass.key = "mass";
  mass.value = "0.25";
  Quark__Load load = QUARK__LOAD__INIT;
  load.name = "heavy";
  load.parameter = both;
  load.n_parameter = 2;
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_LOAD;
  m.load = &load;
  check_words(&m.base, words, accepts_client);
}

Test(control, refuses_strings_of_the_front_with_a_nul_also_repeated_ones) {
  static const char *const words[] = {"one", "two", "out", NULL};
  char *names[] = {"one", "two"};
  Quark__Contraction contraction = QUARK__CONTRACTION__INIT;
  Quark__Engine__Contract contract = QUARK__ENGINE__CONTRACT__INIT;
  contract.contraction = &contraction;
  contract.shm_a = names;
  contract.n_shm_a = 2;
  contract.shm_out = "out";
  Quark__Engine__FrontMessage m = QUARK__ENGINE__FRONT_MESSAGE__INIT;
  m.body_case = QUARK__ENGINE__FRONT_MESSAGE__BODY_CONTRACT;
  m.contract = &contract;
  check_words(&m.base, words, accepts_front);
}

Test(control, refuses_strings_of_servers_and_engines_with_a_nul) {
  static const char *const words[] = {"sentence", NULL};
  Quark__Error error = QUARK__ERROR__INIT;
  Quark__Engine__LoadFailed failed = QUARK__ENGINE__LOAD_FAILED__INIT;
  Quark__ServerMessage server = QUARK__SERVER_MESSAGE__INIT;
  Quark__Engine__EngineMessage engine = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  error.text = failed.text = "sentence";
  server.body_case = QUARK__SERVER_MESSAGE__BODY_ERROR;
  server.error = &error;
  check_words(&server.base, words, accepts_server);
  engine.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_FAILED;
  engine.load_failed = &failed;
  check_words(&engine.base, words, accepts_engine);
}

/* What is bytes and not a string, and fields of other versions. */
Test(control, lets_zeros_pass_that_are_in_no_string) {
  size_t bytes;
  uint8_t *data = hello_of(10, &bytes); /* its client id has zeros */
  cr_expect(accepts_client(data, bytes));
  uint8_t *more = malloc(bytes + 6);
  memcpy(more, data, bytes);
  memcpy(more + bytes, "\xfa\x3f\3a\0b", 6); /* field 1023: "a NUL b" */
  cr_expect(accepts_client(more, bytes + 6));
  more[bytes + 2] = 4; /* longer than what is there */
  cr_expect_not(accepts_client(more, bytes + 6));
  free(more);
  free(data);
}

Test(control, refuses_a_body_it_does_not_know) {
  static const uint8_t unknown[] = {0xfa, 0x01, 0x00}; /* field 31, empty message */
  cr_assert_null(qk_control_unpack_client(unknown, sizeof unknown));
  cr_assert_null(qk_control_unpack_server(unknown, sizeof unknown));
  cr_assert_null(qk_control_unpack_front(unknown, sizeof unknown));
  cr_assert_null(qk_control_unpack_engine(unknown, sizeof unknown));
}

Test(control, forgets_fields_of_another_version) {
  ProtobufCMessageUnknownField unknown = {.tag = 1000,
                                          .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                          .len = 4,
                                          .data = (uint8_t *)"\3abc"};
  Quark__Smearing smear = QUARK__SMEARING__INIT;
  Quark__Column column = QUARK__COLUMN__INIT, *columns[2] = {&column, &column};
  Quark__Submit submit = QUARK__SUBMIT__INIT;
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  ProtobufCMessage *const with[] = {&smear.base, &column.base, &submit.base, &m.base};
  for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
    with[i]->n_unknown_fields = 1;
    with[i]->unknown_fields = &unknown;
  }
  smear.alpha = 0.25;
  submit.request = 9;
  submit.dtype = QUARK__DTYPE__DTYPE_F64;
  submit.sink = QUARK__SINK__SINK_NONE;
  submit.smear = &smear;
  submit.column = columns;
  submit.n_column = 2;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_SUBMIT;
  m.submit = &submit;
  size_t bytes;
  uint8_t *data = qk_control_pack(&m.base, &bytes);
  cr_assert_not_null(data);
  Quark__ClientMessage *got = qk_control_unpack_client(data, bytes);
  cr_assert_not_null(got);
  cr_assert(got->submit->request == 9 && got->submit->smear->alpha == 0.25);
  cr_assert_eq(got->submit->n_column, 2);
  cr_expect_eq(got->base.n_unknown_fields, 0);
  cr_expect_eq(got->submit->base.n_unknown_fields, 0);
  cr_expect_eq(got->submit->smear->base.n_unknown_fields, 0);
  cr_expect_eq(got->submit->column[1]->base.n_unknown_fields, 0);
  quark__client_message__free_unpacked(got, NULL);
  free(data);
}
