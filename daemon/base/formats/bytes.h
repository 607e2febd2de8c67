/* bytes.h: words of files in either byte order, at any address. Pure. */
#ifndef QK_BASE_FORMATS_BYTES_H
#define QK_BASE_FORMATS_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t qk_bytes_u32(const uint8_t *p, bool big_endian) {
  uint32_t w;
  memcpy(&w, p, sizeof w);
  return big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? w : __builtin_bswap32(w);
}

static inline uint64_t qk_bytes_u64(const uint8_t *p, bool big_endian) {
  uint64_t w;
  memcpy(&w, p, sizeof w);
  return big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? w : __builtin_bswap64(w);
}

#endif
