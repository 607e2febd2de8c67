/*
 * page.h: page.html as it is served, made by embed.py.
 */
#ifndef QK_FRONT_PAGE_H
#define QK_FRONT_PAGE_H

extern const char QK_PAGE[];
/* Content-Security-Policy: allows the style and script of this page and data from its origin
 * only. */
extern const char QK_PAGE_POLICY[];

#endif
