/*
 * pages.h: the pages of HTTP.
 */
#ifndef QK_FRONT_PAGES_H
#define QK_FRONT_PAGES_H

#include "daemon/front/host/http.h"

/* view: a qk_view_t. */
qk_page_t qk_pages_show(void *view, const char *path);

#endif
