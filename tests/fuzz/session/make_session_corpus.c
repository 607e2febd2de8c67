/*
 * make_session_corpus.c: sessions for fuzz_session: what goes well, and each kind of event that
 * does not. The bytes are those that fuzz_session.c, session_client.c and session_engine.c read.
 *
 * usage: make_session_corpus FOLDER   makes FOLDER/... and prints the names
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Of an action's first byte: who, and whether it is one turn with the next. */
enum { CLIENT = 0, ENGINE = 9, TIME = 13, WORLD = 14, HELP = 15, JOINED = 192 };

/* One action a line; a letter is a client: C0 .. C2. */
#define C0(...) CLIENT, 0 | __VA_ARGS__
#define C1(...) CLIENT, 64 | __VA_ARGS__
#define C2(...) CLIENT, 128 | __VA_ARGS__
#define HELLO 0, 0
#define SUBMIT(kind, much, twist) 1, kind, much, 0, twist
#define SUBMIT_TO(setup, kind, much) 1, kind, much, setup, 0
#define LOAD(setup, how) 2, setup, how
#define FIELD(how) 1, 7, how, 0
#define JOIN(whose, job, part) 1, 38, 64 * (whose) + 4 * (job) + (part), 0
#define IN_PARTS(kind, much, grid) 1, kind, much, grid, 0
#define BY_NAME 96                      /* how of LOAD: begins with eigenvectors of EIGEN(0) */
#define OF_FIELD(n) 29 + 32 * (n)       /* how of LOAD: from this request of the client */
#define OTHER_OF_FIELD(n) 31 + 32 * (n) /* of another mass */
#define DROP(setup, now) 2, 64 + (setup), now
#define USE(setup) 2, 160 + (setup), 0
#define AGAIN 3
#define CONTRACT(which, how) 4, which, how
#define EIGEN(which) 4, which, 192
#define EIGEN_VALUES(which) 4, which, 205                     /* of a set that is there */
#define EIGEN_OF(count, field) 4, 63 + (count), 208 + (field) /* vectors of a request */
#define EIGEN_DROP(which) 4, which, 224
#define BIND 5, 0
#define UPLOAD(job, how) 6, job, how
#define ZEROS(job, more) 6, job, 16 * (more) + 9 /* 0: half of what is left; 1: all of it */
#define GRANT(job, how) 9, job, how
#define ACK(job, how) 10, job, how
#define CANCEL(job, how) 11, job, how
#define RELEASE(job) 12, job, 0
#define ATTACH(job) 13, job, 0
#define PING 14, 0
#define STATUS 14, 121
#define GOODBYE 14, 200
#define SHUTDOWN(now) 14, 250 + (now)
#define PASS(how) TIME, how
#define LIVE HELP, HELP            /* HELLO and READY of the engines */
#define TWO_FLAVOURS ENGINE, 9, 56 /* READY of a doublet */
#define COLOURS ENGINE, 9, 57      /* of fields with colour alone */
#define START PASS(1), LIVE
#define DONE(how, status) ENGINE, 0, how, status
#define PROGRESS ENGINE, 5, 9
#define CONTRACTED ENGINE, 6, 0
#define EIGEN_SAYS(how) ENGINE, 7, how /* 0: done, 2: progress, 3: not there */
#define FATAL ENGINE, 13, 1
#define REFUSED ENGINE, 13, 4
#define EXIT ENGINE, 14, 0
#define MULTIGRID(saving) ENGINE, 12, saving
#define OF(n, ...) 16 * (n) + __VA_ARGS__ /* the n-th engine, for any of these */
#define SLOW(yes) WORLD, 200 + (yes)
#define BROKEN(yes) WORLD, 210 + (yes)
#define CRASH(how) WORLD, 220 + (how)

/* Of the settings, and names of setups; how of LOAD: 1 has another mass, 9
 * another configuration. */
enum { SETUPS = 64, STATE = 128, SECOND = 1, THIRD = 2, MAIN = 3, FOURTH = 5, DEFAULT = 16 };
/* How of CRASH: its last turn is not heard; it does not get to the end of its last turn; with the
 * machine; without the engines. */
enum { UNHEARD = 1, CUT = 2, MACHINE = 4, ALONE = 8 };
/* kind of SUBMIT: source + 8 sink; much: 0 is 1, 1 is 2, 3 is 12, 11 is 40, 12 is
 * 100 right-hand sides. */
enum {
  UP = 0,
  POINT = 1,
  WALL = 2,
  Z4 = 4,
  SEQ = 5,
  VECTOR = 46,
  DOWNLOAD = 0,
  NONE = 8,
  KEEP = 16,
  F64 = 128
};
enum { VECTORS_F32 = 10, VECTORS_F64 = 11 }; /* how of FIELD, more: 64 * (count - 1) */
enum { ONE = 0, TWO = 1, TWELVE = 3, FORTY = 11, HUNDRED = 12 };

static const char *folder;

static void save(const char *name, const uint8_t *bytes, size_t n) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
    perror(path);
    exit(1);
  }
  printf("%s\n", path);
}

