/* Parameters, null vectors and hierarchies of multigrid; what runs on them is
 * tested in test_cycle.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/multigrid/multigrid.h"
#include "daemon/engine/multigrid/nullspace.h"
#include "tests/support/faults.h"
#include "tests/support/rig.h"
#include "tests/support/values.h"

/* ---- parameters ------------------------------------------------------------------------------ */

static qk_geom_t geometry(qk_comm_t *comm, int x, int y, int z, int t) {
  qk_geom_t g;
  cr_assert(qk_geom_init(&g, comm, (int[]){x, y, z, t}, NULL) == QK_OK);
  return g;
}

static qk_comm_t *self(void) {
  qk_comm_t *comm;
  cr_assert(qk_comm_self_create(&comm, NULL) == QK_OK);
  return comm;
}

Test(mg_params, blocks_are_near_four_then_two) {
  const struct {
    int dims[4], nlevel, block[2][4];
  } wanted[] = {{{8, 8, 8, 8}, 2, {{4, 4, 4, 4}}},
                {{8, 8, 8, 16}, 2, {{4, 4, 4, 4}}},
                {{16, 16, 16, 32}, 3, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
                {{32, 32, 32, 64}, 3, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
                {{24, 24, 24, 48}, 3, {{4, 4, 4, 4}, {3, 3, 3, 2}}},
                {{48, 48, 48, 96}, 3, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
                {{6, 4, 8, 12}, 2, {{3, 2, 4, 3}}},
                {{4, 4, 4, 4}, 2, {{2, 2, 2, 2}}}};
  qk_comm_t *comm = self();
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    const int *d = wanted[i].dims;
    qk_geom_t g = geometry(comm, d[0], d[1], d[2], d[3]);
    qk_mg_params_t p = {0};
    qk_err_t err = {0};
    cr_assert(qk_mg_params_complete(&g, &qk_tuning_cpu, &p, &err) == QK_OK, "%s", err.text);
    cr_expect(p.nlevel == wanted[i].nlevel, "%dx%dx%dx%d: %d levels", d[0], d[1], d[2], d[3],
              p.nlevel);
    for (int l = 0; l + 1 < p.nlevel; l++)
      for (int mu = 0; mu < 4; mu++)
        cr_expect(p.level[l].block[mu] == wanted[i].block[l][mu], "%dx%dx%dx%d: level %d: %d", d[0],
                  d[1], d[2], d[3], l, p.level[l].block[mu]);
    cr_expect(qk_mg_possible(&g, &qk_tuning_cpu, NULL) == QK_OK);
  }
  qk_comm_destroy(comm);
}

Test(mg_params, completion_is_final_and_knows_the_backend) {
  qk_comm_t *comm = self();
  qk_geom_t g = geometry(comm, 32, 32, 32, 64);
  for (int gpu = 0; gpu < 2; gpu++) {
    qk_mg_params_t p = {0}, again;
    cr_assert(qk_mg_params_complete(&g, gpu ? &qk_tuning_gpu : &qk_tuning_cpu, &p, NULL) == QK_OK);
    const int nvec = gpu ? 32 : 24;
    cr_expect(p.level[0].nvec == nvec && p.level[1].nvec == nvec && p.level[2].nvec == 0);
    cr_expect(p.deflate == (gpu ? 128 : 32) && p.level[2].iterations == (gpu ? 6 : 16));
    cr_expect(p.level[0].ntest == (gpu ? 64 : 24) && p.level[1].ntest == p.level[0].ntest);
    cr_expect(p.level[0].setup_passes == (gpu ? 1 : 2) && p.level[1].setup_passes == (gpu ? 1 : 2));
    cr_expect(p.level[0].smoother.kind == QK_SMOOTHER_POLYNOMIAL &&
              p.level[1].smoother.kind == QK_SMOOTHER_CAGCR);
    cr_expect(p.level[0].prolongator == (gpu ? QK_HALF : QK_SINGLE));
    cr_expect(p.level[0].setup_prec == (gpu ? QK_HALF : QK_SINGLE));
    cr_expect(p.level[1].setup_prec == QK_SINGLE);
    cr_expect(p.whole == (gpu ? 1024 : -1), "cores are shared by ranks, devices are not");
    cr_expect(p.level[1].store == (gpu ? QK_HALF : QK_SINGLE));
    cr_expect(p.level[0].smoother_sums == (gpu ? QK_HALF : QK_SINGLE));
    cr_expect(p.level[1].smoother_sums == QK_SINGLE);
    cr_expect(p.level[1].smoother_bits == (gpu ? 8 : -1) && p.level[2].smoother_bits == -1);
    again = p;
    cr_assert(qk_mg_params_complete(&g, gpu ? &qk_tuning_gpu : &qk_tuning_cpu, &again, NULL) ==
              QK_OK);
    cr_expect(memcmp(&p, &again, sizeof p) == 0);
  }
  qk_mg_params_t bare = {.deflate = -1};
  cr_assert(qk_mg_params_complete(&g, &qk_tuning_gpu, &bare, NULL) == QK_OK);
  cr_expect_eq(bare.level[2].iterations, 32, "what deflation does not do, iterations must");
  qk_mg_params_t p = {.nlevel = 2, .level = {{.pre = -1, .nvec = 32}}};
  cr_assert(qk_mg_params_complete(&g, &qk_tuning_cpu, &p, NULL) == QK_OK);
  qk_mg_params_t stored = {.level = {[1] = {.store = QK_SINGLE}}};
  cr_assert(qk_mg_params_complete(&g, &qk_tuning_gpu, &stored, NULL) == QK_OK);
  cr_expect_eq(stored.level[1].smoother_bits, -1, "bytes are made of 16-bit matrices");
  qk_mg_params_t single = {.level = {{.smoother_prec = QK_SINGLE}}};
  cr_assert(qk_mg_params_complete(&g, &qk_tuning_gpu, &single, NULL) == QK_OK);
  cr_expect_eq(single.level[0].smoother_sums, QK_SINGLE, "half alone is added in half");
  cr_expect(p.nlevel == 2 && p.level[0].pre == -1 && p.level[0].nvec == 32 && p.level[0].post > 0);
  qk_comm_destroy(comm);
}

/* A small coarse lattice is the last one on a GPU, and deflated. */
Test(mg_params, a_small_coarse_lattice_is_the_last_where_launches_count) {
  static const struct {
    int dims[4], nlevel, deflate, iterations;
  } cases[] = {{{16, 16, 16, 32}, 2, 128, 6},
               {{16, 16, 16, 64}, 2, 128, 6},
               {{24, 24, 24, 48}, 3, 128, 6},
               {{8, 8, 8, 16}, 2, -1, 32}};
  qk_comm_t *comm = self();
  for (int k = 0; k < 4; k++) {
    const int *d = cases[k].dims;
    qk_geom_t g = geometry(comm, d[0], d[1], d[2], d[3]);
    qk_mg_params_t p = {0}, cpu = {0}, three = {.nlevel = 3};
    cr_assert(qk_mg_params_complete(&g, &qk_tuning_gpu, &p, NULL) == QK_OK);
    cr_expect_eq(p.nlevel, cases[k].nlevel, "case %d: %d levels", k, p.nlevel);
    cr_expect_eq(p.deflate, cases[k].deflate, "case %d: %d vectors", k, p.deflate);
    cr_expect_eq(p.level[p.nlevel - 1].iterations, cases[k].iterations, "case %d", k);
    cr_assert(qk_mg_params_complete(&g, &qk_tuning_cpu, &cpu, NULL) == QK_OK);
    cr_expect_eq(cpu.nlevel, k < 3 ? 3 : 2);
    if (k < 3) {
      cr_assert(qk_mg_params_complete(&g, &qk_tuning_gpu, &three, NULL) == QK_OK);
      cr_expect(three.nlevel == 3 && three.deflate == 128, "what is asked for is made");
    }
  }
  qk_comm_destroy(comm);
}

static void refused(const qk_geom_t *g, qk_mg_params_t p, const char *says) {
  qk_err_t err = {0};
  qk_mg_params_t before = p;
  qk_status_t status = qk_mg_params_complete(g, &qk_tuning_cpu, &p, &err);
  cr_expect(status == QK_BAD_ARGUMENT || status == QK_BAD_GEOMETRY, "\"%s\" was not refused", says);
  cr_expect(strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
  cr_expect(memcmp(&p, &before, sizeof p) == 0, "outputs are set only on success");
}

Test(mg_params, what_does_not_fit_is_refused) {
  qk_comm_t *comm = self();
  qk_geom_t g = geometry(comm, 8, 8, 8, 16), tiny = geometry(comm, 2, 2, 2, 4);
  refused(&tiny, (qk_mg_params_t){0}, "level 0 has local extents 2x2x2x4");
  refused(&g, (qk_mg_params_t){.nlevel = 3}, "level 1 has local extents 2x2x2x4");
  refused(&g, (qk_mg_params_t){.nlevel = 6}, "6 levels: 2 to 5");
  refused(&g, (qk_mg_params_t){.level = {{.block = {3, 4, 4, 4}}}}, "block x = 3");
  refused(&g, (qk_mg_params_t){.level = {{.nvec = 25}}}, "25 null vectors");
  refused(&g, (qk_mg_params_t){.level = {{.block = {1, 1, 1, 2}}}},
          "24 vectors on aggregates with");
  refused(&g, (qk_mg_params_t){.level = {{.setup_iterations = -2}}},
          "mg-setup-iterations = -2: a whole number from 1 to 100000");
  refused(&g, (qk_mg_params_t){.level = {{.setup_tol = 2}}}, "mg-setup-tol = 2");
  refused(&g, (qk_mg_params_t){.level = {{.setup_passes = 101}}}, "mg-setup-passes = 101");
  refused(&g, (qk_mg_params_t){.level = {{.ntest = 22}}}, "mg-test-vectors = 22 for 24 vectors");
  refused(&g, (qk_mg_params_t){.level = {{.ntest = 27}}}, "an even number above");
  refused(&g, (qk_mg_params_t){.level = {{.ntest = 66}}}, "mg-test-vectors = 66: a whole number");
  refused(&g, (qk_mg_params_t){.together = 8, .level = {{.ntest = 32}}},
          "all of them, if mg-setup-vectors is set");
  refused(&g, (qk_mg_params_t){.together = 12}, "mg-setup-vectors = 12: a multiple of 8");
  refused(&g, (qk_mg_params_t){.level = {{.pre = 101}}}, "pre = 101");
  refused(&g, (qk_mg_params_t){.level = {{.post = -2}}}, "post = -2");
  refused(&g, (qk_mg_params_t){.level = {{.prolongator = 7}}}, "prolongator = 7");
  refused(&g, (qk_mg_params_t){.level = {{.smoother = {.kind = 9}}}}, "smoother = 9");
  refused(&g, (qk_mg_params_t){.level = {{.smoother = {.omega = 2.5}}}}, "omega = 2.5");
  refused(&g, (qk_mg_params_t){.level = {{.smoother = {.block = {3, 4, 4, 4}}}}},
          "smoother block x = 3");
  refused(&g, (qk_mg_params_t){.level = {[1] = {.iterations = -1}}}, "iterations = -1");
  refused(&g, (qk_mg_params_t){.level = {[1] = {.smoother_bits = 8}}},
          "mg-smoother-bits = 8: on a GPU only");
  refused(&g, (qk_mg_params_t){.level = {{.smoother_sums = QK_HALF}}},
          "mg-smoother-sums = half: on a GPU only");
  refused(&g, (qk_mg_params_t){.level = {[1] = {.iterations = 1001}}},
          "level 1: mg-iterations = 1001: a whole number from 1 to 1000");
  refused(&g, (qk_mg_params_t){.level = {[1] = {.tol = 1}}}, "tol = 1");
  refused(&g, (qk_mg_params_t){.level = {[1] = {.store = 5}}}, "store = 5");
  qk_geom_t large = geometry(comm, 16, 16, 16, 16);
  refused(&large, (qk_mg_params_t){.level = {[1] = {.smoother_prec = QK_HALF}}},
          "level 1: half precision");
  refused(&large, (qk_mg_params_t){.level = {[1] = {.smoother = {.kind = QK_SMOOTHER_POLYNOMIAL}}}},
          "level 1: smoother polynomial is for level 0");
  refused(&g, (qk_mg_params_t){.deflate = -2}, "-2 deflated vectors: -1");
  refused(&g, (qk_mg_params_t){.deflate = 768}, "768 deflated vectors: -1 (none) to 192");
  qk_err_t err = {0};
  cr_expect(qk_mg_possible(&tiny, &qk_tuning_cpu, &err) == QK_BAD_GEOMETRY && err.text[0]);
  qk_comm_destroy(comm);
}

/* ---- null vectors ---------------------------------------------------------------------------- */

static void norms(const qk_device_t *dev, qk_spinor_t v, double norm2[][2]) {
  void *red = NULL;
  size_t bytes = (size_t)v.nrhs * 2 * sizeof(double);
  cr_assert(dev->ops->alloc(dev->ctx, bytes, &red) == QK_OK);
  qk_blas_args_t args = {.op = QK_BLAS_NORM2, .f = {v}, .red = red};
  cr_assert(dev->ops->blas(dev->ctx, &args) == QK_OK);
  cr_assert(dev->ops->copy(dev->ctx, norm2, red, bytes, QK_COPY_TO_HOST, 0) == QK_OK);
  cr_assert(dev->ops->queue_sync(dev->ctx, 0) == QK_OK);
  dev->ops->free(dev->ctx, red);
}

/* Worst |M v| / |v| over the columns, on sites of one parity or all. */
static double residual(qk_rig_t *rig, const qk_field_t *v, qk_subset_t parity) {
  double image[QK_MAX_RHS][2], norm[QK_MAX_RHS][2], worst = 0;
  qk_field_t *w;
  cr_assert(qk_work_reserve(rig->work, QK_SINGLE, v->v.nrhs, QK_FULL, &w) == QK_OK);
  cr_assert(rig->op->ops->apply(rig->op, w, v, false, NULL, 0) == QK_OK);
  norms(&rig->dev, parity == QK_FULL ? w->v : qk_field_parity(w, parity), image);
  norms(&rig->dev, v->v, norm);
  qk_work_release(rig->work, w);
  for (int i = 0; i < v->v.nrhs; i++) worst = fmax(worst, sqrt(image[i][0] / norm[i][0]));
  return worst;
}

Test(nullspace, relaxation_lowers_the_residual) {
  const char *method[] = {"bicgstab", "cg", "gcr"};
  qk_rig_t rig;
  qk_field_t *v;
  rig_open(&rig, NULL, "builtin:weak:4x4x4x8:3", NULL);
  rig_operator(&rig, 0.05, 1, -1);
  cr_assert(qk_field_create(&rig.dev, QK_SINGLE, 6, QK_FULL, &v) == QK_OK);
  for (int k = 0; k < 3; k++)
    for (int p = QK_SINGLE; p <= QK_HALF; p++) {
      qk_relax_params_t relax = {
          .method = method[k], .prec = (qk_prec_t)p, .iterations = 40, .tol = 1e-3, .seed = 5};
      double fall = 0;
      qk_err_t err = {0};
      cr_assert(qk_nullspace_random(&rig.dev, 5, v) == QK_OK);
      double before = residual(&rig, v, QK_FULL);
      cr_assert(qk_nullspace_relax(rig.op, rig.work, &relax, v, &fall, &err) == QK_OK, "%s",
                err.text);
      double even = residual(&rig, v, QK_EVEN), odd = residual(&rig, v, QK_ODD);
      cr_expect(even < 0.5 * before && fall < 0.2, "%s: %g to %g, fall %g", method[k], before, even,
                fall);
      cr_expect(odd < 1e-5, "%s: %g on odd sites", method[k], odd);
    }
  qk_field_destroy(v);
  rig_close(&rig);
}

Test(nullspace, relaxation_keeps_to_its_mask) {
  qk_rig_t rig;
  qk_field_t *v, *even[2];
  qk_err_t err = {0};
  double fall[6], before[6][2], after[6][2];
  const uint8_t mask[6] = {1, 0, 1, 1, 0, 1};
  const qk_solver_params_t solver = {.method = "bicgstab", .inner = QK_HALF, .nslot = 6};
  rig_open(&rig, NULL, "builtin:weak:4x4x4x4:3", NULL);
  rig_operator(&rig, 0.2, 1, -1);
  cr_assert(qk_work_reserve(rig.work, QK_SINGLE, 6, QK_FULL, &v) == QK_OK);
  for (int i = 0; i < 2; i++)
    cr_assert(qk_work_reserve(rig.work, QK_SINGLE, 6, QK_EVEN, &even[i]) == QK_OK);
  cr_assert(qk_nullspace_random(&rig.dev, 9, v) == QK_OK);
  double *column = rig_vector(&rig);
  rig_export(&rig, v, 3, column);
  column[7] = NAN;
  rig_import(&rig, v, 3, column);
  qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {even[0]->v, qk_field_parity(v, QK_EVEN)}};
  cr_assert(rig.dev.ops->blas(rig.dev.ctx, &copy) == QK_OK);
  norms(&rig.dev, even[0]->v, before);
  const qk_relax_limit_t limit = {.iterations = 20, .tol = 1e-9};
  cr_assert(qk_solver_relax(rig.op, rig.work, &solver, mask, &limit, even[0], even[1], fall,
                            &err) == QK_OK);
  norms(&rig.dev, even[0]->v, after);
  for (int i = 0; i < 6; i++) {
    bool on = mask[i] && i != 3;
    cr_expect(on ? fall[i] < 1 : isnan(fall[i]), "column %d: %g", i, fall[i]);
    cr_expect(i == 3 ? isnan(after[i][0]) : on == (after[i][0] != before[i][0]), "column %d", i);
  }
  qk_free(column);
  qk_work_release(rig.work, even[1]);
  qk_work_release(rig.work, even[0]);
  qk_work_release(rig.work, v);
  rig_close(&rig);
}

/* A rig whose work stack has its own memory already. */
static void open_rig(qk_rig_t *rig, const char *gauge, double mass, double csw) {
  qk_field_t *f;
  rig_open(rig, NULL, gauge, NULL);
  rig_operator(rig, mass, csw, -1);
  cr_assert(qk_work_reserve(rig->work, QK_SINGLE, 1, QK_FULL, &f) == QK_OK);
  qk_work_release(rig->work, f);
  qk_work_trim(rig->work);
}

/* ---- hierarchies ----------------------------------------------------------------------------- */

static const qk_mg_params_t three = {
    .nlevel = 3,
    .level = {{.block = {2, 2, 2, 2}, .nvec = 8, .setup_iterations = 20, .setup_passes = 1},
              {.block = {2, 2, 2, 2}, .nvec = 8, .setup_iterations = 20, .iterations = 4},
              {.iterations = 6}}};
static const qk_mg_params_t awkward = {
    .nlevel = 2,
    .level = {{.block = {3, 2, 2, 3}, .nvec = 6, .setup_iterations = 20, .setup_passes = 2}},
    .deflate = 8};
static const qk_mg_params_t narrow = {.nlevel = 2,
                                      .level = {{.block = {2, 2, 2, 2},
                                                 .nvec = 12,
                                                 .setup_iterations = 20,
                                                 .setup_passes = 1,
                                                 .prolongator = QK_HALF,
                                                 .setup_prec = QK_HALF,
                                                 .smoother_prec = QK_HALF},
                                                {.store = QK_HALF}}};

typedef struct seen {
  int vectors, coarse, refinements;
  bool order;
} seen_t;

static void watch(void *arg, const char *phase, int64_t done, int64_t total) {
  seen_t *s = arg;
  s->vectors += strcmp(phase, "null vectors") == 0;
  s->coarse += strcmp(phase, "coarse operator") == 0;
  s->refinements += strcmp(phase, "refinement") == 0;
  if (done < 0 || done > total) s->order = false;
}

static void expect_health(const qk_mg_t *mg, const char *gauge) {
  for (int l = 0; l + 1 < mg->nlevel; l++) {
    const qk_mg_level_health_t *h = &mg->level[l].health;
    const qk_mg_level_params_t *p = mg->params.level;
    cr_expect(h->orthonormality < (p[l].prolongator == QK_HALF ? 1e-3 : 2e-6), "%s, %d: %g", gauge,
              l, h->orthonormality);
    cr_expect(h->galerkin < (p[l + 1].store == QK_HALF ? 2e-3 : 1e-5), "%s, %d: %g", gauge, l,
              h->galerkin);
    cr_expect(h->representation > 0 && h->representation < 0.9, "%s, %d: %g", gauge, l,
              h->representation);
    cr_expect(h->null_residual > 0 && h->null_residual < 1, "%s, %d: %g", gauge, l,
              h->null_residual);
    cr_expect(mg->level[l].setup_seconds > 0);
  }
  cr_expect(mg->convergence > 0 && mg->convergence < 0.6, "%s: %g", gauge, mg->convergence);
}

static void life(const char *gauge, const qk_mg_params_t *params) {
  qk_rig_t rig;
  qk_mg_t *mg;
  qk_err_t err = {0};
  seen_t seen = {.order = true};
  open_rig(&rig, gauge, 0.1, 1);
  int64_t host = qk_mem_bytes(), device = rig.dev.ops->allocated(rig.dev.ctx);
  cr_assert(qk_mg_create(rig.op, rig.work, params, watch, &seen, &mg, &err) == QK_OK, "%s: %s",
            gauge, err.text);
  cr_expect(mg->attempts == 1 && !mg->restored && mg->nlevel == params->nlevel);
  cr_expect(seen.vectors >= mg->nlevel - 1 && seen.coarse >= mg->nlevel - 1 && seen.order);
  cr_expect(seen.refinements >= 1);
  cr_expect((mg->deflation != NULL) == (mg->params.deflate > 0));
  expect_health(mg, gauge);
  int64_t held = rig.dev.ops->allocated(rig.dev.ctx) - device;
  cr_expect(held >= qk_mg_bytes(mg) && held < qk_mg_bytes(mg) * 1.02 + (1 << 16),
            "%s: %lld bytes held, %lld told", gauge, (long long)held, (long long)qk_mg_bytes(mg));
  cr_assert(qk_mg_refine(mg, NULL, NULL, &err) == QK_OK, "%s", err.text);
  cr_assert(qk_mg_check(mg, NULL, NULL, &err) == QK_OK, "%s", err.text);
  expect_health(mg, gauge);
  cr_expect(rig.dev.ops->allocated(rig.dev.ctx) - device == held);
  qk_mg_destroy(mg);
  qk_work_trim(rig.work);
  cr_expect(qk_mem_bytes() == host && rig.dev.ops->allocated(rig.dev.ctx) == device);
  rig_close(&rig);
}

Test(multigrid, three_levels) {
  life("builtin:weak:8x8x8x8:3", &three);
}
Test(multigrid, awkward_extents) {
  life("builtin:weak:6x4x8x12:3", &awkward);
}
Test(multigrid, everything_in_half) {
  life("builtin:weak:4x4x4x8:3", &narrow);
}

/* Condensed from more test vectors: all invariants, and better convergence. */
Test(multigrid, vectors_are_condensed_from_more) {
  double convergence[2];
  for (int k = 0; k < 2; k++) {
    qk_rig_t rig;
    qk_mg_t *mg;
    qk_err_t err = {0};
    qk_mg_params_t p = awkward;
    p.level[0].nvec = 6;
    p.level[0].ntest = k ? 24 : 6;
    p.level[0].setup_passes = 1;
    rig_open(&rig, NULL, "builtin:weak:6x4x8x12:3", NULL);
    rig_operator(&rig, -0.2, 1.2, -1);
    rig_must(qk_mg_create(rig.op, rig.work, &p, NULL, NULL, &mg, &err), "multigrid", &err);
    cr_expect_eq(mg->level[0].null->v.nrhs, k ? 24 : 6);
    cr_expect_eq(mg->level[0].down->t.nvec, 6);
    convergence[k] = mg->convergence;
    qk_mg_destroy(mg);
    qk_work_trim(rig.work);
    rig_close(&rig);
  }
  cr_expect(convergence[1] < convergence[0], "%g, without %g", convergence[1], convergence[0]);
}
Test(multigrid, vectors_condensed_in_half) {
  qk_mg_params_t p = narrow;
  p.level[0].ntest = p.level[0].nvec + 8;
  life("builtin:weak:4x4x4x8:3", &p);
}

static qk_field_t *vectors_of(void *arg, int level, int first, int n, const qk_device_t *dev) {
  const qk_mg_t *mg = arg;
  qk_field_t *v;
  if (qk_field_create(dev, QK_SINGLE, n, QK_FULL, &v)) return NULL;
  qk_prolongator_vectors(mg->level[level].down, first, v);
  cr_assert(qk_dev_status(dev) == QK_OK);
  return v;
}

/* Vectors in turns of eight: the same quality, of level 0 with its refinement. */
static void life_in_turns(const char *gauge, const qk_mg_params_t *params) {
  qk_mg_params_t p = *params;
  p.level[0].nvec = 20;
  p.together = 8;
  life(gauge, &p);
}

Test(multigrid, vectors_in_turns) {
  life_in_turns("builtin:weak:8x8x8x8:3", &three);
}
Test(multigrid, vectors_in_turns_in_half) {
  life_in_turns("builtin:weak:4x4x4x8:3", &narrow);
}

/* In turns as in one, when they are given: what is made of them has nothing random. */
Test(multigrid, turns_make_the_same_of_given_vectors) {
  qk_rig_t rig;
  qk_mg_t *mg, *once, *turns;
  qk_err_t err = {0};
  qk_mg_params_t p = awkward;
  p.level[0].nvec = 20;
  open_rig(&rig, "builtin:weak:6x4x8x12:3", 0.1, 1);
  rig_must(qk_mg_create(rig.op, rig.work, &p, NULL, NULL, &mg, &err), "multigrid", &err);
  rig_must(qk_mg_create_from(rig.op, rig.work, &p, vectors_of, mg, &once, &err), "once", &err);
  p.together = 8;
  rig_must(qk_mg_create_from(rig.op, rig.work, &p, vectors_of, mg, &turns, &err), "turns", &err);
  rig_must(qk_mg_check(once, NULL, NULL, &err), "check", &err);
  rig_must(qk_mg_check(turns, NULL, NULL, &err), "check", &err);
  cr_expect_float_eq(turns->level[0].health.null_residual, once->level[0].health.null_residual,
                     1e-5);
  cr_expect_float_eq(turns->level[0].health.representation, once->level[0].health.representation,
                     1e-4);
  cr_expect_float_eq(turns->convergence, once->convergence, 1e-3);
  qk_mg_destroy(turns);
  qk_mg_destroy(once);
  qk_mg_destroy(mg);
  rig_close(&rig);
}

static qk_field_t *no_vectors(void *arg, int level, int first, int n, const qk_device_t *dev) {
  return level == 1 ? NULL : vectors_of(arg, level, first, n, dev);
}

Test(multigrid, is_made_again_from_its_vectors) {
  qk_rig_t rig;
  qk_mg_t *mg, *again = NULL;
  qk_err_t err = {0};
  rig_open(&rig, NULL, "builtin:weak:8x8x8x8:3", NULL);
  rig_operator(&rig, 0.1, 1, -1);
  cr_assert(qk_mg_create(rig.op, rig.work, &three, NULL, NULL, &mg, &err) == QK_OK);
  int64_t device = rig.dev.ops->allocated(rig.dev.ctx);
  cr_expect(qk_mg_create_from(rig.op, rig.work, &three, no_vectors, mg, &again, &err) ==
            QK_IO_ERROR);
  cr_expect(again == NULL && rig.dev.ops->allocated(rig.dev.ctx) == device);
  cr_assert(qk_mg_create_from(rig.op, rig.work, &three, vectors_of, mg, &again, &err) == QK_OK);
  cr_assert(qk_mg_check(again, NULL, NULL, &err) == QK_OK, "%s", err.text);
  cr_expect(again->restored);
  cr_expect(fabs(again->convergence - mg->convergence) < 1e-3, "%g, %g", again->convergence,
            mg->convergence);
  qk_mg_destroy(again);
  qk_mg_destroy(mg);
  rig_close(&rig);
}

/* Far beyond the critical mass nothing here converges: three attempts, and
 * the figure that was bad. */
Test(multigrid, a_setup_that_does_not_help_is_refused) {
  qk_rig_t rig;
  qk_mg_t *mg = NULL;
  qk_err_t err = {0};
  qk_mg_params_t p = narrow;
  p.level[0].setup_iterations = 4;
  open_rig(&rig, "random:4x4x4x4:3", -3, 0);
  int64_t host = qk_mem_bytes(), device = rig.dev.ops->allocated(rig.dev.ctx);
  cr_expect(qk_mg_create(rig.op, rig.work, &p, NULL, NULL, &mg, &err) == QK_BREAKDOWN, "%s",
            err.text);
  cr_expect(mg == NULL && err.text[0]);
  qk_work_trim(rig.work);
  cr_expect(qk_mem_bytes() == host && rig.dev.ops->allocated(rig.dev.ctx) == device);
  rig_close(&rig);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static qk_status_t short_life(qk_rig_t *rig, const void *params) {
  const qk_action_params_t wilson = params_wilson(0.1, 1, -1);
  qk_work_t *work;
  qk_operator_t *op = NULL;
  qk_mg_t *mg = NULL;
  qk_err_t err = {0};
  qk_status_t status = qk_work_create(&rig->dev, &work);
  if (status) return status;
  status = qk_operator_create(&rig->dev, work, rig->links, &wilson, &op, &err);
  if (!status) status = qk_mg_create(op, work, params, NULL, NULL, &mg, &err);
  if (!status) status = qk_mg_refine(mg, NULL, NULL, &err);
  qk_mg_destroy(mg);
  if (op) op->ops->destroy(op);
  qk_work_destroy(work);
  return status;
}

static void fail_everywhere(const char *point, qk_status_t expected) {
  qk_mg_params_t p = narrow;
  p.level[0].nvec = 4;
  p.level[0].setup_iterations = 4;
  rig_fail_everywhere("builtin:weak:4x4x4x4:1", point, expected, 12, short_life, &p);
}

Test(multigrid_faults, device_memory) {
  fail_everywhere("device-alloc", QK_DEVICE_MEMORY);
}
Test(multigrid_faults, host_memory) {
  fail_everywhere("alloc", QK_NO_MEMORY);
}
Test(multigrid_faults, device_calls) {
  fail_everywhere("device-call", QK_DEVICE_ERROR);
}
