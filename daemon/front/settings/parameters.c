#include "daemon/front/settings/parameters.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

enum { FLAGS = 3, GIVEN_MOST = FLAGS + QK_PARAMETER_KEYS + QK_CONFIG_ITEMS_MAX };

/* ---- keys ---------------------------------------------------------------------------------- */

/* All keys of actions, each once. */
static int list_keys(const qk_param_t *key[QK_PARAMETER_KEYS]) {
  int n = 0;
  for (int a = 0; qk_action_rows[a].name; a++) {
    for (const qk_param_t *p = qk_action_rows[a].param; p->key; p++) {
      int i = 0;
      while (i < n && strcmp(key[i]->key, p->key) != 0) i++;
      if (i < n) continue;
      QK_ASSERT(n < QK_PARAMETER_KEYS);
      key[n++] = p;
    }
  }
  return n;
}

static bool has_flag(const qk_config_row_t *rows, int n, size_t at, const char *key) {
  for (int i = 0; i < n; i++) {
    const bool number = rows[i].type == QK_CONFIG_DOUBLE && rows[i].offset >= at &&
                        rows[i].offset < at + offsetof(qk_parameters_t, set);
    if (number && strcmp(rows[i].key, key) == 0) return true;
  }
  return false;
}

int qk_parameters_rows(qk_config_row_t *rows, int n, size_t at) {
  const qk_param_t *key[QK_PARAMETER_KEYS];
  const int nkey = list_keys(key), own = n;
  for (int i = 0; i < nkey; i++) {
    if (has_flag(rows, own, at, key[i]->key)) continue;
    rows[n++] = (qk_config_row_t){.key = key[i]->key,
                                  .type = QK_CONFIG_STRING | QK_CONFIG_FILE_ONLY,
                                  .offset = at + offsetof(qk_parameters_t, by_key) +
                                            (size_t)i * sizeof(char *),
                                  .help = key[i]->help};
  }
  return n;
}

/* ---- what was given ------------------------------------------------------------------------ */

typedef struct given {
  qk_setting_t at[GIVEN_MOST];
  const char *where[GIVEN_MOST];
  bool by_flag[GIVEN_MOST];
  size_t n;
  char number[FLAGS][QK_REAL_TEXT];
} given_t;

static void add(given_t *given, qk_setting_t setting, const char *where, bool by_flag) {
  given->at[given->n] = setting;
  given->where[given->n] = where;
  given->by_flag[given->n++] = by_flag;
}

static void add_flag(given_t *given, int i, const qk_config_t *config, const char *key, double x) {
  bool by_flag;
  const char *where = qk_config_where(config, key, &by_flag);
  if (!where) return;
  qk_real_text(x, given->number[i]);
  add(given, (qk_setting_t){key, given->number[i]}, where, by_flag);
}

static void add_keys(given_t *given, const qk_parameters_t *p, const qk_config_t *config) {
  const qk_param_t *key[QK_PARAMETER_KEYS];
  const int n = list_keys(key);
  for (int i = 0; i < n; i++)
    if (p->by_key[i])
      add(given, (qk_setting_t){key[i]->key, p->by_key[i]},
          qk_config_where(config, key[i]->key, NULL), false);
}

static qk_status_t wrong(const char *where, bool by_flag, const char *what, const char *why,
                         qk_err_t *err) {
  return qk_fail(err, by_flag ? QK_BAD_ARGUMENT : QK_BAD_FORMAT, "%s: %s%s", where, what, why);
}

/* Without the blanks at its ends. */
static char *trim(char *text) {
  static const char BLANKS[] = " \t";
  text += strspn(text, BLANKS);
  size_t n = strlen(text);
  while (n > 0 && strchr(BLANKS, text[n - 1])) n--;
  text[n] = '\0';
  return text;
}

static size_t bytes_of(const qk_config_list_t *set) {
  size_t n = 0;
  for (int i = 0; i < set->n; i++) n += strlen(set->item[i].text) + 1;
  return n;
}

/* room: as long as all items, which are cut in it. */
static qk_status_t add_items(given_t *given, const qk_config_list_t *set, char *room,
                             qk_err_t *err) {
  char why[QK_WHY];
  for (int i = 0; i < set->n; i++) {
    const qk_config_item_t *item = &set->item[i];
    const size_t n = strlen(item->text) + 1;
    qk_setting_t setting;
    memcpy(room, item->text, n);
    if (!qk_setting_split(room, &setting, why))
      return wrong(item->where, item->by_flag, "set = ", why, err);
    char *value = trim(room + (setting.value - setting.key));
    add(given, (qk_setting_t){trim(room), value}, item->where, item->by_flag);
    room += n;
  }
  return QK_OK;
}

/* Takes out what the file gives for keys that the command line gives, too. */
static void replace(given_t *given) {
  const given_t all = *given;
  given->n = 0;
  for (size_t i = 0; i < all.n; i++) {
    bool replaced = false;
    for (size_t k = 0; k < all.n && !all.by_flag[i]; k++)
      replaced |= all.by_flag[k] && strcmp(all.at[k].key, all.at[i].key) == 0;
    if (!replaced) add(given, all.at[i], all.where[i], all.by_flag[i]);
  }
}

qk_status_t qk_parameters_read(const qk_parameters_t *p, const char *action,
                               const qk_config_t *config, qk_values_t *values, qk_err_t *err) {
  given_t given = {.n = 0};
  char why[QK_WHY], *room = qk_malloc(bytes_of(&p->set) + 1);
  size_t at;
  if (!room) return qk_fail(err, QK_NO_MEMORY, "no memory for the parameters of the action");
  add_flag(&given, 0, config, "mass", p->mass);
  add_flag(&given, 1, config, "kappa", p->kappa);
  add_flag(&given, 2, config, "csw", p->csw);
  add_keys(&given, p, config);
  qk_status_t status = add_items(&given, &p->set, room, err);
  if (status == QK_OK) {
    replace(&given);
    if (!qk_values_read_at(values, action, given.at, given.n, &at, why))
      status = at < given.n ? wrong(given.where[at], given.by_flag[at], "", why, err)
                            : qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
  }
  qk_free(room);
  return status;
}
