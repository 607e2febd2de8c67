/*
 * plot.h: pictures of a correlator: in the terminal, and as a PNG by gnuplot.
 */
#ifndef QUARKCTL_PLOT_H
#define QUARKCTL_PLOT_H

#include <stdio.h>

#include "client/correlator.h"

/* C(t) on a logarithmic scale, in characters of the locale. */
void ctl_plot_terminal(FILE *to, const char *channel, const qk_correlator_t *corr);

/* C(t) and the effective mass. Errors: QK_NOT_FOUND where there is no gnuplot, QK_IO_ERROR. */
qk_status_t ctl_plot_png(const char *path, const char *channel, const qk_correlator_t *corr,
                         qk_err_t *err);

#endif
