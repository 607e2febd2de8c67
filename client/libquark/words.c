#include <string.h>

#include "client/quark.h"
#include "proto/control.h"
#include "proto/status.h"

#define X(NAME, number, retryable, text)                                                           \
  _Static_assert((int)QUARK_##NAME == (int)QK_##NAME, "quark.h and status.h agree");
QK_STATUS_TABLE(X)
#undef X
_Static_assert((int)QUARK_OPENQCD == (int)QUARK__BASIS__BASIS_OPENQCD, "bases agree");
_Static_assert((int)QUARK_TWICE == (int)QUARK__NORMALISATION__NORMALISATION_TWICE,
               "normalisations agree");
_Static_assert((int)QUARK_FILE == (int)QUARK__SOURCE_KIND__SOURCE_FILE, "sources agree");
_Static_assert((int)QUARK_HYP == (int)QUARK__LINK_SMEAR__LINK_SMEAR_HYP, "link smearings agree");
_Static_assert((int)QUARK_DELTA == (int)QUARK__CHANNEL_KIND__CHANNEL_DELTA, "channels agree");
_Static_assert((int)QUARK_CORNER == (int)QUARK__CHANNEL_KIND__CHANNEL_CORNER, "channels agree");
_Static_assert((int)QUARK_F64 == (int)QUARK__DTYPE__DTYPE_F64, "dtypes agree");
_Static_assert((int)QUARK_FAILED == (int)QUARK__SERVER_STATE__STATE_FAILED, "states agree");

static const char *const bases[] = {"degrand-rossi", "ukqcd", "dirac-pauli", "openqcd"};
static const char *const states[] = {"starting",   "loading",  "ready",
                                     "restarting", "draining", "failed"};

const char *quark_code_name(quark_code_t code) {
  return qk_status_name((qk_status_t)code);
}
const char *quark_code_text(quark_code_t code) {
  return qk_status_text((qk_status_t)code);
}
bool quark_code_retryable(quark_code_t code) {
  return qk_status_retryable((qk_status_t)code);
}
const char *quark_version(void) {
  return QUARK_VERSION;
}

const char *quark_basis_name(quark_basis_t basis) {
  return (unsigned)basis < sizeof bases / sizeof bases[0] ? bases[basis] : NULL;
}

bool quark_basis_parse(const char *name, quark_basis_t *basis) {
  for (unsigned i = 0; i < sizeof bases / sizeof bases[0]; i++) {
    if (strcmp(name, bases[i]) != 0) continue;
    *basis = (quark_basis_t)i;
    return true;
  }
  return false;
}

const char *quark_state_name(quark_state_t state) {
  return (unsigned)state < sizeof states / sizeof states[0] ? states[state] : "unknown";
}
