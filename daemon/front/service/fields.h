/*
 * fields.h: gauge fields and clover terms that clients send from their memory (FIELD_OPEN), for
 * setups that are loaded from them (LOAD with gauge field:REQUEST or digest:HEX16).
 *
 * A field is a request whose upload is checked when it is complete: every link is SU(3), every
 * number of a clover term finite, and the digest is the one that the client said. Then it belongs
 * to its user, not to the session: it stays for keep_ms after its last use, and as long as a setup
 * is made of it, which holds its job. With a state folder it is in the spool, too.
 */
#ifndef QK_FRONT_FIELDS_H
#define QK_FRONT_FIELDS_H

#include "daemon/front/service/service.h"

/* The setup that stands for all fields as the one that their requests are for: it has no engine and
 * is in no table. QK_NO_MEMORY. */
qk_status_t qk_fields_open(qk_service_t *service, qk_err_t *err);
/* Behind all setups. */
void qk_fields_close(qk_service_t *service);

/* As the log and errors call what is sent: "links", "a clover term", "vectors". *are (NULL: not
 * wanted): "is" or "are". */
const char *qk_fields_name(Quark__FieldKind kind, const char **are);

/* A new job of a field, or one that came back. */
void qk_fields_enter(qk_service_t *service, qk_job_t *job);
/* QK_BUSY: the user has as many fields as one may have. */
qk_status_t qk_fields_check_user(const qk_service_t *service, const char *user, qk_err_t *err);
/* The upload is complete: it is checked, by other threads; then its RHS ends. No effect if that has
 * begun. */
void qk_fields_check(qk_service_t *service, qk_rhs_t *rhs);
/* Nobody wants to know any more. */
void qk_fields_abandon(qk_job_t *job);

/* Whether a field of this kind, digest and lattice, with as many vectors, is here for the user: one
 * of his, or links of a public setup. */
bool qk_fields_are_here(const qk_service_t *service, const char *user,
                        const Quark__FieldOpen *open);
/* A ready field of the user; NULL: there is none. */
qk_job_t *qk_fields_find(const qk_service_t *service, const char *user, Quark__FieldKind kind,
                         uint64_t digest);

enum { QK_FIELD_TEXT = 32 };
/* "digest:HEX16" of a value that qk_fields_is_reference: that of a ready field of the user, or
 * what it says itself; key: of the message. Errors as qk_fields_resolve. */
qk_status_t qk_fields_name_digest(const qk_session_t *session, const char *key,
                                  Quark__FieldKind kind, const char *value,
                                  char text[QK_FIELD_TEXT], qk_err_t *err);
/* The field of the user that such a text names; NULL: it is not here. */
qk_job_t *qk_fields_named(const qk_service_t *service, const char *user, Quark__FieldKind kind,
                          const char *text);

/* Where a LOAD finds its links. */
typedef struct qk_links {
  qk_job_t *field;        /* NULL: */
  const qk_setup_t *like; /* they are those of this public setup */
  uint64_t digest;
  const char *gauge; /* "digest:HEX16", or the file of that setup */
  char text[32];     /* memory of gauge */
  qk_job_t *term;    /* the clover term; NULL: the LOAD names none */
  char term_text[32];
  Quark__Setting setting; /* its parameter, in the list of all */
  Quark__Setting *parameter[QK_VALUES_PARAMS];
} qk_links_t;

/* Whether the gauge of a LOAD is field:REQUEST or digest:HEX16. */
bool qk_fields_is_reference(const char *gauge);
/* session NULL: it has none, and no field:REQUEST. QK_BAD_ARGUMENT: no number; not ready.
 * QK_NOT_FOUND: nothing of that kind is here for this user. */
qk_status_t qk_fields_resolve(const qk_service_t *service, const qk_session_t *session,
                              const char *user, const char *gauge, qk_links_t *links,
                              qk_err_t *err);
/* The clover term that a parameter of the LOAD names, clover=field:REQUEST or digest:HEX16, after
 * its links, into links->term; the parameters of *whole have the digest then. Errors likewise;
 * QK_BAD_ARGUMENT: its links are no reference; QK_BAD_GEOMETRY: they are of another lattice. */
qk_status_t qk_fields_resolve_term(const qk_service_t *service, const qk_session_t *session,
                                   const char *user, Quark__Load *whole, qk_links_t *links,
                                   qk_err_t *err);
/* The setup is made of these fields, which it holds from now on; its engine will read them. */
void qk_fields_bind(qk_setup_t *setup, const qk_links_t *links);
/* RELEASE of one that setups are made of: it goes with the last of them, and stays in its session
 * until then, so that the journal knows whose it is. */
void qk_fields_release(qk_job_t *field);
/* It is not any more. No effect on others. */
void qk_fields_let_go(qk_setup_t *setup);
/* The same after a restart. False: it was made of a field, which is not here any more. */
bool qk_fields_bind_again(qk_setup_t *setup);

#endif
