#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "client/cli/ctl.h"
#include "proto/limits.h"

typedef struct options {
  const char *file, *user, *role;
} options_t;

static bool is_name(const char *text) {
  for (const char *p = text; *p; p++)
    if (*p <= ' ' || *p > '~') return false;
  return *text && strlen(text) <= QK_USER_MAX;
}

static void take_user(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  if (!is_name(text))
    argp_error(state, "--%s=%s: 1 to %d printable characters without blanks", name, text,
               QK_USER_MAX);
  o->user = text;
}

static void take_role(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  if (strcmp(text, "read") != 0 && strcmp(text, "submit") != 0 && strcmp(text, "operate") != 0)
    argp_error(state, "--%s=%s: must be read, submit or operate", name, text);
  o->role = text;
}

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->file) argp_error(state, "the name of the file is required");
}

static const qk_option_row_t rows[] = {
    {"user", QK_OPTION_TAKEN, .form = "NAME", .take = take_user,
     .help = "user of the key (default: you)"},
    {"role", QK_OPTION_TAKEN, .form = "ROLE", .take = take_role,
     .help = "read, submit (default) or operate"},
    {"FILE", QK_OPTION_ARGUMENT, .offset = offsetof(options_t, file)},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

/* Never replaces a file: somebody may rely on it. */
static bool write_file(const char *path, mode_t mode, const char *text) {
  const size_t bytes = strlen(text);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  const bool written = fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes && fsync(fd) == 0;
  const int cause = errno;
  if (fd >= 0) close(fd);
  if (written) return true;
  if (fd >= 0) unlink(path);
  ctl_complain("%s: %s", path, strerror(cause));
  return false;
}

static int make_pair(const options_t *o, const char *public_file) {
  char public[QK_KEY_TEXT], secret[QK_KEY_TEXT], line[QK_KEY_TEXT + 1], text[256];
  if (!zmq_has("curve") || zmq_curve_keypair(public, secret) != 0) {
    ctl_complain("this libzmq was built without CURVE");
    return EXIT_UNAVAILABLE;
  }
  snprintf(line, sizeof line, "%s\n", secret);
  snprintf(text, sizeof text, "key = %s\nuser = %s\nrole = %s\n", public, o->user, o->role);
  const bool first = write_file(o->file, 0600, line);
  const bool both = first && write_file(public_file, 0644, text);
  if (first && !both) unlink(o->file);
  explicit_bzero(secret, sizeof secret);
  explicit_bzero(line, sizeof line);
  if (!both) return EXIT_DATA;
  printf("%s: secret key, for --key or --curve-key\n%s: public key, to hand out\n", o->file,
         public_file);
  return 0;
}

int ctl_keygen(int argc, char **argv) {
  static const char about[] =
      "Makes a pair of keys: the secret one in FILE, for its owner alone, and the public "
      "one in FILE.pub, "
      "which goes into the folder of quarkd --curve-clients, or to --server-key where it is "
      "the daemon's.";
  options_t o = {.role = "submit"};
  char *public_file;
  qk_options_parse(&table, "FILE", about, argc, argv, &o);
  const struct passwd *pw = o.user ? NULL : getpwuid(geteuid());
  if (!o.user) o.user = pw ? pw->pw_name : "";
  if (!is_name(o.user)) {
    ctl_complain("your user has no name: give --user");
    return EXIT_USAGE;
  }
  if (asprintf(&public_file, "%s.pub", o.file) < 0) return EXIT_AGAIN;
  const int code = make_pair(&o, public_file);
  free(public_file);
  return code;
}
