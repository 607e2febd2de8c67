/*
 * made_actions.c: rows in the place of proto/action/actions.c, with parameters of each type, for
 * what the actions that there are do not use.
 */
#include "proto/action/actions.h"

static const qk_param_t fifth[] = {
    {.key = "mass", .type = QK_PARAM_REAL, .least = -4, .above = true, .most = 1e6, .help = "m"},
    {.key = "Ls", .type = QK_PARAM_INTEGER, .least = 2, .most = 48, .help = "fifth extent"},
    {.key = "b", .type = QK_PARAM_REALS, .least = -10, .most = 10, .otherwise = "1", .help = "b"},
    {.key = "c", .type = QK_PARAM_REALS, .least = -10, .most = 10, .otherwise = "0", .help = "c"},
    {.key = "hop",
     .type = QK_PARAM_REALS,
     .least = 0,
     .above = true,
     .most = 10,
     .otherwise = "1,1,1,1",
     .help = "weights"},
    {.key = "links",
     .type = QK_PARAM_WORD,
     .least = 1,
     .most = 95,
     .otherwise = "thin",
     .help = "links"},
    {.key = 0},
};

static const qk_param_t words[] = {
    {.key = "w", .type = QK_PARAM_WORD, .least = 2, .most = 3, .help = "w"},
    {.key = 0},
};

const qk_action_row_t qk_action_rows[] = {
    {.name = "fifth", .help = "h", .reference = "r", .param = fifth},
    {.name = "words", .help = "h", .reference = "r", .param = words},
    {.name = 0},
};