/* The first byte: bits of the settings. */
#define SESSION(name, ...)                                                                         \
  do {                                                                                             \
    static const uint8_t bytes[] = {__VA_ARGS__, HELP};                                            \
    save(name, bytes, sizeof bytes);                                                               \
  } while (0)

static void save_good(void) {
  SESSION("upload", 2, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)), C0(UPLOAD(0, 0)),
          C0(UPLOAD(0, 0)), PROGRESS, PASS(3), DONE(0, 0), DONE(0, 3), C0(GRANT(0, 0)),
          C0(GRANT(0, 1)), C0(ACK(0, 0)), C0(STATUS), C0(GOODBYE));
  SESSION("chunks", 2, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP | F64 | NONE, ONE, 0)),
          C0(UPLOAD(0, 3)), C0(UPLOAD(0, 7)), C0(UPLOAD(0, 0)), HELP, C0(ACK(0, 0)));
  SESSION("zeros", 2, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)), C0(ZEROS(0, 0)),
          C0(UPLOAD(0, 3)), C0(ZEROS(0, 1)), C0(UPLOAD(0, 3)), C0(ZEROS(0, 0)), C0(UPLOAD(0, 0)),
          HELP, C0(SUBMIT(UP, TWO, 0)), C0(ZEROS(0, 1)), HELP, C0(GRANT(0, 0)), C0(ACK(0, 0)));
  SESSION("zeros-crash", 2 | STATE, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)),
          C0(ZEROS(0, 0)), C0(UPLOAD(0, 3)), HELP, CRASH(0), LIVE, C0(HELLO), C0(BIND), C0(AGAIN),
          C0(ZEROS(0, 1)), HELP, CRASH(MACHINE), LIVE, C0(HELLO), C0(BIND), C0(AGAIN),
          C0(ZEROS(0, 1)), HELP, C0(GRANT(0, 0)));
  SESSION("zeros-wrong", 2, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)), C0(ZEROS(0, 13)),
          C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)), C0(ZEROS(0, 14)), C0(HELLO), C0(BIND),
          C0(SUBMIT(UP, TWO, 0)), C0(ZEROS(0, 1)), C0(ZEROS(0, 1)));
  SESSION("points", 3, LIVE, C1(HELLO), C1(SUBMIT(POINT | NONE, TWELVE, 0)), HELP, HELP, HELP, HELP,
          C1(AGAIN), HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, C1(ACK(0, 0)), WORLD, 176);
  SESSION("kept", 2, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(POINT | KEEP, TWELVE, 0)), HELP, HELP,
          HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP,
          C0(SUBMIT(SEQ | KEEP, TWO, 0)), C0(CONTRACT(0, 1)), HELP, HELP, CONTRACTED, C0(ACK(0, 0)),
          C0(CONTRACT(0, 8)), C0(SUBMIT(POINT, TWO, 0)), C0(RELEASE(0)), CONTRACTED,
          C0(GRANT(0, 0)));
  SESSION("eigen", 2, LIVE, C0(HELLO), C0(BIND), C0(EIGEN(8)), EIGEN_SAYS(2), C0(EIGEN(33)),
          C0(STATUS), EIGEN_SAYS(0), C0(GRANT(0, 0)), C0(ACK(0, 0)), C0(SUBMIT(VECTOR, TWO, 0)),
          C0(EIGEN_DROP(8)), HELP, HELP, HELP, C0(ACK(1, 0)), C0(EIGEN_DROP(8)), C0(EIGEN_DROP(8)),
          C0(ATTACH(0)), C0(CANCEL(0, 0)), EIGEN_SAYS(3));
  SESSION("eigen-lost", 2, LIVE, C0(HELLO), C0(BIND), C0(EIGEN(8)), HELP, C0(ACK(0, 0)),
          C0(EIGEN(9)), EIGEN_SAYS(2), EXIT, PASS(1), LIVE, C0(SUBMIT(VECTOR, TWO, 0)),
          EIGEN_SAYS(3), HELP, HELP, HELP, HELP, C0(RELEASE(0)));
  SESSION("eigen-restart", STATE | 2, LIVE, C0(HELLO), C0(BIND), C0(EIGEN(8)), HELP, C0(ACK(0, 0)),
          C0(EIGEN(9)), EIGEN_SAYS(2), CRASH(0), LIVE, C0(HELLO), C0(BIND), EIGEN_SAYS(0),
          C0(SUBMIT(VECTOR, TWO, 0)), HELP, HELP, HELP, HELP, C0(EIGEN_DROP(9)));
  SESSION("eigen-values", STATE | 2, LIVE, C0(HELLO), C0(BIND), C0(EIGEN_VALUES(8)), C0(EIGEN(8)),
          C0(EIGEN_VALUES(8)), EIGEN_SAYS(0), C0(ACK(0, 0)), C0(EIGEN_VALUES(8)), HELP,
          C0(GRANT(0, 0)), C0(ACK(0, 0)), C0(EIGEN_VALUES(8)), C0(EIGEN_DROP(8)), CRASH(0), LIVE,
          C0(HELLO), C0(BIND), EIGEN_SAYS(0), HELP, C0(EIGEN_VALUES(8)), EXIT, PASS(1), LIVE,
          EIGEN_SAYS(3), HELP);
  SESSION("projected", STATE | 2, LIVE, C0(HELLO), C0(BIND), C0(EIGEN(64)), HELP, C0(ACK(0, 0)),
          C0(SUBMIT_TO(DEFAULT, VECTOR, 0)), HELP, HELP, C0(GRANT(0, 0)), C0(ACK(0, 0)),
          C0(SUBMIT_TO(DEFAULT, 49, 0)), C0(SUBMIT_TO(DEFAULT, 48, 0)), C0(SUBMIT_TO(91, 49, 4)),
          C0(SUBMIT_TO(DEFAULT, 44, 0)), PASS(1), C0(EIGEN_DROP(64)), CRASH(0), LIVE, C0(HELLO),
          C0(BIND), HELP, HELP, HELP, C0(EIGEN_DROP(64)));
  SESSION("deflated-by-name", STATE | SETUPS | 2, LIVE, C0(HELLO), C0(BIND), C0(EIGEN(0)), HELP,
          C0(ACK(0, 0)), C0(LOAD(SECOND, BY_NAME)), START, C0(EIGEN_DROP(0)), OF(1, EXIT), PASS(3),
          C0(LOAD(THIRD, BY_NAME)), CRASH(0), LIVE, LIVE, C0(HELLO), C0(DROP(SECOND, 1)), HELP,
          CRASH(MACHINE), PASS(1), LIVE);
  SESSION("users", 6, LIVE, C0(HELLO), C1(0, 2), C2(0, 3), C0(SUBMIT(Z4, TWELVE, 0)),
          C1(SUBMIT(WALL, TWELVE, 9)), C2(SUBMIT(POINT, TWO, 0)), HELP, HELP, HELP, HELP,
          C0(STATUS), WORLD, 176, WORLD, 177, C1(GOODBYE));
  SESSION("detached", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 13)), C0(GOODBYE), HELP, C0(HELLO),
          C0(ATTACH(0)), HELP, PASS(15), PASS(15), PASS(15));
}

