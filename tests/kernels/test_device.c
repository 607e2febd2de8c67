/* Memory, queues and failures of a backend. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/checked.h"
#include "cuda/host_pages.h"
#include "daemon/base/fault.h"
#include "tests/kernels/blas_kit.h"

Test(device, counts_what_is_held) {
  kit_t kit;
  block_kit_open(&kit);
  const int64_t before = kit.ops->allocated(kit.ctx);
  void *p[100], *pinned = NULL;
  for (int i = 0; i < 100; i++) {
    kit_must(&kit, kit.ops->alloc(kit.ctx, (size_t)i * 1000 + 1, &p[i]), "alloc");
    cr_expect_eq((uintptr_t)p[i] % 256, 0);
  }
  cr_expect_eq(kit.ops->allocated(kit.ctx) - before, 99 * 100 / 2 * 1000 + 100);
  for (int i = 0; i < 100; i += 2) kit.ops->free(kit.ctx, p[i]);
  for (int i = 1; i < 100; i += 2) kit.ops->free(kit.ctx, p[i]);
  kit.ops->free(kit.ctx, NULL);
  kit_must(&kit, kit.ops->alloc_host(kit.ctx, 1000, &pinned), "alloc_host");
  cr_expect_eq(kit.ops->allocated(kit.ctx), before, "pinned memory is not device memory");
  kit.ops->free_host(kit.ctx, pinned);
  kit_close(&kit);
}

Test(device, refuses_what_does_not_fit_and_goes_on) {
  kit_t kit;
  block_kit_open(&kit);
  void *p = &kit;
  const int64_t before = kit.ops->allocated(kit.ctx);
  cr_expect_eq(kit.ops->alloc(kit.ctx, (size_t)1 << 60, &p), QK_DEVICE_MEMORY);
  cr_expect_eq(p, &kit, "an output is set only on success");
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "1152921504606846976") != NULL, "%s",
            kit.ops->last_error(kit.ctx));
  cr_expect_eq(kit.ops->allocated(kit.ctx), before);
  kit_must(&kit, kit.ops->alloc(kit.ctx, 100, &p), "alloc");
  kit.ops->free(kit.ctx, p);
  kit_close(&kit);
}

Test(device, says_what_it_is) {
  kit_t kit;
  block_kit_open(&kit);
  qk_device_info_t info;
  kit_must(&kit, kit.ops->info(kit.ctx, &info), "info");
  cr_expect_gt(strlen(info.name), 0);
  cr_expect_gt(info.memory_total, info.memory_free);
  cr_expect_gt(info.memory_free, 0);
  cr_expect_gt(info.threads, 0);
  cr_expect(kit.ops->host_memory == (info.code[0] == 0), "kernels for \"%s\"", info.code);
  kit_close(&kit);
}

/* Copies on queues 1 and 2 read what queue 0 wrote before queue_wait, and the other way round. */
Test(device, queues_wait_for_each_other) {
  kit_t kit;
  block_kit_open(&kit);
  enum { N = 1 << 20 };
  const size_t bytes = N * sizeof(uint32_t);
  void *host, *a = kit_alloc(&kit, bytes), *b = kit_alloc(&kit, bytes);
  kit_must(&kit, kit.ops->alloc_host(kit.ctx, 2 * bytes, &host), "alloc_host");
  uint32_t *in = host, *out = in + N;
  for (uint32_t round = 1; round <= 20; round++) {
    for (uint32_t i = 0; i < N; i++) in[i] = i * round;
    kit_must(&kit, kit.ops->copy(kit.ctx, a, in, bytes, QK_COPY_TO_DEVICE, 0), "copy");
    kit_must(&kit, kit.ops->queue_wait(kit.ctx, 1, 0), "wait");
    kit_must(&kit, kit.ops->copy(kit.ctx, b, a, bytes, QK_COPY_DEVICE, 1), "copy");
    kit_must(&kit, kit.ops->queue_wait(kit.ctx, 0, 1), "wait");
    kit_must(&kit, kit.ops->zero(kit.ctx, a, bytes, 0), "zero");
    kit_must(&kit, kit.ops->queue_wait(kit.ctx, 2, 1), "wait");
    kit_must(&kit, kit.ops->copy(kit.ctx, out, b, bytes, QK_COPY_TO_HOST, 2), "copy");
    kit_must(&kit, kit.ops->queue_wait(kit.ctx, 1, 2), "wait");
    kit_must(&kit, kit.ops->zero(kit.ctx, b, bytes, 1), "zero");
    for (int queue = 0; queue < QK_QUEUES; queue++)
      kit_must(&kit, kit.ops->queue_sync(kit.ctx, queue), "sync");
    cr_assert_arr_eq(in, out, bytes, "round %u", round);
  }
  for (int queue = 0; queue < QK_QUEUES; queue++) {
    bool idle = false;
    kit_must(&kit, kit.ops->queue_idle(kit.ctx, queue, &idle), "idle");
    cr_expect(idle, "queue %d", queue);
  }
  cr_expect_eq(kit.ops->queue_sync(kit.ctx, QK_QUEUES), QK_BAD_ARGUMENT);
  cr_expect_eq(kit.ops->queue_idle(kit.ctx, QK_QUEUES, &(bool){false}), QK_BAD_ARGUMENT);
  cr_expect_eq(kit.ops->queue_wait(kit.ctx, 0, -1), QK_BAD_ARGUMENT);
  kit.ops->free_host(kit.ctx, host);
  kit_free(&kit, a);
  kit_free(&kit, b);
  kit_close(&kit);
}

