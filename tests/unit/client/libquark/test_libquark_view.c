#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/libquark/libquark_kit.h"

/* Whether the page that data is in can be written, as /proc says. */
static bool is_writable(const void *data) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512], mode[5] = "";
  cr_assert_not_null(maps);
  while (fgets(line, sizeof line, maps)) {
    uintptr_t from, to;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) == 3 &&
        from <= (uintptr_t)data && (uintptr_t)data < to)
      break;
  }
  fclose(maps);
  return mode[1] == 'w';
}

/* All solutions as views of a request, whose sources are the stream; after that it is released. */
static void open_views(quark_connection_t *conn, const uint8_t *stream, uint8_t *buffer[LQ_NRHS],
                       quark_view_t view[LQ_NRHS]) {
  quark_error_t err = {0};
  quark_result_t result;
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  lq_upload(conn, request, stream, LQ_FIELD);
  for (uint32_t i = 0; i < LQ_NRHS; i++) {
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK, "%s", err.text);
    buffer[i] = calloc(1, LQ_FIELD);
    cr_assert_eq(quark_view_open(conn, request, i, buffer[i], LQ_FIELD, &view[i], &err), QUARK_OK,
                 "%s", err.text);
    cr_expect_eq(quark_ack(conn, request, (int32_t)i, NULL), QUARK_OK);
  }
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
}

/* mapped: by descriptor. */
static void expect_views(bool mapped) {
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream(), *buffer[LQ_NRHS];
  quark_view_t view[LQ_NRHS];
  open_views(conn, stream, buffer, view);
  quark_close(conn); /* they stay */
  for (size_t i = 0; i < LQ_NRHS; i++) {
    cr_expect_eq(view[i].mapped, mapped);
    cr_expect_eq(view[i].bytes, (size_t)LQ_FIELD);
    cr_expect_eq(memcmp(view[i].data, stream + i * LQ_FIELD, LQ_FIELD), 0);
    cr_expect_neq(view[i].data == buffer[i], mapped);
    cr_expect_neq(is_writable(view[i].data), mapped, "the daemon's memory should be read only");
    if (mapped) cr_expect(buffer[i][0] == 0 && buffer[i][LQ_FIELD - 1] == 0, "it is not written");
    quark_view_close(&view[i]);
    cr_expect_null(view[i].data);
    quark_view_close(&view[i]);
    free(buffer[i]);
  }
  free(stream);
}

Test(libquark, a_view_is_the_memory_of_a_daemon_that_is_here) {
  lq_fake.script.local = 1;
  expect_views(true);
  cr_expect_eq(lq_fake.fetches, LQ_NRHS);
}

Test(libquark, a_view_of_a_daemon_elsewhere_is_the_buffer) {
  expect_views(false);
}

Test(libquark, a_view_without_a_descriptor_is_the_buffer) {
  lq_fake.script.local = lq_fake.script.empty_fetch = 1;
  expect_views(false);
  cr_expect_eq(lq_fake.fetches, LQ_NRHS);
}

Test(libquark, a_view_that_cannot_be_is_refused_like_a_download) {
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = lq_submit_points(conn, 2);
  quark_result_t result;
  quark_error_t err;
  quark_view_t view = {.bytes = 7};
  uint8_t *x = malloc(LQ_FIELD);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_view_open(conn, request, 0, x, LQ_FIELD - 1, &view, &err), QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_view_open(conn, request + 1, 0, x, LQ_FIELD, &view, &err), QUARK_NOT_FOUND);
  lq_fake.script.corrupt_field = 1;
  cr_expect_eq(quark_view_open(conn, request, 0, x, LQ_FIELD, &view, &err), QUARK_BAD_CHECKSUM);
  cr_expect_eq(view.bytes, 7u, "it should be set on success only");
  quark_close(conn);
  free(x);
}
