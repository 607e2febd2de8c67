/* The most that a setup of multigrid holds is what its plan says. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/engine/setup/plan.h"
#include "tests/support/rig.h"
#include "tests/support/values.h"

/* The table of a backend that notes the most that was held. */
static const qk_ops_t *real;
static int64_t most;

static qk_status_t noting_alloc(qk_ops_ctx_t *ctx, size_t bytes, void **memory) {
  const qk_status_t status = real->alloc(ctx, bytes, memory);
  const int64_t held = real->allocated(ctx);
  if (held > most) most = held;
  return status;
}

/* As a GPU does it: half wherever half is possible. */
static qk_mg_params_t params_of(bool half, int passes, int together) {
  qk_mg_params_t p = {.nlevel = 2, .together = together};
  p.level[0].nvec = 24;
  p.level[0].setup_iterations = 8;
  p.level[0].setup_passes = passes;
  p.level[0].smoother.kind = QK_SMOOTHER_CAGCR;
  p.level[0].post = 8;
  if (!half) return p;
  p.level[0].prolongator = p.level[0].setup_prec = p.level[0].smoother_prec = QK_HALF;
  p.level[1].store = QK_HALF;
  return p;
}

static void expect_as_planned(const char *operator, bool half, int passes, int together) {
  qk_rig_t rig;
  qk_mg_t *mg;
  qk_err_t err = {0};
  qk_mg_params_t p = params_of(half, passes, together);
  qk_action_params_t action = params_wilson(0.1, 1, -1);
  action.values = values_of(operator);
  action.want[QK_HALF] = half;
  rig_open(&rig, NULL, "builtin:weak:8x8x4x8:1", NULL);
  real = rig.dev.ops;
  qk_ops_t noting = *real;
  noting.alloc = noting_alloc;
  rig.dev.ops = &noting;
  rig_must(qk_mg_params_complete(rig.dev.geom, noting.tuning, &p, &err), "parameters", &err);
  action.want[p.level[0].smoother_prec] = action.want[p.level[0].setup_prec] = true;
  const qk_plan_input_t in = {.ops = &noting,
                              .geom = rig.dev.geom,
                              .action = qk_action_of(&action.values),
                              .params = &action,
                              .method = QK_SOLVER_GCR,
                              .inner = QK_SINGLE,
                              .nslot = 1,
                              .gcr_keep = QK_GCR_KEEP_PRECONDITIONED,
                              .mg = &p};
  qk_plan_t plan;
  qk_work_t *work;
  qk_operator_t *op;
  qk_plan_make(&in, &plan);
  cr_assert(plan.setup > plan.serving, "the setup is what is looked at");
  rig_must(qk_work_create(&rig.dev, &work), "work", NULL);
  rig_must(qk_operator_create(&rig.dev, work, rig.links, &action, &op, &err), "operator", &err);
  most = 0;
  rig_must(qk_mg_create(op, work, &p, NULL, NULL, &mg, &err), "multigrid", &err);
  const double ratio = (double)plan.setup / (double)most;
  cr_expect(ratio > 0.99 && ratio < 1.1,
            "%s, half %d, %d passes, %d at a time: %lld planned, %lld held", operator, half, passes,
            together, (long long)plan.setup, (long long)most);
  qk_mg_destroy(mg);
  op->ops->destroy(op);
  qk_work_destroy(work);
  rig.dev.ops = real;
  rig_close(&rig);
}

Test(plan, most_memory_of_a_setup_is_as_planned) {
  for (int half = 0; half < 2; half++)
    for (int passes = -1; passes < 2; passes += 2)
      for (int together = -1; together < 9; together += 9)
        expect_as_planned("wilson-clover;mass=0.1;csw=1", half, passes, together);
  expect_as_planned("twisted-clover;mass=0.1;mu=0.2;csw=1", false, 1, 8);
  expect_as_planned("twisted-clover;mass=0.1;mu=0.2", true, -1, -1);
}

/* BiCGStab with sixteen slots. */
static qk_plan_input_t plain(const qk_rig_t *rig, const qk_action_params_t *action) {
  return (qk_plan_input_t){.ops = rig->dev.ops,
                           .geom = rig->dev.geom,
                           .action = qk_action_of(&action->values),
                           .params = action,
                           .method = QK_SOLVER_BICGSTAB,
                           .inner = QK_SINGLE,
                           .nslot = 16};
}

