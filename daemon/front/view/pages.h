/*
 * pages.h: what HTTP shows of the server.
 */
#ifndef QK_FRONT_PAGES_H
#define QK_FRONT_PAGES_H

#include "daemon/front/server.h"

qk_page_t qk_pages_show(void *server, const char *path);

#endif
