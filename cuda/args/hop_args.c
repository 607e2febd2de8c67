#include "cuda/args/hop_args.h"

#include <math.h>
#include <stdbool.h>

static bool same_block(const qk_spinor_t *a, const qk_spinor_t *b) {
  return a->prec == b->prec && a->nrhs == b->nrhs && a->ntile == b->ntile;
}

/* slices: one slice in t will do. */
static const char *extents_misfit(const qk_lattice_t *lat, bool slices) {
  int64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    const bool one = slices && mu == 3 && lat->l[mu] == 1 && lat->vcb % QK_TILE == 0;
    if (!one && (lat->l[mu] < 2 || lat->l[mu] % 2 != 0))
      return "lattice: extents must be even and >= 2";
    if (lat->split[mu] && lat->l[mu] < 4) return "lattice: a split extent must be >= 4";
    volume *= lat->l[mu];
    if (volume > INT32_MAX) return "lattice: over 2^31 - 1 local sites";
  }
  if (lat->vcb * (int64_t)2 != volume) return "lattice: vcb is not half the volume";
  for (int mu = 0; mu < 4; mu++)
    if (lat->face[mu] != lat->vcb / lat->l[mu]) return "lattice: face[mu] is not vcb / l[mu]";
  return NULL;
}

const char *qk_lattice_misfit(const qk_lattice_t *lat) {
  return extents_misfit(lat, false);
}

const char *qk_block_misfit(const qk_spinor_t *f, int ncomp) {
  if (f->nrhs < 1 || f->nrhs > QK_COLUMNS_MAX) return "block: nrhs must be 1..256";
  if (f->ntile != 0 && f->ntile != (f->nrhs + QK_TILE - 1) / QK_TILE)
    return "block: ntile must be 0 or (nrhs + 7) / 8";
  if (f->ntile == 0 && f->nrhs != 1) return "block: tiles of eight sites hold one RHS";
  if (f->inner != 0 && f->inner != 1) return "block: inner must be 0 or 1, one vector a RHS";
  if (f->ncomp != ncomp)
    return ncomp == 12 ? "block: spinors have 12 components"
                       : "block: colour vectors have 3 components";
  if (f->nsites * (f->ntile > 0 ? f->ntile * QK_TILE : 1) > UINT32_MAX)
    return "block: over 2^32 - 1 lanes";
  if ((unsigned)f->prec >= QK_PRECS) return "block: prec is no precision";
  if (qk_prec_scaled(f->prec) && f->scale == NULL) return "block: scale is missing";
  return NULL;
}

static const char *links_misfit(const qk_links_t *links, qk_prec_t prec) {
  if (links->data == NULL) return "links: absent";
  if (links->prec != prec) return "links: other precision than the spinors";
  if (links->reals != 18 && links->reals != 12 && links->reals != 8)
    return "links: reals must be 18, 12 or 8";
  return NULL;
}

static const char *ghost_misfit(const qk_spinor_t *ghost, const qk_spinor_t *in, int ncomp) {
  if (ghost->data == NULL) return "ghost: absent in a split direction";
  if (!same_block(ghost, in) || ghost->ncomp != ncomp) return "ghost: not the spinors of the block";
  if (qk_prec_scaled(ghost->prec) && ghost->scale == NULL) return "ghost: scale is missing";
  return NULL;
}

/* A field that takes part: of the same block as out, and with sites of the parity. */
static const char *operand_misfit(const qk_spinor_t *f, const qk_spinor_t *out, int64_t nsites) {
  if (f->data == NULL) return "field: absent though its coefficient is not 0";
  if (!same_block(f, out) || f->ncomp != out->ncomp) return "field: another block than out";
  if (qk_prec_scaled(f->prec) && f->scale == NULL) return "field: scale is missing";
  if (f->nsites != nsites) return "field: nsites does not fit out_parity";
  return NULL;
}

/* Whether ghost[mu][side] is read. */
static bool ghost_read(const qk_hop_args_t *a, int mu, int side) {
  const bool takes_part = a->hops == 0 || (a->hops >> (2 * mu + (side == 0)) & 1);
  return a->lat.split[mu] && a->region != QK_REGION_INTERIOR && a->block[mu] == 0 && takes_part;
}

/* Half is read, and single is written. */
static bool is_wide(const qk_hop_args_t *a) {
  return a->c_hop != 0 && a->in.data != NULL && qk_prec_scaled(a->in.prec) &&
         qk_prec_bytes(a->out.prec) == (int)sizeof(float);
}

qk_prec_t qk_hop_prec(const qk_hop_args_t *a) {
  return is_wide(a) ? a->in.prec : a->out.prec;
}

