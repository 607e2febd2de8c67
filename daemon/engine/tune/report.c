#include "daemon/engine/tune/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/file.h"
#include "daemon/base/version.h"
#include "proto/action/operator_text.h"

enum { MOST_SHOWN = 12 };

static double cost_of(const qk_study_t *s, const qk_tune_record_t *r) {
  if (r->outcome != QK_TUNE_GOOD) return INFINITY;
  return qk_tune_cost(r->seconds, r->setup_seconds, s->options->solves);
}

/* Of settings that the table has from the search. */
static bool is_again(const qk_tune_record_t *r) {
  return strncmp(r->what, "turn ", 5) == 0 || strcmp(r->what, "the best again") == 0;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* The best that is not the defaults; NULL: none works. */
static const qk_tune_record_t *best_other(const qk_study_t *s) {
  const qk_tune_record_t *best = NULL;
  for (int i = 0; i < s->seen.nrecord; i++) {
    const qk_tune_record_t *r = &s->seen.record[i];
    if (strcmp(r->settings, s->defaults.settings) == 0 || !isfinite(cost_of(s, r))) continue;
    if (!best || cost_of(s, r) < cost_of(s, best)) best = r;
  }
  return best;
}

static const char *decision(const qk_tune_verdict_t *v) {
  static const char *const words[] = {[QK_TUNE_BY_SOLVES] = "the solves",
                                      [QK_TUNE_BY_SETUP] = "the setup",
                                      [QK_TUNE_BY_BOTH] = "solves and setup alike"};
  return words[v->by];
}

static void more_or_less(double gain, char text[48]) {
  snprintf(text, 48, "%.1f %% %s time", 100 * fabs(gain), gain >= 0 ? "less" : "more");
}

static void nothing_better(const qk_study_t *s, char *text, size_t size) {
  char much[48];
  const double noise = 100 * fmax(s->noise, QK_TUNE_LEAST_GAIN);
  const qk_tune_record_t *other = best_other(s);
  if (s->compared) {
    more_or_less(s->verdict.gain, much);
    snprintf(text, size,
             "nothing better than the defaults was found: in turns with them the best takes %s, "
             "the noise is %.1f %%",
             much, 100 * s->verdict.noise);
  } else if (s->spoiled) {
    snprintf(text, size,
             "nothing better than the defaults was found: the comparison with the best failed");
  } else if (other) {
    more_or_less(1 - cost_of(s, other) / cost_of(s, &s->defaults), much);
    snprintf(text, size,
             "nothing better than the defaults was found: the best of all others takes %s, the "
             "noise is %.1f %%",
             much, noise);
  } else {
    snprintf(text, size, "nothing better than the defaults was found: nothing else was measured");
  }
}

static void say(const qk_study_t *s, char *text, size_t size) {
  const qk_tune_verdict_t *v = &s->verdict;
  if (s->end == QK_STUDY_BETTER)
    snprintf(text, size,
             "%.1f %% less time than the defaults: %.4g s in place of %.4g s per right-hand side "
             "with its part of the setup; the noise is %.1f %%; %s decided",
             100 * v->gain, v->settings.cost, v->defaults.cost, 100 * v->noise, decision(v));
  else if (s->end == QK_STUDY_ONLY)
    snprintf(text, size, "the defaults do not work (%.200s), what was found does",
             s->defaults.error);
  else
    nothing_better(s, text, size);
}

static void print_side(const char *name, const qk_study_t *s, const qk_tune_side_t *side, FILE *out,
                       const char *before) {
  fprintf(out, "%s%-9s %.4g s per right-hand side of %d", before, name, side->seconds,
          s->options->slots);
  if (side->alone >= 0) fprintf(out, ", %.4g s of one alone", side->alone);
  fprintf(out, ", setup %.3g s (%.4g s of each of %g solves)\n", side->setup,
          side->setup / s->options->solves, s->options->solves);
}

static qk_tune_side_t side_of(const qk_study_t *s, const qk_tune_record_t *r) {
  return (qk_tune_side_t){cost_of(s, r), r->seconds, r->setup_seconds, r->alone};
}

/* Both sides, and what the clock did. */
static void print_sides(const qk_study_t *s, FILE *out, const char *before) {
  const qk_tune_side_t first = side_of(s, &s->defaults), best = side_of(s, &s->best);
  if (s->end != QK_STUDY_ONLY)
    print_side("defaults:", s, s->compared ? &s->verdict.defaults : &first, out, before);
  if (s->end == QK_STUDY_ONLY || s->compared)
    print_side("best:", s, s->compared ? &s->verdict.settings : &best, out, before);
  if (isfinite(s->drift))
    fprintf(out, "%sdrift:    the defaults took %.1f %% %s at the end than at first\n", before,
            100 * fabs(s->drift), s->drift >= 0 ? "more" : "less");
}

/* ---- table ----------------------------------------------------------------------------------- */

/* Indices of trials that work, the cheapest first; settings as the search last measured them. */
static int sort_trials(const qk_study_t *s, int *order) {
  int n = 0;
  for (int i = 0; i < s->seen.nrecord; i++) {
    const qk_tune_record_t *r = &s->seen.record[i];
    bool last = isfinite(cost_of(s, r)) && !is_again(r);
    for (int j = i + 1; j < s->seen.nrecord && last; j++)
      last = is_again(&s->seen.record[j]) || strcmp(s->seen.record[j].settings, r->settings) != 0;
    if (!last) continue;
    int at = n++;
    for (; at > 0 && cost_of(s, &s->seen.record[order[at - 1]]) > cost_of(s, r); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
  return n;
}

static void print_table(const qk_study_t *s) {
  int *order = calloc((size_t)s->seen.nrecord + 1, sizeof *order);
  const int all = order ? sort_trials(s, order) : 0, n = all < MOST_SHOWN ? all : MOST_SHOWN;
  printf("%-40s %10s %10s %10s %9s %9s\n", "changed last", "s per RHS", "s alone", "iterations",
         "setup s", "device GB");
  for (int i = 0; i < n; i++) {
    const qk_tune_record_t *r = &s->seen.record[order[i]];
    char alone[16] = "-";
    if (r->alone >= 0) snprintf(alone, sizeof alone, "%.4f", r->alone);
    printf("%-40s %10.4f %10s %10.1f %9.2f %9.2f\n", r->what, r->seconds, alone, r->iterations,
           r->setup_seconds, 1e-9 * (double)r->bytes);
  }
  free(order);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *trial_object(const qk_study_t *s, const qk_tune_record_t *r) {
  const bool works = r->outcome == QK_TUNE_GOOD;
  json_t *o = json_pack("{s:s, s:b, s:b, s:s}", "changed", r->what, "works", works, "stopped",
                        r->outcome == QK_TUNE_STOPPED, "error", r->error);
  if (works)
    json_object_update_new(o,
                           json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "cost", cost_of(s, r),
                                     "seconds", r->seconds, "seconds_alone", r->alone, "iterations",
                                     r->iterations, "residual", r->residual, "setup_seconds",
                                     r->setup_seconds, "device_bytes", (json_int_t)r->bytes));
  return o;
}

static json_t *side_object(const qk_tune_side_t *side) {
  return json_pack("{s:f, s:f, s:f, s:f}", "cost", side->cost, "seconds", side->seconds,
                   "setup_seconds", side->setup, "seconds_alone", side->alone);
}

static json_t *verdict_object(const qk_study_t *s) {
  char sentence[512];
  const bool better = s->end != QK_STUDY_DEFAULTS;
  say(s, sentence, sizeof sentence);
  json_t *o = json_pack("{s:b, s:s, s:o}", "better", better, "sentence", sentence, "settings",
                        qk_tune_settings_object(better ? s->best.settings : s->defaults.settings));
  if (isfinite(s->drift)) json_object_set_new(o, "drift", json_real(s->drift));
  if (!s->compared) return o;
  const qk_tune_verdict_t *v = &s->verdict;
  json_object_update_new(o, json_pack("{s:f, s:f, s:o, s:o}", "gain", v->gain, "noise", v->noise,
                                      "defaults", side_object(&v->defaults), "best",
                                      side_object(&v->settings)));
  return o;
}

static void print_json(const qk_study_t *s) {
  const qk_tune_options_t *o = s->options;
  json_t *trials = json_array();
  for (int i = 0; i < s->seen.nrecord; i++)
    json_array_append_new(trials, trial_object(s, &s->seen.record[i]));
  qk_tool_print(s->tool, json_pack("{s:s, s:s, s:f, s:i, s:f, s:f, s:i, s:i, s:o, s:o}", "gauge",
                                   o->gauge, "action", qk_values_action(&o->values)->name, "kappa",
                                   qk_values_kappa(&o->values), "slots", o->slots, "tol", o->tol,
                                   "solves", o->solves, "trials_made", s->ntrial, "trials_known",
                                   s->nknown, "verdict", verdict_object(s), "trials", trials));
}

/* ---- configuration --------------------------------------------------------------------------- */

/* As keys of quarkd. */
static void print_operator(const qk_values_t *values, FILE *out) {
  char text[QK_OPERATOR_TEXT];
  const char *action;
  qk_setting_t setting[QK_VALUES_PARAMS];
  qk_values_text(values, QK_TEXT_GIVEN, text);
  const int n = qk_operator_split(text, &action, setting);
  fprintf(out, "action = %s\n", action);
  for (int i = 0; i < n; i++) fprintf(out, "%s = %s\n", setting[i].key, setting[i].value);
}

static void print_comments(const qk_study_t *s, FILE *out) {
  char sentence[512];
  const int *l = s->of.dims, *g = s->of.grid;
  say(s, sentence, sizeof sentence);
  fprintf(out, "# quark-tune %s, %s, %dx%dx%dx%d on %s (%s), ranks %dx%dx%dx%d: %d trials\n",
          qk_version(), s->best.time, l[0], l[1], l[2], l[3], s->of.device, s->of.backend, g[0],
          g[1], g[2], g[3], s->ntrial + s->nknown);
  fprintf(out, "# links %016llx, to %g: %.1f iterations, residual %.2g\n",
          (unsigned long long)s->of.links, s->of.tol, s->best.iterations, s->best.residual);
  fprintf(out, "# %s\n", sentence);
  print_sides(s, out, "# ");
}

static qk_status_t write_config(const qk_study_t *s, const char *path, qk_err_t *err) {
  const qk_tune_options_t *o = s->options;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  print_comments(s, out);
  fprintf(out, "gauge = %s\n", o->gauge);
  print_operator(&o->values, out);
  fprintf(out, "boundary = 1,1,1,%g\n", o->boundary_t);
  fprintf(out, "solver = mg\nprecision = single\nslots = %d\n", o->slots);
  fputs(s->end == QK_STUDY_DEFAULTS ? s->defaults.settings : s->best.settings, out);
  const bool whole = !ferror(out);
  qk_status_t status = fclose(out) == 0 && whole
                           ? qk_file_replace(path, text, (int64_t)bytes, err)
                           : qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  free(text);
  return status;
}

qk_status_t qk_study_report(const qk_study_t *s, qk_err_t *err) {
  char sentence[512];
  const char *out = s->options->out;
  qk_status_t status = out ? write_config(s, out, err) : QK_OK;
  if (status != QK_OK) return status;
  if (s->tool->json) {
    print_json(s);
    return QK_OK;
  }
  say(s, sentence, sizeof sentence);
  print_table(s);
  print_sides(s, stdout, "");
  printf("%s\n", sentence);
  if (s->end != QK_STUDY_DEFAULTS) fputs(s->best.settings, stdout);
  if (out) printf("%s: written; start the daemon with quarkd --config=%s\n", out, out);
  return QK_OK;
}
