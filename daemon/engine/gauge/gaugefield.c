#include "daemon/engine/gauge/gaugefield.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/swap.h"

enum { LINK_REALS = 18, PIECE_SITES = 1 << 15 }; /* a piece of import and export: 18 MB */

/* Device memory through which pieces and slabs are copied, and the buffers of messages: the same
 * memory on the CPU, pinned host memory elsewhere. slab: doubles of one of the four parts of an
 * exchange (to and from the backward and forward ranks). */
struct qk_gaugefield_staging {
  double *device, *host;
  size_t slab;
};

static size_t site_reals(const qk_gaugefield_t *f) {
  return (size_t)f->directions * LINK_REALS;
}

static unsigned all_of(const qk_gaugefield_t *f) {
  return (1u << f->directions) - 1;
}

static bool staged(const qk_gaugefield_t *f) {
  return !f->dev->ops->host_memory;
}

/* The box of the layers [from, from + halo) in direction nu. Directions below nu already have
 * their halos and pass them on, so that edges and corners arrive without messages of their own. */
static qk_link_box_args_t slab_box(const qk_gaugefield_t *f, int nu, int from, unsigned mask) {
  const qk_lattice_t *lat = &f->dev->geom->lat;
  qk_link_box_args_t a = {.lat = *lat, .u = f->v, .mask = mask};
  for (int mu = 0; mu < 4; mu++) {
    const int edge = mu < nu ? 0 : f->v.halo * lat->split[mu];
    a.lo[mu] = edge;
    a.hi[mu] = f->v.e[mu] - edge;
  }
  a.lo[nu] = from;
  a.hi[nu] = from + f->v.halo;
  return a;
}

static size_t box_sites(const qk_link_box_args_t *a) {
  size_t n = 1;
  for (int mu = 0; mu < 4; mu++) n *= (size_t)(a->hi[mu] - a->lo[mu]);
  return n;
}

static qk_status_t staging_create(qk_gaugefield_t *f) {
  const qk_device_t *dev = f->dev;
  const qk_geom_t *geom = dev->geom;
  struct qk_gaugefield_staging *s = f->staging;
  void *device = NULL, *host = NULL;
  for (int nu = 0; nu < 4; nu++) {
    if (!geom->lat.split[nu]) continue;
    const qk_link_box_args_t a = slab_box(f, nu, 0, all_of(f));
    if (box_sites(&a) * site_reals(f) > s->slab) s->slab = box_sites(&a) * site_reals(f);
  }
  const int64_t piece = geom->local_volume < PIECE_SITES ? geom->local_volume : PIECE_SITES;
  size_t reals = (size_t)piece * site_reals(f);
  if (4 * s->slab > reals) reals = 4 * s->slab;
  qk_status_t status = dev->ops->alloc(dev->ctx, reals * sizeof(double), &device);
  if (status != QK_OK) return status;
  s->device = s->host = device;
  if (!staged(f) || s->slab == 0) return QK_OK;
  status = dev->ops->alloc_host(dev->ctx, 4 * s->slab * sizeof(double), &host);
  if (status == QK_OK) s->host = host;
  return status;
}

void qk_gaugefield_destroy(qk_gaugefield_t *field) {
  if (field == NULL) return;
  const qk_device_t *dev = field->dev;
  struct qk_gaugefield_staging *s = field->staging;
  for (int nu = 0; nu < 4; nu++) qk_swap_destroy(field->swap[nu]);
  if (s != NULL && s->host != s->device) dev->ops->free_host(dev->ctx, s->host);
  if (s != NULL && s->device != NULL) dev->ops->free(dev->ctx, s->device);
  if (field->v.data != NULL) dev->ops->free(dev->ctx, field->v.data);
  qk_free(s);
  qk_free(field);
}

static int extent(const qk_lattice_t *lat, int halo, int mu) {
  return lat->l[mu] + 2 * halo * lat->split[mu];
}

size_t qk_gaugefield_bytes(const qk_lattice_t *lat, int halo) {
  size_t sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= (size_t)extent(lat, halo, mu);
  return sites * 4 * LINK_REALS * sizeof(double);
}

size_t qk_gaugefield_staging_bytes(const qk_lattice_t *lat, int halo) {
  size_t sites = 1, slab = 0;
  for (int mu = 0; mu < 4; mu++) sites *= (size_t)lat->l[mu];
  if (sites > PIECE_SITES) sites = PIECE_SITES;
  for (int nu = 0; nu < 4; nu++) {
    size_t n = (size_t)halo;
    for (int mu = 0; mu < 4; mu++)
      if (mu != nu) n *= (size_t)extent(lat, halo, mu);
    if (lat->split[nu] && n > slab) slab = n;
  }
  return (4 * slab > sites ? 4 * slab : sites) * 4 * LINK_REALS * sizeof(double);
}

