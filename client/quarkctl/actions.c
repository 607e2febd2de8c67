/* actions: the fermion actions and their parameters. */
#include <stdio.h>
#include <string.h>

#include "client/cli/ctl.h"
#include "proto/action/actions.h"

typedef struct options {
  const char *name; /* NULL: all */
  bool json, man;
} options_t;

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"json", QK_OPTION_FLAG, AT(json), .help = "print one JSON object"},
    {"help-man", QK_OPTION_FLAG, AT(man), .flags = OPTION_HIDDEN, .help = "print the list as mdoc"},
    {"NAME", QK_OPTION_ARGUMENT, .offset = AT(name)},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1};

/* ---- cells ---------------------------------------------------------------------------------- */

static const char *type_of(const qk_param_t *p) {
  static const char *const types[] = {[QK_PARAM_REAL] = "real",
                                      [QK_PARAM_INTEGER] = "integer",
                                      [QK_PARAM_REALS] = "reals",
                                      [QK_PARAM_WORD] = "word"};
  return types[p->type];
}

/* "real"; "4 reals". */
static const char *kind_of(const qk_param_t *p, char text[16]) {
  if (p->count == 0) return type_of(p);
  snprintf(text, 16, "%d %s", p->count, type_of(p));
  return text;
}

/* "(-4, 1e+06]"; of words their length. */
static const char *range_of(const qk_param_t *p, char text[64]) {
  snprintf(text, 64, p->type == QK_PARAM_WORD ? "%.0s%g to %g letters" : "%s%g, %g%s",
           p->above ? "(" : "[", p->least, p->most, p->below ? ")" : "]");
  return text;
}

/* Kappa is no row of its own. */
static const char *also_of(const qk_action_row_t *row, const qk_param_t *p) {
  return row->has_kappa && strcmp(p->key, "mass") == 0 ? "; or kappa = 1 / (2 (4 + m))" : "";
}

/* ---- output --------------------------------------------------------------------------------- */

static void print_text(const qk_action_row_t *row) {
  char range[64], kind[16];
  printf("%s\n  %s\n  %s\n", row->name, row->help, row->reference);
  if (row->has_flavours) printf("  flavours +1 and -1, which a request chooses from\n");
  if (qk_action_vectors(row) > 1) printf("  right-hand sides of two flavours\n");
  printf("  %-12s %-8s %-18s %-11s %-5s %s\n", "key", "type", "range", "default", "unit",
         "meaning");
  for (const qk_param_t *p = row->param; p->key; p++)
    printf("  %-12s %-8s %-18s %-11s %-5s %s%s\n", p->key, kind_of(p, kind), range_of(p, range),
           p->otherwise ? p->otherwise : "required", p->unit ? p->unit : "-", p->help,
           also_of(row, p));
}

/* count: of numbers that are a list of so many; of others it is not there. */
static json_t *param_json(const qk_param_t *p) {
  json_t *param = json_pack("{s:s, s:s, s:o, s:o, s:b, s:b, s:s?, s:s?, s:s}", "key", p->key,
                            "type", type_of(p), "least", ctl_number(p->least), "most",
                            ctl_number(p->most), "least_excluded", p->above, "most_excluded",
                            p->below, "default", p->otherwise, "unit", p->unit, "help", p->help);
  if (p->count > 0) json_object_set_new(param, "count", json_integer(p->count));
  return param;
}

static json_t *row_json(const qk_action_row_t *row) {
  json_t *list = json_array();
  for (const qk_param_t *p = row->param; p->key; p++) json_array_append_new(list, param_json(p));
  return json_pack("{s:s, s:s, s:s, s:b, s:b, s:i, s:o}", "name", row->name, "help", row->help,
                   "reference", row->reference, "has_kappa", row->has_kappa, "has_flavours",
                   row->has_flavours, "vectors", qk_action_vectors(row), "parameters", list);
}

/* A sentence of a man page: the full stops of abbreviations do not end it. */
static void print_sentence(const char *text) {
  for (const char *p = text; *p; p++) {
    putchar(*p);
    if (p[0] == '.' && p[1] == ' ') fputs("\\&", stdout);
  }
  puts(".");
}

/* Each line that the man page must have. */
static void print_man(const qk_action_row_t *row) {
  char range[64], kind[16];
  printf(".It Cm %s\n%s.\n", row->name, row->help);
  print_sentence(row->reference);
  if (qk_action_vectors(row) > 1) puts("Right-hand sides have two flavours.");
  printf(".Bl -item -compact\n");
  for (const qk_param_t *p = row->param; p->key; p++)
    printf(".It\n.Va %s\n.Pq %s in %s%s%s%s%s :\n%s%s.\n", p->key, kind_of(p, kind),
           range_of(p, range), p->unit ? ", " : "", p->unit ? p->unit : "",
           p->otherwise ? ", default " : "", p->otherwise ? p->otherwise : "", p->help,
           also_of(row, p));
  printf(".El\n");
}

static bool is_asked(const options_t *o, const qk_action_row_t *row) {
  return !o->name || strcmp(o->name, row->name) == 0;
}

static int complain(const char *name) {
  fprintf(stderr, "quarkctl: \"%s\" is no action that this quarkctl knows; it knows", name);
  for (int i = 0; qk_action_rows[i].name; i++)
    fprintf(stderr, "%s %s", i ? "," : "", qk_action_rows[i].name);
  fputc('\n', stderr);
  return EXIT_USAGE;
}

int ctl_actions(int argc, char **argv) {
  static const char about[] =
      "Lists the fermion actions and their parameters, or one of them: for --action and "
      "--set of quarkd, quarkctl load and quarkctl workflow. A parameter without a default "
      "must be given. No daemon is needed; one of another version may know others.";
  options_t o = {.name = NULL};
  int found = 0;
  qk_options_parse(&table, "[NAME]", about, argc, argv, &o);
  json_t *list = json_array();
  for (int i = 0; qk_action_rows[i].name; i++) {
    const qk_action_row_t *row = &qk_action_rows[i];
    if (!is_asked(&o, row)) continue;
    if (o.json) {
      json_array_append_new(list, row_json(row));
    } else if (o.man) {
      print_man(row);
    } else {
      if (found) putchar('\n');
      print_text(row);
    }
    found++;
  }
  if (found && o.json) return ctl_print(json_pack("{s:o}", "actions", list));
  json_decref(list);
  return found ? 0 : complain(o.name);
}