static void save_bad(void) {
  SESSION("cancelled", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 0)), C0(CANCEL(0, 2)),
          C0(CANCEL(0, 0)), DONE(0, 5), DONE(0, 0), C0(ACK(0, 0)));
  SESSION("deadline", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 21)), PASS(8 + 2), PASS(2),
          DONE(0, 5), HELP);
  SESSION("lease", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 0)), PASS(8 + 6), PASS(8 + 6), HELP);
  SESSION("silent", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)), PASS(6), PASS(16), C0(PING));
  SESSION("lost", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 0)), EXIT, PASS(3), LIVE, DONE(0, 0),
          EXIT, PASS(4), LIVE, FATAL, PASS(20), PASS(5), LIVE, HELP, C0(ACK(0, 0)));
  SESSION("hopeless", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 0)), EXIT, PASS(4), EXIT, PASS(4),
          EXIT, PASS(4), EXIT, PASS(4), LIVE);
  SESSION("refused", 2, C0(HELLO), HELP, REFUSED, PASS(16));
  SESSION("changed", 2, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)),
          C0(SUBMIT(POINT | KEEP, TWO, 0)), HELP, HELP, EXIT, PASS(3), ENGINE, 8, 0, ENGINE, 9, 192,
          C0(UPLOAD(0, 0)));
  SESSION("wrong", 2, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)), C0(UPLOAD(0, 240)),
          C0(HELLO), C0(5, 250), C0(SUBMIT(POINT, TWO, 1)), C0(SUBMIT(POINT, TWO, 3)),
          C0(15, 8, 4, 1, 2, 3, 4), C1(15, 1, 2, 1, 2));
  SESSION("taken", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)), C2(0, 240), HELP, C0(PING),
          C1(0, 240), HELP);
  /* Another client on the same connection, and results of both, in one turn. */
  SESSION("closing", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, ONE, 0)), C1(HELLO),
          C1(SUBMIT(POINT, ONE, 0)), JOINED, 0, 240, JOINED + ENGINE, 0, 0, 0, DONE(0, 0));
  SESSION("inexact", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT | KEEP, TWO, 0)), DONE(3, 0), DONE(4, 0),
          C0(ACK(0, 2)), C0(SUBMIT(SEQ, ONE, 0)));
  SESSION("expired", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT | KEEP, TWO, 0)), HELP, HELP, PASS(8 + 5),
          C0(PING), PASS(8 + 5), C0(PING), PASS(8 + 5), C0(SUBMIT(SEQ, ONE, 0)), HELP,
          C0(GRANT(0, 0)));
  SESSION("full", 0, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, HUNDRED, 0)),
          C0(SUBMIT(POINT, FORTY, 0)), WORLD, 161, C0(UPLOAD(0, 0)), C0(SUBMIT(POINT, TWO, 0)),
          WORLD, 160, HELP);
  SESSION("deaf", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)), WORLD, 2, DONE(0, 0),
          C0(ACK(0, 0)));
  SESSION("drained", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)), MULTIGRID(1), C0(SHUTDOWN(0)),
          C0(SUBMIT(POINT, TWO, 0)), HELP, HELP, C0(ACK(0, 0)), PASS(8), MULTIGRID(0), PASS(8));
  SESSION("stopped", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)), WORLD, 250, WORLD, 250, PASS(3),
          EXIT);
  SESSION("walltime", 18, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)), DONE(200, 0), PASS(15),
          C0(HELLO), C0(SUBMIT(POINT, HUNDRED, 0)), C0(SHUTDOWN(1)));
}

