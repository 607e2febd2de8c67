/* Calls the function that call= names, without arguments; or with some, to see where they go. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

int main(int argc, char **argv) {
  kit_t kit;
  kit_begin(&kit, argc, argv);
  const char *call = kit_text(&kit, "call", "");
  if (strcmp(call, "forward") == 0) {
    QudaGaugeSmearParam smear = newQudaGaugeSmearParam();
    QudaGaugeParam g;
    kit_gauge_param(&kit, &g);
    smear.n_steps = 12;
    smear.epsilon = 0.25;
    initQuda(3);
    setVerbosityQuda(QUDA_SILENT, "", stdout);
    performWFlowQuda(&smear, NULL);
    const double coefficient = 1.5;
    printf("force %d\n",
           computeGaugeForceQuda(NULL, NULL, NULL, NULL, (double *)&coefficient, 7, 8, 0.125, &g));
    printf("action %g\n", momActionQuda(NULL, &g));
    endQuda();
    kit_end(&kit);
    return 0;
  }
  void (*function)(void);
  *(void **)&function = dlsym(RTLD_DEFAULT, call);
  if (!function) {
    fprintf(stderr, "no symbol %s\n", call);
    return 70;
  }
  function();
  return 0;
}
