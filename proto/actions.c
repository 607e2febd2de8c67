#include "proto/actions.h"

#define MASS                                                                                       \
  {                                                                                                \
    .key = "mass", .type = QK_PARAM_REAL, .least = -4, .above = true, .most = 1e6, .unit = "1/a",  \
    .help = "bare quark mass m"                                                                    \
  }

static const qk_param_t wilson[] = {MASS, {.key = 0}};

static const qk_param_t wilson_clover[] = {
    MASS,
    {.key = "csw",
     .type = QK_PARAM_REAL,
     .least = -1e3,
     .most = 1e3,
     .help = "clover coefficient c_sw"},
    {.key = 0},
};

const qk_action_row_t qk_action_rows[] = {
    [QK_ACTION_WILSON] = {.name = "wilson",
                          .help = "plain Wilson fermions: 4 + m - 1/2 hop",
                          .reference = "K. G. Wilson, New Phenomena in Subnuclear Physics (1977)",
                          .param = wilson,
                          .has_kappa = true},
    [QK_ACTION_WILSON_CLOVER] =
        {.name = "wilson-clover",
         .help = "Wilson fermions with the clover term: 4 + m + csw clover - 1/2 hop",
         .reference = "B. Sheikholeslami, R. Wohlert, Nucl. Phys. B 259 (1985) 572",
         .param = wilson_clover,
         .has_kappa = true},
    {.name = 0},
};