static void save_setups(void) {
  SESSION("two", 2 | SETUPS, LIVE, C0(HELLO), C0(LOAD(SECOND, 1)), START,
          C0(SUBMIT_TO(SECOND, POINT, TWO)), C0(SUBMIT_TO(MAIN, POINT, TWO)), HELP, HELP,
          C0(ACK(0, 0)), C0(DROP(SECOND, 0)), HELP, PASS(1), HELP, C0(STATUS));
  SESSION("default", 2 | SETUPS, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)),
          C0(LOAD(SECOND + DEFAULT, 9)), START, C0(SUBMIT(POINT, TWO, 0)), C0(DROP(MAIN, 1)), HELP,
          HELP, PASS(1), HELP, C1(LOAD(MAIN, 0)), START, C1(USE(MAIN)), C1(USE(FOURTH)));
  SESSION("masses", 2 | SETUPS, LIVE, C0(HELLO), C0(LOAD(SECOND, 1)), START,
          C0(SUBMIT(POINT | KEEP, TWELVE, 0)), HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP,
          HELP, HELP, HELP, C0(SUBMIT_TO(SECOND, SEQ | KEEP, TWO)), HELP, HELP, C0(CONTRACT(0, 1)),
          CONTRACTED, C0(DROP(SECOND, 0)), PASS(1));
  SESSION("several-masses", 2, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 33)), HELP, HELP,
          C0(SUBMIT(POINT, TWO, 97)), HELP, HELP, C0(SUBMIT(POINT, TWELVE, 161)),
          C0(SUBMIT(POINT, TWO, 225)), C0(ACK(0, 0)), C0(STATUS));
  SESSION("room", 2 | SETUPS, LIVE, C0(LOAD(SECOND, 1)), START, C0(LOAD(THIRD, 1)), START,
          C0(LOAD(FOURTH, 1)), PASS(1), HELP, START, C0(HELLO), C0(SUBMIT_TO(THIRD, POINT, FORTY)),
          C0(LOAD(SECOND, 1)), START);
  SESSION("cramped", 2 | SETUPS, LIVE, C0(LOAD(SECOND, 1)), START, C0(LOAD(THIRD, 1)), PASS(1),
          HELP, OF(2, ENGINE), 13, 8, HELP, PASS(1), HELP, HELP, PASS(1), LIVE);
  SESSION("unwanted", 2 | SETUPS, LIVE, C0(LOAD(SECOND, 1)), PASS(1), HELP, OF(1, REFUSED),
          C0(LOAD(SECOND, 1)), PASS(1), OF(1, EXIT), PASS(4), OF(1, EXIT), PASS(4), OF(1, EXIT),
          PASS(4), C0(HELLO), C0(SUBMIT_TO(SECOND, POINT, TWO)), C0(DROP(SECOND, 0)), PASS(1));
  SESSION("second-lost", 2 | SETUPS, LIVE, C0(LOAD(SECOND, 1)), START, C0(HELLO),
          C0(SUBMIT_TO(SECOND, POINT, FORTY)), C0(SUBMIT(POINT, FORTY, 0)), OF(1, EXIT), PASS(3),
          START, HELP, HELP, C0(DROP(SECOND, 1)), HELP, PASS(1));
}