/* Of every length and alignment, with what is beside it left alone. */
Test(device, copies_bytes_as_they_are) {
  kit_t kit;
  block_kit_open(&kit);
  enum { N = (64 << 10) + 64 };
  static const size_t lengths[] = {
      0, 1, 15, 16, 17, 255, 256, 257, 4095, 4096, (64 << 10) - 1, 64 << 10, (64 << 10) + 1};
  static unsigned char plain[N];
  unsigned char *device = kit_alloc(&kit, N), *pinned;
  kit_must(&kit, kit.ops->alloc_host(kit.ctx, N, (void **)&pinned), "alloc_host");
  unsigned char *const host[] = {pinned, plain};
  for (int h = 0; h < 2; h++)
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
      for (size_t at = 0; at <= 32; at += at < 2 ? 1 : 15) {
        for (size_t k = 0; k < N; k++) host[h][k] = (unsigned char)(k % 251 + 1);
        kit_must(&kit, kit.ops->zero(kit.ctx, device, N, 0), "zero");
        kit_must(
            &kit,
            kit.ops->copy(kit.ctx, device + at, host[h] + at % 3, lengths[i], QK_COPY_TO_DEVICE, 0),
            "copy");
        kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "sync");
        memset(host[h], 0, N);
        kit_must(&kit, kit.ops->copy(kit.ctx, host[h], device, at + 1, QK_COPY_TO_HOST, 0), "copy");
        kit_must(&kit,
                 kit.ops->copy(kit.ctx, host[h] + at, device + at, lengths[i], QK_COPY_TO_HOST, 0),
                 "copy");
        kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "sync");
        for (size_t k = 0; k < N; k++) {
          const bool there = k >= at && k < at + lengths[i];
          cr_assert_eq(host[h][k], there ? (k - at + at % 3) % 251 + 1 : 0,
                       "%s: byte %zu of %zu at %zu", h == 0 ? "pinned" : "plain", k, lengths[i],
                       at);
        }
      }
  kit.ops->free_host(kit.ctx, pinned);
  kit_free(&kit, device);
  kit_close(&kit);
}

/* What a solver waits for in each iteration, while fields come and go. */
Test(device, a_few_numbers_do_not_wait_for_fields_of_other_queues) {
  kit_t kit;
  block_kit_open(&kit);
  if (strcmp(kit.ops->name, "cuda") != 0) {
    kit_close(&kit);
    cr_skip_test("copies of the CPU are over when they return");
  }
  const size_t bytes = (size_t)1 << 30, few = 1024;
  char *device = kit_alloc(&kit, bytes + few), *host;
  kit_must(&kit, kit.ops->alloc_host(kit.ctx, bytes + few, (void **)&host), "alloc_host");
  const qk_copy_t kinds[] = {QK_COPY_TO_DEVICE, QK_COPY_TO_HOST};
  for (int i = 0; i < 2; i++) {
    bool idle = true;
    for (int tries = 0; tries < 5 && idle; tries++) { /* this thread may have been held up */
      const bool in = kinds[i] == QK_COPY_TO_DEVICE;
      kit_must(&kit,
               kit.ops->copy(kit.ctx, in ? device : host, in ? host : device, bytes, kinds[i], 1),
               "copy");
      kit_must(&kit,
               kit.ops->copy(kit.ctx, (in ? device : host) + bytes, (in ? host : device) + bytes,
                             few, kinds[i], 0),
               "copy");
      kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "sync");
      kit_must(&kit, kit.ops->queue_idle(kit.ctx, 1, &idle), "idle");
      kit_must(&kit, kit.ops->queue_sync(kit.ctx, 1), "sync");
    }
    cr_expect_not(idle, "%s the device", i == 0 ? "to" : "from");
  }
  kit.ops->free_host(kit.ctx, host);
  kit_free(&kit, device);
  kit_close(&kit);
}

