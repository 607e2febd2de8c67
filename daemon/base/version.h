/*
 * version.h: the version of this build, "major.minor.patch". Static storage. Source: top
 * meson.build.
 */
#ifndef QK_BASE_VERSION_H
#define QK_BASE_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

const char *qk_version(void);

#ifdef __cplusplus
}
#endif
#endif
