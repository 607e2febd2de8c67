/*
 * mg_service.h: multigrid as a setup keeps it: hierarchy, a cycle for all slots and one for a
 * right-hand side that is alone, its checkpoint, and what is known of its health.
 *
 * A host is made from a checkpoint where there is one that fits, else by a setup, which evolves
 * from the null vectors of another checkpoint where one is named and they will do, else begins with
 * noise; then the checkpoint is written in the background. All calls are collective but the
 * queries. Errors: those of multigrid.h, cycle.h.
 */
#ifndef QK_ENGINE_MG_SERVICE_H
#define QK_ENGINE_MG_SERVICE_H

#include "daemon/base/progress.h"
#include "daemon/engine/checkpoint/mg_file.h"
#include "daemon/engine/mg_service/mg_health.h"
#include "daemon/engine/multigrid/cycle.h"
#include "daemon/engine/multigrid/cycle_vectors.h"

typedef struct qk_mg_service_params {
  qk_mg_params_t mg; /* complete */
  qk_prec_t prec;    /* of the outer iteration */
  int nslot;
  bool single_rhs;
  size_t room;            /* of work fields while it serves: plan.h */
  const char *checkpoint; /* file or folder; "": none */
  bool reads_only;        /* it is another engine's to write */
  bool shared; /* with other engines: who writes goes on with what is in the file, as they do */
  qk_mg_identity_t identity;
  /* A setup evolves from the one of this name, whose checkpoint this is; NULL or "": from noise,
   * and if only the path is "", there is no checkpoint of it any more. */
  const char *evolve_from, *evolve_path;
} qk_mg_service_params_t;

typedef struct qk_mg_service {
  /* What is solved with, and its base, which the hierarchy is made of: mostly the same. */
  qk_operator_t *outer, *op;
  qk_work_t *work;
  qk_mg_service_params_t params;
  qk_mg_t *mg;
  qk_cycle_t *cycle, *single_rhs;                         /* single_rhs: NULL where there is none */
  qk_cycle_vectors_t *cycle_vectors, *single_rhs_vectors; /* of each, or NULL */
  qk_mg_health_t health;
  int refined, rebuilt;
  qk_mg_refresh_t wish;          /* what it asks the front for, where that decides */
  uint64_t refresh;              /* number of the front's last order; 0: there was none */
  uint64_t seed;                 /* at first */
  int64_t bytes;                 /* on the device, all ranks */
  char checkpoint[QK_FILE_PATH]; /* the file; "": none */
  bool written;                  /* it holds what is in use */
  char trouble[256];             /* why it was not read, or not written */
  char evolve_trouble[512];      /* why no vectors of evolve_from are in use; "": they are, or
                                    none were asked for or needed */
  qk_mg_save_t *save;            /* under way */
} qk_mg_service_t;

/* op, and the work fields of its base, are borrowed. */
qk_status_t qk_mg_service_create(qk_operator_t *op, qk_work_t *work,
                                 const qk_mg_service_params_t *params, qk_progress_fn *progress,
                                 void *arg, qk_mg_service_t **host, qk_err_t *err);
void qk_mg_service_destroy(qk_mg_service_t *host); /* NULL-safe; waits for a checkpoint under way */

/* Before destroy on a rank that has lost the others: nothing collective follows. NULL-safe. */
void qk_mg_service_abandon(qk_mg_service_t *host);
/* For solvers of all slots, or of one, made after the last create or refresh; borrows the host. */
qk_precond_t qk_mg_service_precond(qk_mg_service_t *host, bool single_rhs);

/* What is to be done. number 0: as this engine has decided. Else it is the front's order to
 * replicas: a rebuild begins from the first seed plus the number; one writes, the others reload. */
typedef struct qk_mg_order {
  qk_mg_refresh_t refresh;
  uint64_t number;
  bool writes;
} qk_mg_order_t;

/* A refinement or reload that does not succeed becomes a rebuild. No solver may use the
 * host. After an error the host can only be destroyed. */
qk_status_t qk_mg_service_refresh(qk_mg_service_t *host, qk_mg_order_t order,
                                  qk_progress_fn *progress, void *arg, qk_err_t *err);

/* Looks after the checkpoint. *news: a write has ended, well or badly. */
qk_status_t qk_mg_service_poll(qk_mg_service_t *host, bool *news);

#endif
