/*
 * session_client.h: three pretend clients for the fuzzer of whole sessions. Client i has the client
 * id of bytes i + 1 and speaks as peer i on the control socket, as peer CLIENT_PEER_DATA + i on
 * that for data; now and then as another.
 */
#ifndef QK_FUZZ_SESSION_CLIENT_H
#define QK_FUZZ_SESSION_CLIENT_H

#include "tests/fuzz/session/session_engine.h"

enum { CLIENTS = 3, CLIENT_PEER_DATA = 16 };

void clients_begin(void);
/* One message; true where its answer may repeat results. */
bool client_acts(const qk_server_t *server, tape_t *tape);
/* Gives back all that it has, and says GOODBYE. */
void client_leaves(const qk_server_t *server, int client);

#endif
