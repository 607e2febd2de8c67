/* restore_rhs.c: right-hand sides of the state folder, with their sources and solutions. */
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/restore/restore_impl.h"
#include "daemon/front/state/spill.h"
#include "daemon/front/storage/holes.h"

static const qk_outcome_t GONE = {
    .status = QK_EXPIRED,
    .text = "its solution was in memory that is lost (/dev/shm) and cannot be computed again"};
static const qk_outcome_t LINKS_GONE = {
    .status = QK_EXPIRED,
    .text = "its links were in memory that is lost (/dev/shm): send them again"};

static bool is_file(const qk_job_t *job) {
  return !qk_job_is_beside(job) && job->source == QUARK__SOURCE_KIND__SOURCE_FILE;
}

/* What was promised stays where it is: the start ends. */
static void run_short(scene_t *scene, const qk_rhs_t *rhs, const qk_err_t *why) {
  if (scene->shortage.code != QK_OK) return;
  qk_fail(&scene->shortage, QK_NO_MEMORY,
          "request %llu, rhs %u of %s: %s: nothing is lost; make room and start quarkd again",
          (unsigned long long)rhs->job->request, rhs->index, scene->service->settings->state,
          why->text);
}

/* From shared memory. whole: an upload with its checksum. */
static bool adopt_source(scene_t *scene, qk_rhs_t *rhs, const char *name, bool whole) {
  const qk_job_t *job = rhs->job;
  qk_err_t absent = {0};
  if (qk_shm_adopt(job->space, name, job->field_bytes, &rhs->source, &absent) != QK_OK) {
    if (absent.code == QK_NO_MEMORY) run_short(scene, rhs, &absent);
    return false;
  }
  const qk_status_t sound = whole ? qk_holes_check(rhs->source, rhs->checksum, &absent) : QK_OK;
  if (sound == QK_NO_MEMORY) run_short(scene, rhs, &absent);
  if (sound == QK_OK || sound == QK_NO_MEMORY) return true;
  qk_warn("journal", "request %llu, rhs %u: its source in shared memory is damaged",
          (unsigned long long)job->request, rhs->index);
  qk_shm_destroy(rhs->source);
  rhs->source = NULL;
  return false;
}

/* The uploaded field from the spool. */
static bool read_source(scene_t *scene, qk_rhs_t *rhs) {
  const qk_job_t *job = rhs->job;
  qk_err_t err = {0};
  qk_status_t status = qk_shm_create(job->space, job->field_bytes, &rhs->source, &err);
  uint8_t *data = status == QK_OK ? qk_shm_data(rhs->source, &err) : NULL;
  if (status == QK_OK && !data) status = QK_NO_MEMORY;
  if (status != QK_OK) { /* of the file nothing is known yet */
    run_short(scene, rhs, &err);
  } else {
    status = qk_spool_read(scene->service->spool, job->entry.id, rhs->index, rhs->checksum, data,
                           job->field_bytes, &err);
    if (status == QK_NO_MEMORY) run_short(scene, rhs, &err);
  }
  if (status == QK_OK) {
    qk_shm_unmap(rhs->source);
    return true;
  }
  qk_shm_destroy(rhs->source);
  rhs->source = NULL;
  if (scene->shortage.code != QK_OK) return false;
  qk_warn("journal", "request %llu, rhs %u: %s", (unsigned long long)job->request, rhs->index,
          err.text);
  rhs->spooled = false;
  rhs->job->entry.spooled--;
  return false;
}

/* The uploaded field from shared memory, or else from the spool. */
static bool find_source(scene_t *scene, qk_rhs_t *rhs, const char *name, bool whole) {
  return adopt_source(scene, rhs, name, whole) || (rhs->spooled && read_source(scene, rhs));
}

/* Has not ended: an upload without its bytes goes back to uploading, a file is read again. */
static void restore_open(scene_t *scene, qk_rhs_t *rhs, qk_rhs_state_t state, const char *source) {
  if (!qk_job_is_upload(rhs->job) && !is_file(rhs->job)) return;
  const bool whole = qk_job_is_upload(rhs->job) && state != QK_RHS_UPLOADING;
  const bool found = find_source(scene, rhs, source, whole);
  if (state != QK_RHS_UPLOADING && found) rhs->state = QK_RHS_QUEUED;
}

bool qk_restore_is_of_another(const qk_job_t *job) {
  const qk_setup_t *setup = job->setup;
  if (job->field) return false;
  return job->config != setup->digest || !qk_shape_same(&job->shape, &setup->shape);
}

/* Its solution is gone. True where it will be made again. */
static bool make_again(scene_t *scene, qk_rhs_t *rhs, qk_rhs_state_t state, const char *source) {
  if (state == QK_RHS_ACKED || qk_restore_is_of_another(rhs->job)) return false;
  const bool found = !(qk_job_is_upload(rhs->job) || is_file(rhs->job)) ||
                     find_source(scene, rhs, source, qk_job_is_upload(rhs->job));
  if (!found && qk_job_is_upload(rhs->job)) return false;
  rhs->state = found ? QK_RHS_QUEUED : QK_RHS_UPLOADING;
  rhs->attempt++;
  rhs->digested = false;
  scene->again++;
  return true;
}

/* Its row is invalid: it begins again, with a higher attempt number than its client may have
 * seen. */
static void begin_anew(scene_t *scene, qk_rhs_t *rhs, const qk_rhs_t *row) {
  rhs->attempt = row->attempt + 1;
  if (row->state == QK_RHS_ACKED) {
    qk_rhs_end(rhs, &GONE, scene->now);
    qk_rhs_ack(rhs);
  } else {
    scene->again++;
  }
  rhs->marked = true;
}

