/*
 * page.h: page.html as it is served, made by embed.py.
 */
#ifndef QK_FRONT_PAGE_H
#define QK_FRONT_PAGE_H

extern const char QK_PAGE[];
/* Content-Security-Policy: the style and the script of this page, data from where it came from, nothing else. */
extern const char QK_PAGE_POLICY[];

#endif
