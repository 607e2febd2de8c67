/*
 * eigen.h: eigenvectors that setups keep under names, from EIGEN to EIGEN_DROP.
 *
 * Set      The vectors of a name. They are the engine's, in its memory and in a file of the state
 *          folder; the front knows what they are of, whose they are, and what the engine has said
 *          of them. A set comes with the request that has it made, and goes with that unless it
 *          ends well. It outlives the request, and its client.
 * Replicas The one that has made a set writes the file, and the others read it. What needs the
 *          vectors goes only where they are.
 * Restart  The next engine of a setup, and that of the next front, reads the files again, one after
 *          the other, beside its solves. Without a state folder, or where the file does not fit, a
 *          set goes with its engine. Requests that use it wait meanwhile, or end with NOT_FOUND.
 * Journal  A set that is kept is a note. One that is being made comes back with its request.
 */
#ifndef QK_FRONT_EIGEN_H
#define QK_FRONT_EIGEN_H

#include "daemon/front/service/setups.h"

/* ---- sets ---- */
typedef struct qk_eigen_set {
  qk_link_t link; /* among those of its setup */
  Quark__EigenState state;
  Quark__EigenProblem *problem;
  char user[QK_USER_MAX + 1], user_shown[QK_USER_MAX + 1];
  uint32_t furthest; /* restart that an engine has got to */
  uint32_t there;    /* bit r: replica r has them; KEPT: one has */
  uint32_t gone;     /* bit r: replica r was asked to read them, and could not */
  bool measured;     /* what follows is known */
  double lowest, highest, residual, seconds;
  uint64_t device_bytes, host_bytes;
  int64_t zero_plus, zero_minus; /* zero modes of overlap fermions; -1: not known */
  char unwritten[160];           /* why it is on no disk; "": it is, or there is no state folder */
} qk_eigen_set_t;

/* NULL: the setup has none of this name. */
qk_eigen_set_t *qk_eigen_find(const qk_setup_t *setup, const char *name);

/* The one that a field of a request names, which is there or on its way back; NULL: QK_NOT_FOUND,
 * QK_BUSY (it is being made). */
const qk_eigen_set_t *qk_eigen_named(const qk_setup_t *setup, const char *field, const char *name,
                                     qk_err_t *err);

/* ---- requests ---- */
/* Whether the setup can have another set, of this user. QK_BAD_ARGUMENT: one of the name is there;
 * QK_BUSY: there are too many; of vectors that the user has sent also QK_NOT_FOUND,
 * QK_BAD_GEOMETRY and QK_BAD_ARGUMENT (another number of them). */
qk_status_t qk_eigen_may_have(const qk_setup_t *setup, const Quark__EigenProblem *problem,
                              const char *user, qk_err_t *err);
/* Whether there is host memory for them beside all other sets. QK_TOO_LARGE: for them alone there
 * is not; QK_BUSY. */
qk_status_t qk_eigen_check_room(const qk_setup_t *setup, const Quark__EigenProblem *problem,
                                const char *user, qk_err_t *err);
/* Host memory of the sets of all setups; of those that no engine has told of yet at most. */
int64_t qk_eigen_memory(const qk_service_t *service);
/* A new job, or one that is back from the journal: the set of its EIGEN is there from now on; the
 * ones whose vectors are its sources, or that it projects onto, are. Errors: QK_NOT_FOUND,
 * QK_BAD_ARGUMENT (a number beyond the last, or a projection onto another kind), QK_BUSY (it is
 * being made), QK_NO_MEMORY, and those of qk_eigen_may_have. */
qk_status_t qk_eigen_bind(qk_job_t *job, qk_err_t *err);
/* The right-hand side of an EIGEN has ended. */
void qk_eigen_ended(const qk_rhs_t *rhs);
/* EIGEN_DROP: the setup whose set has gone, or NULL. QK_NOT_FOUND; QK_DENIED: another user's;
 * QK_BUSY: it is being made, or used. */
qk_setup_t *qk_eigen_drop(qk_service_t *service, const qk_viewer_t *viewer,
                          const Quark__EigenDrop *drop, qk_err_t *err);

/* ---- engines ---- */
/* The engine is READY: it is asked for what the one before had. */
void qk_eigen_return(qk_replica_t *replica);
/* Asks for the next set, if there is one and the engine does nothing of the kind. */
void qk_eigen_feed(qk_replica_t *replica);
/* Whether rhs needs no vectors that only other replicas have. */
bool qk_eigen_may_go(const qk_replica_t *replica, const qk_rhs_t *rhs);
/* Whether the vectors that rhs needs, which is about to go to the engine, are there; else it has
 * been put aside for a moment, or ended. */
bool qk_eigen_is_there(qk_service_t *service, qk_rhs_t *rhs);
/* What the engine says of the set that it has made or read. */
void qk_eigen_measure(qk_eigen_set_t *set, const Quark__Engine__EigenDone *done);
/* The set that was asked for by qk_eigen_feed has come, or not. */
void qk_eigen_returned(qk_replica_t *replica, const Quark__Engine__EigenDone *done);
/* The engine is lost: nothing is read. */
void qk_eigen_lost(qk_replica_t *replica);

/* ---- the front before, and the end ---- */
/* At the start, when setups are there. */
qk_status_t qk_eigen_bring_back(qk_service_t *service, qk_err_t *err);
/* The setup ends: its sets go, with their files. */
void qk_eigen_forget(qk_setup_t *setup);
/* It is freed: the files stay. */
void qk_eigen_free(qk_setup_t *setup);

#endif
