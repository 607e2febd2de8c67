#include "tests/conformance/chain.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/multigrid/nullspace.h"
#include "tests/support/values.h"

static qk_values_t twisted(const chain_plan_t *plan) {
  char csw[QK_REAL_TEXT], mu[QK_REAL_TEXT], why[QK_WHY];
  const qk_setting_t setting[] = {{"mass", "0.1"}, {"csw", csw}, {"mu", mu}};
  qk_values_t values;
  qk_real_text(plan->csw, csw);
  qk_real_text(plan->mu, mu);
  cr_assert(qk_values_read(&values, "twisted-clover", setting, 3, why), "%s", why);
  return values;
}

static qk_operator_t *wilson(const qk_rig_t *rig, const chain_plan_t *plan) {
  qk_err_t err = {0};
  qk_operator_t *op;
  qk_action_params_t p = params_wilson(0.1, plan->csw, 1);
  if (plan->mu != 0) p.values = twisted(plan);
  p.link_reals[QK_SINGLE] = 18;
  p.want[QK_HALF] = false;
  for (int mu = 0; mu < 4; mu++) {
    p.phase[mu][0] = cos((mu + 1) * plan->twist);
    p.phase[mu][1] = sin((mu + 1) * plan->twist);
  }
  rig_must(qk_operator_create(&rig->dev, rig->work, rig->links, &p, &op, &err), "operator", &err);
  return op;
}

void chain_open(chain_t *c, const chain_plan_t *plan) {
  qk_err_t err = {0};
  memset(c, 0, sizeof *c);
  rig_open(&c->rig, NULL, plan->gauge, NULL);
  c->rig.op = wilson(&c->rig, plan);
  c->nlevel = plan->nlevel;
  c->geom[0] = c->rig.geom;
  c->dev[0] = c->rig.dev;
  c->work[0] = c->rig.work;
  c->op[0] = c->rig.op;
  for (int l = 0; l + 1 < plan->nlevel; l++) {
    qk_coarse_params_t params = {
        .store = plan->store, .exact = l + 2 < plan->nlevel, .twist = c->op[0]->twist};
    qk_field_t *v;
    if (l + 2 == plan->nlevel && plan->mu != 0) params.twist *= plan->factor;
    rig_must(qk_geom_coarsen(&c->geom[l], plan->block[l], plan->nvec[l], &c->geom[l + 1], &err),
             "geometry", &err);
    c->dev[l + 1] = c->dev[0];
    c->dev[l + 1].geom = &c->geom[l + 1];
    rig_must(qk_work_create(&c->dev[l + 1], &c->work[l + 1]), "work", NULL);
    rig_must(qk_field_create(&c->dev[l], QK_SINGLE, plan->nvec[l], QK_FULL, &v), "vectors", NULL);
    rig_must(qk_nullspace_random(&c->dev[l], 7, v), "noise", NULL);
    rig_must(qk_prolongator_create(&c->dev[l], &c->dev[l + 1], plan->block[l], plan->store, v,
                                   &c->down[l], &err),
             "prolongator", &err);
    qk_field_destroy(v);
    rig_must(qk_coarse_create(c->op[l], c->down[l], &c->dev[l + 1], c->work[l + 1], &params,
                              &c->op[l + 1], &err),
             "coarse operator", &err);
  }
}

void chain_close(chain_t *c) {
  for (int l = c->nlevel - 1; l > 0; l--) {
    c->op[l]->ops->destroy(c->op[l]);
    qk_prolongator_destroy(c->down[l - 1]);
    qk_work_destroy(c->work[l]);
  }
  rig_close(&c->rig);
}
