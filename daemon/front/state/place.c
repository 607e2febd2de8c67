#include "daemon/front/state/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/assert.h"

enum { PATH_BYTES = QK_PATH_MAX + QK_PLACE_NAME + 2 };

void qk_places_note(qk_places_t *places, const char *dir, const char *const names[]) {
  *places = (qk_places_t){0};
  snprintf(places->dir, sizeof places->dir, "%s", dir);
  for (int i = 0; names[i]; i++) {
    char path[PATH_BYTES];
    struct stat st;
    QK_ASSERT(i < QK_PLACES_MAX);
    snprintf(path, sizeof path, "%s/%s", dir, names[i]);
    if (stat(path, &st) != 0) continue;
    snprintf(places->at[places->count].name, QK_PLACE_NAME, "%s", names[i]);
    places->at[places->count].device = st.st_dev;
    places->at[places->count++].inode = st.st_ino;
  }
}

bool qk_places_check(const qk_places_t *places, char text[QK_TEXT_MAX]) {
  for (int i = 0; i < places->count; i++) {
    char path[PATH_BYTES];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", places->dir, places->at[i].name);
    const int e = stat(path, &st) == 0 ? 0 : errno;
    if (e == 0 && st.st_dev == places->at[i].device && st.st_ino == places->at[i].inode) continue;
    snprintf(text, QK_TEXT_MAX,
             "%.250s: %s: put the state folder back as it was; then new work is accepted. If it is "
             "lost, start quarkd anew",
             path, e != 0 ? strerror(e) : "another file than the one that quarkd has opened");
    return false;
  }
  return true;
}
