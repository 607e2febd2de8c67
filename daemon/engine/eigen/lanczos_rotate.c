#include "daemon/engine/eigen/lanczos_rotate.h"

#include "daemon/base/mem.h"

enum { B = QK_EIGEN_BLOCK };
/* Products of two numbers in a call, but for one more unit: a quarter of a second of one core. */
static const int64_t together = 1 << 26;

/* ---- memory ---------------------------------------------------------------------------------- */

/* Whether a kernel rotates as many blocks in place. */
static bool in_place(int nblock) {
  return nblock * B <= QK_BASIS_MAX;
}

/* Bytes of k->c. */
static size_t coefficients(int nblock) {
  const size_t n = (size_t)nblock * B;
  return n * (in_place(nblock) ? n : B) * sizeof(double complex);
}

/* Sites that are rotated at a time where it is not in place: the pieces of all blocks together are
 * as large as two blocks, or smaller by the tiles of a piece. */
static int64_t piece_sites(int64_t sites, int nblock) {
  const int64_t n = 2 * sites / nblock / QK_TILE * QK_TILE;
  return n < QK_TILE ? QK_TILE : n;
}

static int64_t piece_bytes(int64_t sites, int ncomp, qk_prec_t prec, int nblock) {
  return piece_sites(sites, nblock) * QK_TILE * 2 * ncomp * qk_prec_bytes(prec);
}

static qk_status_t reserve_pieces(qk_lanczos_basis_t *k) {
  const qk_geom_t *geom = k->within ? &k->within->geom : k->flat->from->geom;
  const int64_t block =
      (int64_t)qk_field_bytes(geom, k->prec, B, k->within ? QK_EVEN : k->system) /
      (QK_TILE * 2 * geom->ncomp * qk_prec_bytes(k->prec)); /* sites, of all slices and flavours */
  const int64_t bytes = k->nblock * piece_bytes(block, geom->ncomp, k->prec, k->nblock);
  return k->dev->ops->alloc(k->dev->ctx, (size_t)bytes, &k->pieces);
}

int64_t qk_lanczos_rotate_room(const qk_geom_t *geom, qk_prec_t prec, int nblock,
                               qk_subset_t system) {
  const int64_t tile = (int64_t)QK_TILE * 2 * geom->ncomp * qk_prec_bytes(prec);
  const int64_t sites = (int64_t)qk_field_bytes(geom, prec, B, system) / tile;
  const int64_t pieces =
      in_place(nblock) ? 0 : nblock * piece_bytes(sites, geom->ncomp, prec, nblock);
  return (int64_t)coefficients(nblock) + pieces;
}

qk_status_t qk_lanczos_rotate_reserve(qk_lanczos_basis_t *k) {
  void *c = NULL;
  const qk_status_t status = k->dev->ops->alloc(k->dev->ctx, coefficients(k->nblock), &c);
  if (status) return status;
  k->c = c;
  return in_place(k->nblock) ? QK_OK : reserve_pieces(k);
}

/* ---- sums ------------------------------------------------------------------------------------ */

qk_basis_args_t qk_lanczos_some_blocks(qk_field_t *const *v, int first, int n) {
  qk_basis_args_t a = {.n = n - first < QK_BASIS_BLOCKS ? n - first : QK_BASIS_BLOCKS};
  for (int i = 0; i < a.n; i++) a.v[i] = v[first + i]->v;
  return a;
}

void qk_lanczos_add_blocks(qk_lanczos_basis_t *k, qk_field_t *const *v, int n, const qk_field_t *y,
                           double sign) {
  const qk_device_t *dev = k->dev;
  for (int first = 0; first < n; first += QK_BASIS_BLOCKS) {
    qk_basis_args_t a = qk_lanczos_some_blocks(v, first, n);
    a.y = y->v;
    a.sign = sign;
    a.c = (double *)(k->c + (size_t)first * B * B);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_axpy(dev->ctx, &a));
  }
}

/* ---- combinations ---------------------------------------------------------------------------- */

static void put(qk_lanczos_basis_t *k, const double complex *c, size_t bytes) {
  qk_dev_copy(k->dev, k->c, c, bytes, QK_COPY_TO_DEVICE);
  qk_dev_sync(k->dev);
}

static qk_status_t rotate_of(qk_lanczos_basis_t *k, qk_field_t *const *v, int n, int columns,
                             const double complex *q, int ldq) {
  qk_basis_args_t a = {.n = n, .columns = columns, .c = (double *)k->c};
  int rows = n * B;
  for (int i = 0; i < n; i++) a.v[i] = v[i]->v;
  double complex *c = qk_malloc((size_t)rows * (size_t)columns * sizeof *c);
  if (!c) return QK_NO_MEMORY;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) c[i * columns + j] = q[(size_t)j * (size_t)ldq + (size_t)i];
  put(k, c, (size_t)rows * (size_t)columns * sizeof *c);
  qk_free(c);
  if (qk_dev_ok(k->dev)) qk_dev_note(k->dev, k->dev->ops->basis_rotate(k->dev->ctx, &a));
  return qk_dev_status(k->dev);
}

