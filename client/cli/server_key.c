#include <errno.h>
#include <ini.h>
#include <string.h>

#include "client/cli/ctl.h"

static int take_key(void *arg, const char *section, const char *name, const char *value) {
  (void)section;
  if (strcmp(name, "key") == 0 && qk_key_valid(value)) memcpy(arg, value, QK_KEY_TEXT);
  return 1;
}

bool ctl_server_key(const char *text, char key[QK_KEY_TEXT]) {
  key[0] = '\0';
  if (qk_key_valid(text)) {
    memcpy(key, text, QK_KEY_TEXT);
    return true;
  }
  if (ini_parse(text, take_key, key) < 0)
    ctl_complain("--server-key: neither %d characters of Z85 nor a file that can be read: %s",
                 QK_KEY_TEXT - 1, strerror(errno));
  else if (!key[0])
    ctl_complain("--server-key=%s: has no public key: give the file NAME.pub that keygen wrote",
                 text);
  return key[0] != '\0';
}
