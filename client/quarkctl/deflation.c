#include "client/quarkctl/deflation.h"

#include <stdio.h>

void ctl_deflation_print(const quark_deflation_t *d) {
  printf("%u vectors, eigenvalues %.4g to %.4g   ", d->vectors, d->lowest, d->highest);
  if (*d->origin)
    printf("from %s in %.2f s", d->origin, d->seconds);
  else
    printf("%s in %.2f s", d->restored ? "restored" : "made", d->seconds);
  printf("   %.1f MiB\n", (double)d->bytes / 1048576);
  if (*d->trouble) printf("    %s\n", d->trouble);
}

json_t *ctl_deflation_json(const quark_deflation_t *d) {
  if (d->vectors == 0) return json_null();
  return json_pack("{s:I, s:o, s:o, s:o, s:I, s:b, s:s, s:s}", "vectors", (json_int_t)d->vectors,
                   "lowest", ctl_number(d->lowest), "highest", ctl_number(d->highest), "seconds",
                   ctl_number(d->seconds), "bytes", (json_int_t)d->bytes, "restored", d->restored,
                   "origin", d->origin, "trouble", d->trouble);
}
