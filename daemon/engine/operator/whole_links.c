#include "daemon/engine/operator/whole_links.h"

enum { PIECE = 16 << 20 };

/* Sites stand one behind the other, even ones first (cuda/mg_ops.h), and what is inside of one is
 * the same on all ranks. */
typedef struct copying {
  const qk_device_t *cut, *whole;
  const char *from;
  char *to;
  int64_t site; /* bytes */
  int64_t run;  /* sites that follow one another on both lattices */
  void *host;   /* of PIECE bytes, or a run if that is more */
} copying_t;

static int64_t runs_of_a_piece(const copying_t *c) {
  const int64_t n = PIECE / (c->run * c->site);
  return n > 0 ? n : 1;
}

/* Sites first .. first + n - 1 of rank r, whose part is lat, which are in host memory. */
static void place(const copying_t *c, const qk_lattice_t *lat, int64_t first, int64_t n) {
  const qk_device_t *dev = c->whole;
  for (int64_t k = 0; k < n; k += c->run) {
    const int64_t at = qk_geom_site_of_whole(lat, &dev->geom->lat, first + k);
    qk_dev_copy(dev, c->to + at * c->site, (char *)c->host + k * c->site,
                (size_t)(c->run * c->site), QK_COPY_TO_DEVICE);
  }
  qk_dev_sync(dev);
}

static void send_part(const copying_t *c, int r) {
  const qk_device_t *dev = c->cut;
  qk_comm_t *comm = dev->geom->comm;
  const qk_lattice_t lat = qk_geom_part_of(dev->geom, r);
  const int64_t sites = 2 * (int64_t)lat.vcb, most = c->run * runs_of_a_piece(c);
  for (int64_t first = 0; first < sites; first += most) {
    const int64_t n = sites - first < most ? sites - first : most;
    const size_t bytes = (size_t)(n * c->site);
    if (r == qk_comm_rank(comm))
      qk_dev_copy(dev, c->host, c->from + first * c->site, bytes, QK_COPY_TO_HOST);
    qk_dev_sync(dev);
    if (qk_dev_ok(dev)) qk_dev_note(dev, qk_comm_bcast(comm, c->host, bytes, r));
    place(c, &lat, first, n);
  }
}

qk_status_t qk_whole_links(const qk_device_t *cut, const qk_device_t *whole,
                           const qk_coarse_links_t *from, const qk_coarse_links_t *to) {
  const qk_lattice_t *lat = &cut->geom->lat;
  qk_comm_t *comm = cut->geom->comm;
  copying_t c = {.cut = cut,
                 .whole = whole,
                 .from = from->data,
                 .to = to->data,
                 .site = (int64_t)cut->ops->coarse_bytes(lat, from) / (2 * (int64_t)lat->vcb),
                 .run = lat->l[0] / 2};
  const size_t bytes = (size_t)(runs_of_a_piece(&c) * c.run * c.site);
  qk_status_t status = qk_comm_agree(comm, cut->ops->alloc_host(cut->ctx, bytes, &c.host), NULL);
  for (int r = 0; !status && r < qk_comm_size(comm); r++) send_part(&c, r);
  status = status ? status : qk_comm_agree(comm, qk_dev_status(cut), NULL);
  if (c.host) cut->ops->free_host(cut->ctx, c.host);
  return status;
}
