#include <sys/mman.h>
#include <unistd.h>

#include "client/libquark/request/transfer.h"

/* Memory of another user's daemon is not mapped: were it cut short, reading it would end this
 * process. A copy only fails. */
static bool map(const shared_t *shared, size_t bytes, quark_view_t *view) {
  if (shared->fd < 0 || !shared->ours) return false;
  void *data = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, shared->fd, 0);
  if (data == MAP_FAILED) return false;
  *view = (quark_view_t){.data = data, .bytes = bytes, .mapped = true};
  return true;
}

quark_code_t quark_view_open(quark_connection_t *conn, uint64_t request, uint32_t rhs, void *buffer,
                             size_t bytes, quark_view_t *view, quark_error_t *err) {
  shared_t shared;
  quark_code_t code = quark__fetch(conn, request, rhs, buffer, bytes, &shared, err);
  if (code == QUARK_OK && !map(&shared, bytes, view)) {
    code = quark__copy_shared(&shared, buffer, bytes, err);
    if (code == QUARK_OK) *view = (quark_view_t){.data = buffer, .bytes = bytes};
  }
  if (shared.fd >= 0) close(shared.fd);
  return code;
}

void quark_view_close(quark_view_t *view) {
  if (view->mapped) munmap((void *)(uintptr_t)view->data, view->bytes);
  *view = (quark_view_t){0};
}
