#include "daemon/engine/eigen/flat.h"

void qk_flat_init(qk_flat_t *flat, const qk_device_t *dev) {
  *flat = (qk_flat_t){.from = dev, .geom = *dev->geom, .dev = *dev};
  flat->slices = qk_geom_slices(dev->geom);
  flat->dev.geom = &flat->geom;
  if (flat->slices == 1) return;
  flat->geom.inner = flat->slices;
  flat->geom.ls = 1;
}

/* pack: from columns of the operator to flat ones, or back. */
static void move(const qk_flat_t *flat, bool pack, const qk_field_t *to, int to_first,
                 const qk_field_t *from, int from_first, int n) {
  const qk_device_t *dev = flat->from;
  const int slices = flat->slices;
  for (int k = 0; k < n * slices && qk_dev_ok(dev); k++) {
    const int i = k / slices, s = k % slices;
    const qk_field_t slice = qk_field_vector(pack ? to : from, s);
    const qk_rhs_copy_args_t args = {.to = pack ? slice.v : to->v,
                                     .from = pack ? from->v : slice.v,
                                     .to_rhs = pack ? to_first + i : (to_first + i) * slices + s,
                                     .from_rhs =
                                         pack ? (from_first + i) * slices + s : from_first + i};
    qk_dev_note(dev, dev->ops->rhs_copy(dev->ctx, &args));
  }
}

void qk_flat_pack(const qk_flat_t *flat, const qk_field_t *to, int to_first, const qk_field_t *from,
                  int from_first, int n) {
  move(flat, true, to, to_first, from, from_first, n);
}

void qk_flat_unpack(const qk_flat_t *flat, const qk_field_t *to, int to_first,
                    const qk_field_t *from, int from_first, int n) {
  move(flat, false, to, to_first, from, from_first, n);
}
