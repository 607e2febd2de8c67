#include "daemon/engine/action/links.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/action/open.h"
#include "daemon/engine/gauge/gauge.h"

enum { SITE_REALS = 4 * 18 }; /* of the links in double */
enum { PARAMS_MAX = 3, RECIPE_TEXT = 2 * (16 + PARAMS_MAX * QK_REAL_TEXT + 16) };

/* ---- the parameter --------------------------------------------------------------------------- */

typedef struct kind {
  const char *name;
  qk_link_smear_kind_t kind;
  int params;
  bool hex, directions, slinc;
} kind_t;

static const kind_t kinds[] = {
    {.name = "thin", .kind = QK_LINK_SMEAR_NONE},
    {.name = "ape", .kind = QK_LINK_SMEAR_APE, .params = 1, .directions = true},
    {.name = "stout", .kind = QK_LINK_SMEAR_STOUT, .params = 1, .directions = true},
    {.name = "hyp", .kind = QK_LINK_SMEAR_HYP, .params = 3},
    {.name = "hex", .kind = QK_LINK_SMEAR_HYP, .params = 3, .hex = true},
    {.name = "slinc", .kind = QK_LINK_SMEAR_STOUT, .params = 1, .slinc = true},
};

static const char FORMS[] = "thin, ape:ALPHA,STEPS[:xyz], stout:RHO,STEPS[:xyz], "
                            "hyp:A1,A2,A3,STEPS, hex:A1,A2,A3,STEPS, A/B or slinc:RHO,STEPS";

static const kind_t *kind_named(const char *name) {
  for (size_t i = 0; name && i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  return NULL;
}

/* "0.125,1": parameters and steps. */
static bool read_numbers(char *text, const kind_t *kind, qk_link_smear_t *smear) {
  double number[PARAMS_MAX + 1];
  const char *word;
  int n = 0;
  for (; (word = strsep(&text, ",")) != NULL; n++)
    if (n > kind->params || !qk_real_parse(word, &number[n])) return false;
  if (n != kind->params + 1 || !(fabs(number[n - 1]) <= 1e6)) return false;
  memcpy(smear->param, number, (size_t)kind->params * sizeof *number);
  smear->steps = (int)number[n - 1];
  return smear->steps == number[n - 1];
}

/* NAME[:NUMBERS[:xyz]], cut in place; kind: that of the name. */
static bool read_smearing(char *text, const kind_t **kind, qk_link_smear_t *smear) {
  const kind_t *k = *kind = kind_named(strsep(&text, ":"));
  char *numbers = strsep(&text, ":");
  *smear = (qk_link_smear_t){0};
  if (!k || (k->params > 0) != (numbers != NULL)) return false;
  if (k->params > 0 && !read_numbers(numbers, k, smear)) return false;
  if (text && (!k->directions || strcmp(text, "xyz") != 0)) return false;
  smear->kind = k->kind;
  smear->hex = k->hex;
  smear->spatial = text != NULL;
  return true;
}

static bool read_recipe(char *text, qk_links_recipe_t *recipe) {
  const kind_t *hop, *clover = NULL;
  const char *first = strsep(&text, "/");
  *recipe = (qk_links_recipe_t){0};
  if (!read_smearing((char *)first, &hop, &recipe->hop)) return false;
  recipe->apart = text || hop->slinc;
  if (!text) {
    if (!hop->slinc) recipe->clover = recipe->hop;
    return true;
  }
  return !hop->slinc && read_smearing(text, &clover, &recipe->clover) && !clover->slinc;
}

static bool equal(const qk_link_smear_t *a, const qk_link_smear_t *b) {
  return a->kind == b->kind && a->hex == b->hex && a->spatial == b->spatial &&
         a->steps == b->steps && memcmp(a->param, b->param, sizeof a->param) == 0;
}

/* Appends the text of a smearing. */
static void write_smearing(const qk_link_smear_t *s, bool slinc, char text[RECIPE_TEXT]) {
  const kind_t *k = kinds;
  while (k->kind != s->kind || k->hex != s->hex || k->slinc != slinc) k++;
  size_t n = strlen(text);
  n += (size_t)snprintf(text + n, RECIPE_TEXT - n, "%s%s", k->name, k->params > 0 ? ":" : "");
  for (int i = 0; i < k->params; i++) {
    char number[QK_REAL_TEXT];
    qk_real_text(s->param[i], number);
    n += (size_t)snprintf(text + n, RECIPE_TEXT - n, "%s,", number);
  }
  if (k->params > 0)
    snprintf(text + n, RECIPE_TEXT - n, "%d%s", s->steps, s->spatial ? ":xyz" : "");
}

/* The one text of a recipe, which operators are told apart by. */
static void write_recipe(qk_links_recipe_t *r, char text[RECIPE_TEXT]) {
  if (r->hop.steps == 0) r->hop = (qk_link_smear_t){0};
  if (r->clover.steps == 0) r->clover = (qk_link_smear_t){0};
  r->apart = r->apart && !equal(&r->hop, &r->clover);
  const bool slinc = r->apart && r->hop.kind == QK_LINK_SMEAR_STOUT && !r->hop.spatial &&
                     r->clover.kind == QK_LINK_SMEAR_NONE;
  text[0] = '\0';
  write_smearing(&r->hop, slinc, text);
  if (!r->apart || slinc) return;
  strcat(text, "/");
  write_smearing(&r->clover, false, text);
}

qk_status_t qk_links_parse(const char *text, qk_links_recipe_t *recipe, qk_err_t *err) {
  char cut[QK_PARAM_WORD_MAX + 1] = "thin", canonical[RECIPE_TEXT];
  qk_err_t why = {0};
  if (text) snprintf(cut, sizeof cut, "%s", text);
  if (!read_recipe(cut, recipe))
    return qk_fail(err, QK_BAD_ARGUMENT, "links = %s: must be %s", text, FORMS);
  if (qk_link_smear_check(&recipe->hop, &why) != QK_OK ||
      qk_link_smear_check(&recipe->clover, &why) != QK_OK)
    return qk_fail(err, QK_BAD_ARGUMENT, "links = %s: %s", text, why.text);
  write_recipe(recipe, canonical);
  if (!text || strcmp(text, canonical) == 0) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "links = %s: write it as %s", text, canonical);
}

