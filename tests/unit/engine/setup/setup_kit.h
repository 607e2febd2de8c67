/*
 * setup_kit.h: a setup as LOAD makes it, on one rank, with its slots; and right-hand sides of
 * noise to be solved in them. Everything but open_load asserts.
 */
#ifndef QK_TESTS_SETUP_KIT_H
#define QK_TESTS_SETUP_KIT_H

#include "daemon/engine/serve/inflight.h"

typedef struct loaded {
  qk_comm_t *comm;
  qk_loaded_t *setup;
  qk_field_io_t *port;
  qk_inflight_t *inflight;
} loaded_t;

/* Mass 0.05, csw 1, antiperiodic; multigrid of little work. On the backend QK_BACKEND (cpu). */
qk_load_t a_load(const char *gauge, const char *solver, qk_prec_t inner, int nslot);

/* The setup alone; whatever it returns, close_load frees what is there. */
qk_status_t open_load(const qk_load_t *load, loaded_t *l, qk_err_t *err);
loaded_t must_load(const qk_load_t *load);
void close_load(loaded_t *l);

/* Z4 noise on all sites, to 1e-9. The seed is the serial. */
qk_fill_t noise_for(int entry, uint64_t seed);
void fill_entries(loaded_t *l, int n, const qk_fill_t *fill);
/* Steps until nothing runs; results by entry. */
void run_entries(loaded_t *l, qk_result_t by_entry[]);
/* Noise in all slots; the iterations of the slowest. */
int64_t solve_all(loaded_t *l);

#endif
