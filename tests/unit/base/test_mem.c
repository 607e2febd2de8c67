#include <criterion/criterion.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"

Test(mem, counts_what_is_held) {
  const int64_t before = qk_mem_bytes();
  void *a = qk_malloc(1000), *b = qk_calloc(10, 30), *none = qk_malloc(0);
  cr_assert(a && b && none);
  cr_expect_eq(qk_mem_bytes(), before + 1300);
  qk_free(a);
  cr_expect_eq(qk_mem_bytes(), before + 300);
  qk_free(b);
  qk_free(none);
  qk_free(NULL);
  cr_expect_eq(qk_mem_bytes(), before);
}

Test(mem, is_aligned_and_zeroed) {
  for (size_t n = 1; n < 200; n += 13) {
    unsigned char *p = qk_calloc(n, 1);
    cr_assert(p != NULL);
    cr_expect_eq((uintptr_t)p % 64, 0);
    for (size_t i = 0; i < n; i++) cr_assert_eq(p[i], 0);
    memset(p, 0xff, n); /* so that a reused block is dirty */
    qk_free(p);
  }
}

Test(mem, refuses_sizes_that_overflow) {
  cr_expect_null(qk_malloc(SIZE_MAX));
  cr_expect_null(qk_malloc(SIZE_MAX - 32));
  cr_expect_null(qk_calloc(SIZE_MAX / 2, 3));
}

Test(mem, grown_arrays_keep_their_members_and_have_zeros_after_them) {
  int room = 0, *a = NULL;
  for (int n = 1; n < 1000; n++) {
    const int before = room;
    a = qk_grow(a, &room, n, sizeof *a);
    cr_assert(a != NULL && room >= n);
    for (int i = before; i < room; i++) cr_assert_eq(a[i], 0);
    a[n - 1] = n;
    for (int i = 0; i < n; i++) cr_assert_eq(a[i], i + 1);
  }
  const int before = room;
  cr_assert_eq(qk_fault_set("alloc:1"), 0);
  cr_expect_null(qk_grow(a, &room, room + 1, sizeof *a));
  cr_assert_eq(qk_fault_set(NULL), 0);
  cr_expect_null(qk_grow(a, &room, INT_MAX, sizeof *a), "its size would not be an int");
  cr_expect(room == before && a[998] == 999, "the array stays as it is");
  qk_free(a);
}

Test(mem, fails_at_the_fault_point) {
  cr_assert_eq(qk_fault_set("alloc:2"), 0);
  const int64_t before = qk_mem_bytes();
  void *first = qk_malloc(8), *second = qk_malloc(8), *third = qk_malloc(8);
  cr_expect(first != NULL && second == NULL && third != NULL);
  cr_expect_eq(qk_mem_bytes(), before + 16);
  qk_free(first);
  qk_free(third);
}
