#include "daemon/engine/tune/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/tune/book.h"

typedef struct show {
  const qk_tool_t *tool;
  double solves;
  qk_tune_book_t book;
  const qk_tune_record_t **order; /* those of a case */
} show_t;

static void tell_damage(void *arg, const char *path, int line, const char *why) {
  const show_t *s = arg;
  fprintf(stderr, "%s: %s: line %d: %s; skipped\n", s->tool->program, path, line, why);
}

/* What works by cost, then what was stopped, then what failed. */
static double place_of(const show_t *s, const qk_tune_record_t *r) {
  if (r->outcome == QK_TUNE_FAILED) return INFINITY;
  const double cost = qk_tune_cost(r->seconds, r->setup_seconds, s->solves);
  return r->outcome == QK_TUNE_GOOD ? cost : 1e20 + cost;
}

static int sort_case(const show_t *s, int of) {
  int n = 0;
  for (int i = 0; i < s->book.nrecord; i++) {
    const qk_tune_record_t *r = &s->book.record[i];
    if (r->of != of) continue;
    int at = n++;
    for (; at > 0 && place_of(s, s->order[at - 1]) > place_of(s, r); at--)
      s->order[at] = s->order[at - 1];
    s->order[at] = r;
  }
  return n;
}

/* The settings of which others say how they differ: the defaults where those were measured. */
static const char *basis(const show_t *s, int n) {
  const char *any = "";
  for (int i = 0; i < n; i++)
    if (strcmp(s->order[i]->what, "defaults") == 0) any = s->order[i]->settings;
  return any;
}

static bool has_line(const char *text, const char *line, size_t n) {
  for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
    if ((at == text || at[-1] == '\n') && strncmp(at, line, n) == 0) return true;
  return false;
}

/* "mg-post=4,auto mg-pre=..." */
static void differences(const char *settings, const char *from, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (const char *line = settings; *line && used < size;) {
    const size_t n = strcspn(line, "\n") + 1;
    char copy[QK_TUNE_SETTINGS];
    snprintf(copy, sizeof copy, "%.*s", (int)n, line);
    if (!has_line(from, copy, n)) {
      const size_t key = strcspn(copy, " ");
      const int value = (int)(n > key + 4 ? n - key - 4 : 0);
      used += (size_t)snprintf(text + used, size - used, "%s%.*s=%.*s", used ? " " : "", (int)key,
                               copy, value, copy + key + 3);
    }
    line += line[n - 1] ? n : n - 1;
  }
}

static void print_row(const show_t *s, const qk_tune_record_t *r, const char *from) {
  char alone[16] = "-", text[QK_TUNE_SETTINGS];
  differences(r->settings, from, text, sizeof text);
  if (r->outcome == QK_TUNE_FAILED) {
    printf("%10s %s: %s\n", "failed", text[0] ? text : r->what, r->error);
    return;
  }
  if (r->alone >= 0) snprintf(alone, sizeof alone, "%.4f", r->alone);
  printf("%s%.4f %10.4f %10s %10.1f %9.2f %9.2f  %s\n",
         r->outcome == QK_TUNE_STOPPED ? "  > " : "    ",
         qk_tune_cost(r->seconds, r->setup_seconds, s->solves), r->seconds, alone, r->iterations,
         r->setup_seconds, 1e-9 * (double)r->bytes, text[0] ? text : "defaults");
}

static void print_case(const show_t *s, int of) {
  const qk_tune_case_t *c = &s->book.of[of];
  const int n = sort_case(s, of);
  printf("%s%dx%dx%dx%d, %s, boundary %g in t, to %g, %d right-hand sides\n", of > 0 ? "\n" : "",
         c->dims[0], c->dims[1], c->dims[2], c->dims[3], c->op, c->boundary_t, c->tol, c->slots);
  printf("links %016llx, %s (%s), ranks %dx%dx%dx%d, %d threads, version %s: %d trials\n",
         (unsigned long long)c->links, c->device, c->backend, c->grid[0], c->grid[1], c->grid[2],
         c->grid[3], c->threads, c->version, n);
  printf("%10s %10s %10s %10s %9s %9s  %s\n", "cost s", "s per RHS", "s alone", "iterations",
         "setup s", "device GB", "unlike the defaults");
  const char *from = basis(s, n);
  for (int i = 0; i < n; i++) print_row(s, s->order[i], from);
}

/* The lines as they stand in the file, with their cost. */
static json_t *case_array(const show_t *s, int of) {
  const int n = sort_case(s, of);
  json_t *all = json_array();
  for (int i = 0; i < n; i++) {
    char *line = qk_tune_record_line(&s->book.of[of], s->order[i]);
    json_t *o = line ? json_loads(line, 0, NULL) : NULL;
    free(line);
    if (o && s->order[i]->outcome == QK_TUNE_GOOD)
      json_object_set_new(o, "cost", json_real(place_of(s, s->order[i])));
    if (o) json_array_append_new(all, o);
  }
  return all;
}

static void print_all(const show_t *s, const qk_tune_file_t *file) {
  if (!s->tool->json) {
    for (int i = 0; i < s->book.ncase; i++) print_case(s, i);
    return;
  }
  json_t *cases = json_array();
  for (int i = 0; i < s->book.ncase; i++) json_array_append_new(cases, case_array(s, i));
  qk_tool_print(s->tool, json_pack("{s:i, s:i, s:o}", "lines", file->good, "damaged",
                                   file->bad + file->left, "cases", cases));
}

qk_status_t qk_tune_show(const qk_tool_t *tool, const qk_tune_options_t *options, qk_err_t *err) {
  show_t s = {.tool = tool, .solves = options->solves};
  qk_tune_file_t file = {.path = options->show};
  qk_status_t status = qk_tune_file_read(&file, &s.book, tell_damage, &s, err);
  if (status == QK_OK && file.left) tell_damage(&s, file.path, file.line + 1, "it has no end");
  if (status == QK_OK && file.good == 0)
    status = qk_fail(err, QK_BAD_FORMAT, "%s: no trial of quark-tune in it", file.path);
  if (status == QK_OK) {
    s.order = calloc((size_t)s.book.nrecord, sizeof *s.order);
    if (s.order)
      print_all(&s, &file);
    else
      status = qk_fail(err, QK_NO_MEMORY, "no memory");
  }
  free(s.order);
  qk_tune_book_fini(&s.book);
  return status;
}
