/*
 * view.h: what HTTP shows of the service, and what is remembered for that.
 */
#ifndef QK_FRONT_VIEW_H
#define QK_FRONT_VIEW_H

#include "daemon/front/measure/history.h"
#include "daemon/front/service/service.h"

typedef struct qk_view {
  qk_service_t *service;
  qk_history_t history;
  char *watched; /* the last /status.json; NULL: none was asked for */
  double watched_at;
} qk_view_t;

#endif
