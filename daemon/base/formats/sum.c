#include "daemon/base/formats/sum.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "daemon/base/formats/parse.h"
#include "daemon/base/formats/tag.h"

static uint32_t rotate(uint32_t w, int64_t by) {
  return by == 0 ? w : w << by | w >> (32 - by);
}

void qk_scidac_sum_add(int64_t first, int64_t n, int64_t bytes, const uint8_t *raw,
                       uint32_t sum[2]) {
  for (int64_t i = 0; i < n; i++) {
    const uint32_t crc = (uint32_t)crc32(0, raw + i * bytes, (uInt)bytes);
    sum[0] ^= rotate(crc, (first + i) % 29);
    sum[1] ^= rotate(crc, (first + i) % 31);
  }
}

int qk_scidac_sum_print(const uint32_t sum[2], char text[QK_SCIDAC_SUM_TEXT]) {
  return snprintf(text, QK_SCIDAC_SUM_TEXT,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<scidacChecksum><version>1.0</version><suma>%08" PRIx32 "</suma><sumb>%08" PRIx32
                  "</sumb></scidacChecksum>\n",
                  sum[0], sum[1]);
}

/* "1c231a18", or "0x1c231a18", which is lower case then. */
static bool parse_word(const char *value, uint32_t *word) {
  if (strncmp(value, "0x", 2) != 0) return qk_parse_hex(value, word);
  return strpbrk(value, "ABCDEF") == NULL && qk_parse_hex(value + 2, word);
}

qk_status_t qk_scidac_sum_parse(const char *text, uint32_t sum[2], qk_err_t *err) {
  static const char *const tag[2] = {"suma", "sumb"};
  uint32_t word[2];
  for (int i = 0; i < 2; i++) {
    char value[QK_TAG_VALUE];
    const qk_status_t status = qk_tag_need(text, tag[i], value, err);
    if (status != QK_OK) return status;
    if (!parse_word(value, &word[i]))
      return qk_fail(err, QK_BAD_FORMAT, "<%s> = \"%s\" is not 1 to 8 hex digits", tag[i], value);
  }
  memcpy(sum, word, sizeof word);
  return QK_OK;
}