qk_status_t qk_links_check_apart(const qk_values_t *values, bool clover, qk_err_t *err) {
  const char *text = qk_value_word(values, "links");
  qk_links_recipe_t recipe;
  const qk_status_t status = qk_links_parse(text, &recipe, err);
  if (status != QK_OK || clover || !recipe.apart) return status;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "links = %s: there is no clover term, which could have links of its own", text);
}

/* ---- upload ---------------------------------------------------------------------------------- */

static bool is_split(const qk_lattice_t *lat) {
  return lat->split[0] || lat->split[1] || lat->split[2] || lat->split[3];
}

static qk_status_t upload(const qk_device_t *dev, const double *links, qk_gauge_args_t *gauge,
                          qk_err_t *err) {
  const qk_lattice_t *lat = &dev->geom->lat;
  double *extended = NULL; /* without neighbours the links are what is to be uploaded */
  int e[4] = {lat->l[0], lat->l[1], lat->l[2], lat->l[3]};
  qk_status_t status = is_split(lat) ? qk_gauge_extend(dev->geom, links, &extended, e, err) : QK_OK;
  if (status != QK_OK) return status;
  const double *host = extended != NULL ? extended : links;
  const size_t bytes = (size_t)e[0] * e[1] * e[2] * e[3] * SITE_REALS * sizeof(double);
  void *device = NULL;
  status = dev->ops->alloc(dev->ctx, bytes, &device);
  if (status != QK_OK) goto done;
  status = dev->ops->copy(dev->ctx, device, host, bytes, QK_COPY_TO_DEVICE, 0);
  if (status == QK_OK) status = dev->ops->queue_sync(dev->ctx, 0);
  if (status != QK_OK) {
    dev->ops->free(dev->ctx, device);
    goto done;
  }
  gauge->lat = *lat;
  gauge->u = (qk_gauge_ext_t){.data = device, .e = {e[0], e[1], e[2], e[3]}};
done:
  qk_free(extended);
  return status;
}

