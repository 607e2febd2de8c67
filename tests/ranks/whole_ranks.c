/*
 * whole_ranks whole|both GAUGE GX GY GZ GT: what it is worth that every rank has the coarsest level
 * whole, on that grid of ranks: a block of three right-hand sides, solved with a hierarchy of three
 * levels whose level 2 is whole; both: then with one that is cut on all levels. Rank 0 prints for
 * each, "name value": iterations, the residual of the solutions, a digest of their bits; for an
 * application of the cycle, exchanges of faces on level 2 and on all coarse levels, waits and sums
 * through peer memory; whether all ranks have the same bits of what level 2 is given, and of what
 * it answers.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/multigrid/cycle_impl.h"
#include "daemon/engine/multigrid/nullspace.h"
#include "tests/support/mg_rig.h"

enum { RHS = 3 };

static const qk_mg_params_t params = {
    .nlevel = 3,
    .deflate = 8,
    .level = {{.block = {2, 2, 2, 2}, .nvec = 8, .setup_iterations = 20, .setup_passes = -1},
              {.block = {1, 1, 2, 2},
               .nvec = 8,
               .setup_iterations = 20,
               .setup_passes = -1,
               .iterations = 4},
              {.iterations = 8}}};

/* ---- what goes between the ranks ------------------------------------------------------------- */

static const qk_ops_t *backend;
static struct {
  int64_t level2; /* sites of it that a rank has */
  int faces, faces2, awaits, sums;
} count;

static qk_status_t counted_pack(qk_ops_ctx_t *ctx, const qk_coarse_pack_args_t *args) {
  count.faces++;
  count.faces2 += 2 * (int64_t)args->lat.vcb == count.level2;
  return backend->coarse_pack(ctx, args);
}

static qk_status_t counted_await(qk_ops_ctx_t *ctx, const qk_signal_args_t *args) {
  count.awaits++;
  return backend->await(ctx, args);
}

static qk_status_t counted_sum(qk_ops_ctx_t *ctx, const qk_peer_sum_args_t *args) {
  count.sums++;
  return backend->peer_sum(ctx, args);
}

/* ---- the ranks' bits ------------------------------------------------------------------------- */

static uint64_t digest_of(const void *data, size_t bytes) {
  const uint8_t *p = data;
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 1099511628211u;
  return h;
}

static uint64_t digest(const qk_field_t *f) {
  const qk_device_t *dev = f->dev;
  uint8_t *host = qk_malloc(f->bytes);
  rig_must(dev->ops->copy(dev->ctx, host, f->v.data, f->bytes, QK_COPY_TO_HOST, 0), "copy", NULL);
  rig_must(dev->ops->queue_sync(dev->ctx, 0), "copy", NULL);
  const uint64_t h = digest_of(host, f->bytes);
  qk_free(host);
  return h;
}

static int same_on_all(qk_comm_t *comm, uint64_t h) {
  uint64_t first = h;
  rig_must(qk_comm_bcast(comm, &first, sizeof first, 0), "bcast", NULL);
  uint64_t others = first != h;
  rig_must(qk_comm_sum_u64(comm, &others, 1), "sum", NULL);
  return others == 0;
}

static void print(const qk_rig_t *rig, const char *kind, const char *name, double value) {
  if (qk_comm_rank(rig->comm) == 0) printf("%s_%s %.17g\n", kind, name, value);
}

/* What level 2 is given and answers, and the vectors that it is deflated by. */
static void print_level2(qk_rig_t *rig, mg_rig_t *m, const char *kind) {
  qk_mg_level_t *one = &m->mg->level[1], *two = &m->mg->level[2];
  qk_field_t *r, *b, *e, *const *block;
  rig_must(qk_field_create(&one->dev, QK_SINGLE, RHS, QK_FULL, &r), "field", NULL);
  rig_must(qk_field_create(&two->dev, QK_SINGLE, RHS, QK_FULL, &b), "field", NULL);
  rig_must(qk_field_create(&two->dev, QK_SINGLE, RHS, QK_FULL, &e), "field", NULL);
  rig_must(qk_nullspace_random(&one->dev, 3, r), "noise", NULL);
  qk_prolongator_restrict(one->down, b, r);
  qk_cycle_solve_level(m->cycle, 2, e, b);
  rig_must(qk_dev_status(&two->dev), "level 2", NULL);
  qk_deflation_blocks(m->mg->deflation, &block);
  print(rig, kind, "same_b", same_on_all(rig->comm, digest(b)));
  print(rig, kind, "same_e", same_on_all(rig->comm, digest(e)));
  print(rig, kind, "same_vectors", same_on_all(rig->comm, digest(block[0])));
  qk_field_destroy(e);
  qk_field_destroy(b);
  qk_field_destroy(r);
}

