/*
 * gaugefield.h: SU(3) links on the device that are changed: evolved (evolve.h), smeared
 * (link_smear.h) or gauge fixed (fix/gauge_fix.h). Layout: qk_linkfield_t, cuda/types.h. Complex
 * double. A field of one direction has a matrix a site, where links have U_x.
 *
 * The halo in split directions is updated by exchange; a function that changes local links says in
 * which directions. Work runs on queue 0; export, measure and, if the lattice is split, exchange
 * wait for it. All calls except destroy are collective. Errors: QK_DEVICE_MEMORY and QK_NO_MEMORY
 * (only from create, agreed by all ranks), QK_BAD_ARGUMENT, QK_DEVICE_ERROR, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_GAUGEFIELD_H
#define QK_ENGINE_GAUGEFIELD_H

#include "daemon/engine/lattice/field.h"

typedef struct qk_gaugefield {
  const qk_device_t *dev;
  qk_linkfield_t v;
  int directions; /* 4; 1: of create_sites */
  size_t bytes;
  struct qk_gaugefield_staging *staging; /* of exchange, import and export; owned */
  struct qk_swap *swap[4];               /* of share; NULL: messages */
} qk_gaugefield_t;

/* Device memory of its links, and of what they are moved by. Pure. */
size_t qk_gaugefield_bytes(const qk_lattice_t *lat, int halo);
size_t qk_gaugefield_staging_bytes(const qk_lattice_t *lat, int halo);
/* halo: 1, or 2 for rectangles. Contents undefined. */
qk_status_t qk_gaugefield_create(const qk_device_t *dev, int halo, qk_gaugefield_t **field);
/* A matrix a site: not for measure, and exchange with mask 1 only. */
qk_status_t qk_gaugefield_create_sites(const qk_device_t *dev, int halo, qk_gaugefield_t **field);
void qk_gaugefield_destroy(qk_gaugefield_t *field); /* NULL-safe */

/* From now on exchange goes through memory that ranks share, if they do (peers.h), not through the
 * host. For fields that live long: that memory stays until qk_peers_destroy. Collective. */
qk_status_t qk_gaugefield_share(qk_gaugefield_t *field);

/* links: host memory, local lattice, order of gauge.h (with one direction only 9 complex numbers a
 * site). import fills the halo, too. */
qk_status_t qk_gaugefield_import(qk_gaugefield_t *field, const double *links);
qk_status_t qk_gaugefield_export(const qk_gaugefield_t *field, double *links);
/* Same lattice and directions, any halos; the halo of out is filled. */
qk_status_t qk_gaugefield_copy(qk_gaugefield_t *out, const qk_gaugefield_t *in);

/* The halo of the links U_mu with bit mu of mask set. */
qk_status_t qk_gaugefield_exchange(qk_gaugefield_t *field, unsigned mask);

/* Averages of Re tr / 3: plaquette by plane (xy, xz, xt, yz, yt, zt), and the 1x2 rectangles of all
 * twelve orientations (rectangle may be NULL; else halo 2 is needed where split). */
qk_status_t qk_gaugefield_measure(const qk_gaugefield_t *field, double plane[6], double *rectangle);

#endif
