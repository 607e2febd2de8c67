/*
 * handlers.h: who is told of what happens to a connection.
 *
 * handlers.c knows every module above connection.c and hands on; connection.h says when each
 * handler is called.
 */
#ifndef QUARK_HANDLERS_H
#define QUARK_HANDLERS_H

#include "client/libquark/connection/connection.h"

extern const quark__handlers_t quark__handlers;

#endif