static void save_states(void) {
  SESSION("crash", 2 | STATE, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)), C0(UPLOAD(0, 0)),
          C0(SUBMIT(POINT, FORTY, 0)), HELP, CRASH(0), LIVE, C0(HELLO), C0(ATTACH(0)), C0(BIND),
          C0(UPLOAD(0, 0)), HELP, HELP, HELP, C0(ACK(0, 0)), C0(GRANT(1, 0)));
  SESSION("crash-unheard", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)),
          JOINED + DONE(0, 0), CRASH(UNHEARD), LIVE, C0(HELLO), C0(AGAIN), HELP, CRASH(CUT),
          C0(HELLO), C0(ATTACH(0)), C0(ACK(0, 0)));
  SESSION("crash-cut", 2 | STATE, LIVE, C0(HELLO), JOINED, 1, POINT, FORTY, 0, 0, CRASH(CUT), LIVE,
          C0(HELLO), C0(AGAIN), HELP);
  SESSION("machine", 2 | STATE, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)), C0(UPLOAD(0, 0)),
          C0(UPLOAD(0, 0)), C0(SUBMIT(POINT, TWO, 0)), HELP, HELP, PASS(1), CRASH(MACHINE), LIVE,
          C0(HELLO), C0(ATTACH(0)), HELP, HELP, C0(GRANT(0, 0)), C0(ACK(0, 0)));
  SESSION("machine-and-crash", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWELVE, 0)), HELP, HELP,
          HELP, CRASH(MACHINE), LIVE, HELP, CRASH(0), LIVE, C0(HELLO), C0(ATTACH(0)));
  SESSION("slow-disk", 2 | STATE, LIVE, SLOW(1), C0(HELLO), C0(BIND), C0(SUBMIT(UP, TWO, 0)),
          C0(UPLOAD(0, 0)), C0(CANCEL(0, 0)), C0(SUBMIT(UP, TWO, 0)), C0(UPLOAD(1, 0)), SLOW(0),
          SLOW(1), C0(UPLOAD(1, 0)), HELP, CRASH(0), LIVE, SLOW(0));
  SESSION("broken-disk", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWELVE, 0)), BROKEN(1),
          DONE(0, 0), C0(SUBMIT(POINT, TWO, 0)), PASS(3), BROKEN(0), PASS(3), BROKEN(1), DONE(0, 0),
          CRASH(0), BROKEN(0), LIVE, C0(HELLO), C0(ATTACH(0)));
  SESSION("spilled", 0 | STATE, LIVE, C0(HELLO), C0(BIND), C0(SUBMIT(POINT, TWELVE, 13)), HELP,
          HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, C0(GOODBYE), C1(HELLO),
          C1(SUBMIT(POINT, FORTY, 0)), PASS(1), PASS(1), C1(AGAIN), HELP, C0(HELLO), C0(BIND),
          C0(GRANT(0, 0)), PASS(1), PASS(1), C0(GRANT(0, 1)), CRASH(0), LIVE, C0(HELLO), C0(BIND),
          C0(GRANT(0, 2)), PASS(1), C0(ACK(0, 0)));
  SESSION("setups", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(LOAD(SECOND + DEFAULT, 1)), START,
          C0(LOAD(THIRD, 9)), START, C0(SUBMIT(POINT, FORTY, 0)), C0(SUBMIT_TO(THIRD, POINT, TWO)),
          HELP, C0(DROP(THIRD, 0)), CRASH(0), PASS(1), LIVE, HELP, HELP, C0(HELLO), C0(ATTACH(0)),
          C0(ATTACH(1)), C0(ACK(1, 0)), PASS(1), CRASH(0), PASS(1), LIVE);
  /* Flavour -1 of a setup that has flavours, and of one that has none. */
  SESSION("flavours", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(LOAD(SECOND, 6)), START,
          C0(1, POINT, FORTY, SECOND, 22), C0(SUBMIT(POINT, TWO, 22)), HELP, HELP, CRASH(0),
          PASS(1), LIVE, START, C0(HELLO), C0(ATTACH(0)), HELP, HELP);
  /* tol_hq and tol_abs in the place of tol, beside it, and wrong; what does not reach them. */
  SESSION("stopping", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 31)),
          C0(SUBMIT(POINT, TWO, 32)), C0(SUBMIT(POINT, TWO, 159)), C0(SUBMIT(POINT, TWO, 224)),
          C0(SUBMIT(Z4, TWELVE, 223)), HELP, HELP, CRASH(0), PASS(1), LIVE, C0(HELLO),
          C0(ATTACH(0)), C0(ATTACH(1)), HELP, HELP);
  /* Flavour -1, 1 and 2 of a column, where right-hand sides have two, and one. */
  SESSION("colours", 2 | STATE, HELP, COLOURS, C0(HELLO), C0(BIND), C0(SUBMIT(POINT, TWO, 24)),
          C0(SUBMIT(POINT | KEEP, 2, 0)), C0(SUBMIT(UP, ONE, 0)), C0(UPLOAD(0, 0)), HELP, HELP,
          HELP, HELP, C0(CONTRACT(0, 1)), CONTRACTED, C0(SUBMIT(SEQ, ONE, 0)), HELP, CRASH(0), HELP,
          COLOURS, C0(HELLO), C0(BIND), C0(ATTACH(0)), HELP, C0(GRANT(0, 0)), C0(ACK(0, 0)));
  SESSION("doublet", 2 | STATE, HELP, TWO_FLAVOURS, C0(HELLO), C0(SUBMIT(Z4, TWO, 24)),
          C0(SUBMIT(POINT, TWELVE, 152)), C0(SUBMIT(WALL, TWO, 216)), HELP, HELP, CRASH(0), HELP,
          TWO_FLAVOURS, C0(HELLO), C0(ATTACH(0)), C0(ATTACH(1)), HELP, HELP, CRASH(0), LIVE,
          C0(HELLO), C0(SUBMIT(Z4, TWO, 24)), C0(SUBMIT(POINT, TWO, 152)), HELP);
  /* Parts of the operator, one that there is not, adjoints, beside a solve; again after a crash. */
  SESSION("work", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 26 + 64)),
          C0(SUBMIT(Z4, TWO, 26 + 192)), C0(SUBMIT(POINT, TWO, 27)),
          C0(SUBMIT(POINT, TWO, 27 + 128)), C0(SUBMIT(POINT, TWO, 0)), HELP, HELP, CRASH(0),
          PASS(1), LIVE, C0(HELLO), C0(ATTACH(0)), C0(ATTACH(1)), HELP, HELP);
  /* Both parities and one that there is not, a system on one; kept, and the source of a whole. */
  SESSION("parity", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT | KEEP, TWELVE, 29 + 64)),
          C0(SUBMIT(Z4, TWO, 30 + 128)), C0(SUBMIT(Z4, TWO, 29 + 192)), HELP, HELP, HELP, HELP,
          HELP, HELP, C0(SUBMIT(SEQ, TWO, 0)), C0(CONTRACT(0, 1)), HELP, CRASH(0), LIVE, C0(HELLO),
          C0(ATTACH(0)), HELP, HELP);
}

