#include "cuda/args/stag_args.h"

#include <math.h>
#include <stdbool.h>

#include "cuda/args/hop_args.h"

static const char *field_misfit(const qk_spinor_t *f, int64_t nsites) {
  if (f->data == NULL) return "field: absent though its coefficient is not 0";
  if (f->nsites != nsites) return "field: nsites does not fit the sites";
  return qk_block_misfit(f, QK_COLOUR_COMPONENTS);
}

static const char *operand_misfit(const qk_spinor_t *f, const qk_spinor_t *like, int64_t nsites) {
  const char *why = field_misfit(f, nsites);
  if (why != NULL) return why;
  if (f->prec != like->prec || f->nrhs != like->nrhs || f->ntile != like->ntile)
    return "field: another block than out";
  return NULL;
}

static const char *general_misfit(const qk_links_t *links, qk_prec_t prec) {
  if (links->data == NULL) return "links: absent";
  if (links->prec != prec) return "links: other precision than the colour vectors";
  if (links->reals != 18) return "links: reals must be 18";
  return NULL;
}

static int64_t face_sites(const qk_lattice_t *lat, qk_subset_t subset, int mu, int depth) {
  const int64_t padded = (lat->face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE;
  return padded * depth * (subset == QK_FULL ? 2 : 1);
}

static const char *edge_misfit(const qk_stag_args_t *a, int mu) {
  const int depth = qk_stag_depth(&a->links);
  if (a->links.behind[mu] == NULL) return "links: those behind a split direction are absent";
  if (depth > 1 && a->links.behind_long[mu] == NULL)
    return "links: long ones behind a split direction are absent";
  const char *why = NULL;
  for (int side = 0; why == NULL && side < 2; side++)
    why =
        operand_misfit(&a->ghost[mu][side], &a->out, face_sites(&a->lat, a->out_parity, mu, depth));
  return why == NULL ? NULL : "ghost: not the colour vectors of the block";
}

static const char *stag_misfit(const qk_stag_args_t *a) {
  const char *why = qk_lattice_misfit(&a->lat);
  if (why != NULL) return why;
  const int64_t nsites = a->out_parity == QK_FULL ? 2 * (int64_t)a->lat.vcb : a->lat.vcb;
  why = field_misfit(&a->out, nsites);
  if (why == NULL && a->c_x != 0) why = operand_misfit(&a->x, &a->out, nsites);
  if (why == NULL && a->c_y != 0) why = operand_misfit(&a->y, &a->out, nsites);
  if (why == NULL && a->num != NULL && (a->den == NULL || a->c_y != 1))
    why = "num: without den, or c_y is not 1";
  if (why != NULL || a->c_hop == 0) return why;
  why = operand_misfit(&a->in, &a->out, nsites);
  if (why == NULL && a->in.data == a->out.data) why = "in: may not be out";
  if (why == NULL) why = general_misfit(&a->links.fat, a->out.prec);
  if (why == NULL && a->links.naik.data != NULL) why = general_misfit(&a->links.naik, a->out.prec);
  if (why == NULL && a->hops > 0xff) why = "hops: 0 to 0xff";
  for (int mu = 0; why == NULL && mu < 4; mu++) {
    if (a->block[mu] < 0 || (a->block[mu] > 0 && a->lat.l[mu] % a->block[mu] != 0))
      return "block: extents must be 0 or divide the lattice";
    if (a->lat.split[mu] && a->block[mu] == 0) why = edge_misfit(a, mu);
  }
  return why;
}

static const char *stag_pack_misfit(const qk_stag_pack_args_t *a) {
  const char *why = qk_lattice_misfit(&a->lat);
  if (why != NULL) return why;
  if (a->depth != 1 && a->depth != QK_STAG_REACH) return "depth: must be 1 or 3";
  why = field_misfit(&a->in, a->in_parity == QK_FULL ? 2 * (int64_t)a->lat.vcb : a->lat.vcb);
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; why == NULL && side < 2; side++) {
      if (a->to[mu][side].data == NULL) continue;
      if (a->lat.l[mu] < a->depth) return "depth: more slices than the lattice has";
      why =
          operand_misfit(&a->to[mu][side], &a->in, face_sites(&a->lat, a->in_parity, mu, a->depth));
    }
  return why;
}

static const char *stag_links_misfit(const qk_stag_links_args_t *a) {
  const char *why = qk_lattice_misfit(&a->lat);
  if (why == NULL) why = general_misfit(&a->in, QK_DOUBLE);
  if (why != NULL) return why;
  if ((unsigned)a->out.prec >= QK_PRECS) return "out: prec is no precision";
  why = general_misfit(&a->out, a->out.prec);
  if (why != NULL) return why;
  if (a->out.data == a->in.data && a->out.prec != QK_DOUBLE) return "out: may be in, in double";
  if (a->reach != 1 && a->reach != QK_STAG_REACH) return "reach: must be 1 or 3";
  for (int mu = 0; mu < 4; mu++)
    if (!isfinite(a->phase[mu][0]) || !isfinite(a->phase[mu][1])) return "phase: not finite";
  return NULL;
}

static const char *stag_behind_misfit(const qk_stag_behind_args_t *a) {
  const char *why = qk_lattice_misfit(&a->lat);
  if (why != NULL) return why;
  if ((unsigned)a->in.prec >= QK_PRECS) return "in: prec is no precision";
  why = general_misfit(&a->in, a->in.prec);
  if (why != NULL) return why;
  if (a->out == NULL) return "out: absent";
  if (a->mu < 0 || a->mu > 3) return "mu: must be 0 to 3";
  if (a->reach != 1 && a->reach != QK_STAG_REACH) return "reach: must be 1 or 3";
  if (a->lat.l[a->mu] < a->reach) return "reach: more slices than the lattice has";
  return NULL;
}

static qk_status_t told(qk_ops_ctx_t *ctx, const char *call, const char *misfit) {
  return misfit == NULL ? QK_OK : qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "%s: %s", call, misfit);
}

qk_status_t qk_args_stag(qk_ops_ctx_t *ctx, const qk_stag_args_t *args) {
  return told(ctx, "stag", stag_misfit(args));
}

qk_status_t qk_args_stag_pack(qk_ops_ctx_t *ctx, const qk_stag_pack_args_t *args) {
  return told(ctx, "stag_pack", stag_pack_misfit(args));
}

qk_status_t qk_args_stag_links(qk_ops_ctx_t *ctx, const qk_stag_links_args_t *args) {
  return told(ctx, "stag_links", stag_links_misfit(args));
}

qk_status_t qk_args_stag_behind(qk_ops_ctx_t *ctx, const qk_stag_behind_args_t *args) {
  return told(ctx, "stag_behind", stag_behind_misfit(args));
}
