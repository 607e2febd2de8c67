#include "daemon/engine/gauge_tool/chain.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"

/* The device sums in another order than the host. */
static const double PLAQUETTE_ROUNDING = 1e-10;

static void state_path(const qk_chain_t *chain, char path[QK_PATTERN_PATH]) {
  char stem[QK_PATTERN_PATH];
  qk_pattern_stem(&chain->pattern, stem);
  snprintf(path, QK_PATTERN_PATH, "%.*s.state", QK_PATTERN_PATH - 64, stem);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

/* Name, without folder, of the links of a sweep that are kept for the state alone. */
static void own_name(const qk_chain_t *chain, int64_t sweep, char name[QK_STATE_NAME]) {
  char stem[QK_PATTERN_PATH];
  qk_pattern_stem(&chain->pattern, stem);
  snprintf(name, QK_STATE_NAME, "%.*s.state-%" PRId64 ".lime", QK_PATTERN_NAME, base_name(stem),
           sweep);
}

static void beside(const qk_chain_t *chain, const char *name, char path[QK_PATTERN_PATH]) {
  char folder[QK_PATTERN_PATH];
  qk_pattern_folder(&chain->pattern, folder);
  snprintf(path, QK_PATTERN_PATH, "%.*s%s", QK_PATTERN_TEXT, folder, name);
}

static qk_status_t check_folder(const qk_chain_t *chain, qk_err_t *err) {
  char folder[QK_PATTERN_PATH];
  qk_pattern_folder(&chain->pattern, folder);
  const char *name = folder[0] == '\0' ? "." : folder;
  if (access(name, W_OK | X_OK) == 0) return QK_OK;
  return qk_fail(err, QK_IO_ERROR, "--out=%.150s: cannot write into folder %.150s: %s",
                 chain->params.out, name, strerror(errno));
}

/* Of a chain that goes on the next configuration may be there: it was stopped before the state was
 * written. */
static qk_status_t check_outputs(const qk_chain_t *chain, qk_err_t *err) {
  char path[QK_PATTERN_PATH];
  int64_t every = chain->params.every, first = (chain->saved / every + 1) * every;
  if (chain->saved > 0) first += every;
  for (int64_t sweep = first; sweep <= chain->sweeps; sweep += every) {
    qk_pattern_path(&chain->pattern, sweep, path);
    if (access(path, F_OK) == 0)
      return qk_fail(err, QK_IO_ERROR,
                     "%s exists: give another --out, or --force to replace what is there", path);
  }
  return QK_OK;
}

/* The plaquettes so far, with room for those to come. */
static qk_status_t grow(qk_chain_t *chain, qk_err_t *err) {
  size_t size = sizeof *chain->state.plaquettes;
  double *all = qk_calloc((size_t)chain->sweeps, size);
  if (all == NULL)
    return qk_fail(err, QK_NO_MEMORY, "no memory for %" PRId64 " plaquettes", chain->sweeps);
  if (chain->state.plaquettes != NULL)
    memcpy(all, chain->state.plaquettes, (size_t)chain->state.sweep * size);
  qk_free(chain->state.plaquettes);
  chain->state.plaquettes = all;
  return QK_OK;
}

static qk_status_t load_state(qk_chain_t *chain, bool resume, bool force, qk_err_t *err) {
  char path[QK_PATTERN_PATH];
  state_path(chain, path);
  if (!resume && (force || access(path, F_OK) != 0)) return QK_OK;
  if (!resume)
    return qk_fail(
        err, QK_IO_ERROR,
        "%s exists: a chain was begun here; --resume goes on with it, --force begins anew", path);
  qk_status_t status = qk_state_load(path, &chain->params, &chain->state, err);
  if (status == QK_NOT_FOUND) {
    *err = (qk_err_t){0};
    fprintf(stderr, "quark-gauge: no %s: beginning at the start\n", path);
    return QK_OK;
  }
  if (status != QK_OK) return status;
  chain->saved = chain->state.sweep;
  if (chain->saved <= chain->sweeps) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "--sweeps=%" PRId64 ": %s has %" PRId64 " sweeps already, give at least so many",
                 chain->sweeps, path, chain->saved);
}

static qk_status_t look_on_disk(qk_chain_t *chain, bool resume, bool force, qk_err_t *err) {
  qk_status_t status = check_folder(chain, err);
  if (status != QK_OK) return status;
  status = load_state(chain, resume, force, err);
  if (status != QK_OK) return status;
  if (!force) status = check_outputs(chain, err);
  return status == QK_OK ? grow(chain, err) : status;
}

