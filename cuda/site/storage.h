/*
 * storage.h: the choice of a storage type when the program runs, by the host:
 *   return with_storage(prec, [=](auto s) { return hop_launch<stored<decltype(s)>>(ctx, args); });
 * It is the only one: a precision of proto/choices.h that QK_STORAGES lacks does not compile.
 */
#ifndef QK_SITE_STORAGE_H
#define QK_SITE_STORAGE_H

#include <type_traits>

#include "cuda/site/access.h"
#include "daemon/base/assert.h"

namespace QK_NS {

template <class POINTER> using stored = std::remove_pointer_t<POINTER>;

#define X(name, type, bytes, scale)                                                                \
  static_assert(sizeof(type) == bytes && storage<type>::scaled == scale,                           \
                "types.h and lane.h say the same of " #type);
QK_STORAGES(X)
#undef X

/* What body returns for the storage type of a precision, as the type of a null pointer. The
 * arguments have been checked (cuda/args): another number than a precision is a bug here. */
template <class F> auto with_storage(qk_prec_t prec, const F &body) {
  switch (prec) {
#define X(name, type, bytes, scale)                                                                \
  case QK_##name:                                                                                  \
    return body((type *)NULL);
    QK_STORAGES(X)
#undef X
  }
  qk_assert_failed("prec is one of QK_STORAGES", __FILE__, __LINE__);
}

} // namespace QK_NS
#endif