/* From shared memory, where it is still what it was. */
static bool adopt_solution(scene_t *scene, qk_rhs_t *rhs, const qk_rhs_t *row, const char *name) {
  const qk_job_t *job = rhs->job;
  qk_err_t absent = {0};
  if (qk_shm_adopt(job->space, name, job->field_bytes, &rhs->solution, &absent) != QK_OK) {
    if (absent.code == QK_NO_MEMORY) run_short(scene, rhs, &absent);
    return false;
  }
  rhs->digested = row->digested;
  rhs->digest = row->digest;
  const uint8_t *data = row->digested ? qk_shm_data(rhs->solution, &absent) : NULL;
  const bool sound = !data || qk_checksum(data, job->field_bytes) == row->digest;
  qk_shm_unmap(rhs->solution);
  if (sound) return true;
  qk_warn("journal", "request %llu, rhs %u: its solution in shared memory is damaged",
          (unsigned long long)job->request, rhs->index);
  qk_shm_destroy(rhs->solution);
  rhs->solution = NULL;
  rhs->digested = rhs->spilled; /* that of the file, too */
  return false;
}

/* A field that was ready: its links are there, or it is over. */
static void restore_field(scene_t *scene, qk_rhs_t *rhs, const qk_rhs_t *row,
                          const char *solution) {
  const bool here =
      row->outcome.written && row->digested && find_source(scene, rhs, solution, true);
  if (scene->shortage.code != QK_OK) return;
  if (here) {
    rhs->state = QK_RHS_QUEUED;
    rhs->digest = row->digest;
    rhs->digested = true;
    if (!rhs->spooled) qk_rhs_unsave(rhs, scene->now);
    qk_rhs_keep_field(rhs);
  }
  scene->lost += row->outcome.written && !here;
  qk_rhs_end(rhs, row->outcome.written && !here ? &LINKS_GONE : &row->outcome, scene->now);
  if (row->state == QK_RHS_ACKED) qk_rhs_ack(rhs);
  rhs->recorded = true;
  rhs->marked = here || row->outcome.written;
}

/* As it was, or near to it. */
static void restore_rhs(scene_t *scene, qk_rhs_t *rhs, const qk_rhs_t *row, const char *source,
                        const char *solution) {
  qk_job_t *job = rhs->job;
  qk_outcome_t outcome = row->outcome;
  rhs->losses = row->losses;
  rhs->attempt = row->attempt;
  rhs->checksum = row->checksum;
  rhs->spooled = row->spooled;
  job->entry.spooled += row->spooled;
  if (row->state < QK_RHS_ENDED) {
    restore_open(scene, rhs, row->state, source);
    return;
  }
  if (job->field) {
    restore_field(scene, rhs, row, solution);
    return;
  }
  const bool kept = job->sink == QUARK__SINK__SINK_KEEP;
  bool spilled = outcome.written && row->spilled && qk_spill_restore(job->spill, rhs, row);
  const bool had = outcome.written && (solution[0] || row->spilled);
  bool here = had && adopt_solution(scene, rhs, row, solution);
  if (!here && spilled && kept) {
    qk_err_t err = {0};
    const qk_status_t loaded = qk_spill_load(job->spill, rhs, &err);
    if (loaded == QK_NO_MEMORY) run_short(scene, rhs, &err);
    here = spilled = loaded == QK_OK;
  }
  if (scene->shortage.code != QK_OK) return;
  if (here && qk_job_is_upload(job) && !rhs->spooled && row->state == QK_RHS_ENDED && source[0] &&
      adopt_source(scene, rhs, source, true))
    qk_rhs_unsave(rhs, scene->now);
  if (had && !here && !spilled) {
    if (make_again(scene, rhs, row->state, source)) return;
    scene->lost++;
    outcome.written = false;
    if (row->state == QK_RHS_ENDED) outcome = GONE;
  }
  if (outcome.status != GONE.status) rhs->wall = qk_wall_sums_hold(row->wall);
  qk_rhs_end(rhs, &outcome, scene->now);
  if (spilled && !rhs->solution) qk_rhs_unload(rhs);
  if (!spilled && !rhs->solution) qk_rhs_drop_solution(rhs); /* as it was */
  if (row->state == QK_RHS_ACKED) qk_rhs_ack(rhs);
  rhs->recorded = true;
  rhs->marked = had && !outcome.written; /* lost, and stays so, whatever the next front finds */
}

/* Of a part: what its client has acknowledged; all else is that of the whole. `recorded`: its
 * client may know of the end. */
static void restore_part(const scene_t *scene, qk_rhs_t *rhs, const qk_rhs_t *row) {
  rhs->attempt = row->attempt;
  if (row->state == QK_RHS_ACKED) {
    qk_rhs_end(rhs, &row->outcome, scene->now);
    qk_rhs_ack(rhs);
  }
  rhs->recorded = row->state >= QK_RHS_ENDED;
}

bool qk_restore_rhs(void *arg, const qk_rhs_row_t *row, qk_err_t *why) {
  scene_t *scene = arg;
  qk_rhs_t *rhs = &scene->job->rhs[row->rhs.index];
  if (scene->job->joined && row->damaged) return true;
  if (row->damaged)
    begin_anew(scene, rhs, &row->rhs);
  else if (qk_rows_check_rhs(row, scene->job, why) != QK_OK)
    return false;
  else if (scene->job->joined)
    restore_part(scene, rhs, &row->rhs);
  else
    restore_rhs(scene, rhs, &row->rhs, row->source, row->solution);
  if (scene->shortage.code != QK_OK) *why = scene->shortage;
  return scene->shortage.code == QK_OK;
}
