/* Another libquda. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "fallback.h"
#include "served.h"

enum { ROOM = 1 << 17, POISON = 0xA5 };

/* Calls a function that returns a struct of unknown size: it gets room for more than any. */
#if defined(__x86_64__)
/* The address of the result is the first argument. */
static void call_into(void *function, unsigned char *room) {
  void *(*call)(void *);
  *(void **)&call = function;
  call(room);
}
#else
typedef struct room {
  unsigned char byte[ROOM];
} room_t;
static void call_into(void *function, unsigned char *room) {
  room_t (*call)(void);
  *(void **)&call = function;
  *(room_t *)room = call();
}
#endif

/* Bytes that were written; no struct ends with this many bytes of padding. */
static size_t written(const unsigned char *room) {
  size_t n = ROOM;
  while (n > 0 && room[n - 1] == POISON) n--;
  return n;
}

static unsigned char *made_by(void *library, const char *name) {
  void *function = dlsym(library, name);
  if (!function) return NULL;
  unsigned char *room = malloc(ROOM);
  if (!room) return NULL;
  memset(room, POISON, ROOM);
  call_into(function, room);
  return room;
}

/* Padding at the end may keep the poison. */
static bool fits(size_t seen, size_t size) {
  return seen <= size && size - seen < 8;
}

static const char *invert_differs(const unsigned char *room) {
  QudaInvertParam p;
  memcpy(&p, room, sizeof p);
  if (!fits(written(room), sizeof p)) return "sizeof(QudaInvertParam)";
  if (p.dslash_type != QUDA_INVALID_DSLASH) return "QudaInvertParam.dslash_type";
  if (p.solution_type != QUDA_INVALID_SOLUTION) return "QudaInvertParam.solution_type";
  if (p.dagger != QUDA_DAG_INVALID) return "QudaInvertParam.dagger";
  if (p.mass_normalization != QUDA_INVALID_NORMALIZATION)
    return "QudaInvertParam.mass_normalization";
  if (p.cpu_prec != QUDA_INVALID_PRECISION) return "QudaInvertParam.cpu_prec";
  if (p.residual_type != QUDA_L2_RELATIVE_RESIDUAL) return "QudaInvertParam.residual_type";
  return NULL;
}

static const char *gauge_differs(const unsigned char *room) {
  QudaGaugeParam p;
  memcpy(&p, room, sizeof p);
  if (!fits(written(room), sizeof p)) return "sizeof(QudaGaugeParam)";
  if (p.gauge_order != QUDA_INVALID_GAUGE_ORDER) return "QudaGaugeParam.gauge_order";
  if (p.t_boundary != QUDA_INVALID_T_BOUNDARY) return "QudaGaugeParam.t_boundary";
  if (p.cpu_prec != QUDA_INVALID_PRECISION) return "QudaGaugeParam.cpu_prec";
  return NULL;
}

static const char *multigrid_differs(const unsigned char *room) {
  return fits(written(room), sizeof(QudaMultigridParam)) ? NULL : "sizeof(QudaMultigridParam)";
}

const char *qk_quda_differs(void *library) {
  static const struct {
    const char *name;
    const char *(*look)(const unsigned char *);
  } made[] = {{"newQudaGaugeParam", gauge_differs},
              {"newQudaInvertParam", invert_differs},
              {"newQudaMultigridParam", multigrid_differs}};
  const char *what = NULL;
  for (size_t k = 0; k < sizeof made / sizeof made[0] && !what; k++) {
    unsigned char *room = made_by(library, made[k].name);
    what = room ? made[k].look(room) : made[k].name;
    free(room);
  }
  return what;
}

static void *open_other(void) {
  const char *path = qk_quda_setting("FALLBACK");
  if (!path) return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) qk_quda_refuse("QUARK_QUDA_FALLBACK: %s", dlerror());
  const char *what = qk_quda_differs(library);
  if (what)
    qk_quda_refuse("QUARK_QUDA_FALLBACK = %s: %s is not as in the header that this libquda was "
                   "built for",
                   path, what);
  return library;
}

void *qk_quda_other(const char *name, bool needed) {
  static void *library;
  if (!library) library = open_other();
  void *function = library ? dlsym(library, name) : NULL;
  if (library && !function && needed)
    qk_quda_refuse("%s is not in QUARK_QUDA_FALLBACK = %s", name, qk_quda_setting("FALLBACK"));
  if (!library && needed)
    qk_quda_refuse("%s is not served by quarkd; QUARK_QUDA_FALLBACK=/path/libquda.so forwards it",
                   name);
  return function;
}
