/*
 * assert.h: asserts that stay on. They are for our own bugs; input, memory and the device are
 * never guarded by them.
 */
#ifndef QK_BASE_ASSERT_H
#define QK_BASE_ASSERT_H

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((noreturn)) void qk_assert_failed(const char *expr, const char *file, int line);
#define QK_ASSERT(expr) ((expr) ? (void)0 : qk_assert_failed(#expr, __FILE__, __LINE__))

#ifdef __cplusplus
}
#endif
#endif