/* There is room for parts of the operator, but no setup fails for want of it. */
Test(plan, keeps_room_for_parts_of_the_operator_where_there_is_some) {
  qk_rig_t rig;
  qk_plan_t plan, without;
  qk_err_t err = {0};
  qk_action_params_t action = params_wilson(0.1, 0, -1);
  rig_open(&rig, NULL, "builtin:unit:8x8x8x8", NULL);
  qk_plan_input_t in = plain(&rig, &action);
  qk_plan_make(&in, &plan);
  cr_expect_eq(plan.parts, 3 * (int64_t)qk_field_bytes(rig.dev.geom, QK_DOUBLE, 1, QK_FULL));
  cr_expect_eq(qk_plan_needed(&plan), plan.serving + plan.parts, "serving is the most here");
  cr_expect_eq(qk_plan_fit(&in, plan.serving + plan.parts, &without, &err), QK_OK);
  cr_expect_eq(without.parts, plan.parts);
  cr_expect_eq(qk_plan_fit(&in, plan.serving + plan.parts - 1, &without, &err), QK_OK);
  cr_expect(without.parts == 0 && without.serving == plan.serving, "all else is as it was");
  in.nslot = 0;
  cr_expect_eq(qk_plan_fit(&in, plan.serving + plan.parts, &without, &err), QK_OK);
  cr_expect(without.parts > 0 && without.nslot > 0);
  rig_close(&rig);
}

Test(plan, makes_a_solver_compact_where_that_takes_less) {
  qk_rig_t rig;
  qk_plan_t plan, compact;
  qk_err_t err = {0};
  qk_action_params_t action = params_wilson(0.1, 0, -1);
  rig_open(&rig, NULL, "builtin:unit:8x8x8x8", NULL);
  qk_plan_input_t in = plain(&rig, &action);
  in.no_parts = true;
  const int64_t half = (int64_t)qk_field_bytes(rig.dev.geom, QK_DOUBLE, 1, QK_EVEN);
  qk_plan_make(&in, &plan);
  cr_expect_eq(qk_plan_fit(&in, qk_plan_needed(&plan) - 1, &compact, &err), QK_OK);
  cr_expect(compact.compact && compact.nslot == 16);
  const double less = (double)(plan.serving - compact.serving) / (double)half;
  cr_expect(less == 2 * QK_RHS_TOGETHER + 4 - 16 / 2 + 2 * (QK_RHS_TOGETHER - 1),
            "%g halves: updates of some take most, with a check, or an application of all; and "
            "solutions of those that end together",
            less);
  in.nslot = 1; /* nothing is beside each other */
  qk_plan_make(&in, &plan);
  cr_expect_eq(qk_plan_fit(&in, qk_plan_needed(&plan) - 1, &compact, &err), QK_DEVICE_MEMORY);
  rig_close(&rig);
}

/* The most that is held while an operator is made, of links as they are (to the byte) and smeared
 * ones. */
Test(plan, most_memory_of_an_operator_is_as_planned) {
  static const char *const text[] = {"wilson;mass=0.1",
                                     "wilson;mass=0.1;open=1",
                                     "wilson-clover;mass=0.1;csw=1",
                                     "exp-clover;mass=0.1;csw=0",
                                     "exp-clover;mass=0.1;csw=1",
                                     "exp-clover;mass=0.1;csw=1;open=0.9",
                                     "wilson;mass=0.1;links=stout:0.1,2",
                                     "wilson-clover;mass=0.1;csw=1;links=hyp:0.75,0.6,0.3,1",
                                     "wilson-clover;mass=0.1;csw=1;links=slinc:0.1,1",
                                     "twisted-clover;mass=0.1;mu=0.2;csw=1;links=hex:0.9,0.7,0.3,1",
                                     "doublet;mass=0.1;mu=0.2;epsilon=0.1",
                                     "doublet;mass=0.1;mu=0.2;epsilon=0.1;csw=1",
                                     "overlap;mass=0.1;M=1.3;modes=20;sign-tol=0.001"};
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:8x8x8x8:1", NULL);
  real = rig.dev.ops;
  qk_ops_t noting = *real;
  noting.alloc = noting_alloc;
  rig.dev.ops = &noting;
  for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
    qk_action_params_t p = params_wilson(0.1, 1, -1);
    qk_err_t err = {0};
    p.values = values_of(text[i]);
    const qk_action_t *action = qk_action_of(&p.values);
    const int64_t before = real->allocated(rig.dev.ctx);
    const int64_t kept = qk_action_bytes(action, &noting, &rig.geom.lat, &p, false);
    const int64_t beside = qk_action_bytes(action, &noting, &rig.geom.lat, &p, true);
    most = 0;
    rig_must(qk_operator_create(&rig.dev, rig.work, rig.links, &p, &rig.op, &err), text[i], &err);
    const double ratio = (double)(kept + beside) / (double)(most - before);
    cr_expect(ratio > 0.999 && ratio < 1.1, "%s: %lld planned, %lld held", text[i],
              (long long)(kept + beside), (long long)(most - before));
    cr_expect(strstr(text[i], "links") || strstr(text[i], "overlap") ||
                  kept + beside == most - before,
              "%s", text[i]);
    rig.op->ops->destroy(rig.op);
    rig.op = NULL;
  }
  rig.dev.ops = real;
  rig_close(&rig);
}
