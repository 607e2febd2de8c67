/*
 * engine_encode.h: the front's messages to an engine (engine.proto), built from settings and
 * requests. Each function returns the packed message of *bytes bytes, which the caller frees; NULL
 * without memory. Pure.
 */
#ifndef QK_FRONT_ENGINE_ENCODE_H
#define QK_FRONT_ENGINE_ENCODE_H

#include "daemon/front/job/job.h"
#include "daemon/front/settings/settings.h"
#include "proto/fill_hint.h"

/* What an engine needs beside the settings, when it loads. */
typedef struct qk_engine_start {
  /* Where the null vectors of multigrid come from, if its checkpoint has none: name of a setup, and
   * its checkpoint; "": none. */
  const char *from, *path;
  const char *memory;  /* links that a client has sent; "": those of the settings */
  const char *term;    /* likewise the clover term; "": the action has none */
  const char *vectors; /* file of the vectors that solves begin with; "": they are kept in none */
} qk_engine_start_t;

/* Which of the settings' replicas it is, and whether it writes the files that they share. */
typedef struct qk_engine_replica {
  int number;
  bool writes;
} qk_engine_replica_t;

/* checkpoint: of multigrid; "": none. start: NULL: from noise. fingerprint: of this LOAD
 * (engine_argv.h); 0: none. reserve: bytes of this host that uploads and results may still take. */
uint8_t *qk_engine_encode_load(const qk_settings_t *settings, qk_engine_replica_t replica,
                               const char *checkpoint, const qk_engine_start_t *start,
                               uint64_t fingerprint, int64_t reserve, size_t *bytes);
uint8_t *qk_engine_encode_fill(uint32_t entry, uint64_t serial, const qk_rhs_t *rhs,
                               qk_fill_hint_t hint, size_t *bytes);
/* rhs: of a contraction. */
uint8_t *qk_engine_encode_contract(uint64_t serial, const qk_rhs_t *rhs, size_t *bytes);
/* field: of the vectors, where a client has sent them; NULL: they are computed, or in the file.
 * shm_out NULL: nobody reads the eigenvalues; file "": there is none. */
uint8_t *qk_engine_encode_eigen(uint64_t serial, const Quark__EigenProblem *problem,
                                const qk_rhs_t *field, const char *shm_out, const char *file,
                                bool restore, size_t *bytes);
uint8_t *qk_engine_encode_eigen_cancel(uint64_t serial, size_t *bytes);
uint8_t *qk_engine_encode_eigen_drop(const char *name, size_t *bytes);
uint8_t *qk_engine_encode_cancel(uint32_t entry, uint64_t serial, size_t *bytes);
uint8_t *qk_engine_encode_adopt(uint64_t nonce, size_t *bytes);
/* kind: as in REFRESH of engine.proto. */
uint8_t *qk_engine_encode_refresh(uint32_t kind, uint64_t number, bool write, size_t *bytes);
uint8_t *qk_engine_encode_ping(size_t *bytes);
uint8_t *qk_engine_encode_stop(size_t *bytes);

#endif
