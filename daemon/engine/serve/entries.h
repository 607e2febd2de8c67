/*
 * entries.h: the in-flight entries of an engine, for those who move them: solves (inflight.c) and
 * works (works.c). What they are: inflight.h.
 */
#ifndef QK_ENGINE_ENTRIES_H
#define QK_ENGINE_ENTRIES_H

#include "daemon/engine/modes/projector.h"
#include "daemon/engine/serve/inflight.h"

typedef enum qk_entry_state {
  QK_ENTRY_FREE,
  QK_ENTRY_WAITING, /* for its source, for a slot, or for its work */
  QK_ENTRY_SOLVING, /* in a slot, until its solution has been taken out of it */
  QK_ENTRY_LEAVING, /* its solution is on the way */
  QK_ENTRY_ENDED    /* result is complete */
} qk_entry_state_t;

typedef struct qk_inflight_entry {
  qk_entry_state_t state;
  qk_fill_t fill;
  qk_segment_t out; /* open from fill on where the fill has a shm_out that takes the solution ... */
  qk_object_t object; /* ... or its projection */
  qk_buffer_t
      *buffer; /* WAITING: of the source, once it has begun to come; LEAVING: of the solution */
  qk_solver_t *solver;  /* SOLVING */
  int slot;             /* SOLVING */
  qk_measure_t measure; /* SOLVING */
  qk_result_t result;   /* LEAVING, ENDED */
  double *walls;        /* of result: wall sums; NULL: there never are any */
  int mass, source;     /* SOLVING without solver: which of the block of masses */
  bool follows;         /* WAITING: another one of its family has the source */
  qk_slot_t shown;      /* SOLVING without solver: how far it is */
  qk_field_t
      *five; /* SOLVING: source and solution of five dimensions (qk_entry_enter_five); NULL */
} qk_inflight_entry_t;

struct qk_inflight {
  qk_loaded_t *setup;
  qk_field_io_t *port;
  qk_staging_t *stage;
  qk_projector_t *projector;
  double *norms, *norms_host;   /* device, and pinned: [nslot + 1][2] */
  int waiting[QK_INFLIGHT_MAX]; /* entries in the order in which they came */
  int nwaiting;
  int left; /* buffers that are not for sources */
  uint64_t steps;
  /* Of works, while there are any: in, out, room, full, double, one column. */
  qk_field_t *field[3];
  struct qk_mass_block *masses; /* what is solved for several masses; NULL: nothing */
  bool blocks_go;               /* of the round */
  uint8_t *minus; /* device, one byte: the flavour -1 (operator.h); NULL: there are no flavours */
  qk_inflight_entry_t entry[QK_INFLIGHT_MAX];
};

static inline bool qk_loses_process(qk_status_t status) {
  return status >= QK_DEVICE_MEMORY;
}

/* The ranks need not agree on a status of the device, the solver or the communicator: what one rank
 * can see alone ends the process, and with it all ranks. */
qk_status_t qk_entry_explain(const qk_inflight_t *inflight, qk_status_t status, qk_err_t *err);

/* Whether it waits for a slot; others are works, or solved in a block of masses. */
static inline bool qk_entry_solves(const qk_inflight_entry_t *entry) {
  return entry->fill.work == QUARK__WORK__WORK_SOLVE && !entry->fill.has_mass;
}
static inline bool qk_entry_works(const qk_inflight_entry_t *entry) {
  return entry->fill.work != QUARK__WORK__WORK_SOLVE;
}

/* Whether its solution leaves as a projection (modes/projector.h). */
static inline bool qk_entry_projects(const qk_inflight_entry_t *entry) {
  return entry->fill.project[0] != '\0';
}

/* Memory for what the solver sums of solutions of domain wall fermions. */
qk_status_t qk_entry_make_walls(qk_inflight_t *inflight);
void qk_entry_free_walls(qk_inflight_t *inflight);
/* Takes them over from the slot into the result. */
void qk_entry_take_walls(const qk_inflight_t *inflight, qk_inflight_entry_t *entry);

