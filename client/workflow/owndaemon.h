/*
 * owndaemon.h: a quarkd that this process starts, on a free port of this host.
 *
 * It ends with the process that started it, however that ends. Functions return exit codes and have
 * printed the reason.
 */
#ifndef QUARKCTL_OWNDAEMON_H
#define QUARKCTL_OWNDAEMON_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct ctl_daemon {
  pid_t pid; /* 0: none */
  char endpoint[256];
} ctl_daemon_t;

/* Starts program with n options "--key=value" and waits until it listens. program NULL: the quarkd
 * beside this program. folder: for its files; its log is appended to folder/quarkd.log. */
int ctl_daemon_start(const char *program, int n, char *const *options, const char *folder,
                     ctl_daemon_t *daemon);
/* If it ends or has ended by itself: prints why and returns its exit code. Else returns code. */
int ctl_daemon_verdict(ctl_daemon_t *daemon, const char *folder, int code);
/* Ends it at once and collects its status. Does nothing if there is none. */
void ctl_daemon_stop(ctl_daemon_t *daemon);

#endif