/* What rank 0 found, to the others. */
static qk_status_t share(qk_chain_t *chain, qk_err_t *err) {
  struct {
    int64_t saved;
    uint64_t digest;
    char configuration[QK_STATE_NAME];
  } found = {.saved = chain->saved, .digest = chain->state.digest};
  memcpy(found.configuration, chain->state.configuration, sizeof found.configuration);
  qk_status_t status = qk_comm_bcast(chain->tool->comm, &found, sizeof found, 0);
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not share the state");
  chain->saved = chain->state.sweep = found.saved;
  chain->state.digest = found.digest;
  memcpy(chain->state.configuration, found.configuration, sizeof found.configuration);
  return QK_OK;
}

qk_status_t qk_chain_look(qk_tool_t *tool, const qk_chain_params_t *params, int64_t sweeps,
                          bool resume, bool force, qk_chain_t *chain, qk_err_t *err) {
  qk_chain_t c = {.tool = tool, .params = *params, .sweeps = sweeps};
  qk_status_t status = qk_pattern_parse(params->out, &c.pattern, err);
  if (status == QK_OK && tool->root) status = look_on_disk(&c, resume, force, err);
  status = qk_comm_agree(tool->comm, status, err);
  if (status == QK_OK) status = share(&c, err);
  if (status == QK_OK) {
    *chain = c;
  } else {
    qk_free(c.state.plaquettes);
  }
  return status;
}

static qk_status_t read_file(qk_tool_t *tool, const char *path, const uint64_t *digest,
                             qk_tool_config_t *config, qk_err_t *err) {
  qk_tool_options_t none = {0};
  qk_status_t status = qk_tool_probe(tool, path, &none, &config->info, err);
  if (status != QK_OK) return status;
  status = qk_tool_read(tool, path, config, err);
  if (status != QK_OK || digest == NULL || *digest == config->check.digest) return status;
  return qk_fail(err, QK_BAD_CHECKSUM,
                 "%s: its links have digest %016" PRIx64 ", the state was made with %016" PRIx64,
                 path, config->check.digest, *digest);
}

/* The links of a file; those of a state must be the ones it was made for. */
static qk_status_t import_file(qk_chain_t *chain, const char *path, const uint64_t *digest,
                               qk_err_t *err) {
  qk_tool_config_t config = {0};
  qk_status_t status = read_file(chain->tool, path, digest, &config, err);
  if (status == QK_OK) status = qk_gaugefield_import(chain->field, config.links);
  qk_free(config.links);
  return status;
}

static qk_status_t initial_links(qk_chain_t *chain, qk_err_t *err) {
  char path[QK_PATTERN_PATH];
  const char *start = chain->params.start;
  if (chain->saved > 0) {
    beside(chain, chain->state.configuration, path);
    return import_file(chain, path, &chain->state.digest, err);
  }
  if (strcmp(start, "cold") == 0) return qk_evolve_cold(chain->field);
  if (strcmp(start, "hot") == 0) return qk_evolve_hot(chain->field, chain->params.evolve.seed);
  return import_file(chain, start, NULL, err);
}

/* The links `name` of a state at `sweep`, unless they are a configuration of the user. */
static void remove_own(const qk_chain_t *chain, int64_t sweep, const char *name) {
  char own[QK_STATE_NAME], path[QK_PATTERN_PATH];
  own_name(chain, sweep, own);
  if (strcmp(own, name) != 0) return;
  beside(chain, name, path);
  unlink(path);
}

/* A chain that begins anew must not be taken for the one before. */
static qk_status_t drop_old_state(const qk_chain_t *chain, qk_err_t *err) {
  char path[QK_PATTERN_PATH];
  qk_chain_state_t old;
  if (chain->saved > 0) return QK_OK;
  state_path(chain, path);
  bool known = qk_state_load(path, NULL, &old, NULL) == QK_OK;
  if (unlink(path) != 0 && errno != ENOENT)
    return qk_fail(err, QK_IO_ERROR, "cannot remove %s: %s", path, strerror(errno));
  if (known) {
    remove_own(chain, old.sweep, old.configuration);
    qk_free(old.plaquettes);
  }
  return QK_OK;
}

/* Ranks agree on what all of them can live through; the program ends all of them otherwise. */
static qk_status_t settle(qk_tool_t *tool, qk_status_t status, qk_err_t *err) {
  status = qk_tool_explain(tool, status, err);
  if (status == QK_DEVICE_ERROR || status == QK_COMM_ERROR) return status;
  return qk_comm_agree(tool->comm, status, err);
}

