/*
 * Headers of multigrid checkpoints: as they come, and with the checksum mended so that the
 * rest is reached. What is accepted must describe sections that fit the file, and be the
 * same when encoded again.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/engine/checkpoint/mg_header.h"

static void try(const uint8_t *bytes) {
  qk_mg_header_t h;
  qk_err_t err = {0};
  uint8_t again[QK_MG_HEADER_BYTES];
  qk_status_t status = qk_mg_header_decode(bytes, &h, &err);
  if (status != QK_OK) {
    if (err.text[0] == '\0' || err.code != status) abort();
    return;
  }
  int64_t offset = QK_MG_HEADER_BYTES;
  if (h.nsection < 2 || h.nsection > QK_MG_SECTIONS_MAX) abort();
  for (int i = 0; i < h.nsection; i++) {
    const qk_mg_section_t *s = &h.section[i];
    if (s->offset != offset || s->sites < 1 || s->level < 0 || s->level >= h.nlevel) abort();
    if (s->bytes != s->sites * qk_mg_section_site_bytes(s)) abort();
    offset += s->bytes;
  }
  if (offset != h.file_bytes) abort();
  qk_mg_header_t twice;
  qk_mg_header_encode(&h, again);
  if (qk_mg_header_decode(again, &twice, NULL) != QK_OK) abort();
  if (strnlen(h.origin, sizeof h.origin) == sizeof h.origin) abort();
  if (strcmp(twice.origin, h.origin) != 0 || twice.fresh_residual != h.fresh_residual) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t bytes[QK_MG_HEADER_BYTES] = {0};
  const size_t last = QK_MG_HEADER_BYTES - 8;
  memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
  try(bytes);
  const uint64_t sum = XXH3_64bits(bytes, last);
  for (int i = 0; i < 8; i++) bytes[last + (size_t)i] = (uint8_t)(sum >> (8 * i));
  try(bytes);
  return 0;
}