const char *qk_hop_misfit(const qk_hop_args_t *a) {
  const char *why = qk_lattice_misfit(&a->lat);
  if (why == NULL) why = qk_block_misfit(&a->out, 12);
  if (why == NULL && is_wide(a) && a->out.scale != NULL) why = "out: single with scales";
  if (why != NULL) return why;
  const int64_t nsites = a->out_parity == QK_FULL ? 2 * (int64_t)a->lat.vcb : a->lat.vcb;
  const qk_spinor_t *like = is_wide(a) ? &a->in : &a->out;
  why = operand_misfit(&a->out, &a->out, nsites);
  if (why == NULL && a->c_z != 0) why = operand_misfit(&a->z, like, nsites);
  if (why == NULL && a->c_x != 0) why = operand_misfit(&a->x, like, nsites);
  if (why == NULL && a->c_y != 0) why = operand_misfit(&a->y, like, nsites);
  if (why != NULL) return why;
  if ((a->diag.data != NULL || a->diag.b != NULL) && a->diag.prec != like->prec)
    return "diag: other precision than the spinors";
  if (a->c_z != 0 && a->z.data == a->out.data) return "z: may not be out";
  if (a->c_hop == 0) return NULL;
  for (int mu = 0; mu < 4; mu++)
    if (!isfinite(a->weight[mu])) return "weight: not finite";
  why = operand_misfit(&a->in, like, nsites);
  if (why == NULL &&
      (a->in.nrhs != a->out.nrhs || a->in.ntile != a->out.ntile || a->in.ncomp != 12))
    why = "field: another block than out";
  if (why == NULL) why = links_misfit(&a->links, like->prec);
  if (why == NULL && a->in.data == a->out.data) why = "in: may not be out";
  if (why == NULL && a->hops > 0xff) why = "hops: 0 to 0xff";
  for (int mu = 0; why == NULL && mu < 4; mu++) {
    if (a->block[mu] < 0 || (a->block[mu] > 0 && a->lat.l[mu] % a->block[mu] != 0))
      return "block: extents must be 0 or divide the lattice";
    for (int side = 0; why == NULL && side < 2; side++)
      if (ghost_read(a, mu, side)) why = ghost_misfit(&a->ghost[mu][side], &a->in, 6);
  }
  return why;
}

qk_hop_args_t qk_hop_each_one(const qk_hop_each_args_t *args, int k) {
  qk_hop_args_t a = args->hop;
  a.in.data = args->of[k].in;
  a.z.data = args->of[k].z;
  a.x.data = args->of[k].x;
  a.y.data = args->of[k].y;
  a.out.data = args->of[k].out;
  if (a.minus) a.minus += k;
  return a;
}

/* Whether what is written as number k takes part as another number. */
static bool written_twice(const qk_hop_each_args_t *a, int k) {
  const void *out = a->of[k].out;
  for (int i = 0; i < a->n; i++) {
    if (i == k) continue;
    if (out == a->of[i].out || (a->hop.c_hop != 0 && out == a->of[i].in)) return true;
    if (a->hop.c_z != 0 && out == a->of[i].z) return true;
    if ((a->hop.c_x != 0 && out == a->of[i].x) || (a->hop.c_y != 0 && out == a->of[i].y))
      return true;
  }
  return false;
}

const char *qk_hop_each_misfit(const qk_hop_each_args_t *args) {
  const qk_hop_args_t *a = &args->hop;
  if (args->n < 1 || args->n > QK_RHS_TOGETHER) return "each: n must be 1..4";
  if (a->out.nrhs != 1 || a->out.ntile != 0) return "each: fields must be of one RHS";
  for (int mu = 0; a->c_hop != 0 && mu < 4; mu++)
    if (a->lat.split[mu] && a->block[mu] == 0 && a->region != QK_REGION_INTERIOR)
      return "each: ghosts are not read";
  for (int k = 0; k < args->n; k++) {
    const qk_hop_args_t one = qk_hop_each_one(args, k);
    const char *why = qk_hop_misfit(&one);
    if (why != NULL) return why;
    if (written_twice(args, k)) return "each: out is a field of another number";
  }
  return NULL;
}

const char *qk_pack_misfit(const qk_pack_args_t *a) {
  const char *why = extents_misfit(&a->lat, a->whole);
  if (why == NULL) why = qk_block_misfit(&a->in, 12);
  if (why == NULL) why = links_misfit(&a->links, a->in.prec);
  if (why != NULL) return why;
  const int64_t nsites = a->in_parity == QK_FULL ? 2 * (int64_t)a->lat.vcb : a->lat.vcb;
  why = operand_misfit(&a->in, &a->in, nsites);
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; why == NULL && side < 2; side++)
      if (a->to[mu][side].data != NULL)
        why = ghost_misfit(&a->to[mu][side], &a->in, a->whole ? 12 : 6);
  return why;
}

const char *qk_gauss_misfit(const qk_gauss_args_t *a) {
  const char *why = extents_misfit(&a->lat, true);
  if (why == NULL) why = qk_block_misfit(&a->out, 12);
  const int64_t nsites = 2 * (int64_t)a->lat.vcb;
  if (why == NULL) why = operand_misfit(&a->out, &a->out, nsites);
  if (why == NULL) why = operand_misfit(&a->in, &a->out, nsites);
  if (why == NULL) why = links_misfit(&a->links, a->out.prec);
  if (why == NULL && a->links.reals == 8) why = "links: reals must be 18 or 12";
  if (why == NULL && a->lat.split[3]) why = "lattice: split[3] must be 0";
  if (why == NULL && a->in.data == a->out.data) why = "in: may not be out";
  for (int mu = 0; why == NULL && mu < 3; mu++) {
    if (!a->lat.split[mu] || a->region == QK_REGION_INTERIOR) continue;
    for (int side = 0; why == NULL && side < 2; side++)
      why = ghost_misfit(&a->ghost[mu][side], &a->in, 12);
  }
  return why;
}
