#include "cuda/args/mg_args.h"

#include <stdbool.h>
#include <string.h>

#include "cuda/args/hop_args.h"

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

/* Coarse lattices may have two sites in a split direction, too. */
static qk_status_t lattice(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat) {
  qk_lattice_t local = *lat;
  memset(local.split, 0, sizeof local.split);
  const char *why = qk_lattice_misfit(&local);
  return why == NULL ? QK_OK : BAD("%s: %s", call, why);
}

static int64_t sites_of(const qk_lattice_t *lat, qk_subset_t subset) {
  return subset == QK_FULL ? 2 * (int64_t)lat->vcb : lat->vcb;
}

/* A block of right-hand sides with ncomp components at each of nsites sites. */
static qk_status_t spinor(qk_ops_ctx_t *ctx, const char *call, const char *name,
                          const qk_spinor_t *f, int ncomp, int64_t nsites) {
  if (f->data == NULL) return BAD("%s: %s has no data", call, name);
  if ((unsigned)f->prec >= QK_PRECS)
    return BAD("%s: %s: prec = %d: 0 to %d", call, name, (int)f->prec, QK_PRECS - 1);
  if (qk_prec_scaled(f->prec) && f->scale == NULL)
    return BAD("%s: %s: scale is missing, prec = %d", call, name, (int)f->prec);
  if (f->ncomp != ncomp) return BAD("%s: %s: ncomp = %d: %d", call, name, f->ncomp, ncomp);
  if (f->inner != 0 && f->inner != 1)
    return BAD("%s: %s: inner = %d: 0 or 1, one vector a RHS", call, name, f->inner);
  if (f->nrhs < 1 || f->nrhs > QK_MAX_RHS)
    return BAD("%s: %s: nrhs = %d: 1 to %d", call, name, f->nrhs, QK_MAX_RHS);
  const int tiles = (f->nrhs + QK_TILE - 1) / QK_TILE;
  if (f->ntile != tiles && !(f->ntile == 0 && f->nrhs == 1))
    return BAD("%s: %s: ntile = %d with nrhs = %d: %d%s", call, name, f->ntile, f->nrhs, tiles,
               f->nrhs == 1 ? " or 0" : "");
  if (f->nsites != nsites)
    return BAD("%s: %s: nsites = %lld: %lld", call, name, (long long)f->nsites, (long long)nsites);
  return QK_OK;
}

static qk_status_t same_block(qk_ops_ctx_t *ctx, const char *call, const char *name,
                              const qk_spinor_t *f, const qk_spinor_t *like) {
  if (f->nrhs != like->nrhs || f->ntile != like->ntile)
    return BAD("%s: %s: nrhs, ntile = %d, %d: %d, %d as the other field", call, name, f->nrhs,
               f->ntile, like->nrhs, like->ntile);
  return QK_OK;
}

/* ---- coarse ---------------------------------------------------------------------------------- */

static qk_status_t operand(qk_ops_ctx_t *ctx, const char *name, const qk_spinor_t *f,
                           const qk_spinor_t *out) {
  qk_status_t status = spinor(ctx, "coarse", name, f, out->ncomp, out->nsites);
  if (status == QK_OK) status = same_block(ctx, "coarse", name, f, out);
  if (status == QK_OK && f->prec != out->prec)
    return BAD("coarse: %s: prec = %d: %d as out", name, (int)f->prec, (int)out->prec);
  return status;
}

static qk_status_t matrices(qk_ops_ctx_t *ctx, const char *name, const qk_coarse_links_t *m,
                            const qk_spinor_t *out, int ndir) {
  if (m->data == NULL) return BAD("coarse: %s has no data", name);
  if (m->n != out->ncomp || m->ndir != ndir)
    return BAD("coarse: %s: n, ndir = %d, %d: %d, %d", name, m->n, m->ndir, out->ncomp, ndir);
  const bool fits =
      out->prec == QK_DOUBLE ? m->prec == QK_DOUBLE : m->prec == QK_SINGLE || m->prec == QK_HALF;
  if (!fits)
    return BAD("coarse: %s: prec = %d: %s with fields of prec = %d", name, (int)m->prec,
               out->prec == QK_DOUBLE ? "0" : "1 or 2", (int)out->prec);
  return QK_OK;
}

/* Those of the right-hand sides of `minus`. */
static qk_status_t others(qk_ops_ctx_t *ctx, const char *name, const qk_coarse_args_t *a,
                          const qk_coarse_links_t *m, const qk_coarse_links_t *like) {
  if (a->minus == NULL) return QK_OK;
  if (m->data != NULL && m->n == like->n && m->ndir == like->ndir && m->prec == like->prec)
    return QK_OK;
  return BAD("coarse: %s: %s, n, ndir, prec = %d, %d, %d: %d, %d, %d as those without minus", name,
             m->data == NULL ? "no data" : "other matrices", m->n, m->ndir, (int)m->prec, like->n,
             like->ndir, (int)like->prec);
}