static qk_status_t create(const qk_device_t *dev, int halo, int directions,
                          qk_gaugefield_t **field) {
  const qk_lattice_t *lat = &dev->geom->lat;
  void *data = NULL;
  qk_gaugefield_t *f = qk_calloc(1, sizeof *f);
  if (f == NULL) return QK_NO_MEMORY;
  *f = (qk_gaugefield_t){.dev = dev, .v = {.halo = halo}, .directions = directions};
  for (int mu = 0; mu < 4; mu++) f->v.e[mu] = extent(lat, halo, mu);
  f->bytes = qk_gaugefield_bytes(lat, halo) / 4 * (size_t)directions;
  qk_status_t status = QK_NO_MEMORY;
  f->staging = qk_calloc(1, sizeof *f->staging);
  if (f->staging == NULL) goto fail;
  status = dev->ops->alloc(dev->ctx, f->bytes, &data);
  if (status != QK_OK) goto fail;
  f->v.data = data;
  status = staging_create(f);
  if (status != QK_OK) goto fail;
  *field = f;
  return QK_OK;
fail:
  qk_gaugefield_destroy(f);
  return status;
}

static qk_status_t create_agreed(const qk_device_t *dev, int halo, int directions,
                                 qk_gaugefield_t **field) {
  qk_gaugefield_t *f = NULL;
  qk_status_t status = create(dev, halo, directions, &f);
  status = qk_comm_agree(dev->geom->comm, status, NULL);
  if (status != QK_OK) {
    qk_gaugefield_destroy(f);
    return status;
  }
  *field = f;
  return QK_OK;
}

qk_status_t qk_gaugefield_create(const qk_device_t *dev, int halo, qk_gaugefield_t **field) {
  return create_agreed(dev, halo, 4, field);
}

qk_status_t qk_gaugefield_create_sites(const qk_device_t *dev, int halo, qk_gaugefield_t **field) {
  return create_agreed(dev, halo, 1, field);
}

/* ---- host memory ---- */

static qk_status_t copy_pieces(const qk_gaugefield_t *f, double *links, qk_copy_t kind) {
  const qk_device_t *dev = f->dev;
  const int64_t volume = dev->geom->local_volume;
  qk_link_copy_args_t a = {
      .lat = dev->geom->lat, .u = f->v, .directions = f->directions, .sites = f->staging->device};
  for (a.first = 0; a.first < volume && qk_dev_ok(dev); a.first += a.n) {
    double *piece = links + (size_t)a.first * site_reals(f);
    a.n = volume - a.first < PIECE_SITES ? volume - a.first : PIECE_SITES;
    const size_t bytes = (size_t)a.n * site_reals(f) * sizeof(double);
    if (kind == QK_COPY_TO_DEVICE) {
      qk_dev_copy(dev, a.sites, piece, bytes, kind);
      if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_import(dev->ctx, &a));
    } else {
      qk_dev_note(dev, dev->ops->link_export(dev->ctx, &a));
      qk_dev_copy(dev, piece, a.sites, bytes, kind);
    }
  }
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

qk_status_t qk_gaugefield_import(qk_gaugefield_t *field, const double *links) {
  qk_status_t status = copy_pieces(field, (double *)links, QK_COPY_TO_DEVICE);
  return status == QK_OK ? qk_gaugefield_exchange(field, all_of(field)) : status;
}

qk_status_t qk_gaugefield_export(const qk_gaugefield_t *field, double *links) {
  return copy_pieces(field, links, QK_COPY_TO_HOST);
}

/* Local links from one field to another by way of site order, piece by piece. */
static qk_status_t copy_across(qk_gaugefield_t *out, const qk_gaugefield_t *in) {
  const qk_device_t *dev = out->dev;
  const int64_t volume = dev->geom->local_volume;
  qk_link_copy_args_t from = {.lat = dev->geom->lat,
                              .u = in->v,
                              .directions = in->directions,
                              .sites = out->staging->device};
  for (from.first = 0; from.first < volume; from.first += from.n) {
    from.n = volume - from.first < PIECE_SITES ? volume - from.first : PIECE_SITES;
    qk_link_copy_args_t to = from;
    to.u = out->v;
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_export(dev->ctx, &from));
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_import(dev->ctx, &to));
  }
  return qk_dev_status(dev);
}

qk_status_t qk_gaugefield_copy(qk_gaugefield_t *out, const qk_gaugefield_t *in) {
  const qk_device_t *dev = out->dev;
  if (memcmp(out->v.e, in->v.e, sizeof in->v.e) == 0)
    return dev->ops->copy(dev->ctx, out->v.data, in->v.data, in->bytes, QK_COPY_DEVICE, 0);
  qk_status_t status = copy_across(out, in);
  return status == QK_OK ? qk_gaugefield_exchange(out, all_of(out)) : status;
}

