#include "proto/status.h"

const char *qk_status_name(qk_status_t status) {
  switch (status) {
#define X(name, number, retryable, text)                                                           \
  case QK_##name:                                                                                  \
    return #name;
    QK_STATUS_TABLE(X)
#undef X
  }
  return "UNKNOWN";
}

const char *qk_status_text(qk_status_t status) {
  switch (status) {
#define X(name, number, retryable, text)                                                           \
  case QK_##name:                                                                                  \
    return text;
    QK_STATUS_TABLE(X)
#undef X
  }
  return "unknown status";
}

bool qk_status_retryable(qk_status_t status) {
  switch (status) {
#define X(name, number, retryable, text)                                                           \
  case QK_##name:                                                                                  \
    return retryable;
    QK_STATUS_TABLE(X)
#undef X
  }
  return false;
}
