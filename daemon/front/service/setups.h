/*
 * setups.h: the table of the daemon's setups; loads and drops them. The default serves requests
 * that name no setup. It cannot be dropped, and quarkd ends if its gauge file is rejected. Another
 * setup that fails to load stays listed with the reason until its table entry is needed; it affects
 * no other setup.
 *
 * In place A private setup that is loaded again with other links or parameters is another one that
 *          succeeds it: it takes its place in the table, and its engine, once all that was accepted
 *          for the old one has ended. The name means the new one from the LOAD on: until it is
 *          READY it accepts nothing. Where a user has --user-setups, a new one succeeds the one of
 *          his that has been idle longest.
 *
 * Room     At --max-setups, or if an engine finds too little memory, the setup that has been idle
 *          longest is dropped. It must not be the default, or have open requests or kept solutions.
 *          The new engine starts, or tries again, when the old one has ended. If there is no such
 *          setup the LOAD is rejected.
 */
#ifndef QK_FRONT_SETUPS_H
#define QK_FRONT_SETUPS_H

#include "daemon/front/service/service.h"

/* Canonical text and phases of the boundary. */
enum { QK_OPERATOR_MAX = QK_OPERATOR_TEXT + 300 };

/* The setup that quarkd was started with, without its engine. */
qk_status_t qk_setups_open(qk_service_t *service, qk_err_t *err);
/* One of the front before, in no place of the table; the caller holds it. NULL: it cannot be made,
 * *err says why. */
qk_setup_t *qk_setups_bring_back(qk_service_t *service, const qk_setup_row_t *row, qk_err_t *err);
/* A later one of the front before has its name and owner: it is out of the table again, held by the
 * caller, for what is open. */
void qk_setups_supersede(qk_setup_t *setup);
/* Setups that were to succeed one of `gone` do so again. gone: a list by `next`; those that are
 * succeeded are in the table then. */
void qk_setups_bring_together(qk_service_t *service, qk_setup_t *gone);
/* Into the table, which takes the caller's hold. QK_BUSY: it is full. */
qk_status_t qk_setups_place(qk_setup_t *setup, qk_err_t *err);
/* The row of one that was dropped, which no request is for any more, goes. */
void qk_setups_forget(const qk_setup_t *setup);
/* Whether the operator that requests without a name are for is that of the journal's note, which
 * may be one of version 0.1. */
bool qk_setups_is_operator(const qk_settings_t *settings, const char *note);
/* Supervisors for all that are in the table. They take over what engines the front before has
 * left; those of other setups are ended. */
qk_status_t qk_setups_start(qk_service_t *service, qk_err_t *err);
/* Lets go of all, engines included. */
void qk_setups_close(qk_service_t *service);

/* Who asks for setups. Those that are made of a user's links are for him alone. */
typedef struct qk_viewer {
  const qk_session_t *session; /* NULL: none */
  const char *user;            /* NULL: nobody known */
  bool operates;               /* sees all */
} qk_viewer_t;

bool qk_setups_sees(const qk_viewer_t *viewer, const qk_setup_t *setup);
/* Of this owner, NULL: public; NULL: there is none. */
qk_setup_t *qk_setups_named(const qk_service_t *service, const char *owner, const char *name);
/* By name, the viewer's own before public ones; or by USER/NAME, public ones by /NAME; NULL or
 * "default": the default. QK_NOT_FOUND lists those that the viewer sees; QK_BAD_ARGUMENT: several
 * users have one of that name, and the viewer operates. */
qk_setup_t *qk_setups_find(const qk_service_t *service, const qk_viewer_t *viewer, const char *name,
                           qk_err_t *err);
/* QK_OK if the setup accepts work now; QK_NOT_READY; QK_NOT_FOUND if it never will again. */
qk_status_t qk_setups_check(const qk_setup_t *setup, qk_err_t *err);

/* What clients ask for: the setup, whose state is the answer. NULL: *err says why not. Who does not
 * operate loads and drops setups of his own links. */
qk_setup_t *qk_setups_load(qk_service_t *service, const qk_viewer_t *viewer,
                           const Quark__Load *load, qk_err_t *err);
/* What is open for it stays so: where drop->now the caller ends it (queue.h), once the client has
 * been told. */
qk_setup_t *qk_setups_drop(qk_service_t *service, const qk_viewer_t *viewer,
                           const Quark__Drop *drop, qk_err_t *err);
qk_setup_t *qk_setups_make_default(qk_service_t *service, const qk_viewer_t *viewer,
                                   const Quark__MakeDefault *message, qk_err_t *err);

/* Events of engines. */
/* What the setup's engine has loaded is what its requests are for from now on. */
void qk_setups_note(const qk_setup_t *setup);
void qk_setups_ready(qk_setup_t *setup);
/* A replica is READY; it has said something of its multigrid. */
void qk_setups_refresh_ready(qk_replica_t *replica);
void qk_setups_refresh_news(qk_replica_t *replica, const Quark__Engine__MultigridNews *news);
/* It was refused with this status. True: for want of memory, and there will be room. */
bool qk_setups_make_room(qk_setup_t *setup, qk_status_t status);
/* At the start: what it was made of is gone, and nothing of it is open. It leaves the table. */
void qk_setups_lose(qk_setup_t *setup);
/* It is not the default, nothing of it is open. */
void qk_setups_fail(qk_setup_t *setup, qk_status_t status, const char *text);

/* Setups whose multigrid starts from the null vectors of another one (setups_evolve.c). The vectors
 * pass through the checkpoint of that one, which an engine reads by itself. What cannot work is
 * refused when LOAD comes. Later the vectors are a hint: a setup whose source has gone, or does not
 * fit, makes its own, and says so (MultigridReport.origin_trouble). */
/* For a setup that has no supervisor yet. source: the setup of the name `from`; NULL: there is
 * none, why says so. QK_NOT_FOUND: nor is there a checkpoint of one; QK_BAD_ARGUMENT: one of the
 * two has no multigrid or no checkpoint, or their lattices differ. */
qk_status_t qk_setups_evolve_begin(qk_setup_t *setup, const char *from, qk_setup_t *source,
                                   const char *why, qk_err_t *err);
/* The same for one that was accepted before: it waits for nobody. As in setups that are there, one
 * of its owner's comes before a public one of that name. */
void qk_setups_evolve_bring_back(qk_setup_t *setup, const char *from);
/* Of the setup that quarkd was started with: from the checkpoint mg-from. */
qk_status_t qk_setups_evolve_of_settings(qk_setup_t *setup, qk_err_t *err);
/* Each tick, until it is false: the source is loading, or writes its checkpoint. */
bool qk_setups_evolve_waits(qk_setup_t *setup);

void qk_setups_tick(qk_service_t *service, double now);
/* At the end of a turn: those whose engines have left go, and successors take place. */
void qk_setups_collect(qk_service_t *service);
void qk_setups_stop(qk_service_t *service);
/* Whether no engine is left. */
bool qk_setups_stopped(const qk_service_t *service);
bool qk_setups_saving(const qk_service_t *service);

#endif
