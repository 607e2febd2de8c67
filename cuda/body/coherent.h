/*
 * coherent.h: what the kernels of coherent_ops.h share on all backends: the sites of aggregates,
 * and where coefficients stand.
 */
#ifndef QK_BODY_COHERENT_H
#define QK_BODY_COHERENT_H

#include "cuda/body/vector_block.h"
#include "cuda/coherent_ops.h"

namespace QK_NS {

enum { QK_COHERENT_HALF = 6 }; /* components of a chirality */

/* Sites are pairs of neighbours in x, of which each parity has one. */
struct coherent_walk {
  qk_lattice_t lat;
  divider among[4]; /* aggregates per direction */
  divider in[4];    /* block extents, the first one halved */
  int block[4];
  int aggregates;
  int half, sites; /* of one parity in an aggregate, and of all that fields have there */
  int vectors;
  int64_t of_vector;

  /* Sites of all vectors of a field in an aggregate. */
  QK_ANY int items() const { return sites * vectors; }

  /* Where item k of the aggregate X stands in the field. */
  QK_ANY int64_t place(int X, int k) const {
    int x[4], n = k % sites;
    const int vector = k / sites, second = n / half; /* the odd sites of a full field */
    n %= half;
    for (int mu = 0; mu < 4; mu++) x[mu] = split_off(X, among[mu]) * block[mu];
    x[0] += 2 * split_off(n, in[0]);
    for (int mu = 1; mu < 4; mu++) x[mu] += split_off(n, in[mu]);
    return vector * of_vector + cb_of(lat, x) + (second ? lat.vcb : 0);
  }
};

inline coherent_walk coherent_walk_of(const qk_coherent_args_t &a) {
  coherent_walk w = {};
  w.lat = a.lat;
  w.aggregates = 1;
  w.half = 1;
  for (int mu = 0; mu < 4; mu++) {
    const int in = mu == 0 ? a.block[mu] / 2 : a.block[mu];
    w.among[mu] = divider_by(a.lat.l[mu] / a.block[mu]);
    w.in[mu] = divider_by(in);
    w.block[mu] = a.block[mu];
    w.aggregates *= a.lat.l[mu] / a.block[mu];
    w.half *= in;
  }
  w.sites = a.y.subset == QK_FULL ? 2 * w.half : w.half;
  w.vectors = a.y.inner > 1 ? a.y.inner : 1;
  w.of_vector = a.y.nsites / w.vectors;
  return w;
}

} // namespace QK_NS
#endif
