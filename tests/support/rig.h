/*
 * rig.h: an engine in a test: device, lattice, links, work fields and one operator, on one rank or
 * on all ranks of MPI_COMM_WORLD.
 *
 * The backend is QK_BACKEND (default cpu). gauge: a path, "builtin:...", "random:XxYxZxT:seed"
 * (links without any smoothness; one rank) or "tiled:XxYxZxT:PATH" (a configuration repeated; one
 * rank). Spinors on the host are complex doubles in wire order of the local lattice,
 * [t][z][y][x][spin][colour]. Everything that is not under test ends the process with a message
 * when it fails, so that tests read without error handling.
 */
#ifndef QK_TESTS_RIG_H
#define QK_TESTS_RIG_H

#include "daemon/engine/gauge/gauge.h"
#include "daemon/engine/hadron/contract.h"
#include "daemon/engine/krylov/solver.h"

typedef struct qk_rig {
  qk_comm_t *comm;
  qk_geom_t geom;
  qk_device_t dev;
  qk_work_t *work;
  qk_gauge_info_t info;
  qk_gauge_check_t check;
  double *links;
  qk_operator_t *op; /* NULL until rig_operator */
} qk_rig_t;

/* MPI on the grid of four arguments from argv[first] on; NULL: they are not there. */
qk_comm_t *rig_ranks(int *argc, char ***argv, int first);
/* "N,N,..." of a benchmark's command line, each 1 to `most`, at most 8 of them into batch; returns
 * how many there are, 0 if the text is none of that. */
int rig_batches(const char *text, int most, int batch[8]);
/* comm NULL: one rank; else taken, with its grid set. dims: for files that do
 * not hold them, or NULL. */
void rig_open(qk_rig_t *rig, qk_comm_t *comm, const char *gauge, const int dims[4]);
/* Replaces the operator; phase_t: the factor across the edge in t. All precisions are held. */
void rig_operator(qk_rig_t *rig, double mass, double csw, double phase_t);
/* The same of a canonical text. */
void rig_action(qk_rig_t *rig, const char *text, double phase_t);
/* Device bytes for the flavours of n right-hand sides, the first of minus[]; the caller frees
 * them. */
uint8_t *rig_flavours(const qk_rig_t *rig, const uint8_t *minus, int n);
void rig_close(qk_rig_t *rig);

/* The heading of a benchmark: the links, what is computed on them, device and backend. */
void rig_print(const qk_rig_t *rig, const char *gauge, const char *what);

/* False, with a line that says so, where the backend has no device. */
bool rig_backend_present(void);

size_t rig_reals(const qk_rig_t *rig); /* of one local column */
double *rig_vector(const qk_rig_t *rig);
/* Values in (-1, 1) that depend on seed and global site only. */
void rig_random(const qk_rig_t *rig, uint64_t seed, double *v);
void rig_point(const qk_rig_t *rig, int spin, int colour, double *v); /* at the origin */

void rig_import(const qk_rig_t *rig, qk_field_t *field, int rhs, const double *v);
void rig_export(const qk_rig_t *rig, const qk_field_t *field, int rhs, double *v);
/* A source in the field, of one column: noise in all vectors, a point in the first. args->field is
 * not looked at. */
void rig_source(const qk_rig_t *rig, const qk_source_args_t *args, const qk_field_t *field);
/* out = M in, or M^+ in, in double for one column. */
void rig_apply(qk_rig_t *rig, const double *in, bool dagger, double *out);

/* Sums over all ranks. */
double rig_norm2(const qk_rig_t *rig, const double *v);
void rig_dot(const qk_rig_t *rig, const double *a, const double *b, double out[2]);
/* |a - b| / |b| */
double rig_distance(const qk_rig_t *rig, const double *a, const double *b);

qk_solver_t *rig_solver(qk_rig_t *rig, const char *method, qk_prec_t inner, int nslot);
/* Steps until no slot runs. */
void rig_run(qk_solver_t *solver);

/* A contraction from its beginning to its end, with memory of its own. */
qk_status_t rig_contract(const qk_contract_t *what, int nchannel, const qk_channel_id_t channel[],
                         double *out, qk_err_t *err);

void rig_must(qk_status_t status, const char *what, const qk_err_t *err);

#endif