static void print_counts(qk_rig_t *rig, mg_rig_t *m, const char *kind) {
  const qk_mg_level_t *finest = &m->mg->level[0];
  qk_field_t *z, *r;
  rig_must(qk_field_create(&finest->dev, QK_SINGLE, RHS, QK_EVEN, &z), "field", NULL);
  rig_must(qk_field_create(&finest->dev, QK_SINGLE, RHS, QK_EVEN, &r), "field", NULL);
  rig_must(qk_cycle_apply(m->cycle, z, r, NULL, NULL), "cycle", NULL);
  count.faces = count.faces2 = count.awaits = count.sums = 0;
  rig_must(qk_cycle_apply(m->cycle, z, r, NULL, NULL), "cycle", NULL);
  print(rig, kind, "faces", count.faces);
  print(rig, kind, "faces_level2", count.faces2);
  print(rig, kind, "awaits", count.awaits);
  print(rig, kind, "sums", count.sums);
  qk_field_destroy(r);
  qk_field_destroy(z);
}

/* ---- solves ---------------------------------------------------------------------------------- */

static void print_solve(qk_rig_t *rig, mg_rig_t *m, const char *kind) {
  double *b[RHS], *v = rig_vector(rig), *image = rig_vector(rig), worst = 0;
  uint64_t bits = 0;
  int most = 0;
  for (int i = 0; i < RHS; i++) {
    b[i] = rig_vector(rig);
    rig_random(rig, 3 + (uint64_t)i, b[i]);
    rig_import(rig, qk_solver_rhs(m->solver, i), 0, b[i]);
    rig_must(qk_solver_fill(m->solver, i, 1e-10, 200), "fill", NULL);
  }
  rig_run(m->solver);
  for (int i = 0; i < RHS; i++) {
    const qk_slot_t *s = qk_solver_slot(m->solver, i);
    rig_must(s->status, "solve", NULL);
    if (s->iterations > most) most = (int)s->iterations;
    rig_export(rig, qk_solver_solution(m->solver, i), 0, v);
    bits += digest_of(v, rig_reals(rig) * sizeof *v);
    rig_apply(rig, v, false, image);
    worst = fmax(worst, rig_distance(rig, image, b[i]));
    qk_free(b[i]);
  }
  rig_must(qk_comm_sum_u64(rig->comm, &bits, 1), "sum", NULL);
  print(rig, kind, "iterations", most);
  print(rig, kind, "residual", worst);
  print(rig, kind, "bits", (double)(bits >> 12)); /* what a double holds */
  qk_free(image);
  qk_free(v);
}

static void print_all(qk_rig_t *rig, int whole, const char *kind) {
  mg_rig_t m;
  qk_mg_params_t p = params;
  p.whole = whole;
  mg_rig_open(rig, &p, QK_SINGLE, RHS, &m);
  count.level2 = m.mg->level[2].geom.volume / qk_comm_size(rig->comm);
  print(rig, kind, "sites", (double)m.mg->level[2].geom.local_volume);
  print_counts(rig, &m, kind);
  print_level2(rig, &m, kind);
  print_solve(rig, &m, kind);
  mg_rig_close(&m);
}

int main(int argc, char **argv) {
  qk_comm_t *comm = rig_ranks(&argc, &argv, 3);
  qk_rig_t rig;
  qk_ops_t counting;
  if (!comm || argc != 7) {
    fprintf(stderr, "usage: whole_ranks whole|both GAUGE GX GY GZ GT\n");
    return 64;
  }
  rig_open(&rig, comm, argv[2], NULL);
  backend = rig.dev.ops;
  counting = *backend;
  counting.coarse_pack = counted_pack;
  counting.await = counted_await;
  counting.peer_sum = counted_sum;
  rig.dev.ops = &counting;
  rig_operator(&rig, 0.05, 1, -1);
  print_all(&rig, 1024, "whole");
  if (strcmp(argv[1], "both") == 0) print_all(&rig, -1, "cut");
  rig.dev.ops = backend;
  rig_close(&rig);
  return 0;
}
