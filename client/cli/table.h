/*
 * table.h: pieces of correlators as tables, JSON and pictures.
 *
 * Masses are effective masses from the real parts of C(t) and C(t + 1): by the cosh form for mesons
 * that have a name, log C(t) / C(t + 1) for all else; of staggered fermions, but for the pion, of
 * smoothed correlators (correlator.h). Functions that return an int return an exit
 * code and have printed the reason.
 */
#ifndef QUARKCTL_TABLE_H
#define QUARKCTL_TABLE_H

#include <jansson.h>

#include "client/analysis/corrfile.h"
#include "client/cli/plot.h"
#include "client/files/wall.h"

/* Prints a table for each channel and momentum. error: the piece with its errors, or NULL. draw:
 * with pictures in characters. */
int ctl_table_print(const qk_corrpiece_t *piece, const qk_corrpiece_t *error, bool draw);
/* One object; NULL: no memory. */
json_t *ctl_table_json(const qk_corrpiece_t *piece);
/* Draws every channel at the first momentum. *drawn (may be NULL): false if there is no gnuplot.
 * That is printed and is no error. */
int ctl_table_png(const char *path, const qk_corrpiece_t *piece, bool *drawn);
/* Draws n curves in the same way. */
int ctl_picture(const char *path, const char *title, int n, const ctl_curve_t *curves, bool *drawn);

/* Sums of domain wall fermions: one object, null where there are none; and R(t), the axial current
 * and the residual mass in print, nothing where there are none. */
json_t *ctl_wall_json(const qk_wall_t *wall);
void ctl_wall_print(const qk_wall_t *wall);

/* A list of numbers; null for those that are not finite. */
json_t *ctl_numbers(const double *x, int n);

#endif
