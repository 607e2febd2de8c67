#include "daemon/front/view/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/view/json.h"
#include "daemon/front/view/report.h"

static const double FRESH = 0.5; /* seconds */

void qk_watch_tick(qk_view_t *view, double now) {
  const qk_service_t *service = view->service;
  qk_sample_t sample = {.time = now,
                        .solved = service->count.converged,
                        .iterations = service->count.iterations,
                        .bytes_in = service->count.bytes_in,
                        .bytes_out = service->count.bytes_out,
                        .queued = (double)service->sched.length};
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    if (!service->setup[m] || service->setup[m]->failed != QK_OK) continue;
    sample.slots += qk_setup_slots(service->setup[m]);
    sample.busy += qk_setup_busy(service->setup[m]);
  }
  qk_history_see(&view->history, &sample);
}

/* Points for which there is a logarithm. */
static json_t *curve_json(const qk_curve_t *curve) {
  json_t *points = json_array();
  for (int i = 0; i < curve->n; i++) {
    const double residual = curve->point[i].residual;
    if (!(residual > 0) || isinf(residual)) continue;
    json_array_append_new(
        points, json_pack("[I,f]", (json_int_t)curve->point[i].iterations, log10(residual)));
  }
  return points;
}

static json_t *history_json(const qk_history_t *history, double now) {
  json_t *rows = json_array();
  for (int i = 0; i < history->n; i++) {
    const qk_sample_t *s = qk_history_at(history, i);
    json_array_append_new(rows, json_pack("[f,I,I,I,I,f,f,f]", s->time - now, (json_int_t)s->solved,
                                          (json_int_t)s->iterations, (json_int_t)s->bytes_in,
                                          (json_int_t)s->bytes_out, s->busy, s->slots, s->queued));
  }
  return json_pack("{s:[s,s,s,s,s,s,s,s], s:o}", "columns", "time", "solved", "iterations",
                   "bytes_in", "bytes_out", "busy", "slots", "queued", "rows", rows);
}

static char *make_json(const qk_view_t *view) {
  const qk_service_t *service = view->service;
  qk_report_t report;
  const qk_viewer_t all = {.operates = true};
  qk_report_make(service->primary, &all, true, &report);
  json_t *root = qk_json_message(&report.status.base);
  json_t *curves = json_array();
  for (size_t i = 0; i < report.activity.n_slot; i++)
    json_array_append_new(curves, report.curve[i] ? curve_json(report.curve[i]) : json_array());
  json_object_set_new(root, "curves", curves);
  json_object_set_new(root, "history", history_json(&view->history, qk_service_now(service)));
  char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
  json_decref(root);
  return text;
}

char *qk_watch_json(qk_view_t *view) {
  const double now = qk_service_now(view->service);
  if (!view->watched || now - view->watched_at >= FRESH) {
    free(view->watched);
    view->watched = make_json(view);
    view->watched_at = now;
  }
  return view->watched ? strdup(view->watched) : NULL;
}

void qk_watch_fini(qk_view_t *view) {
  free(view->watched);
  view->watched = NULL;
}
