/*
 * table.h: pieces of correlators as tables, JSON and pictures.
 *
 * Masses are effective ones of t and t + 1: by the cosh form for the named mesons, log C(t) / C(t + 1)
 * for everything else; of the real part.
 */
#ifndef QUARKCTL_TABLE_H
#define QUARKCTL_TABLE_H

#include <jansson.h>

#include "client/analysis/corrfile.h"
#include "client/cli/plot.h"

/* A table for each channel and momentum, with pictures in characters where draw says so. */
int ctl_table_print(const qk_corrpiece_t *piece, bool draw);
/* One object; NULL without memory. */
json_t *ctl_table_json(const qk_corrpiece_t *piece);
/* Every channel at the first momentum. drawn (may be NULL): false where there is no gnuplot, which is
 * said and no error. */
int ctl_table_png(const char *path, const qk_corrpiece_t *piece, bool *drawn);
/* A picture, and what is to be said where there is none. */
int ctl_picture(const char *path, const char *title, int n, const ctl_curve_t *curves, bool *drawn);

/* A list of numbers, null where they are not finite. */
json_t *ctl_numbers(const double *x, int n);

#endif
