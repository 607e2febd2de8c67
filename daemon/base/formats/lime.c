#include "daemon/base/formats/lime.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/base/file.h"
#include "daemon/base/formats/bytes.h"
#include "daemon/base/formats/parse.h"
#include "daemon/base/mem.h"

static const uint32_t MAGIC = 0x456789ab;

bool qk_lime_is(const uint8_t head[4]) {
  return qk_bytes_u32(head, true) == MAGIC;
}

qk_status_t qk_lime_next(qk_lime_cursor_t *cursor, qk_lime_record_t *record, qk_err_t *err) {
  uint8_t head[QK_LIME_HEADER];
  const int64_t at = cursor->pos, left = cursor->file->size - at - QK_LIME_HEADER;
  if (cursor->records == QK_LIME_RECORDS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "more than %d LIME records", QK_LIME_RECORDS_MAX);
  const qk_status_t status = qk_infile_read(cursor->file, head, sizeof head, at, err);
  if (status != QK_OK) return status;
  const uint32_t magic = qk_bytes_u32(head, true), version = (uint32_t)head[4] << 8 | head[5];
  if (magic != MAGIC || version != 1)
    return qk_fail(err, QK_BAD_FORMAT,
                   "no LIME record at byte %" PRId64 ": magic %08" PRIx32 ", version %" PRIu32, at,
                   magic, version);
  const uint64_t bytes = qk_bytes_u64(head + 8, true);
  memcpy(record->type, head + 16, QK_LIME_TYPE - 1);
  record->type[QK_LIME_TYPE - 1] = '\0';
  if (bytes > (uint64_t)left)
    return qk_fail(err, QK_TRUNCATED,
                   "LIME record %.40s at byte %" PRId64 " says it holds %" PRIu64
                   " bytes, but the file ends after %" PRId64,
                   qk_parse_printable(record->type) ? record->type : "?", at, bytes, left);
  record->offset = at + QK_LIME_HEADER;
  record->bytes = (int64_t)bytes;
  cursor->pos = record->offset + (int64_t)(bytes + 7) / 8 * 8;
  cursor->records++;
  return QK_OK;
}

qk_status_t qk_lime_text(const qk_infile_t *file, const qk_lime_record_t *record, char **text,
                         qk_err_t *err) {
  const int64_t bytes = record->bytes;
  const char *type = qk_parse_printable(record->type) ? record->type : "?";
  if (bytes > QK_LIME_TEXT_MAX)
    return qk_fail(err, QK_TOO_LARGE, "LIME record %.40s of %" PRId64 " bytes: the limit is %d",
                   type, bytes, QK_LIME_TEXT_MAX);
  char *t = qk_malloc((size_t)bytes + 1);
  if (t == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for %" PRId64 " bytes", bytes);
  const qk_status_t status = qk_infile_read(file, t, bytes, record->offset, err);
  if (status != QK_OK) {
    qk_free(t);
    return status;
  }
  t[bytes] = '\0';
  *text = t;
  return QK_OK;
}

qk_status_t qk_lime_put(int fd, const char *type, unsigned flags, int64_t bytes, const char *text,
                        qk_err_t *err) {
  uint8_t head[QK_LIME_HEADER] = {0x45,          0x67, 0x89, 0xab, 0, 1, (uint8_t)(flags >> 8),
                                  (uint8_t)flags};
  static const char zeros[8];
  for (int i = 0; i < 8; i++) head[8 + i] = (uint8_t)(bytes >> (56 - 8 * i));
  memcpy(head + 16, type, strlen(type));
  qk_status_t status = qk_file_put(fd, head, sizeof head, err);
  if (status != QK_OK || text == NULL) return status;
  status = qk_file_put(fd, text, bytes, err);
  return status == QK_OK ? qk_file_put(fd, zeros, (8 - bytes % 8) % 8, err) : status;
}
