/*
 * setups_impl.h: what the files behind setups.h share.
 */
#ifndef QK_FRONT_SETUPS_IMPL_H
#define QK_FRONT_SETUPS_IMPL_H

#include "daemon/front/service/setups.h"

/* ---- setups_journal.c ---- */

/* A new setup is there for the next front, too. QK_BUSY: the disk is slow, or fails. */
qk_status_t qk_setups_record(qk_setup_t *setup, qk_err_t *err);
/* It is not any more, but for what is open. */
qk_status_t qk_setups_record_end(const qk_setup_t *setup, qk_err_t *err);
/* The same where nobody is told. */
void qk_setups_drop_record(const qk_setup_t *setup);
qk_status_t qk_setups_record_default(const qk_setup_t *setup, qk_err_t *err);

/* ---- setups.c ---- */

/* A supervisor, without an engine. */
qk_status_t qk_setups_equip(qk_setup_t *setup, qk_err_t *err);
/* Out of the table, which lets it go. */
void qk_setups_displace(qk_setup_t *setup);

/* ---- setups_room.c ---- */

/* Its engine leaves, and then it does (qk_setups_collect). */
void qk_setups_end(qk_setup_t *setup);
/* A new setup, with a supervisor, into the table: beside those that are there, or after an idle one
 * that goes for it, which is *at then. QK_BUSY, QK_DENIED: there is no room, or none for its
 * user. */
qk_status_t qk_setups_find_place(qk_setup_t *setup, qk_setup_t **at, qk_err_t *err);

/* ---- setups_refresh.c ---- */

/* Whether a replica has still to do what all are told to. */
bool qk_setups_refreshes(const qk_setup_t *setup);
void qk_setups_tick_refresh(qk_setup_t *setup);

/* ---- setups_replicas.c ---- */

/* Each tick of a setup that is started: its engines start, and are looked after. */
void qk_setups_tick_replicas(qk_setup_t *setup, double now);

/* ---- setups_deflate.c ---- */

/* Of a setup of settings.deflate_from; of others all do nothing. */
/* A new one, which has no number yet: vectors is a file with the set. QK_NOT_FOUND: no such set,
 * or it is in no file; QK_BAD_ARGUMENT: it is of something else, or has fewer vectors; QK_BUSY: it
 * is being made; QK_IO_ERROR. */
qk_status_t qk_setups_deflate_begin(qk_setup_t *setup, qk_err_t *err);
/* It is in the journal: the file has its number. */
void qk_setups_deflate_recorded(qk_setup_t *setup);
/* It ends: the file goes. */
void qk_setups_deflate_forget(qk_setup_t *setup);
/* At the start, when sets are there. That of the command line fails as one that is new does, others
 * when their engine finds no file. */
qk_status_t qk_setups_deflate_bring_back(qk_setup_t *setup, qk_err_t *err);
/* Files of setups that are not there any more go. */
void qk_setups_deflate_sweep(const qk_service_t *service);

/* ---- setups_in_place.c ---- */

/* Once it is in the journal: `setup`, with a supervisor, will succeed `before`, which accepts
 * nothing any more. Who was to succeed it is forgotten. */
qk_status_t qk_setups_succeed(qk_setup_t *before, qk_setup_t *setup, qk_err_t *err);
/* Nobody succeeds it; it goes when what is open has ended. */
void qk_setups_forget_successor(qk_setup_t *setup);
/* Whether it could be succeeded in this very turn. */
bool qk_setups_is_free(const qk_setup_t *setup);
/* At the end of a turn, where it is succeeded: takes place as soon as that can be. */
void qk_setups_try_to_succeed(qk_setup_t *setup);

#endif
