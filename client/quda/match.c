/* match: whether libquark has the structs of quark.h, as a library of another version links without
 * a word. */
#include <stdio.h>
#include <string.h>

#include "client/quark.h"

enum { ROOM = 1 << 16, ALIGNED = 8 };

static union {
  unsigned char byte[ROOM];
  quark_options_t options;
  quark_params_t params;
  quark_field_params_t field;
  quark_load_t load;
  quark_contraction_t contraction;
} room;

static void options(void) {
  quark_options_init(&room.options);
}
static void params(void) {
  quark_params_init(&room.params);
}
static void field(void) {
  quark_field_params_init(&room.field);
}
static void load(void) {
  quark_load_init(&room.load);
}
static void contraction(void) {
  quark_contraction_init(&room.contraction);
}

/* Bytes that the library writes, to the end of its last member. */
static size_t written(void (*init)(void)) {
  size_t bytes = 0;
  for (int poison = 0x5a; poison <= 0xa5; poison += 0xa5 - 0x5a) {
    memset(&room, poison, sizeof room);
    init();
    size_t n = ROOM;
    while (n > 0 && room.byte[n - 1] == poison) n--;
    if (n > bytes) bytes = n;
  }
  return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

int main(void) {
  static const struct {
    const char *name;
    size_t bytes;
    void (*init)(void);
  } of[] = {{"quark_options_t", sizeof room.options, options},
            {"quark_params_t", sizeof room.params, params},
            {"quark_field_params_t", sizeof room.field, field},
            {"quark_load_t", sizeof room.load, load},
            {"quark_contraction_t", sizeof room.contraction, contraction}};
  for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
    const size_t bytes = written(of[k].init);
    if (bytes == (of[k].bytes + ALIGNED - 1) / ALIGNED * ALIGNED) continue;
    printf("libquark %s is of another version than quark.h: its %s has %zu bytes, that of the "
           "header %zu\n",
           quark_version(), of[k].name, bytes, of[k].bytes);
    return 1;
  }
  return 0;
}
