/*
 * played_ranks.c: one process that plays the ranks of a program, each with a connection of its
 * own, for test_ranks.py: played_ranks ENDPOINT local|socket LINKS X Y Z T
 *
 * LINKS is a file of links as they go over the wire, f64. Sends them in parts, and solves for the
 * same sources whole and in parts: digest and solutions have to be the same to the last bit. One
 * rank dies in the middle of its part, and another one goes on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/quark.h"

enum { RANKS = 8, NRHS = 3, LINKS = 72, SPINOR = 24 }; /* real numbers at a site */

static const uint32_t GRID[4] = {2, 1, 2, 2};

static struct {
  const char *endpoint;
  bool local;
  uint32_t dims[4];
  size_t sites; /* of a part */
  quark_connection_t *rank[RANKS];
  uint64_t request[RANKS];
} all;

static void stop(const char *what, const quark_error_t *err) {
  fprintf(stderr, "played_ranks: %s: %s\n", what, err ? err->text : "");
  exit(1);
}

#define MUST(call)                                                                                 \
  do {                                                                                             \
    quark_error_t err_ = {0};                                                                      \
    quark_error_t *err = &err_;                                                                    \
    if ((call) != QUARK_OK) stop(#call, err);                                                      \
  } while (0)

static void *memory(size_t bytes) {
  void *p = calloc(1, bytes);
  if (!p) stop("no memory", NULL);
  return p;
}

static void connect_rank(int r) {
  quark_options_t options;
  quark_options_init(&options);
  options.local = all.local;
  MUST(quark_connect(all.endpoint, &options, &all.rank[r], err));
}

/* The global index of site n of a part. */
static uint64_t site_of(uint32_t part, uint64_t n) {
  uint64_t index = 0, step = 1;
  for (int mu = 0; mu < 4; mu++) {
    const uint32_t extent = all.dims[mu] / GRID[mu];
    index += step * (part % GRID[mu] * extent + n % extent);
    part /= GRID[mu];
    n /= extent;
    step *= all.dims[mu];
  }
  return index;
}

/* A part of a field; or back into it. */
static void cut(const double *whole, int part, size_t reals, double *out) {
  for (size_t n = 0; n < all.sites; n++)
    memcpy(out + n * reals, whole + site_of((uint32_t)part, n) * reals, reals * sizeof *out);
}

static void paste(const double *in, int part, double *whole) {
  for (size_t n = 0; n < all.sites; n++)
    memcpy(whole + site_of((uint32_t)part, n) * SPINOR, in + n * SPINOR, SPINOR * sizeof *in);
}

/* Everyone but the owner joins its request. */
static void join_all(uint64_t owner_request, uint64_t bytes) {
  uint8_t id[QUARK_CLIENT_ID_BYTES], token[QUARK_CLIENT_ID_BYTES];
  quark_client_id(all.rank[0], id);
  MUST(quark_join_token(all.rank[0], owner_request, token, err));
  all.request[0] = owner_request;
  for (int r = 1; r < RANKS; r++) {
    uint64_t part_bytes, uploaded;
    MUST(quark_join(all.rank[r], id, owner_request, token, (uint32_t)r, &all.request[r],
                    &part_bytes, &uploaded, err));
    if (part_bytes != bytes || uploaded != 0) stop("a part of another size", NULL);
  }
  quark_error_t why;
  uint64_t none;
  token[3] ^= 1;
  if (quark_join(all.rank[1], id, owner_request, token, 1, &none, NULL, NULL, &why) != QUARK_DENIED)
    stop("a wrong token was taken", &why);
}

static void send_links(const char *path) {
  const size_t bytes = all.sites * LINKS * sizeof(double);
  double *links = memory(bytes * RANKS), *part = memory(bytes);
  uint64_t *site = memory(all.sites * sizeof *site), digest = 0, field, part_bytes;
  bool present;
  FILE *f = fopen(path, "rb");
  if (!f || fread(links, bytes, RANKS, f) != RANKS) stop("links cannot be read", NULL);
  fclose(f);
  quark_field_params_t params;
  quark_field_params_init(&params);
  memcpy(params.dims, all.dims, sizeof params.dims);
  memcpy(params.grid, GRID, sizeof params.grid);
  params.part = 0;
  for (int r = 0; r < RANKS; r++) {
    cut(links, r, LINKS, part);
    for (size_t n = 0; n < all.sites; n++) site[n] = site_of((uint32_t)r, n);
    quark_gauge_digest(part, QUARK_F64, 18, site, all.sites, &digest);
  }
  MUST(quark_field_open(all.rank[0], &params, &field, &part_bytes, &present, err));
  if (present || part_bytes != bytes) stop("links in parts of another size", NULL);
  join_all(field, bytes);
  for (int r = RANKS; r-- > 0;) {
    cut(links, r, LINKS, part);
    MUST(quark_upload(all.rank[r], all.request[r], part, bytes, err));
  }
  for (int r = 0; r < RANKS; r++) {
    quark_result_t result;
    MUST(quark_wait(all.rank[r], all.request[r], 0, 20000, &result, err));
    if (result.status != QUARK_OK || result.digest != digest) {
      fprintf(stderr, "rank %d: %s, digest %016" PRIx64 ", not %016" PRIx64 "\n", r, result.text,
              result.digest, digest);
      exit(1);
    }
  }
  params.has_digest = true;
  params.digest = digest;
  uint64_t again;
  uint8_t token[QUARK_CLIENT_ID_BYTES];
  MUST(quark_field_open(all.rank[1], &params, &again, &part_bytes, &present, err));
  if (!present) stop("links that are here are to be sent", NULL);
  if (quark_join_token(all.rank[1], again, token, NULL) != QUARK_BAD_ARGUMENT)
    stop("links that are here can be joined", NULL);
  MUST(quark_release(all.rank[1], again, err));
  for (int r = 0; r < RANKS; r++) MUST(quark_release(all.rank[r], all.request[r], err));
  free(links);
  free(part);
  free(site);
}

static void set_params(quark_params_t *p) {
  quark_params_init(p);
  p->nrhs = NRHS;
  p->tol = 1e-10;
  p->batch_only = true;
}

static void solve_whole(const double *b, double *x, size_t bytes) {
  quark_params_t params;
  uint64_t request, field_bytes;
  set_params(&params);
  MUST(quark_submit(all.rank[0], &params, &request, &field_bytes, err));
  if (field_bytes != bytes) stop("fields of another size", NULL);
  MUST(quark_upload(all.rank[0], request, b, NRHS * bytes, err));
  for (uint32_t i = 0; i < NRHS; i++) {
    quark_result_t result;
    MUST(quark_wait(all.rank[0], request, i, -1, &result, err));
    if (result.status != QUARK_OK) stop(result.text, NULL);
    MUST(quark_download(all.rank[0], request, i, x + i * bytes / sizeof *x, bytes, err));
  }
  MUST(quark_release(all.rank[0], request, err));
}

/* Rank 3 has sent one source and a half when it dies; another takes its place. */
static void replace_rank(uint64_t owner_request, const double *source, size_t bytes) {
  uint8_t id[QUARK_CLIENT_ID_BYTES], token[QUARK_CLIENT_ID_BYTES];
  uint64_t uploaded = 0;
  quark_client_id(all.rank[0], id);
  MUST(quark_join_token(all.rank[0], owner_request, token, err));
  MUST(quark_upload(all.rank[3], all.request[3], source, bytes + bytes / 2, err));
  MUST(quark_flush(all.rank[3], all.request[3], err));
  quark_close(all.rank[3]);
  connect_rank(3);
  MUST(quark_join(all.rank[3], id, owner_request, token, 3, &all.request[3], NULL, &uploaded, err));
  if (uploaded != bytes) stop("the part does not go on at the second source", NULL);
  MUST(quark_upload(all.rank[3], all.request[3], (const char *)source + bytes, (NRHS - 1) * bytes,
                    err));
}

static void solve_in_parts(const double *b, const double *x, size_t whole) {
  const size_t bytes = whole / RANKS, reals = whole / sizeof *b;
  double *part = memory(NRHS * bytes), *y = memory(NRHS * whole);
  quark_params_t params;
  uint64_t request, part_bytes;
  set_params(&params);
  memcpy(params.grid, GRID, sizeof params.grid);
  params.part = 0;
  MUST(quark_submit(all.rank[0], &params, &request, &part_bytes, err));
  if (part_bytes != bytes) stop("parts of another size", NULL);
  join_all(request, bytes);
  for (int r = 0; r < RANKS; r++) {
    for (size_t i = 0; i < NRHS; i++) cut(b + i * reals, r, SPINOR, part + i * reals / RANKS);
    if (r == 3)
      replace_rank(request, part, bytes);
    else
      MUST(quark_upload(all.rank[r], all.request[r], part, NRHS * bytes, err));
  }
  for (int r = 0; r < RANKS; r++)
    for (uint32_t i = 0; i < NRHS; i++) {
      quark_result_t result;
      MUST(quark_wait(all.rank[r], all.request[r], i, -1, &result, err));
      if (result.status != QUARK_OK) stop(result.text, NULL);
      MUST(quark_download(all.rank[r], all.request[r], i, part, bytes, err));
      paste(part, r, y + i * reals);
      MUST(quark_ack(all.rank[r], all.request[r], (int32_t)i, err));
    }
  if (memcmp(x, y, NRHS * whole) != 0) stop("solutions in parts are not the whole", NULL);
  free(part);
  free(y);
}

/* The owner lets its request go: the others are told. */
static void end_for_all(size_t bytes) {
  quark_params_t params;
  quark_result_t result;
  uint64_t request;
  set_params(&params);
  memcpy(params.grid, GRID, sizeof params.grid);
  MUST(quark_submit(all.rank[0], &params, &request, NULL, err));
  uint8_t id[QUARK_CLIENT_ID_BYTES], token[QUARK_CLIENT_ID_BYTES];
  quark_client_id(all.rank[0], id);
  MUST(quark_join_token(all.rank[0], request, token, err));
  MUST(quark_join(all.rank[1], id, request, token, 0, &all.request[1], NULL, NULL, err));
  MUST(quark_upload_zeros(all.rank[1], all.request[1], bytes / RANKS, err));
  MUST(quark_forget(all.rank[0], request, err));
  for (uint32_t i = 0; i < NRHS; i++) {
    MUST(quark_wait(all.rank[1], all.request[1], i, 20000, &result, err));
    if (result.status != QUARK_CANCELLED) stop("not cancelled", NULL);
  }
}

int main(int argc, char **argv) {
  if (argc != 8) return 64;
  all.endpoint = argv[1];
  all.local = strcmp(argv[2], "local") == 0;
  all.sites = 1;
  for (int mu = 0; mu < 4; mu++) {
    all.dims[mu] = (uint32_t)strtoul(argv[4 + mu], NULL, 10);
    all.sites *= all.dims[mu] / GRID[mu];
  }
  for (int r = 0; r < RANKS; r++) connect_rank(r);
  if (quark_local(all.rank[0]) != all.local) stop("fields do not go as they should", NULL);
  send_links(argv[3]);
  const size_t bytes = all.sites * RANKS * SPINOR * sizeof(double);
  double *b = memory(NRHS * bytes), *x = memory(NRHS * bytes);
  srand(7);
  for (size_t i = 0; i < NRHS * bytes / sizeof *b; i++) b[i] = rand() / (double)RAND_MAX - 0.5;
  solve_whole(b, x, bytes);
  solve_in_parts(b, x, bytes);
  end_for_all(bytes);
  for (int r = 0; r < RANKS; r++) quark_close(all.rank[r]);
  free(b);
  free(x);
  return 0;
}
