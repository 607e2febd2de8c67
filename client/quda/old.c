/* old LIBQUDA: whether its structs are those of the header. */
#include <dlfcn.h>
#include <stdio.h>

#include "fallback.h"

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("%s\n", dlerror());
    return 1;
  }
  const char *what = qk_quda_differs(library);
  if (what) printf("%s is not as in the header\n", what);
  return what ? 1 : 0;
}