/* Sites from `first` on of a block, as a block. */
static qk_field_t piece_of(const qk_field_t *block, int64_t first, int64_t sites) {
  qk_field_t f = *block;
  f.v.inner = 1;
  f.v.nsites = sites;
  f.v.data = (char *)f.v.data +
             first * QK_TILE * 2 * f.v.ncomp * qk_prec_bytes(f.v.prec); /* one tile a site */
  return f;
}

/* Coefficients of the eight columns of block b, to the device; room: on the host. */
static void put_columns(qk_lanczos_basis_t *k, int rows, int columns_left, const double complex *q,
                        int ldq, double complex *room) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < B; j++)
      room[i * B + j] = j < columns_left ? q[(size_t)j * (size_t)ldq + (size_t)i] : 0;
  put(k, room, (size_t)rows * B * sizeof *room);
}

/* What becomes of the basis, and the part of it that is worked on: some sites of all blocks, the
 * new ones first beside them, then in their place. */
typedef struct part {
  int nblock, made;
  int columns, ldq;
  const double complex *q;
  qk_field_t old[QK_LANCZOS_SPACE / B];
  int64_t bytes; /* of a block */
} part_t;

static void cut_part(const qk_lanczos_basis_t *k, part_t *p, int64_t first, int64_t sites) {
  for (int b = 0; b < p->nblock; b++) p->old[b] = piece_of(k->v[b], first, sites);
  p->bytes = sites * QK_TILE * 2 * p->old[0].v.ncomp * qk_prec_bytes(k->prec);
}

/* The new block b beside the old ones. A last block of which not all columns are replaced keeps
 * none of the others: nobody asks for them. */
static qk_field_t new_block(const qk_lanczos_basis_t *k, const part_t *p, int b) {
  qk_field_t now = p->old[b];
  now.v.data = (char *)k->pieces + b * p->bytes;
  return now;
}

static void make_block(qk_lanczos_basis_t *k, part_t *p, int b, double complex *room) {
  const qk_field_t now = new_block(k, p, b);
  qk_field_t *all[QK_LANCZOS_SPACE / B];
  for (int i = 0; i < p->nblock; i++) all[i] = &p->old[i];
  put_columns(k, p->nblock * B, p->columns - b * B, p->q + (size_t)b * B * (size_t)p->ldq, p->ldq,
              room);
  qk_dev_blas(k->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {now.v}});
  qk_lanczos_add_blocks(k, all, p->nblock, &now, 1);
}

static void replace_blocks(const qk_lanczos_basis_t *k, const part_t *p) {
  for (int b = 0; b < p->made; b++)
    qk_dev_blas(k->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {p->old[b].v, new_block(k, p, b).v}});
}

qk_status_t qk_lanczos_rotate_block(qk_lanczos_basis_t *k, qk_field_t *w, const double complex *q) {
  return rotate_of(k, &w, 1, B, q, B);
}

/* Units from *unit on: of each part one a new block, and one that puts them in place. */
static void rotate_units(qk_lanczos_basis_t *k, part_t *p, int64_t *unit, double complex *room) {
  const int64_t all = k->v[0]->v.nsites, piece = piece_sites(all, k->nblock), units = p->made + 1,
                products = piece * k->v[0]->v.ncomp * p->nblock * B * B;
  int64_t cut = -1, done = 0;
  for (; done < together && *unit < units * ((all + piece - 1) / piece); ++*unit) {
    const int64_t first = *unit / units * piece;
    const int b = (int)(*unit % units);
    if (first != cut) cut_part(k, p, first, all - first < piece ? all - first : piece);
    cut = first;
    if (b < p->made)
      make_block(k, p, b, room);
    else
      replace_blocks(k, p);
    done += products;
  }
  qk_dev_sync(k->dev);
}

qk_status_t qk_lanczos_rotate_some(qk_lanczos_basis_t *k, int nblock, int columns_all,
                                   const double complex *q, int ldq, int64_t *unit, bool *over) {
  part_t p = {.nblock = nblock,
              .made = (columns_all + B - 1) / B,
              .columns = columns_all,
              .q = q,
              .ldq = ldq};
  const int64_t all = k->v[0]->v.nsites, piece = piece_sites(all, k->nblock);
  *over = in_place(k->nblock);
  if (*over) return rotate_of(k, k->v, nblock, columns_all, q, ldq);
  double complex *room = qk_malloc((size_t)nblock * B * B * sizeof *room);
  if (!room) return QK_NO_MEMORY;
  rotate_units(k, &p, unit, room);
  qk_free(room);
  *over = *unit == (p.made + 1) * ((all + piece - 1) / piece);
  return qk_dev_status(k->dev);
}

qk_status_t qk_lanczos_rotate(qk_lanczos_basis_t *k, int nblock, int columns_all,
                              const double complex *q, int ldq) {
  int64_t unit = 0;
  bool over = false;
  qk_status_t status = QK_OK;
  while (!status && !over)
    status = qk_lanczos_rotate_some(k, nblock, columns_all, q, ldq, &unit, &over);
  return status;
}