static void save_more_states(void) {
  SESSION("kept-state", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT | KEEP, TWELVE, 0)), HELP, HELP,
          HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, HELP, C0(ACK(0, 0)),
          C0(SUBMIT(SEQ | KEEP, TWO, 0)), C0(CONTRACT(0, 1)), C0(RELEASE(0)), CRASH(0), LIVE, HELP,
          CRASH(MACHINE), LIVE, C0(HELLO), C0(ATTACH(0)));
  SESSION("refused-state", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 0)), EXIT, PASS(4),
          HELP, REFUSED, LIVE, C0(HELLO), C0(ATTACH(0)), C0(SHUTDOWN(1)), LIVE, C0(HELLO),
          C0(AGAIN));
}

static void save_vectors(void) {
  /* Vectors become eigenvectors; they wait for what is released, engine and front end. */
  SESSION("vectors", 2 | STATE, LIVE, C0(HELLO), C0(BIND), C0(FIELD(VECTORS_F64)), C0(UPLOAD(0, 0)),
          HELP, C0(EIGEN_OF(1, 1)), C0(RELEASE(0)), EIGEN_SAYS(2), EXIT, PASS(3), LIVE, HELP,
          C0(SUBMIT(VECTOR, 0, 0)), HELP, HELP, C0(ACK(0, 0)), C0(FIELD(64 + VECTORS_F32)),
          C0(UPLOAD(1, 3)), C0(EIGEN_OF(2, 3)), C0(UPLOAD(1, 0)), HELP, C0(EIGEN_OF(2, 3)),
          C0(RELEASE(1)), CRASH(0), LIVE, C0(HELLO), C0(BIND), EIGEN_SAYS(0), HELP, HELP,
          C0(EIGEN_DROP(67)), CRASH(MACHINE), LIVE, HELP, HELP);
  SESSION("vectors-in-parts", 2 | STATE, LIVE, C0(HELLO), C0(BIND),
          C0(FIELD(128 + 32 + VECTORS_F64)), C0(JOIN(0, 0, 1)), C0(UPLOAD(0, 0)), C0(UPLOAD(1, 0)),
          HELP, C0(EIGEN_OF(3, 1)), HELP, HELP, C0(CANCEL(2, 0)), C0(GOODBYE), PASS(3));
}

static void save_fields(void) {
  /* Links from memory and setups of them; f64 of 12 reals, f32, twice the same, refused ones. */
  SESSION("fields", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(BIND), C0(FIELD(3)), C0(UPLOAD(0, 0)),
          HELP, C0(LOAD(SECOND, OF_FIELD(0))), START, C0(SUBMIT_TO(SECOND, POINT, TWO)), HELP, HELP,
          C0(ACK(0, 0)), C0(FIELD(7)), C0(FIELD(16)), C0(UPLOAD(2, 3)), C0(UPLOAD(2, 0)), HELP,
          CRASH(0), PASS(1), LIVE, LIVE, C0(HELLO), C0(ATTACH(0)), C0(RELEASE(0)), OF(1, EXIT),
          PASS(3), START, CRASH(MACHINE), PASS(1), LIVE, C0(HELLO), C0(LOAD(THIRD, OF_FIELD(0))),
          C0(DROP(SECOND, 1)), HELP, PASS(1), C0(GOODBYE), PASS(8 + 6), PASS(8 + 6));
  SESSION("fields-of-two", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(BIND), C2(0, 2), C2(5, 0),
          C0(FIELD(1)), C0(UPLOAD(0, 0)), C2(FIELD(0)), C2(UPLOAD(0, 0)), HELP,
          C0(LOAD(SECOND, OF_FIELD(0))), C2(LOAD(SECOND, OF_FIELD(0))),
          C2(LOAD(THIRD, OF_FIELD(0))), START, START, C0(SUBMIT_TO(SECOND, POINT, TWO)),
          C2(SUBMIT_TO(SECOND, POINT, TWO)), HELP, C0(GOODBYE), C2(CANCEL(0, 0)), C0(HELLO),
          PASS(8 + 5), CRASH(ALONE), PASS(2), HELP, HELP);
  SESSION("fields-half", 2 | SETUPS, LIVE, C0(HELLO), C0(BIND), C0(FIELD(3)), C0(UPLOAD(0, 3)),
          C0(LOAD(SECOND, OF_FIELD(0))), C0(CANCEL(0, 0)), C0(FIELD(3)), C0(UPLOAD(1, 3)),
          C0(GOODBYE), PASS(3));
}

