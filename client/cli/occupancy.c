#include <stdio.h>

#include "client/cli/ctl.h"

double ctl_occupancy(const quark_report_t *r) {
  return r->occupancy.solving / (r->occupancy.solving + r->occupancy.moving + r->occupancy.idle);
}

json_t *ctl_occupancy_json(const quark_report_t *r) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "saturated_seconds",
                   ctl_number(r->occupancy.saturated), "solving_slot_seconds",
                   ctl_number(r->occupancy.solving), "moving_slot_seconds",
                   ctl_number(r->occupancy.moving), "idle_slot_seconds",
                   ctl_number(r->occupancy.idle), "occupancy", ctl_number(ctl_occupancy(r)));
}

void ctl_occupancy_print(const quark_report_t *r) {
  const double all = r->occupancy.solving + r->occupancy.moving + r->occupancy.idle;
  if (!(all > 0)) return;
  printf("occupancy   %.1f %% of slots solving, %.1f %% moving data, %.1f %% empty, in %.1f s with "
         "right-hand "
         "sides waiting\n",
         100 * r->occupancy.solving / all, 100 * r->occupancy.moving / all,
         100 * r->occupancy.idle / all, r->occupancy.saturated);
}