/* A piece that is pinned and one that is not, as when the machine has no more to pin. */
Test(device, copies_between_mapped_memory_and_the_device) {
  enum { PIECE = 1 << 20, LAST = 5000, N = 2 * PIECE + LAST };
  kit_t kit;
  block_kit_open(&kit);
  const qk_host_pages_t *pages = qk_host_pages(kit.ops);
  void *mapped = NULL;
  char *device = kit_alloc(&kit, N);
  qk_err_t err = {0};
  kit_must(&kit, pages->map(kit.ctx, N, &mapped), "map");
  char *host = mapped;
  cr_expect_eq((uintptr_t)host % 4096, 0);
  cr_assert_eq(pages->pin(kit.ctx, host, PIECE, &err), QK_OK, "%s", err.text);
  cr_assert_eq(pages->pin(kit.ctx, host + 2 * PIECE, LAST, &err), QK_OK, "%s", err.text);
  for (int i = 0; i < N; i++) host[i] = (char)(i % 127);
  for (int at = 0; at < N; at += PIECE) {
    const size_t n = N - at < PIECE ? LAST : PIECE;
    kit_must(&kit, kit.ops->copy(kit.ctx, device + at, host + at, n, QK_COPY_TO_DEVICE, 1), "to");
  }
  kit_must(&kit, kit.ops->queue_sync(kit.ctx, 1), "sync");
  memset(host, 0, N);
  for (int at = 0; at < N; at += PIECE) {
    const size_t n = N - at < PIECE ? LAST : PIECE;
    kit_must(&kit, kit.ops->copy(kit.ctx, host + at, device + at, n, QK_COPY_TO_HOST, 2), "from");
  }
  kit_must(&kit, kit.ops->queue_sync(kit.ctx, 2), "sync");
  for (int i = 0; i < N; i++) cr_assert_eq(host[i], (char)(i % 127), "%d", i);
  pages->unpin(kit.ctx, host + 2 * PIECE);
  pages->unpin(kit.ctx, host);
  pages->unmap(kit.ctx, host, N);
  kit_free(&kit, device);
  kit_close(&kit);
}

/* One of each call, as an engine would make them; releases what it holds whatever happens. */
static qk_status_t use_everything(const kit_t *kit) {
  const qk_ops_t *ops = kit->ops;
  qk_ops_ctx_t *ctx = kit->ctx;
  const qk_lattice_t *lat = &kit->lat;
  qk_spinor_t f = {.prec = QK_DOUBLE,
                   .subset = QK_FULL,
                   .ncomp = 12,
                   .nrhs = 2,
                   .ntile = 1,
                   .nsites = 2 * lat->vcb};
  const size_t bytes = (size_t)f.nsites * QK_TILE * 24 * sizeof(double),
               wire_bytes = (size_t)f.nsites * 24 * sizeof(double);
  void *wire = NULL, *red = NULL, *host = NULL;
  qk_device_info_t info;
  qk_status_t s = ops->info(ctx, &info);
  if (s == QK_OK) s = ops->alloc(ctx, bytes, &f.data);
  if (s == QK_OK) s = ops->alloc(ctx, wire_bytes, &wire);
  if (s == QK_OK) s = ops->alloc(ctx, 1024, &red);
  if (s == QK_OK) s = ops->alloc_host(ctx, wire_bytes, &host);
  if (s == QK_OK) s = ops->zero(ctx, f.data, bytes, 0);
  const qk_source_args_t source = {.lat = *lat,
                                   .field = f,
                                   .kind = QK_SOURCE_Z4,
                                   .site = {0, 0, 0, -1},
                                   .spin = -1,
                                   .colour = -1};
  if (s == QK_OK) s = ops->source(ctx, &source);
  qk_rhs_args_t column = {
      .lat = *lat, .field = f, .n = 1, .is_double = 1, .wire = {wire}, .factor = 1};
  if (s == QK_OK) s = ops->rhs_export(ctx, &column);
  if (s == QK_OK) s = ops->rhs_import(ctx, &column);
  const qk_blas_args_t blas = {.op = QK_BLAS_CDOT, .f = {f, f}, .red = red};
  if (s == QK_OK) s = ops->blas(ctx, &blas);
  const qk_multi_args_t multi = {.n = 1, .f = {f}, .y = f, .c = red, .sign = 1, .red = red};
  if (s == QK_OK) s = ops->multi_dot(ctx, &multi);
  if (s == QK_OK) s = ops->multi_axpy(ctx, &multi);
  if (s == QK_OK) s = ops->queue_wait(ctx, 1, 0);
  if (s == QK_OK) s = ops->copy(ctx, host, wire, wire_bytes, QK_COPY_TO_HOST, 1);
  if (s == QK_OK) s = ops->queue_sync(ctx, 1);
  ops->free_host(ctx, host);
  ops->free(ctx, red);
  ops->free(ctx, wire);
  ops->free(ctx, f.data);
  return s;
}

