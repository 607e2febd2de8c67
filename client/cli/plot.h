/*
 * plot.h: pictures of correlators, in the terminal and as PNG files by gnuplot.
 */
#ifndef QUARKCTL_PLOT_H
#define QUARKCTL_PLOT_H

#include <stdio.h>

#include "daemon/base/err.h"

/* One correlator. NaN: nothing is drawn there. */
typedef struct ctl_curve {
  char label[128];
  int nt;
  const double *c, *mass;   /* nt each; mass[t] from C(t) and C(t + 1) */
  const double *dc, *dmass; /* errors; NULL: none */
} ctl_curve_t;

/* Draws C(t) on a logarithmic scale, in characters of the locale. */
void ctl_plot_terminal(FILE *to, const ctl_curve_t *curve);

/* Draws C(t) and the effective mass of n curves. Errors: QK_NOT_FOUND (no gnuplot), QK_IO_ERROR. */
qk_status_t ctl_plot_png(const char *path, const char *title, int n, const ctl_curve_t *curves,
                         qk_err_t *err);

/* Draws what `script` writes: commands of gnuplot that set the terminal pngcairo. The same errors.
 */
typedef void ctl_script_fn(FILE *to, const void *arg);
qk_status_t ctl_plot_script(const char *path, ctl_script_fn *script, const void *arg,
                            qk_err_t *err);

#endif
