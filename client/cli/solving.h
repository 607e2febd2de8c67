/*
 * solving.h: what `propagator`, `solve`, `sequential`, `correlator` and `fetch` have in common.
 *
 * Right-hand sides are generated or come from a file. They go to the daemon in requests of a few,
 * of which two are under way at a time. Each solution is fetched as it comes, written to the output
 * file while the next one is fetched, and then acknowledged. One right-hand side and two solutions
 * are in memory. Functions that return an int return an exit code and have printed the reason.
 */
#ifndef QUARKCTL_SOLVING_H
#define QUARKCTL_SOLVING_H

#include "client/analysis/filespec.h"
#include "client/analysis/source.h"
#include "client/cli/ctl.h"
#include "client/cli/writer.h"
#include "proto/limits.h"

/* Options of these commands. */
typedef struct ctl_solve_options {
  ctl_common_t common;
  const char *out;
  bool out_optional;         /* set by the command: it may be used without out */
  bool can_detach, can_file; /* set by the command: it has detach_s, file */
  bool can_five;             /* set by the command: it has params.five_d */
  bool can_masses;           /* set by the command: it has params.mass */
  qk_field_format_t format;  /* of out */
  bool has_format;           /* false: as the name of out says */
  qk_filespec_t file;        /* the daemon writes the solutions there, not to out; path "": none */
  uint64_t detach_s;         /* seconds; 0: waits for the solutions */
  /* tol, tol_abs, tol_hq, max_iter, deadline, priority, dtype, basis, normalisation, flavour,
   * five_d, smear, mass: */
  quark_params_t params;
  double mass[QK_MASSES_MAX];
  quark_smearing_t sink; /* of commands that also smear sinks; with the links of params.smear */
  bool has_tol, has_dtype, has_basis, progress, has_client;
  uint8_t client[QUARK_CLIENT_ID_BYTES];
} ctl_solve_options_t;

extern const qk_option_table_t ctl_solve_table; /* its values are a ctl_solve_options_t */
/* Of commands that make no fields of solutions: without forms of files, smearing and --detach. */
extern const qk_option_table_t ctl_solve_few_table;
void ctl_solve_options_init(ctl_solve_options_t *options);
/* Parses a Gaussian smearing, or exits with a usage error. */
void ctl_smearing(const struct argp_state *state, const char *name, const char *text,
                  quark_smearing_t *smearing);
/* Parses a flavour, or exits with a usage error. */
void ctl_flavour(const struct argp_state *state, const char *name, const char *text,
                 int32_t *flavour);
/* "mass", "kappa" or "twice". */
const char *ctl_normalisation(quark_normalisation_t normalisation);
/* Parses a format of field files, or exits with a usage error. */
void ctl_field_format(const struct argp_state *state, const char *name, const char *text,
                      qk_field_format_t *format);
/* Parses a file that the daemon opens, or exits with a usage error. */
void ctl_filespec(const struct argp_state *state, const char *name, const char *text, bool source,
                  qk_filespec_t *file);
/* Parses --source, or exits with a usage error. */
void ctl_source(const struct argp_state *state, const char *text, qk_source_t *source);

typedef struct ctl_work {
  const ctl_solve_options_t *options;
  quark_connection_t *conn;
  quark_report_t report;
  quark_params_t params;        /* from options and input; column and nrhs are unused */
  quark_smearing_t described;   /* of the source, for the output file */
  const char *kind, *source;    /* for the output file: "propagator"; "point:0,0,0,0" */
  const char *sequential;       /* for the output file; NULL: it is not sequential */
  const char *described_source; /* for the output file in place of source; NULL: that */
  double mass;                  /* for the output file; NaN: that of the setup */
  const char *out;              /* where that is */
  int64_t nrhs;                 /* of a mass */
  bool whole;                   /* one request, as the daemon opens its file */
  const quark_column_t *column; /* generated sources: nrhs of them */
  qk_fieldfile_t *in;           /* uploaded sources: the input file */
} ctl_work_t;

/* Connects and waits until the daemon is ready; fills conn and report. */
int ctl_work_begin(ctl_work_t *work, const ctl_solve_options_t *options);
/* Makes the columns of a source on the daemon's lattice. text: --source, for errors. The caller
 * frees them. */