/* How often the loop over n got an error before the call went through. */
static int fail_each(const char *point, qk_status_t want, bool lost) {
  char plan[64];
  for (int n = 1;; n++) {
    kit_t kit;
    block_kit_open(&kit);
    snprintf(plan, sizeof plan, "%s:%d", point, n);
    cr_assert_eq(qk_fault_set(plan), 0);
    const int64_t before = kit.ops->allocated(kit.ctx);
    const qk_status_t status = use_everything(&kit);
    cr_assert_eq(qk_fault_set(NULL), 0);
    cr_expect_eq(kit.ops->allocated(kit.ctx), before, "%s: memory left behind", plan);
    if (status != QK_OK) {
      cr_expect_eq(status, want, "%s: %s", plan, qk_status_name(status));
      cr_expect_gt(strlen(kit.ops->last_error(kit.ctx)), 0);
      cr_expect_eq(use_everything(&kit), lost ? QK_DEVICE_ERROR : QK_OK, "%s: afterwards", plan);
    }
    kit_close(&kit);
    if (status == QK_OK) return n - 1;
  }
}

Test(device, every_failing_call_is_reported_and_loses_the_context) {
  cr_expect_eq(fail_each("device-call", QK_DEVICE_ERROR, true), 15);
}

Test(device, every_failing_allocation_is_reported_and_harmless) {
  cr_expect_eq(fail_each("device-alloc", QK_DEVICE_MEMORY, false), 4);
}

Test(device, checked_memory_holds_nan_until_written) {
  kit_t kit;
  block_kit_open(&kit);
  const qk_ops_t *plain = kit.ops;
  kit.ops = qk_ops_checked(plain);
  cr_expect_str_eq(kit.ops->name, plain->name);
  enum { N = 100001 };
  const size_t bytes = N * sizeof(float);
  void *p = kit_alloc(&kit, bytes), *pinned;
  float *host = calloc(N, sizeof *host);
  kit_must(&kit, kit.ops->alloc_host(kit.ctx, bytes, &pinned), "alloc_host");
  kit_must(&kit, kit.ops->copy(kit.ctx, host, p, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "sync");
  for (int i = 0; i < N; i++)
    cr_assert(host[i] != host[i] && ((float *)pinned)[i] != ((float *)pinned)[i]);
  free(host);
  kit.ops->free_host(kit.ctx, pinned);
  kit_free(&kit, p);
  kit.ops = plain;
  kit_close(&kit);
}

Test(device, names_lead_to_backends) {
  cr_expect_str_eq(qk_ops_by_name("cpu")->name, "cpu");
  cr_expect_str_eq(qk_ops_by_name("cuda")->name, "cuda");
  cr_expect_null(qk_ops_by_name("tpu"));
  const qk_ops_t *best = qk_ops_by_name("auto");
  qk_ops_ctx_t *ctx = NULL;
  cr_assert_eq(best->open(0, &ctx, NULL), QK_OK);
  best->close(ctx);
  best->close(NULL);
}

Test(device, absent_devices_are_named) {
  const qk_ops_t *cuda = qk_ops_by_name("cuda");
  qk_ops_ctx_t *ctx = NULL;
  qk_err_t err = {0};
  cr_expect_eq(cuda->open(4711, &ctx, &err), QK_NO_DEVICE);
  cr_expect(strstr(err.text, "4711") != NULL, "%s", err.text);
  cr_expect_null(ctx);
}
