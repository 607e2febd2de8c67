/* Which process is meant. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/front/host/procid.h"

/* A child that waits for a signal, in a group of its own. deaf: it ignores SIGTERM. */
static qk_procid_t begin(bool deaf) {
  int ready[2];
  char byte;
  qk_procid_t id;
  cr_assert_eq(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    if (deaf) signal(SIGTERM, SIG_IGN);
    if (write(ready[1], "x", 1) == 1) pause();
    _exit(0);
  }
  cr_assert_eq(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  cr_assert_eq(qk_procid_of(pid, &id, NULL), QK_OK);
  return id;
}

static void end(const qk_procid_t *id, int sig) {
  int status;
  kill(id->pid, sig);
  cr_assert_eq(waitpid(id->pid, &status, 0), id->pid);
  cr_expect(WIFSIGNALED(status));
}

Test(procid, is_known_until_it_ends) {
  int fd;
  qk_err_t err = {0};
  const qk_procid_t id = begin(false);
  cr_assert_eq(qk_procid_open(&id, &fd, &err), QK_OK, "%s", err.text);
  cr_expect(qk_procid_lives(fd));
  kill(id.pid, SIGKILL);
  struct pollfd p = {.fd = fd, .events = POLLIN};
  cr_assert_eq(poll(&p, 1, 10000), 1);
  cr_expect_not(qk_procid_lives(fd));
  int again;
  cr_expect_eq(qk_procid_open(&id, &again, &err), QK_NOT_FOUND); /* a zombie */
  end(&id, SIGKILL);
  cr_expect_eq(qk_procid_open(&id, &again, NULL), QK_NOT_FOUND);
  cr_expect(qk_procid_end(&id));
  close(fd);
}

Test(procid, another_process_of_that_pid_is_not_it) {
  int fd;
  const qk_procid_t id = begin(false);
  qk_procid_t other = id;
  other.start++;
  cr_expect_eq(qk_procid_open(&other, &fd, NULL), QK_NOT_FOUND);
  cr_expect(qk_procid_end(&other));
  other = id;
  other.boot[0] = other.boot[0] == '0' ? '1' : '0';
  cr_expect_eq(qk_procid_open(&other, &fd, NULL), QK_NOT_FOUND);
  cr_expect(qk_procid_end(&other));
  cr_expect_eq(waitpid(id.pid, NULL, WNOHANG), 0, "it was ended");
  for (pid_t pid = -1; pid < 2; pid++) {
    other.pid = pid;
    cr_expect_eq(qk_procid_open(&other, &fd, NULL), QK_NOT_FOUND);
  }
  end(&id, SIGKILL);
}

Test(procid, ends_what_does_not_want_to) {
  for (int deaf = 0; deaf < 2; deaf++) {
    const qk_procid_t id = begin(deaf);
    int status;
    cr_expect(qk_procid_end(&id));
    cr_assert_eq(waitpid(id.pid, &status, 0), id.pid);
    cr_expect_eq(WTERMSIG(status), deaf ? SIGKILL : SIGTERM);
  }
}
