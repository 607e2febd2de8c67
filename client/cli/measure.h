/*
 * measure.h: propagators that the daemon keeps, and correlators that it makes of them.
 *
 * All functions return exit codes and have printed the reason; they wait for a full daemon as long as
 * `give_up` allows and leave when the process is interrupted. What the daemon keeps is released
 * whatever happens.
 */
#ifndef QUARKCTL_MEASURE_H
#define QUARKCTL_MEASURE_H

#include "client/analysis/channels.h"
#include "client/analysis/corrfile.h"
#include "client/cli/solving.h"

/* Submits the columns as one request that is kept and waits for all of them. params: column and nrhs are
 * set here. result: n of them. On success the caller releases *request. */
int ctl_keep(quark_connection_t *conn, const quark_params_t *params, int64_t n,
             const quark_column_t *columns, double give_up, ctl_progress_t *progress,
             uint64_t *request, quark_result_t *result);

typedef struct ctl_measurement {
  quark_params_t params; /* as of ctl_solve_options_t; with smear */
  quark_smearing_t sink;
  const char *text; /* of the source */
  qk_source_t source;
  const qk_channels_t *channels;
  uint32_t nmom;
  const int32_t (*momentum)[3];
  double patience; /* seconds, with a full daemon */
} ctl_measurement_t;

/* Names of the groups: the last part of the configuration's path, "kappa=0.1333", the label. */
void ctl_name_piece(const char *gauge, double kappa, const char *label, qk_corrmeta_t *meta);

/* Point and wall sources: those of which all spins and colours make a propagator. */
bool ctl_can_measure(const qk_source_t *source);

/* Solves, contracts, fetches the correlators. names: config, quark, label and name are taken over, the
 * rest is filled in from the daemon and the measurement. */
int ctl_measure(quark_connection_t *conn, const quark_report_t *report,
                const ctl_measurement_t *what, const qk_corrmeta_t *names, ctl_progress_t *progress,
                qk_corrpiece_t *piece);

/* What the measurement and the daemon decide of the description of a piece. */
void ctl_measurement_describe(const ctl_measurement_t *what, const quark_report_t *report,
                              qk_corrmeta_t *meta);

#endif