int ctl_columns(const qk_source_t *source, const char *text, const quark_report_t *report,
                int64_t *n, quark_column_t **columns);
/* OUT with _mMASS before its ending. An exit code. */
enum { CTL_OUT_MAX = 4200 };
int ctl_mass_file(const char *out, double mass, char name[CTL_OUT_MAX]);
/* Solves everything, writes the output file and prints the outcome. */
int ctl_work_run(ctl_work_t *work);
void ctl_work_end(ctl_work_t *work);

/* Of the output file. */
qk_field_format_t ctl_work_format(const ctl_work_t *work);
/* Bits of one real number in the output file: 32 or 64. */
int ctl_work_bits(const ctl_work_t *work);
/* Seconds for which a full daemon is asked again. */
double ctl_work_patience(const ctl_work_t *work);
/* Uploads right-hand sides first .. first + nrhs - 1 of the input. field: room for one of `bytes`.
 */
int ctl_work_upload(ctl_work_t *work, uint64_t request, int64_t first, uint32_t nrhs, void *field,
                    size_t bytes);
void ctl_pause(uint32_t ms);

/* ---- detach.c ---- */

/* Submits everything as detached requests, and writes a ticket for `quarkctl fetch` beside the
 * output. */
int ctl_detach(ctl_work_t *work);

/* ---- outcome.c: results on their way into the output file ---- */

typedef struct ctl_outcome {
  const ctl_work_t *work;
  qk_fieldfile_t *out;
  quark_result_t *result; /* nrhs */
  void *field;            /* room for one to be uploaded */
  size_t field_bytes;
  int64_t ended;
  bool ack, any_solution;
  ctl_writer_t *writer; /* NULL: the daemon writes the solutions */
  ctl_clocks_t clock;
  double begun;
  qk_wall_t wall; /* sums of domain wall fermions; nt 0: not of this setup */
} ctl_outcome_t;

/* What an output file says of the setup; all else is unknown. */
void ctl_describe_setup(const quark_report_t *report, qk_h5meta_t *meta);
/* Whether the format of the output can hold what the work solves for: to be asked before anything
 * is solved. */
int ctl_outcome_fits(const ctl_work_t *work);
/* Begins the output file. It must be closed even if this fails. ack: right-hand sides are
 * acknowledged, those with a solution once it is written. */
int ctl_outcome_open(const ctl_work_t *work, bool ack, ctl_outcome_t *outcome);
/* Takes the result of right-hand side rhs: fetches its solution and has it written. */
int ctl_outcome_take(ctl_outcome_t *outcome, int64_t rhs, const quark_result_t *result);
/* The time slice that all these sources are on; -1: there is none. */
int ctl_wall_time(const quark_column_t *column, int64_t n, quark_source_t source);
/* Takes the sums that came with the result of right-hand side rhs, if any did and it has converged.
 * An exit code. */
int ctl_wall_take(qk_wall_t *wall, quark_connection_t *conn, int64_t rhs,
                  const quark_result_t *result);
/* Tells whether writing has failed; drain: waits until all solutions that were taken are written.
 */
int ctl_outcome_check(ctl_outcome_t *outcome);
int ctl_outcome_drain(ctl_outcome_t *outcome);
/* Makes the file appear and sets *written, if there is anything to write. Prints how the work has
 * ended, and returns the exit code for it. */
int ctl_outcome_finish(ctl_outcome_t *outcome, bool *written);
void ctl_outcome_close(ctl_outcome_t *outcome);

/* ---- progress.c ---- */

typedef struct ctl_progress {
  bool shown, terminal;
  int64_t total, ended;
  double begun, last; /* seconds */
} ctl_progress_t;

double ctl_seconds(void); /* a monotonic clock */
/* wanted: shows progress even if stderr is no terminal. */
void ctl_progress_begin(ctl_progress_t *progress, int64_t total, bool wanted);
/* event: a PROGRESS or RESULT that has come. */
void ctl_progress_show(ctl_progress_t *progress, const quark_event_t *event);
/* Shows another text in its place. */
void ctl_progress_line(ctl_progress_t *progress, const char *text);
void ctl_progress_end(ctl_progress_t *progress);

#endif
