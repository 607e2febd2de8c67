/*
 * Configuration files, read into a table with a setting of every type. What is accepted is within
 * its limits and is the same when it is read again; what is refused comes with a sentence that
 * names the file, and nothing beyond its limits has been set by then.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/config/config.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct settings {
  int64_t slots, memory;
  double kappa;
  const char *gauge, *colour;
  bool verbose;
  int backend;
  qk_config_list_t set;
} settings_t;

#define AT(member) offsetof(settings_t, member)
static const qk_config_row_t ROWS[] = {
    {NULL, QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "All of them:"},
    {"slots", QK_CONFIG_INT, AT(slots), "12", 1, 64, "COUNT", "right-hand sides at once"},
    {"max-memory", QK_CONFIG_SIZE | QK_CONFIG_LIVE, AT(memory), "4G", 1 << 20, 1e15, "BYTES",
     "host memory"},
    {"kappa", QK_CONFIG_DOUBLE, AT(kappa), "0.12", 0.01, 0.25, "NUMBER", "hopping parameter"},
    {"gauge", QK_CONFIG_STRING, AT(gauge), NULL, 1, 60, "FILE", "gauge configuration"},
    {"verbose", QK_CONFIG_BOOL, AT(verbose), NULL, 0, 0, NULL, "say more"},
    {"backend", QK_CONFIG_CHOICE, AT(backend), "auto", 0, 0, "auto|cuda|cpu", "where kernels run"},
    {"set", QK_CONFIG_LIST, AT(set), NULL, 1, 20, "KEY=VALUE", "a parameter"},
    {"colour", QK_CONFIG_STRING | QK_CONFIG_FILE_ONLY, AT(colour), NULL, 0, 0, NULL, "of the page"},
    {"places", QK_CONFIG_OLD_NAME, 0, NULL, 0, 0, "slots", NULL},
    {"wordy", QK_CONFIG_OLD_NAME, 0, NULL, 0, 0, "verbose", NULL},
};
enum { NROWS = sizeof ROWS / sizeof ROWS[0] };

static void promise(bool kept) {
  if (!kept) abort();
}

static void is_within_limits(const settings_t *s) {
  promise(s->slots >= 1 && s->slots <= 64);
  promise(s->memory >= 1 << 20 && s->memory <= INT64_C(1000000000000000));
  promise(s->kappa >= 0.01 && s->kappa <= 0.25);
  promise(!s->gauge || (s->gauge[0] && strlen(s->gauge) <= 60));
  promise(!s->colour || strlen(s->colour) <= QK_CONFIG_LINE);
  promise(s->backend >= 0 && s->backend < 3);
  promise(s->set.n >= 0 && s->set.n <= QK_CONFIG_ITEMS_MAX);
  for (int i = 0; i < s->set.n; i++) {
    const size_t bytes = strlen(s->set.item[i].text);
    promise(bytes >= 1 && bytes <= 20 && s->set.item[i].where && !s->set.item[i].by_flag);
  }
}

static bool same_text(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

static void is_same(const settings_t *a, const settings_t *b) {
  promise(a->slots == b->slots && a->memory == b->memory && a->kappa == b->kappa);
  promise(same_text(a->gauge, b->gauge) && same_text(a->colour, b->colour));
  promise(a->verbose == b->verbose && a->backend == b->backend && a->set.n == b->set.n);
  for (int i = 0; i < a->set.n; i++) promise(same_text(a->set.item[i].text, b->set.item[i].text));
}

static void read_twice(const char *path) {
  settings_t settings = {0}, again = {0};
  qk_config_t *config = NULL, *second = NULL;
  qk_err_t err = {0};
  promise(qk_config_create("quarkd", "", ROWS, NROWS, &settings, &config, &err) == QK_OK);
  promise(qk_config_create("quarkd", "", ROWS, NROWS, &again, &second, &err) == QK_OK);
  const qk_status_t status = qk_config_read_file(config, path, &err);
  is_within_limits(&settings);
  if (status != QK_OK) promise(err.code == status && strncmp(err.text, path, strlen(path)) == 0);
  promise(qk_config_read_file(second, path, &err) == status);
  is_same(&settings, &again);
  qk_config_destroy(config);
  qk_config_destroy(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  const int fd = memfd_create("config", MFD_CLOEXEC);
  promise(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  qk_log_set_level(QK_LOG_ERROR); /* old names are told of */
  read_twice(path);
  close(fd);
  promise(qk_mem_bytes() == 0);
  return 0;
}