static qk_status_t make_field(qk_chain_t *chain, qk_err_t *err) {
  const int halo = qk_evolve_halo(&chain->params.evolve);
  qk_status_t status = qk_gaugefield_create(&chain->tool->dev, halo, &chain->field);
  if (status == QK_OK) status = qk_gaugefield_share(chain->field);
  if (status != QK_OK) return status;
  status = qk_tool_alloc_links(chain->tool, &chain->links, err);
  return status == QK_OK ? initial_links(chain, err) : status;
}

qk_status_t qk_chain_start(qk_chain_t *chain, qk_err_t *err) {
  qk_tool_t *tool = chain->tool;
  qk_status_t status = settle(tool, make_field(chain, err), err);
  if (status != QK_OK) return status;
  if (tool->root) status = drop_old_state(chain, err);
  return qk_comm_agree(tool->comm, status, err);
}

qk_status_t qk_chain_sweep(qk_chain_t *chain, double *plaquette, qk_err_t *err) {
  double plane[6] = {0}, sum = 0;
  int64_t sweep = chain->state.sweep;
  qk_status_t status = qk_evolve_sweep(chain->field, &chain->params.evolve, sweep);
  if (status == QK_OK) status = qk_gaugefield_measure(chain->field, plane, NULL);
  status = qk_tool_explain(chain->tool, status, err);
  if (status != QK_OK) return status;
  for (int i = 0; i < 6; i++) sum += plane[i];
  if (!isfinite(sum))
    return qk_fail(err, QK_INTERNAL, "sweep %" PRId64 ": the plaquette is not a number", sweep + 1);
  *plaquette = sum / 6;
  if (chain->state.plaquettes != NULL) chain->state.plaquettes[sweep] = *plaquette;
  chain->state.sweep = sweep + 1;
  return QK_OK;
}

bool qk_chain_due(const qk_chain_t *chain) {
  return chain->state.sweep % chain->params.every == 0;
}

/* The links on the host, and that they are those whose plaquette was measured. */
static qk_status_t export_links(qk_chain_t *chain, qk_err_t *err) {
  qk_gauge_check_t check;
  qk_status_t status = qk_gaugefield_export(chain->field, chain->links);
  status = settle(chain->tool, status, err);
  if (status != QK_OK) return status;
  status = qk_gauge_measure(&chain->tool->geom, chain->links, &check, err);
  if (status != QK_OK) return status;
  chain->state.digest = check.digest;
  double told = chain->tool->root ? chain->state.plaquettes[chain->state.sweep - 1] : 0;
  if (chain->tool->root && !(fabs(told - check.plaquette) < PLAQUETTE_ROUNDING))
    status = qk_fail(err, QK_INTERNAL,
                     "sweep %" PRId64 ": plaquette %.15g on the device, %.15g on the host",
                     chain->state.sweep, told, check.plaquette);
  return qk_comm_agree(chain->tool->comm, status, err);
}

/* The state of this sweep in place of the one before. */
static qk_status_t replace_state(qk_chain_t *chain, const char *before, qk_err_t *err) {
  char path[QK_PATTERN_PATH];
  state_path(chain, path);
  qk_status_t status = qk_state_save(path, &chain->params, &chain->state, err);
  if (status == QK_OK && chain->saved > 0) remove_own(chain, chain->saved, before);
  return status;
}

qk_status_t qk_chain_save(qk_chain_t *chain, qk_err_t *err) {
  char path[QK_PATTERN_PATH], before[QK_STATE_NAME];
  const qk_chain_params_t *p = &chain->params;
  const qk_geom_t *geom = &chain->tool->geom;
  bool due = qk_chain_due(chain), exact = due && p->bits == 64;
  memcpy(before, chain->state.configuration, sizeof before);
  qk_status_t status = export_links(chain, err);
  if (status == QK_OK && due) {
    qk_pattern_path(&chain->pattern, chain->state.sweep, path);
    status = qk_gauge_write(path, p->format, p->bits, geom, chain->links, err);
    if (exact) strcpy(chain->state.configuration, base_name(path));
  }
  if (status == QK_OK && !exact) {
    own_name(chain, chain->state.sweep, chain->state.configuration);
    beside(chain, chain->state.configuration, path);
    status = qk_gauge_write(path, "ildg", 64, geom, chain->links, err);
  }
  if (status == QK_OK && chain->tool->root) status = replace_state(chain, before, err);
  status = qk_comm_agree(chain->tool->comm, status, err);
  if (status == QK_OK) chain->saved = chain->state.sweep;
  return status;
}

void qk_chain_end(qk_chain_t *chain) {
  qk_gaugefield_destroy(chain->field);
  qk_free(chain->links);
  qk_free(chain->state.plaquettes);
  *chain = (qk_chain_t){0};
}
