#include "client/workflow/pieces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/ctl.h"

static int no_memory(void) {
  ctl_complain("no memory for the list of pieces");
  return EXIT_AGAIN;
}

static bool ends_in(const char *name, const char *ending) {
  const size_t n = strlen(name), m = strlen(ending);
  return n > m && strcmp(name + n - m, ending) == 0;
}

/* Takes the piece, even if it fails. */
static bool keep_piece(ctl_pieces_t *p, qk_corrpiece_t *piece) {
  qk_corrpiece_t *more = realloc(p->piece, ((size_t)p->n + 1) * sizeof *more);
  if (!more) {
    qk_corrpiece_fini(piece);
    return false;
  }
  p->piece = more;
  p->piece[p->n++] = *piece;
  return true;
}

/* Takes path, even if it fails. */
static bool keep_part(ctl_pieces_t *p, char *path) {
  char **more = path ? realloc(p->part, ((size_t)p->nparts + 1) * sizeof *more) : NULL;
  if (!more) {
    free(path);
    return false;
  }
  p->part = more;
  p->part[p->nparts++] = path;
  return true;
}

static qk_status_t read_file(ctl_pieces_t *p, const char *path, qk_err_t *err) {
  qk_corrfile_t *file;
  qk_status_t status = qk_corrfile_open(path, &file, err);
  if (status != QK_OK) return status;
  for (int i = 0; i < qk_corrfile_count(file) && status == QK_OK; i++) {
    qk_corrpiece_t piece;
    if ((status = qk_corrfile_read(file, i, &piece, err)) != QK_OK) break;
    const qk_corrmeta_t *m = &piece.meta;
    if (ctl_pieces_find(p, m->config, m->quark, m->label))
      qk_corrpiece_fini(&piece);
    else if (!keep_piece(p, &piece))
      status = qk_fail(err, QK_NO_MEMORY, "%s: no memory", path);
  }
  qk_corrfile_close(file);
  return status;
}

/* Reads one file of the folder. Its name is a number; later files have greater ones. */
static int read_part(ctl_pieces_t *p, const char *name) {
  char *path;
  qk_err_t err = {0};
  const int number = atoi(name);
  if (asprintf(&path, "%s/%s", p->folder, name) < 0) return no_memory();
  if (number >= p->next) p->next = number + 1;
  if (read_file(p, path, &err) == QK_OK) return keep_part(p, path) ? 0 : no_memory();
  ctl_complain("%s; it is made again", err.text);
  if (p->lock >= 0) unlink(path);
  free(path);
  return 0;
}

static int read_folder(ctl_pieces_t *p) {
  DIR *folder = opendir(p->folder);
  if (!folder) {
    if (errno == ENOENT && p->lock < 0) return 0;
    ctl_complain("%s: %s", p->folder, strerror(errno));
    return EXIT_DATA;
  }
  int code = 0;
  for (const struct dirent *e; code == 0 && (e = readdir(folder));)
    if (ends_in(e->d_name, ".h5")) code = read_part(p, e->d_name);
  closedir(folder);
  return code;
}

static int lock_folder(ctl_pieces_t *p) {
  if (mkdir(p->folder, 0777) != 0 && errno != EEXIST) {
    ctl_complain("%s: cannot be made: %s", p->folder, strerror(errno));
    return EXIT_DATA;
  }
  const int folder = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) != 0) {
    ctl_complain("%s: %s", p->folder,
                 errno == EWOULDBLOCK ? "another quarkctl is using it" : strerror(errno));
    if (folder >= 0) close(folder);
    return EXIT_AGAIN;
  }
  p->lock = folder;
  return 0;
}

int ctl_pieces_open(const char *out, bool write, ctl_pieces_t *pieces) {
  ctl_pieces_t p = {.out = out, .lock = -1, .next = 1};
  qk_err_t err = {0};
  int code = 0;
  if (asprintf(&p.folder, "%s.parts", out) < 0) return no_memory();
  if (write && (code = lock_folder(&p))) goto fail;
  if ((code = read_folder(&p))) goto fail;
  if (access(out, F_OK) == 0 && read_file(&p, out, &err) != QK_OK) {
    code = ctl_fail_file(&err);
    goto fail;
  }
  *pieces = p;
  return 0;
fail:
  ctl_pieces_close(&p);
  return code;
}

void ctl_pieces_close(ctl_pieces_t *pieces) {
  for (int i = 0; i < pieces->n; i++) qk_corrpiece_fini(&pieces->piece[i]);
  for (int i = 0; i < pieces->nparts; i++) free(pieces->part[i]);
  if (pieces->lock >= 0) {
    rmdir(pieces->folder); /* where nothing was left in it */
    close(pieces->lock);
  }
  free(pieces->piece);
  free(pieces->part);
  free(pieces->folder);
  *pieces = (ctl_pieces_t){.lock = -1};
}

const qk_corrpiece_t *ctl_pieces_find(const ctl_pieces_t *pieces, const char *config,
                                      const char *quark, const char *label) {
  for (int i = 0; i < pieces->n; i++) {
    const qk_corrmeta_t *m = &pieces->piece[i].meta;
    if (strcmp(m->label, label) == 0 && strcmp(m->quark, quark) == 0 &&
        strcmp(m->config, config) == 0)
      return &pieces->piece[i];
  }
  return NULL;
}

int ctl_pieces_add(ctl_pieces_t *pieces, qk_corrpiece_t *piece) {
  char *path;
  qk_err_t err = {0};
  if (asprintf(&path, "%s/%08d.h5", pieces->folder, pieces->next) < 0) {
    qk_corrpiece_fini(piece);
    return no_memory();
  }
  if (qk_corrfile_write(path, piece, &err) != QK_OK) {
    qk_corrpiece_fini(piece);
    free(path);
    return ctl_fail_file(&err);
  }
  pieces->next++;
  return keep_piece(pieces, piece) & keep_part(pieces, path) ? 0 : no_memory();
}

/* Removes the folder with all files that may be in it: parts, unfinished parts, files of the
 * daemon, null vectors that are handed on. */
static void remove_folder(const ctl_pieces_t *p) {
  static const char *const endings[] = {".h5", ".part", ".log", ".endpoint", ".mg", ".mg.tmp"};
  DIR *folder = opendir(p->folder);
  for (const struct dirent *e; folder && (e = readdir(folder));)
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
      if (ends_in(e->d_name, endings[i])) unlinkat(p->lock, e->d_name, 0);
  if (folder) closedir(folder);
  rmdir(p->folder);
}

int ctl_pieces_merge(ctl_pieces_t *pieces) {
  char *part;
  qk_err_t err = {0};
  int code = 0;
  if (pieces->nparts) {
    if (asprintf(&part, "%s/whole.part", pieces->folder) < 0) return no_memory();
    if (qk_corrfile_merge(pieces->out, part, pieces->nparts, (const char *const *)pieces->part,
                          &err) != QK_OK)
      code = ctl_fail_file(&err);
    free(part);
  }
  if (code == 0) remove_folder(pieces);
  return code;
}
