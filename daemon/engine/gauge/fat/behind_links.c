#include "daemon/engine/gauge/fat/behind_links.h"

/* The last slices of each rank, packed where those of the rank behind will stand, change places. */
void qk_behind_links(const qk_device_t *dev, const qk_links_t *links, int reach, int mu,
                     void *behind, void *send, void *recv) {
  qk_comm_t *comm = dev->geom->comm;
  const size_t bytes = qk_stag_behind_bytes(&dev->geom->lat, links->prec, mu, reach);
  const qk_stag_behind_args_t args = {
      .lat = dev->geom->lat, .mu = mu, .reach = reach, .in = *links, .out = behind};
  const qk_comm_msg_t msg = {.to = qk_comm_neighbour(comm, mu, +1),
                             .from = qk_comm_neighbour(comm, mu, -1),
                             .tag = mu,
                             .send = send,
                             .recv = recv,
                             .bytes = bytes};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->stag_behind(dev->ctx, &args));
  qk_dev_copy(dev, send, behind, bytes, QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  qk_dev_note(dev, qk_comm_exchange(comm, 1, &msg)); /* the neighbours wait for it either way */
  qk_dev_copy(dev, behind, recv, bytes, QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
}
