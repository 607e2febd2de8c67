/*
 * workfile.h: the file that describes a workflow. quarkctl(1) lists its keys.
 *
 *   [workflow]     out, gauge (patterns) or endpoint, action and its parameters, kappa or mass as
 *                  lists, boundary, tolerance, max-iter, dtype, quarkd, evolve
 *   [daemon]       options of quarkd
 *   [source NAME]  source, smear, links, times, flavour; any number of these sections
 *   [channels]     names, momenta, sink
 *
 * Relative paths begin at the folder of the file. The items of a list are separated by blanks or
 * commas (momenta: by blanks). A list may go on in indented lines. Comments have lines of their
 * own. Errors: QK_BAD_ARGUMENT, QK_BAD_FORMAT, QK_IO_ERROR, with file:line, key, value and limit.
 */
#ifndef QUARKCTL_WORKFILE_H
#define QUARKCTL_WORKFILE_H

#include "client/analysis/channels.h"
#include "client/analysis/source.h"
#include "client/cli/operator.h"

typedef struct ctl_list {
  int n;
  char **item;
} ctl_list_t;

typedef struct ctl_worksource {
  char name[64];
  qk_source_t source;
  quark_smearing_t smear; /* its links are also those of the sink */
  int32_t flavour;        /* 1 or -1 */
  int ntimes;             /* 0: the time slice of the source */
  int32_t *times;
} ctl_worksource_t;

typedef struct ctl_workfile {
  char *path, *out, *endpoint, *quarkd; /* endpoint, quarkd: NULL: not given */
  ctl_list_t gauge;                     /* files, in order; none with an endpoint */
  /* With an endpoint what is given of these must be what its daemon has. */
  char *action;          /* NULL: not given */
  const char *quark_key; /* "kappa" or "mass": of the list */
  ctl_list_t quark_text; /* one quark each */
  ctl_list_t key, value; /* the other parameters of the action */
  qk_values_t *quark;    /* with gauge: the operators, quark_text.n of them */
  double boundary[8];
  bool has_boundary;
  char *boundary_text;
  ctl_list_t daemon; /* "--key=value" */
  bool no_evolve;    /* multigrid of each daemon starts from noise */
  quark_params_t params;
  int nsource;
  ctl_worksource_t *source;
  qk_channels_t channels;
  uint32_t nmom;
  int32_t (*momentum)[3];
  quark_smearing_t sink; /* alpha and steps */
} ctl_workfile_t;

/* given: action and parameters that replace those of the file. */
qk_status_t ctl_workfile_read(const char *path, const ctl_operator_t *given, ctl_workfile_t *work,
                              qk_err_t *err);
void ctl_workfile_fini(ctl_workfile_t *work);

/* The source at time slice i of its list, as a source and as text. */
void ctl_worksource_at(const ctl_worksource_t *source, int i, qk_source_t *at, char text[128]);

#endif