/* Private setups are loaded again, in place; the old ones have work, engines and fronts end. */
static void save_in_place(void) {
  SESSION("in-place", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(BIND), C0(FIELD(3)), C0(UPLOAD(0, 0)),
          HELP, C0(LOAD(SECOND, OF_FIELD(0))), START, C0(SUBMIT_TO(SECOND, POINT | KEEP, TWO)),
          C0(LOAD(SECOND, OTHER_OF_FIELD(0))), C0(LOAD(SECOND, OF_FIELD(0))),
          C0(LOAD(SECOND, OTHER_OF_FIELD(0))), C0(SUBMIT_TO(SECOND, POINT, TWO)), HELP, LIVE,
          C0(SUBMIT_TO(SECOND, POINT, TWO)), HELP, C0(LOAD(SECOND, OF_FIELD(0))), START,
          C0(LOAD(THIRD, OF_FIELD(0))), START, C0(LOAD(SECOND, OTHER_OF_FIELD(0))), OF(1, REFUSED),
          PASS(2), LIVE, C0(DROP(SECOND, 1)), PASS(1), PASS(1));
  SESSION("in-place-crash", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(BIND), C0(FIELD(3)),
          C0(UPLOAD(0, 0)), HELP, C0(LOAD(SECOND, OF_FIELD(0))), START,
          C0(SUBMIT_TO(SECOND, POINT, TWO)), C0(LOAD(SECOND, OTHER_OF_FIELD(0))), CRASH(ALONE),
          PASS(2), HELP, HELP, C0(HELLO), C0(ATTACH(1)), HELP, PASS(1), CRASH(ALONE | CUT), PASS(2),
          HELP, HELP, C0(HELLO), C0(LOAD(SECOND, OF_FIELD(0))), CRASH(ALONE | UNHEARD), PASS(2),
          HELP, HELP, C0(HELLO), C0(LOAD(SECOND, OTHER_OF_FIELD(0))), OF(1, EXIT), PASS(2), LIVE,
          CRASH(0), PASS(2), LIVE, C0(HELLO), C0(SUBMIT_TO(SECOND, POINT, TWO)),
          C0(LOAD(SECOND, OF_FIELD(0))), CRASH(MACHINE), PASS(2), LIVE, HELP);
  SESSION("in-place-end", 2 | SETUPS, LIVE, C0(HELLO), C0(BIND), C0(FIELD(3)), C0(UPLOAD(0, 0)),
          HELP, C0(LOAD(SECOND, OF_FIELD(0))), C0(LOAD(SECOND, OTHER_OF_FIELD(0))), START, START,
          C0(SUBMIT_TO(SECOND, POINT, TWO)), C0(LOAD(SECOND, OF_FIELD(0))), OF(1, EXIT), PASS(3),
          LIVE, HELP, C0(SUBMIT_TO(SECOND, POINT, TWO)), C0(LOAD(SECOND, OTHER_OF_FIELD(0))),
          C0(DROP(SECOND, 0)), C0(LOAD(SECOND, OF_FIELD(0))), C0(SHUTDOWN(0)), HELP, HELP);
}

