#include "daemon/front/engines/engine_info.h"

#include <stdio.h>
#include <string.h>

#include "proto/control.h"
#include "proto/limits.h"

void qk_engine_info_multigrid(qk_engine_info_t *info, const Quark__MultigridReport *mg) {
  if (info->multigrid) quark__multigrid_report__free_unpacked(info->multigrid, NULL);
  info->multigrid = mg ? (Quark__MultigridReport *)qk_control_copy(&mg->base) : NULL;
}

static void keep_memory(qk_engine_info_t *info, const Quark__MemoryReport *memory) {
  if (info->memory) quark__memory_report__free_unpacked(info->memory, NULL);
  info->memory = memory ? (Quark__MemoryReport *)qk_control_copy(&memory->base) : NULL;
}

static void keep_deflation(qk_engine_info_t *info, const Quark__DeflationReport *deflation) {
  if (info->deflation) quark__deflation_report__free_unpacked(info->deflation, NULL);
  info->deflation = deflation ? (Quark__DeflationReport *)qk_control_copy(&deflation->base) : NULL;
}

static void keep_sign(qk_engine_info_t *info, const Quark__SignReport *sign) {
  if (info->sign) quark__sign_report__free_unpacked(info->sign, NULL);
  info->sign = sign ? (Quark__SignReport *)qk_control_copy(&sign->base) : NULL;
}

void qk_engine_info_clear(qk_engine_info_t *info) {
  qk_engine_info_multigrid(info, NULL);
  keep_memory(info, NULL);
  keep_deflation(info, NULL);
  keep_sign(info, NULL);
  *info = (qk_engine_info_t){.pid = info->pid, .ranks = info->ranks};
}

static const char *check(const Quark__Engine__Ready *r, qk_shape_t *shape) {
  *shape = qk_shape_usual();
  if (r->n_dims != 4 || r->n_grid != 4) return "READY whose geometry does not have 4 numbers";
  memcpy(shape->dims, r->dims, sizeof shape->dims);
  if (r->has_site_reals) shape->site_reals = r->site_reals;
  if (r->has_columns) shape->columns = r->columns;
  const char *wrong = qk_shape_check(shape);
  if (wrong) return wrong;
  if (r->slots < 1 || r->slots > QK_SLOTS_MAX) return "READY with a number of slots out of range";
  if (r->deflation && r->deflation->vectors > QK_DEFLATE_MAX)
    return "READY with a number of vectors out of range";
  if (r->has_inflight && (r->inflight < r->slots || r->inflight > QK_INFLIGHT_MAX))
    return "READY with a number of in-flight entries out of range";
  return NULL;
}

const char *qk_engine_info_ready(qk_engine_info_t *info, const qk_settings_t *settings,
                                 const Quark__Engine__Ready *r) {
  qk_shape_t shape;
  const char *wrong = check(r, &shape);
  if (wrong) return wrong;
  info->shape = shape;
  memcpy(info->grid, r->grid, sizeof info->grid);
  snprintf(info->backend, sizeof info->backend, "%s", r->backend);
  snprintf(info->device, sizeof info->device, "%s", r->device);
  snprintf(info->format, sizeof info->format, "%s", r->format);
  snprintf(info->grid_why, sizeof info->grid_why, "%s", r->grid_why ? r->grid_why : "");
  snprintf(info->bus, sizeof info->bus, "%s", r->bus ? r->bus : "");
  info->refresh = r->refresh < UINT32_MAX ? r->refresh : 0;
  info->ranks = r->ranks;
  info->slots = r->slots;
  info->inflight = r->has_inflight ? r->inflight : r->slots;
  info->plaquette = r->plaquette;
  info->digest = r->digest;
  info->unitarity = r->unitarity;
  info->device_bytes = r->device_bytes;
  info->host_bytes = r->host_bytes;
  info->load_seconds = r->seconds;
  snprintf(info->solver, sizeof info->solver, "%s",
           r->solver ? r->solver : qk_settings_solver(settings));
  info->link_reals = r->has_link_reals ? r->link_reals : (uint32_t)qk_settings_link_reals(settings);
  qk_engine_info_multigrid(info, r->multigrid);
  keep_memory(info, r->memory);
  keep_deflation(info, r->deflation);
  keep_sign(info, r->sign);
  qk_start_clocks_read(&info->start, r);
  info->loaded = true;
  return NULL;
}

void qk_engine_info_progress(qk_engine_info_t *info, const Quark__Engine__LoadProgress *p) {
  snprintf(info->phase, sizeof info->phase, "%s", p->phase);
  info->done = p->done;
  info->total = p->total;
}

void qk_engine_info_heartbeat(qk_engine_info_t *info, const Quark__Engine__Heartbeat *h,
                              double now) {
  if (h->steps != info->steps) info->stepped_at = now;
  info->steps = h->steps;
  if (h->has_device_bytes) info->device_bytes = h->device_bytes;
  if (h->has_host_bytes) info->host_bytes = h->host_bytes;
}
