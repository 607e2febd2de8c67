/*
 * measure.h: propagators that the daemon keeps, and correlators that it makes of them.
 *
 * Functions that return an exit code have printed the reason. If the daemon is full, they try again
 * until `give_up`; they return when the process is interrupted. What the daemon keeps is released
 * in every case.
 */
#ifndef QUARKCTL_MEASURE_H
#define QUARKCTL_MEASURE_H

#include "client/analysis/channels.h"
#include "client/analysis/corrfile.h"
#include "client/cli/solving.h"

/* Submits the n columns as one request with kept solutions, and waits for all of them. column and
 * nrhs of params are ignored. result: [n], or [nmass][n] with masses. On success the caller
 * releases *request. */
int ctl_keep(quark_connection_t *conn, const quark_params_t *params, int64_t n,
             const quark_column_t *columns, double give_up, ctl_progress_t *progress,
             uint64_t *request, quark_result_t *result);

typedef struct ctl_measurement {
  quark_params_t params; /* as in ctl_solve_options_t, with smear */
  quark_smearing_t sink;
  const char *text; /* of --source */
  qk_source_t source;
  const qk_channels_t *channels;
  uint32_t nmom;
  const int32_t (*momentum)[3];
  double patience; /* seconds for which a full daemon is asked again */
} ctl_measurement_t;

/* Sets the names of the groups: the last part of the path of the configuration; "kappa=0.1333", or
 * "mass=0.05" of an action without kappa, with ",flavour=-1" of that flavour; and the label. */
void ctl_name_piece(const quark_report_t *report, const char *gauge, const char *label,
                    int32_t flavour, qk_corrmeta_t *meta);

/* True for point and wall sources, whose 12 columns make a propagator. */
bool ctl_can_measure(const qk_source_t *source);

/* 1, or one for each mass. */
uint32_t ctl_measurement_pieces(const ctl_measurement_t *what);
/* That are solved for, with those of shifted sources. */
int64_t ctl_measurement_columns(const ctl_measurement_t *what, const quark_report_t *report);

/* Solves, contracts and fetches the correlators: piece[ctl_measurement_pieces()], of which there is
 * none if it fails. Takes config, quark (that of a mass is its own), label and name from names, and
 * the rest of the description from the daemon and the measurement. */
int ctl_measure(quark_connection_t *conn, const quark_report_t *report,
                const ctl_measurement_t *what, const qk_corrmeta_t *names, ctl_progress_t *progress,
                qk_corrpiece_t *piece);

/* Fills in the part of a description that the measurement and the daemon determine. */
void ctl_measurement_describe(const ctl_measurement_t *what, const quark_report_t *report,
                              qk_corrmeta_t *meta);

#endif