/* ---- halo ---- */

qk_status_t qk_gaugefield_share(qk_gaugefield_t *field) {
  qk_status_t status = QK_OK;
  for (int nu = 0; nu < 4 && status == QK_OK; nu++) {
    const qk_link_box_args_t slab = slab_box(field, nu, 0, all_of(field));
    const size_t bytes = box_sites(&slab) * site_reals(field) * sizeof(double);
    if (field->dev->geom->lat.split[nu] && field->swap[nu] == NULL)
      status = qk_swap_create(field->dev, nu, bytes, &field->swap[nu]);
  }
  return status;
}

/* Both slabs across nu, by memory. */
static void swap_across(qk_gaugefield_t *f, int nu, unsigned mask) {
  const qk_device_t *dev = f->dev;
  const int halo = f->v.halo, l = dev->geom->lat.l[nu];
  const int send_from[2] = {halo, l}, recv_at[2] = {0, halo + l};
  for (int d = 0; d < 2; d++) {
    qk_link_box_args_t box = slab_box(f, nu, send_from[d], mask);
    box.dense = qk_swap_to(f->swap[nu], d);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_pack(dev->ctx, &box));
  }
  qk_swap_make(f->swap[nu]);
  for (int d = 0; d < 2; d++) {
    qk_link_box_args_t box = slab_box(f, nu, recv_at[d], mask);
    box.dense = qk_swap_from(f->swap[nu], d);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_unpack(dev->ctx, &box));
  }
}

/* The same in messages. */
static void exchange_across(qk_gaugefield_t *f, int nu, unsigned mask) {
  const qk_device_t *dev = f->dev;
  qk_comm_t *comm = dev->geom->comm;
  const struct qk_gaugefield_staging *s = f->staging;
  const int halo = f->v.halo, l = dev->geom->lat.l[nu];
  const int send_from[2] = {halo, l}, recv_at[2] = {halo + l, 0};
  qk_comm_msg_t msg[2];
  qk_link_box_args_t box = slab_box(f, nu, 0, mask);
  const size_t reals = box_sites(&box) * 18 * (size_t)__builtin_popcount(mask);
  const size_t bytes = reals * sizeof(double);
  for (int i = 0; i < 2; i++) {
    box = slab_box(f, nu, send_from[i], mask);
    box.dense = s->device + (size_t)i * reals;
    msg[i] = (qk_comm_msg_t){.to = qk_comm_neighbour(comm, nu, i == 0 ? -1 : +1),
                             .from = qk_comm_neighbour(comm, nu, i == 0 ? +1 : -1),
                             .tag = 2 * nu + i,
                             .send = s->host + (size_t)i * reals,
                             .recv = s->host + (size_t)(2 + i) * reals,
                             .bytes = bytes};
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_pack(dev->ctx, &box));
  }
  if (staged(f)) qk_dev_copy(dev, s->host, s->device, 2 * bytes, QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_comm_exchange(comm, 2, msg));
  if (staged(f))
    qk_dev_copy(dev, s->device + 2 * reals, s->host + 2 * reals, 2 * bytes, QK_COPY_TO_DEVICE);
  for (int i = 0; i < 2; i++) {
    box = slab_box(f, nu, recv_at[i], mask);
    box.dense = s->device + (size_t)(2 + i) * reals;
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_unpack(dev->ctx, &box));
  }
}

qk_status_t qk_gaugefield_exchange(qk_gaugefield_t *field, unsigned mask) {
  for (int nu = 0; nu < 4; nu++) {
    if (field->swap[nu] != NULL)
      swap_across(field, nu, mask);
    else if (field->dev->geom->lat.split[nu])
      exchange_across(field, nu, mask);
  }
  return qk_dev_status(field->dev);
}

/* ---- averages ---- */

qk_status_t qk_gaugefield_measure(const qk_gaugefield_t *field, double plane[6],
                                  double *rectangle) {
  const qk_device_t *dev = field->dev;
  double sum[QK_LINK_SUMS];
  const qk_link_sums_args_t a = {
      .lat = dev->geom->lat, .u = field->v, .rectangles = rectangle != NULL, .sum = sum};
  qk_status_t status = dev->ops->link_sums(dev->ctx, &a);
  if (status != QK_OK) return status;
  status = qk_comm_sum(dev->geom->comm, sum, QK_LINK_SUMS);
  if (status != QK_OK) return status;
  for (int k = 0; k < 6; k++) plane[k] = sum[k] / (double)dev->geom->volume;
  if (rectangle != NULL) *rectangle = sum[6] / (12 * (double)dev->geom->volume);
  return QK_OK;
}