/* Fields, sources and solutions in parts; who has a part loses it, or the owner goes. */
static void save_parts(void) {
  SESSION("parts", 2, LIVE, C0(HELLO), C0(BIND), C1(HELLO), C1(BIND), C0(IN_PARTS(6, TWO, 0)),
          C1(JOIN(2, 0, 0)), C1(JOIN(2, 0, 1)), C1(UPLOAD(0, 0)), C1(UPLOAD(1, 3)),
          C1(UPLOAD(1, 0)), HELP, C1(UPLOAD(0, 0)), C1(UPLOAD(1, 0)), HELP, HELP, C1(GRANT(0, 0)),
          C1(GRANT(1, 0)), C0(ACK(0, 0)), C1(ACK(0, 0)), C1(ACK(0, 0)), PASS(2));
  SESSION("parts-own", 2, LIVE, C0(HELLO), C0(BIND), C1(HELLO), C1(BIND),
          C0(IN_PARTS(6 | F64 | KEEP, TWO, 0)), C1(JOIN(2, 0, 1)), C1(JOIN(2, 0, 0)),
          C0(UPLOAD(0, 0)), C1(UPLOAD(0, 0)), HELP, C0(GRANT(0, 0)), C1(CANCEL(0, 0)),
          C1(ATTACH(0)), C0(UPLOAD(0, 0)), C0(JOIN(0, 0, 1)), C0(UPLOAD(1, 0)), PASS(2), HELP,
          C0(SUBMIT(SEQ, ONE, 0)), HELP, C0(RELEASE(1)), C0(RELEASE(0)), PASS(2));
  SESSION("parts-taken", 2, LIVE, C0(HELLO), C0(BIND), C1(HELLO), C1(BIND), C0(IN_PARTS(6, TWO, 3)),
          C1(JOIN(2, 0, 0)), C1(UPLOAD(0, 3)), C0(JOIN(0, 0, 0)), C1(UPLOAD(0, 0)), PASS(2),
          C0(UPLOAD(1, 0)), C0(UPLOAD(1, 0)), HELP, C1(JOIN(2, 0, 0)), C1(GRANT(0, 0)), C0(GOODBYE),
          PASS(2), PASS(2));
  SESSION("parts-generated", 2, LIVE, C0(HELLO), C1(HELLO), C1(BIND),
          C0(IN_PARTS(POINT | 64, TWO, 1)), HELP, C1(JOIN(2, 0, 2)), HELP, C1(GRANT(0, 0)),
          C0(ACK(0, 0)), C1(ACK(0, 0)), PASS(2), C0(IN_PARTS(POINT | 64, TWO, 0)),
          C1(JOIN(2, 0, 1)), C0(CANCEL(0, 0)), C0(RELEASE(0)), PASS(2));
  SESSION("parts-crash", 2 | STATE, LIVE, C0(HELLO), C0(BIND), C1(HELLO), C1(BIND),
          C0(IN_PARTS(6, TWO, 0)), C1(JOIN(2, 0, 0)), C1(JOIN(2, 0, 1)), C1(UPLOAD(0, 0)),
          C1(UPLOAD(1, 3)), CRASH(0), LIVE, C0(HELLO), C0(AGAIN), C1(HELLO), C1(BIND), C1(AGAIN),
          C1(UPLOAD(1, 0)), HELP, C1(UPLOAD(0, 0)), C1(UPLOAD(1, 0)), CRASH(CUT), LIVE, HELP,
          C1(HELLO), C1(BIND), C1(UPLOAD(1, 0)), HELP, C1(GRANT(0, 0)), CRASH(MACHINE), LIVE, HELP,
          HELP, C1(HELLO), C1(BIND), C1(AGAIN), C1(UPLOAD(0, 0)), C1(UPLOAD(1, 0)), HELP,
          C1(GRANT(1, 0)), C0(HELLO), C0(RELEASE(0)), CRASH(0), LIVE, PASS(2));
  SESSION("parts-field", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(BIND), C0(FIELD(128 + 2)),
          C0(JOIN(0, 0, 0)), C0(JOIN(0, 0, 1)), C0(UPLOAD(1, 0)), C0(UPLOAD(2, 3)), CRASH(0), LIVE,
          C0(HELLO), C0(BIND), C0(UPLOAD(2, 0)), HELP, C0(ACK(1, 0)), C0(LOAD(SECOND, OF_FIELD(0))),
          START, CRASH(MACHINE), PASS(1), LIVE, C0(HELLO), C0(FIELD(128 + 35)), C0(JOIN(0, 2, 1)),
          C0(GOODBYE), PASS(8 + 6), PASS(8 + 6));
}

/* Engines go on, and the next front takes them over. */
static void save_adopted(void) {
  SESSION("adopted", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, FORTY, 0)), HELP, CRASH(ALONE),
          PASS(2), HELP, HELP, HELP, C0(HELLO), C0(ATTACH(0)), HELP, C0(ACK(0, 0)),
          CRASH(ALONE | CUT), PASS(2), HELP, HELP, EXIT, PASS(3), LIVE);
  SESSION("adopted-late", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT | KEEP, TWELVE, 0)),
          CRASH(ALONE), DONE(0, 0), CONTRACTED, PROGRESS, ENGINE, 9, 8, ENGINE, 8, 254, ENGINE, 8,
          253, PASS(2), ENGINE, 10, 0, ENGINE, 8, 0, ENGINE, 9, 8, C0(HELLO), C0(ATTACH(0)), HELP);
  SESSION("adopted-loading", 2 | STATE, HELP, CRASH(ALONE), ENGINE, 9, 8, PASS(2), HELP, HELP,
          CRASH(ALONE), PASS(2), CRASH(ALONE), PASS(2), HELP, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)));
  SESSION("adopted-not", 2 | STATE, LIVE, C0(HELLO), C0(SUBMIT(POINT, TWO, 0)), CRASH(ALONE),
          PASS(2), PASS(5), PASS(5), PASS(16), LIVE, CRASH(ALONE), EXIT, PASS(2), LIVE,
          CRASH(ALONE), PASS(2), FATAL, PASS(16), LIVE, CRASH(ALONE), PASS(2), ENGINE, 8, 255,
          PASS(16), LIVE);
  SESSION("adopted-setups", 2 | STATE | SETUPS, LIVE, C0(HELLO), C0(LOAD(SECOND + DEFAULT, 1)),
          START, C0(LOAD(THIRD, 9)), START, C0(SUBMIT(POINT, FORTY, 0)),
          C0(SUBMIT_TO(MAIN, POINT, TWO)), CRASH(ALONE), PASS(2), HELP, HELP, C0(HELLO),
          C0(DROP(THIRD, 1)), HELP, CRASH(ALONE), PASS(2), HELP, C0(LOAD(THIRD, 1)), START,
          C0(ATTACH(0)));
}

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  folder = argv[1];
  mkdir(folder, 0777);
  save_good();
  save_bad();
  save_setups();
  save_states();
  save_more_states();
  save_fields();
  save_vectors();
  save_in_place();
  save_parts();
  save_adopted();
  return 0;
}