/* Fills whose solutions, and uploaded sources, have the slices of a fifth dimension: as many
 * vectors one after the other in shared memory, slice 0 first. Such a fill has a field of its own
 * on the device, from its slot until it has left; its slices are read and written one by one,
 * without staging. */
/* The entry takes the slot, whose source is there if it has four dimensions. Nothing for other
 * fills, and where there is a verdict. verdict: QK_DEVICE_MEMORY; those of field_io.h. A status:
 * the process cannot go on. */
qk_status_t qk_entry_enter_five(const qk_inflight_t *inflight, qk_inflight_entry_t *entry,
                                qk_solver_t *solver, int slot, qk_err_t *verdict, qk_err_t *err);
/* Columns of a solution, at most. */
int qk_entry_columns(const qk_inflight_t *inflight);
/* Of norms of columns, [n][qk_entry_columns][2] in norms_host, to [n][2] there: the sum of those
 * that the entry has. */
void qk_entry_add_columns(qk_inflight_t *inflight, const int entry[], int n);
/* The field is freed, if it has one. */
void qk_entry_free_five(qk_inflight_entry_t *entry);

/* It waits, behind those that are not of higher order. */
void qk_entry_enter_queue(qk_inflight_t *inflight, int entry);
/* Sources of those that wait begin to come, as far as there are buffers. */
qk_status_t qk_entries_load(qk_inflight_t *inflight, qk_err_t *err);
void qk_entry_leave_queue(qk_inflight_t *inflight, int entry);
/* It ends without having been solved, or worked on. */
void qk_entry_refuse(qk_inflight_t *inflight, int entry, const qk_err_t *err);
/* Whether its source comes through a buffer, or is made of what comes; whether that is here. */
bool qk_entry_is_staged(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry);
bool qk_entry_is_ready(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry);
/* Adds the basis that a place in a source is told in, where it is another than that of the fill. */
void qk_entry_say_basis(const qk_inflight_entry_t *entry, qk_err_t *err);

/* The memory of a fill's shm_out is there, if it has one; and what a projection needs. *verdict:
 * why not. A status: the process cannot go on. */
qk_status_t qk_entry_open(qk_inflight_t *inflight, qk_inflight_entry_t *entry, qk_err_t *verdict,
                          qk_err_t *err);
/* Those of n entries that project, and have a solution, in solver slots: they end. The same numbers
 * as one by one, and vectors are read once. A status likewise. */
qk_status_t qk_entries_project(qk_inflight_t *inflight, const int ended[], int n, qk_err_t *err);

/* Before a round: what projections keep in memory goes if none is in flight, or as far as others
 * need room. True where it has gone. Not collective. */
bool qk_entries_rest(qk_inflight_t *inflight, const qk_round_t *round);

/* Whether its solution leaves through a buffer, if it has one. */
bool qk_entry_needs_buffer(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry,
                           bool has_solution);
/* Its solution x begins to leave, or is written, or there is none that is wanted; there must be
 * room where it needs a buffer. x may be overwritten on queue 0 afterwards. A status: the process
 * cannot go on. */
qk_status_t qk_entry_leave(qk_inflight_t *inflight, qk_inflight_entry_t *entry, const qk_field_t *x,
                           bool has_solution, qk_err_t *err);
/* The solution has been written, or could not be. */
void qk_entry_end(qk_inflight_entry_t *entry, bool written, const qk_err_t *why);

/* Whether a solution can be represented in the type that is asked for: f32 holds 1e-38 to 1e38, and
 * a converged solution could come out as zeros or Inf.
 * x: of a fill that has ended, norm2 its |x|^2, as far as a double holds that. *norm_x: |x|.
 * *verdict: BAD_ARGUMENT with the number, its place in the basis of the fill and what to do, where
 * factor * x is to be written and does not fit. Collective; the same on all ranks. Errors: those of
 * extent.h. */
qk_status_t qk_entry_check_range(qk_work_t *work, const qk_fill_t *fill, const qk_field_t *x,
                                 double norm2, double *norm_x, qk_err_t *verdict);

#endif
