/*
 * tool.h: common parts of the commands of quark-gauge, also used by quark-tune.
 *
 * Every command runs on one rank, or under mpirun on all ranks that were started; rank 0 prints.
 * Results go to stdout, as text or (--json) as one object; everything else goes to stderr.
 *
 * Exit codes   0; 64 usage; 65 a file is missing, damaged or cannot be written, or no
 *              convergence; 69 no such device;
 *              70 the device or a rank failed; 75 not enough memory, or interrupted.
 */
#ifndef QK_GAUGE_TOOL_TOOL_H
#define QK_GAUGE_TOOL_TOOL_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "daemon/engine/gauge/gauge.h"
#include "daemon/engine/gauge/gaugefield.h"
#include "proto/choices.h"

/* ---- options that several commands have: rows of a command's table, and their parser ---- */

typedef struct qk_tool_options {
  bool json, has_dims, ignore_checksum;
  int dims[4];
  int bits;           /* 0: not given */
  const char *format; /* NULL: not given */
  const char *backend;
  int grid[4];          /* 0: to be chosen */
  const char *in, *out; /* the arguments of a command from file to file */
} qk_tool_options_t;

enum {
  QK_TOOL_BACKEND = 256,
  QK_TOOL_GRID,
  QK_TOOL_IGNORE_CHECKSUM,
  QK_TOOL_OWN /* keys of a command begin here */
};

#define QK_TOOL_ROW_JSON                                                                           \
  { "json", 'j', NULL, 0, "one JSON object on stdout", 8 }
#define QK_TOOL_ROW_DIMS                                                                           \
  { "dims", 'd', "XxYxZxT", 0, "extents, for LIME files that do not give them", 0 }
#define QK_TOOL_ROW_IGNORE_CHECKSUM                                                                \
  {                                                                                                \
    "ignore-checksum", QK_TOOL_IGNORE_CHECKSUM, NULL, 0,                                           \
        "take links that do not give the checksum of the file; plaquette and unitarity are "       \
        "verified all the same",                                                                   \
        0                                                                                          \
  }
#define QK_TOOL_ROW_BITS                                                                           \
  { "bits", 'b', "32|64", 0, "precision of what is written", 6 }
#define QK_TOOL_ROW_FORMAT                                                                         \
  { "format", 'f', "FORMAT", 0, "ildg or nersc (else by the extension of what is written)", 6 }
#define QK_TOOL_ROW_BACKEND                                                                        \
  { "backend", QK_TOOL_BACKEND, "KIND", 0, QK_CHOICE_LIST(QK_BACKENDS) " (auto)", 7 }
#define QK_TOOL_ROW_GRID                                                                           \
  { "grid", QK_TOOL_GRID, "XxYxZxT", 0, "ranks in each direction (else of least surface)", 7 }

/* Parses the rows above; ARGP_ERR_UNKNOWN for all else. */
error_t qk_tool_parse_option(int key, char *arg, struct argp_state *state,
                             qk_tool_options_t *options);
/* Likewise, and the arguments IN and OUT, both of which are needed, with the format of OUT. */
error_t qk_tool_parse_in_out(int key, char *arg, struct argp_state *state,
                             qk_tool_options_t *options);
/* The whole command line; exits for --help and bad usage. */
void qk_tool_parse(const struct argp *argp, int argc, char **argv, void *input);
/* At the end of parsing: sets options->format by the extension of `out` where it was not given;
 * usage error where that does not tell. */
void qk_tool_need_format(const struct argp_state *state, qk_tool_options_t *options,
                         const char *out);
/* Which of n words `arg` is, else usage error with the list. */
int qk_tool_word(const struct argp_state *state, const char *option, const char *arg, int n,
                 const char *const words[]);
/* Numbers in [min, max], else usage error. */
int64_t qk_tool_integer(const struct argp_state *state, const char *option, const char *arg,
                        int64_t min, int64_t max);
double qk_tool_real(const struct argp_state *state, const char *option, const char *arg, double min,
                    double max);
/* Usage error unless the name can stand in JSON. */
void qk_tool_need_utf8(const struct argp_state *state, const char *name);
/* Usage error unless a file may be written there (qk_file_may_replace); what: OUT. */
void qk_tool_need_target(struct argp_state *state, const char *what, const char *path);

/* ---- a run ---- */

typedef struct qk_tool {
  const char *program; /* for messages: "quark-gauge" */
  qk_comm_t *comm;
  bool root, json;
  qk_ops_ctx_t *ctx; /* after open_device; with dev */
  const qk_ops_t *ops;
  qk_geom_t geom; /* after lay_out or load */
  qk_device_t dev;
} qk_tool_t;

/* Starts the ranks. Collective. */
qk_status_t qk_tool_begin(qk_tool_t *tool, const char *program, const qk_tool_options_t *options,
                          int argc, char **argv, qk_err_t *err);
/* Prints the error, closes the device, ends the ranks; the exit code. Collective. */
int qk_tool_end(qk_tool_t *tool, qk_status_t status, const qk_err_t *err);

/* Cuts the lattice over the ranks. Collective. */
qk_status_t qk_tool_lay_out(qk_tool_t *tool, const qk_tool_options_t *options, const int dims[4],
                            qk_err_t *err);
/* The backend, before the lattice is cut, for who needs its operations first. Collective. */
qk_status_t qk_tool_launch(qk_tool_t *tool, const char *backend, qk_err_t *err);
/* After lay_out or load; launches what has not been. Collective. */
qk_status_t qk_tool_open_device(qk_tool_t *tool, const char *backend, qk_err_t *err);
/* The words for a status that came from the device without any. */
qk_status_t qk_tool_explain(const qk_tool_t *tool, qk_status_t status, qk_err_t *err);

/* ---- a configuration that was read and found good ---- */

typedef struct qk_tool_config {
  qk_gauge_info_t info;
  qk_gauge_check_t check;
  double *links; /* local, host memory of qk_malloc */
} qk_tool_config_t;

/* The header, on all ranks; dims where the options give them. Collective. */
qk_status_t qk_tool_probe(qk_tool_t *tool, const char *path, const qk_tool_options_t *options,
                          qk_gauge_info_t *info, qk_err_t *err);
/* The links of `path`, laid out as tool->geom is. Collective. */
qk_status_t qk_tool_read(qk_tool_t *tool, const char *path, qk_tool_config_t *config,
                         qk_err_t *err);
/* probe, lay_out and read. Collective. */
qk_status_t qk_tool_load(qk_tool_t *tool, const char *path, const qk_tool_options_t *options,
                         qk_tool_config_t *config, qk_err_t *err);
/* Host memory for the local links; ranks agree. Collective. */
qk_status_t qk_tool_alloc_links(qk_tool_t *tool, double **links, qk_err_t *err);

/* ---- output ---- */

/* Tells on stderr, on rank 0, that links of this check stand in a file of more bits than they are
 * unitary to, so that it will be refused where it is read. */
void qk_tool_tell_bits(const qk_tool_t *tool, const char *path, int bits,
                       const qk_gauge_check_t *check);

/* Prints and releases the object, on rank 0. */
void qk_tool_print(const qk_tool_t *tool, json_t *object);

/* ---- commands: argv[0] is "quark-gauge COMMAND" ---- */

typedef int qk_tool_command_fn(int argc, char **argv);
qk_tool_command_fn qk_tool_info, qk_tool_convert, qk_tool_fix, qk_tool_generate, qk_tool_smear;

#endif
