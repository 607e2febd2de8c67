/*
 * storage.h: the choice of a storage type when the program runs, by the host:
 *   return with_storage(prec, [=](auto s) { return hop_launch<stored<decltype(s)>>(ctx, args); });
 */
#ifndef QK_SITE_STORAGE_H
#define QK_SITE_STORAGE_H

#include <type_traits>

#include "cuda/site/access.h"

namespace QK_NS {

template <class POINTER> using stored = std::remove_pointer_t<POINTER>;

/* What body returns for the storage type of a precision, as the type of a null pointer. */
template <class F> auto with_storage(qk_prec_t prec, const F &body) {
  if (prec == QK_DOUBLE) return body((double *)NULL);
  if (prec == QK_SINGLE) return body((float *)NULL);
  return body((half *)NULL);
}

} // namespace QK_NS
#endif