static qk_status_t pass_through(qk_gaugefield_t *field, const double *links,
                                const qk_link_smear_t *smear, double *smeared, qk_err_t *err) {
  qk_status_t status = qk_gaugefield_import(field, links);
  if (status != QK_OK) return status;
  status = qk_link_smear_apply(field, smear, err);
  return status == QK_OK ? qk_gaugefield_export(field, smeared) : status;
}

/* Into `smeared`, in host memory. */
static qk_status_t smear_links(const qk_device_t *dev, const double *links,
                               const qk_link_smear_t *smear, double *smeared, qk_err_t *err) {
  qk_gaugefield_t *field;
  qk_status_t status = qk_gaugefield_create(dev, 1, &field);
  if (status != QK_OK) return qk_fail(err, status, "smearing of links: %s", qk_status_text(status));
  status = pass_through(field, links, smear, smeared, err);
  qk_gaugefield_destroy(field);
  return status;
}

static qk_status_t upload_smeared(const qk_device_t *dev, const double *links,
                                  const qk_link_smear_t *smear, double *smeared,
                                  qk_gauge_args_t *gauge, qk_err_t *err) {
  qk_status_t status =
      smeared != NULL ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory for smeared links");
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status != QK_OK) return status;
  status = qk_comm_agree(dev->geom->comm, smear_links(dev, links, smear, smeared, err), err);
  return status == QK_OK ? upload(dev, smeared, gauge, err) : status;
}

/* Other collective calls follow. */
static qk_status_t agree(const qk_device_t *dev, qk_status_t status, qk_err_t *err) {
  return qk_comm_agree(dev->geom->comm, status, err);
}

qk_status_t qk_links_upload(const qk_device_t *dev, const double *links,
                            const qk_link_smear_t *smear, qk_gauge_args_t *gauge, qk_err_t *err) {
  const size_t sites = (size_t)dev->geom->local_volume;
  if (smear->kind == QK_LINK_SMEAR_NONE || smear->steps == 0)
    return agree(dev, upload(dev, links, gauge, err), err);
  double *smeared = qk_malloc(sites * SITE_REALS * sizeof *smeared);
  const qk_status_t status = upload_smeared(dev, links, smear, smeared, gauge, err);
  qk_free(smeared);
  return agree(dev, status, err);
}

/* ---- links of the hop ------------------------------------------------------------------------ */

qk_status_t qk_links_set(const qk_action_in_t *in, qk_eo_parts_t *parts) {
  const qk_device_t *dev = in->dev;
  for (int p = 0; p < QK_PRECS; p++) {
    if (!in->params->want[p]) continue;
    qk_links_t *l = &parts->links[p];
    void *data = NULL;
    *l = (qk_links_t){.prec = (qk_prec_t)p, .reals = in->params->link_reals[p]};
    const size_t bytes = dev->ops->links_bytes(&in->gauge.lat, l->prec, l->reals);
    qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
    if (status != QK_OK) return status;
    l->data = data;
    const qk_links_set_args_t set = {
        .gauge = in->gauge, .out = *l, .open = qk_open_of(&in->params->values).is};
    status = dev->ops->links_set(dev->ctx, &set);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

int64_t qk_links_upload_bytes(const qk_lattice_t *lat, const qk_links_recipe_t *recipe) {
  return (recipe->apart ? 2 : 1) * (int64_t)qk_gaugefield_bytes(lat, 1); /* of as many sites */
}

int64_t qk_links_smear_bytes(const qk_lattice_t *lat, const qk_links_recipe_t *recipe) {
  const int64_t field = (int64_t)qk_gaugefield_bytes(lat, 1);
  const int64_t hop = recipe->hop.steps ? qk_link_smear_bytes(lat, &recipe->hop) : 0;
  const int64_t clover =
      recipe->apart && recipe->clover.steps ? field + qk_link_smear_bytes(lat, &recipe->clover) : 0;
  return hop > clover ? hop : clover; /* one after the other */
}

int64_t qk_links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                       const qk_action_params_t *params) {
  int64_t bytes = 0;
  for (int p = 0; p < QK_PRECS; p++)
    if (params->want[p])
      bytes += (int64_t)ops->links_bytes(lat, (qk_prec_t)p, params->link_reals[p]);
  return bytes;
}
