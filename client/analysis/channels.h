/*
 * channels.h: hadron channels by name, computed from the contractions of the daemon
 * (quark_channel_t).
 *
 *   pion, a4, a0, rho, rho_t, a1, b1   mesons: the mean over polarisations of <O(x) O^+(x0)> = -s
 *   C_GG,   O = qbar G q,   gt G^+ gt = s G with G = g5; g5 gt; 1; gi; gi gt; gi g5; gi gj.
 *   Connected part, positive. nucleon, nucleon_minus   N and its parity partner: C(t) = +-1/2 {
 *   tr[(1 +- gt)/2 N(t)] + tr[(1 -+ gt)/2 N(-t)] } delta              the same of sum_ij P_ij
 *   Delta_ji(t) with P_ij = delta_ij - gi gj / 3, which is spin 3/2 at rest
 *   nucleon_corner     of fields with colour alone: the local nucleon as it is
 *   pioni5, pionij, pioni0, pioni, pion0, pions   likewise: pions of other tastes, the mean over i,
 *                      with MILC's names: g5 or g5 gt times taste gi g5; gi gj; gi gt; gi; gt; 1
 *   tastes             pion, a4 (MILC's pion05) and these six
 *   SINK-SOURCE        a
 *   meson of two gamma matrices as the daemon gives it: id, g5, gx, gxgt, ... or the numbers 0 ..
 *   15 of quark.h: "g5-gxgygz", "15-7" all                all names above; pairs: all 256 pairs
 *
 * t counts from the source. N(-t) continues N to times before the source: it is N(T - t) without
 * the cube of the phase of the boundary in t, which N picks up once around the lattice.
 * docs/physics.md has the formulas. The gamma basis is DeGrand-Rossi. All functions are pure.
 * Errors: QK_BAD_ARGUMENT, with the word that is wrong; QK_NO_MEMORY.
 */
#ifndef QK_CLIENT_CHANNELS_H
#define QK_CLIENT_CHANNELS_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/quark.h"
#include "daemon/base/err.h"

enum { QK_CHANNEL_NAME = 24 };

typedef struct qk_channels {
  int n;
  struct qk_channel_line *line; /* n */
  uint32_t nraw;
  quark_channel_t *raw; /* nraw different ones, which the daemon computes */
  bool tastes;          /* there are names of fields with colour alone that are shifted */
} qk_channels_t;

/* text: names separated by commas or blanks. Repeated names count once. */
qk_status_t qk_channels_parse(const char *text, qk_channels_t *channels, qk_err_t *err);
void qk_channels_fini(qk_channels_t *channels);

const char *qk_channels_name(const qk_channels_t *channels, int i);
/* True if C(T - t) = C(t), so that a cosh describes the correlator: for mesons that have a name. */
bool qk_channel_is_symmetric(const char *name);
/* Of staggered fermions: whether a partner of the other parity alternates in it, as in all but the
 * pion. */
bool qk_channel_alternates(const char *name);
/* By which the propagator of a meson of colour vectors is shifted at source and sink: bits 1, 2, 4
 * for x, y, z. Above 7: in t, too, which is not done. */
unsigned qk_channel_shift(const quark_channel_t *raw);
/* Of staggered fermions: whether a wall, which has the same number on all sites of its slice, makes
 * it. Of mesons only those whose sign is the same on the whole slice, the pion and gt-gt: the mean
 * over configurations of all others is zero. */
bool qk_channel_is_of_walls(const quark_channel_t *raw);

/* Complex numbers of all raw channels at one momentum and time. */
int64_t qk_channels_numbers(const qk_channels_t *channels);

/* raw: [raw channel][momentum][T][numbers]; out: [channel][momentum][T]. phase: that of the
 * boundary in t; its modulus is 1. */
void qk_channels_evaluate(const qk_channels_t *channels, const double complex *raw, int nmom,
                          int nt, double complex phase, double complex *out);

/* Gamma matrices 0 .. 15 in words: "id", "g5", or products such as "gxgt". Numbers are read as
 * well. */
enum { QK_GAMMA_NAME = 12 };
bool qk_gamma_parse(const char *text, uint32_t *n);
void qk_gamma_print(uint32_t n, char text[QK_GAMMA_NAME]);

/* Reads at most QK_MOMENTA_MAX momenta: triples of integers, separated by ';' or blanks:
 * "0,0,0;1,0,0". The caller frees *momenta. */
qk_status_t qk_momenta_parse(const char *text, uint32_t *n, int32_t (**momenta)[3], qk_err_t *err);

#endif
