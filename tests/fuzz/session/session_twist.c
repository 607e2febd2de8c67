#include "tests/fuzz/session/session_twist.h"

#include <math.h>
#include <stdbool.h>

#include "proto/limits.h"

static void set_deadline(Quark__Submit *s, uint64_t ms) {
  s->has_deadline_ms = true;
  s->deadline_ms = ms;
}

static void set_max_iter(Quark__Submit *s, uint64_t n) {
  s->has_max_iter = true;
  s->max_iter = n;
}

static void set_priority(Quark__Submit *s, uint32_t priority) {
  s->has_priority = true;
  s->priority = priority;
}

static void set_keep(Quark__Submit *s, uint64_t ms) {
  s->has_keep_ms = true;
  s->keep_ms = ms;
}

static void set_detach(Quark__Submit *s, uint64_t ms) {
  s->has_detach_ms = true;
  s->detach_ms = ms;
}

/* Limits of numbers and times; false: how is none of these. */
static bool twist_limit(Quark__Submit *s, uint8_t how) {
  switch (how) {
  case 5:
    return set_max_iter(s, 0), true;
  case 6:
    return set_deadline(s, UINT64_MAX), true;
  case 7:
    return set_deadline(s, 3000), true;
  case 8:
    return set_priority(s, 10), true;
  case 9:
    return set_priority(s, 9), true;
  case 10:
    return set_keep(s, 90000), true;
  case 11:
    return set_keep(s, 2000), true;
  case 12:
    return set_detach(s, 90000), true;
  case 13:
  case 14:
  case 15:
    return set_detach(s, 50000), true;
  case 17:
    return set_max_iter(s, 1000000001), true;
  case 21:
    return set_deadline(s, 1), true;
  default:
    return false;
  }
}

/* Work, adjoints, parities; false: how says nothing of that. */
static bool twist_work(Quark__Submit *s, uint8_t how) {
  switch (how % 64) {
  case 26: /* a part of the operator; 8 is none */
    s->has_work = true;
    s->work = (Quark__Work)(how < 192 ? how / 32 : 8);
    return true;
  case 27:
    s->has_dagger = s->dagger = true;
    s->has_work = how >= 128;
    s->work = how >= 128 ? QUARK__WORK__WORK_M : QUARK__WORK__WORK_SOLVE;
    return true;
  case 29: /* one parity, and systems on it; 3 is none */
  case 30:
    s->has_parity = s->has_schur = s->has_work = true;
    s->parity = (Quark__Parity)(how / 64 % 4);
    s->schur = how % 64 == 29 ? QUARK__SCHUR__SCHUR_NONE : QUARK__SCHUR__SCHUR_SYMMETRIC;
    s->work = how % 64 == 29 ? QUARK__WORK__WORK_HOP : QUARK__WORK__WORK_SOLVE;
    return true;
  default:
    return false;
  }
}

/* One mass, two, one too many, or one twice. */
static void set_masses(Quark__Submit *s, uint8_t how) {
  static double mass[QK_MASSES_MAX + 1], twice[] = {0.1, 0.1};
  static const size_t count[] = {1, 2, QK_MASSES_MAX + 1, 2};
  for (int i = 0; i <= QK_MASSES_MAX; i++) mass[i] = 0.1 + 0.01 * i;
  s->n_masses = count[how / 64];
  s->masses = how / 64 == 3 ? twice : mass;
  s->n_column /= s->n_masses;
}

void client_twist(Quark__Submit *s, uint8_t how) {
  if (twist_limit(s, how % 64) || twist_work(s, how)) return;
  switch (how % 64) {
  case 1:
    s->nrhs = 0;
    break;
  case 2:
    s->nrhs = 1025;
    break;
  case 3:
    s->tol = (double)NAN;
    break;
  case 4:
    s->tol = 1;
    break;
  case 31: /* what a client may give beside tol, or in its place */
  case 32:
    s->tol = how < 128 ? 0 : 1e-6;
    s->has_tol_hq = s->has_tol_abs = true;
    s->tol_hq = how % 64 == 31 ? 1e-3 : how < 192 ? 0 : -1;
    s->tol_abs = how % 64 == 32 ? 1e-3 : how < 192 ? 0 : (double)INFINITY;
    s->has_single_rhs = true;
    s->single_rhs = how < 64;
    break;
  case 16:
    s->setup = "no such";
    break;
  case 18:
    s->has_basis = true;
    s->basis = QUARK__BASIS__BASIS_UKQCD;
    break;
  case 19:
    s->has_normalisation = true;
    s->normalisation = QUARK__NORMALISATION__NORMALISATION_KAPPA;
    break;
  case 22:
  case 23:
    s->has_flavour = true;
    s->flavour = how < 128 ? -1 : (int32_t)how - 128;
    break;
  case 24:
  case 25: /* of one column; 2 is nowhere legal */
    if (s->n_column == 0) break;
    s->column[0]->has_flavour = true;
    s->column[0]->flavour = how < 128 ? -1 : how < 192 ? 1 : 2;
    break;
  case 28: /* no action here has five dimensions */
    s->has_five_d = s->five_d = true;
    break;
  case 33:
    set_masses(s, how);
    break;
  case 20:
    s->n_column = s->n_column > 0 ? s->n_column - 1 : 0;
    break;
  default:
    break;
  }
}