static qk_status_t ghosts(qk_ops_ctx_t *ctx, const qk_coarse_args_t *a) {
  for (int mu = 0; mu < 4; mu++) {
    const bool any = a->lat.split[mu] && a->block[mu] == 0 && a->region != QK_REGION_INTERIOR;
    const int64_t face = (a->lat.face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE;
    for (int side = 0; side < 2; side++) {
      const qk_spinor_t *ghost = &a->ghost[mu][side];
      if (!any || (a->hops != 0 && !(a->hops >> (2 * mu + 1 - side) & 1))) continue;
      qk_status_t status = spinor(ctx, "coarse", "ghost", ghost, a->out.ncomp,
                                  face * (a->out_parity == QK_FULL ? 2 : 1));
      if (status == QK_OK) status = same_block(ctx, "coarse", "ghost", ghost, &a->out);
      if (status != QK_OK) return status;
      if (ghost->prec != a->out.prec)
        return BAD("coarse: ghost[%d][%d]: prec = %d: %d as out", mu, side, (int)ghost->prec,
                   (int)a->out.prec);
    }
  }
  return QK_OK;
}

static qk_status_t hops(qk_ops_ctx_t *ctx, const qk_coarse_args_t *a) {
  if (a->c_hop == 0) return QK_OK;
  if (a->hops > 0xff) return BAD("coarse: hops = 0x%x: 0 to 0xff", a->hops);
  for (int mu = 0; mu < 4; mu++)
    if (a->block[mu] < 0 || (a->block[mu] > 0 && a->lat.l[mu] % a->block[mu] != 0))
      return BAD("coarse: block[%d] = %d: 0, or a divisor of %d", mu, a->block[mu], a->lat.l[mu]);
  if (a->in.data == a->out.data) return BAD("coarse: in may not be out");
  qk_status_t status = operand(ctx, "in", &a->in, &a->out);
  if (status == QK_OK) status = matrices(ctx, "links", &a->links, &a->out, 8);
  if (status == QK_OK) status = others(ctx, "links_minus", a, &a->links_minus, &a->links);
  if (status == QK_OK && a->eight != NULL && (a->links.prec != QK_HALF || a->links.n % 16 != 0))
    return BAD("coarse: eight: links: prec, n = %d, %d: %d, a multiple of 16", (int)a->links.prec,
               a->links.n, QK_HALF);
  return status == QK_OK ? ghosts(ctx, a) : status;
}

qk_status_t qk_args_coarse(qk_ops_ctx_t *ctx, const qk_coarse_args_t *a) {
  const int n = a->out.ncomp;
  qk_status_t status = lattice(ctx, "coarse", &a->lat);
  if (status != QK_OK) return status;
  if ((unsigned)a->out_parity > QK_FULL)
    return BAD("coarse: out_parity = %d: 0 to 2", (int)a->out_parity);
  if ((unsigned)a->region > QK_REGION_BOUNDARY)
    return BAD("coarse: region = %d: 0 to 2", (int)a->region);
  if (n < 4 || n > QK_MG_N_MAX || n % 4 != 0)
    return BAD("coarse: out: ncomp = %d: a multiple of 4 up to %d", n, QK_MG_N_MAX);
  if (a->out.prec != QK_DOUBLE && a->out.prec != QK_SINGLE)
    return BAD("coarse: out: prec = %d: 0 or 1", (int)a->out.prec);
  status = spinor(ctx, "coarse", "out", &a->out, n, sites_of(&a->lat, a->out_parity));
  if (status == QK_OK) status = hops(ctx, a);
  if (status == QK_OK && a->c_x != 0) status = operand(ctx, "x", &a->x, &a->out);
  if (status != QK_OK || a->c_z == 0) return status;
  if (a->z.data == a->out.data) return BAD("coarse: z may not be out");
  status = operand(ctx, "z", &a->z, &a->out);
  if (status != QK_OK || a->diag.data == NULL) return status;
  if (a->c_hop != 0 && a->links.prec != a->diag.prec)
    return BAD("coarse: diag: prec = %d: %d as links", (int)a->diag.prec, (int)a->links.prec);
  status = matrices(ctx, "diag", &a->diag, &a->out, 1);
  return status == QK_OK ? others(ctx, "diag_minus", a, &a->diag_minus, &a->diag) : status;
}

/* ---- faces and chiralities ------------------------------------------------------------------- */

qk_status_t qk_args_coarse_pack(qk_ops_ctx_t *ctx, const qk_coarse_pack_args_t *a) {
  const char *call = "coarse_pack";
  const qk_spinor_t *in = &a->in;
  qk_status_t status = lattice(ctx, call, &a->lat);
  if (status != QK_OK) return status;
  if ((unsigned)a->in_parity > QK_FULL)
    return BAD("%s: in_parity = %d: 0 to 2", call, (int)a->in_parity);
  if (in->ncomp < 4 || in->ncomp % 4 != 0)
    return BAD("%s: in: ncomp = %d: a multiple of 4", call, in->ncomp);
  if (in->prec != QK_DOUBLE && in->prec != QK_SINGLE)
    return BAD("%s: in: prec = %d: 0 or 1", call, (int)in->prec);
  status = spinor(ctx, call, "in", in, in->ncomp, sites_of(&a->lat, a->in_parity));
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; status == QK_OK && side < 2; side++) {
      const qk_spinor_t *to = &a->to[mu][side];
      if (to->data == NULL) continue;
      const int64_t face = (a->lat.face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE;
      status = spinor(ctx, call, "to", to, in->ncomp, face * (a->in_parity == QK_FULL ? 2 : 1));
      if (status == QK_OK) status = same_block(ctx, call, "to", to, in);
      if (status == QK_OK && to->prec != in->prec)
        status = BAD("%s: to[%d][%d]: prec = %d: %d as in", call, mu, side, (int)to->prec,
                     (int)in->prec);
    }
  return status;
}

/* Sites of a part follow from its extents and offsets: its parities must be those of the whole. */
static qk_status_t parts(qk_ops_ctx_t *ctx, const qk_part_args_t *a) {
  qk_status_t status = lattice(ctx, "part", &a->lat);
  if (status == QK_OK) status = lattice(ctx, "part", &a->whole);
  for (int mu = 0; status == QK_OK && mu < 4; mu++) {
    const int offset = a->lat.offset[mu], l = a->lat.l[mu], whole = a->whole.l[mu];
    if (offset < 0 || offset % 2 != 0 || offset + l > whole)
      status = BAD("part: offset[%d], l = %d, %d: even, in %d", mu, offset, l, whole);
  }
  return status;
}

qk_status_t qk_args_part(qk_ops_ctx_t *ctx, const qk_part_args_t *a) {
  const qk_spinor_t *part = &a->part;
  qk_status_t status = parts(ctx, a);
  if (status != QK_OK) return status;
  if (part->ncomp < 4 || part->ncomp % 4 != 0)
    return BAD("part: ncomp = %d: a multiple of 4", part->ncomp);
  if (part->prec != QK_DOUBLE && part->prec != QK_SINGLE)
    return BAD("part: prec = %d: 0 or 1", (int)part->prec);
  if (part->subset != QK_FULL) return BAD("part: subset = %d: %d", (int)part->subset, QK_FULL);
  if (a->n < 1 || a->n > QK_PEER_RANKS) return BAD("part: n = %d: 1 to %d", a->n, QK_PEER_RANKS);
  for (int i = 0; i < a->n; i++)
    if (a->of[i] == NULL) return BAD("part: of[%d] is missing", i);
  return spinor(ctx, "part", "part", part, part->ncomp, sites_of(&a->lat, QK_FULL));
}

qk_status_t qk_args_chiral(qk_ops_ctx_t *ctx, const qk_chiral_args_t *a) {
  const qk_spinor_t *in = &a->in, *out = &a->out;
  if (qk_prec_scaled(in->prec) && in->ncomp != 12)
    return BAD("chiral: in: ncomp = %d: 12 with prec = %d", in->ncomp, (int)in->prec);
  if (in->ncomp < 4 || in->ncomp % 4 != 0)
    return BAD("chiral: in: ncomp = %d: a multiple of 4", in->ncomp);
  if (in->nsites < QK_TILE || in->nsites % QK_TILE != 0)
    return BAD("chiral: in: nsites = %lld: a multiple of %d", (long long)in->nsites, QK_TILE);
  qk_status_t status = spinor(ctx, "chiral", "in", in, in->ncomp, in->nsites);
  if (status == QK_OK) status = spinor(ctx, "chiral", "out", out, in->ncomp, in->nsites);
  if (status == QK_OK) status = same_block(ctx, "chiral", "out", out, in);
  if (status == QK_OK && out->prec != in->prec)
    return BAD("chiral: out: prec = %d: %d as in", (int)out->prec, (int)in->prec);
  return status;
}

/* ---- transfer -------------------------------------------------------------------------------- */

static qk_status_t aggregates(qk_ops_ctx_t *ctx, const char *call, const qk_aggregates_t *agg) {
  qk_status_t status = lattice(ctx, call, &agg->fine);
  if (status == QK_OK) status = lattice(ctx, call, &agg->coarse);
  for (int mu = 0; status == QK_OK && mu < 4; mu++)
    if (agg->block[mu] < 1 || agg->fine.l[mu] != agg->block[mu] * agg->coarse.l[mu])
      status = BAD("%s: block[%d] = %d: %d fine sites / %d coarse sites", call, mu, agg->block[mu],
                   agg->fine.l[mu], agg->coarse.l[mu]);
  return status;
}

static qk_status_t transfer(qk_ops_ctx_t *ctx, const char *call, const qk_transfer_t *t) {
  qk_status_t status = aggregates(ctx, call, &t->agg);
  if (status != QK_OK) return status;
  if (t->data == NULL) return BAD("%s: the transfer has no data", call);
  if (t->prec != QK_SINGLE && t->prec != QK_HALF)
    return BAD("%s: transfer: prec = %d: 1 or 2", call, (int)t->prec);
  if (t->ncomp < 4 || t->ncomp > QK_MG_N_MAX || t->ncomp % 4 != 0)
    return BAD("%s: transfer: ncomp = %d: a multiple of 4 up to %d", call, t->ncomp, QK_MG_N_MAX);
  if (t->nvec < 2 || t->nvec > QK_MG_NVEC_MAX || t->nvec % 2 != 0)
    return BAD("%s: transfer: nvec = %d: even, 2 to %d", call, t->nvec, QK_MG_NVEC_MAX);
  return QK_OK;
}

qk_status_t qk_args_transfer(qk_ops_ctx_t *ctx, const qk_transfer_args_t *a) {
  qk_status_t status = transfer(ctx, "transfer", &a->t);
  if (status != QK_OK) return status;
  if ((unsigned)a->parity > QK_FULL) return BAD("transfer: parity = %d: 0 to 2", (int)a->parity);
  const qk_subset_t subset = a->fine.subset;
  if (subset != QK_FULL && subset != a->parity)
    return BAD("transfer: fine: subset = %d: %d or the parity %d", (int)subset, QK_FULL,
               (int)a->parity);
  status = spinor(ctx, "transfer", "fine", &a->fine, a->t.ncomp, sites_of(&a->t.agg.fine, subset));
  if (status == QK_OK)
    status = spinor(ctx, "transfer", "coarse", &a->coarse, 2 * a->t.nvec,
                    sites_of(&a->t.agg.coarse, QK_FULL));
  if (status == QK_OK) status = same_block(ctx, "transfer", "coarse", &a->coarse, &a->fine);
  if (status != QK_OK) return status;
  if (a->coarse.prec != QK_SINGLE)
    return BAD("transfer: coarse: prec = %d: %d", (int)a->coarse.prec, QK_SINGLE);
  if (a->fine.prec != QK_SINGLE && a->fine.prec != QK_HALF)
    return BAD("transfer: fine: prec = %d: 1 or 2", (int)a->fine.prec);
  if (qk_prec_scaled(a->fine.prec) && a->t.ncomp != 12)
    return BAD("transfer: fine: prec = %d with ncomp = %d: 12", (int)a->fine.prec, a->t.ncomp);
  return QK_OK;
}

qk_status_t qk_args_transfer_copy(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *a) {
  qk_status_t status = transfer(ctx, "transfer_copy", &a->t);
  if (status == QK_OK)
    status =
        spinor(ctx, "transfer_copy", "v", &a->v, a->t.ncomp, sites_of(&a->t.agg.fine, QK_FULL));
  if (status != QK_OK) return status;
  if (a->v.subset != QK_FULL)
    return BAD("transfer_copy: v: subset = %d: %d", (int)a->v.subset, QK_FULL);
  const int left = a->t.nvec - a->first;
  if (a->first < 0 || left <= 0 || a->first % QK_TILE != 0)
    return BAD("transfer_copy: first = %d: a multiple of %d below %d", a->first, QK_TILE,
               a->t.nvec);
  if (a->v.nrhs != left && (a->v.nrhs > left || a->v.nrhs % QK_TILE != 0))
    return BAD("transfer_copy: v: nrhs = %d: %d vectors, or a multiple of %d", a->v.nrhs, left,
               QK_TILE);
  if (a->v.prec != QK_SINGLE)
    return BAD("transfer_copy: v: prec = %d: %d", (int)a->v.prec, QK_SINGLE);
  return QK_OK;
}
