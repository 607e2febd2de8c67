#include "client/quarkctl/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 16, MOST_COLUMNS = 120 };

static void log_range(const qk_correlator_t *corr, double *low, double *high) {
  *low = INFINITY;
  *high = -INFINITY;
  for (int t = 0; t < corr->nt; t++) {
    if (!(corr->c[t] > 0)) continue;
    *low = fmin(*low, log10(corr->c[t]));
    *high = fmax(*high, log10(corr->c[t]));
  }
  if (*high - *low < 1e-6) *high = *low + 1;
}

void ctl_plot_terminal(FILE *to, const char *channel, const qk_correlator_t *corr) {
  double low, high;
  log_range(corr, &low, &high);
  if (!isfinite(low)) return;
  setlocale(LC_CTYPE, "");
  const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  const char *dot = utf8 ? "\u25cf" : "*", *bar = utf8 ? "\u2502" : "|",
             *line = utf8 ? "\u2500" : "-";
  const int width = corr->nt > MOST_COLUMNS / 2 ? 1 : corr->nt > MOST_COLUMNS / 4 ? 2 : 4;
  fprintf(to, "\n  C(t), %s, logarithmic\n", channel);
  for (int row = 0; row < ROWS; row++) {
    fprintf(to, "%10.2e %s", pow(10, high - (high - low) * row / (ROWS - 1)), bar);
    for (int t = 0; t < corr->nt; t++) {
      const double c = corr->c[t];
      const bool here = c > 0 && lround((high - log10(c)) / (high - low) * (ROWS - 1)) == row;
      fprintf(to, "%s%*s", here ? dot : " ", width - 1, "");
    }
    fputc('\n', to);
  }
  fprintf(to, "%10s %s", "", utf8 ? "\u2514" : "+");
  for (int i = 0; i < corr->nt * width; i++) fputs(line, to);
  fprintf(to, "\n%12s", "");
  for (int t = 0; t < corr->nt; t++)
    if (t * width % 8 == 0) fprintf(to, "%-8d", t);
  fputs("t\n", to);
}

static void write_script(FILE *to, const char *channel, const qk_correlator_t *corr) {
  fputs("set terminal pngcairo size 900,900 font 'sans,11'\n$data << EOD\n", to);
  for (int t = 0; t < corr->nt; t++) fprintf(to, "%d %.17g %.17g\n", t, corr->c[t], corr->meff[t]);
  fprintf(
      to,
      "EOD\n"
      "set datafile missing 'nan'\n"
      "set multiplot layout 2,1 title '%s'\n"
      "set grid\nset xlabel 't'\nset lmargin 12\nset xrange [-0.5:%g]\n"
      "set logscale y\nset format y '%%.0e'\nset ylabel 'C(t)'\n"
      "plot $data using 1:2 with linespoints pt 7 notitle\n"
      "unset logscale y\nset format y '%%g'\nset yrange [0:*]\nset ylabel 'effective mass (cosh)'\n"
      "plot $data using ($1+0.5):3 with points pt 7 notitle\n"
      "unset multiplot\n",
      channel, (double)corr->nt);
}

/* Its picture goes to the descriptor `picture`; its commands are written to *input. */
static pid_t start_gnuplot(int picture, int *input) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[0], STDIN_FILENO);
    dup2(picture, STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execlp("gnuplot", "gnuplot", (char *)NULL);
    _exit(127);
  }
  close(ends[0]);
  if (pid < 0)
    close(ends[1]);
  else
    *input = ends[1];
  return pid;
}

static qk_status_t draw(int picture, const char *channel, const qk_correlator_t *corr,
                        qk_err_t *err) {
  int input, status;
  const pid_t pid = start_gnuplot(picture, &input);
  if (pid < 0) return qk_fail(err, QK_IO_ERROR, "gnuplot cannot be started: %s", strerror(errno));
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  sigaction(SIGPIPE, &ignore, &before);
  FILE *to = fdopen(input, "w");
  if (to) {
    write_script(to, channel, corr);
    fclose(to);
  } else
    close(input);
  sigaction(SIGPIPE, &before, NULL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return qk_fail(err, QK_NOT_FOUND, "gnuplot is not installed");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return qk_fail(err, QK_IO_ERROR, "gnuplot failed");
  return QK_OK;
}

qk_status_t ctl_plot_png(const char *path, const char *channel, const qk_correlator_t *corr,
                         qk_err_t *err) {
  char *part;
  if (asprintf(&part, "%s.%ld.part", path, (long)getpid()) < 0)
    return qk_fail(err, QK_NO_MEMORY, "no memory for a name");
  qk_status_t status;
  const int picture = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (picture < 0) {
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
    goto out;
  }
  status = draw(picture, channel, corr, err);
  if (close(picture) != 0 && status == QK_OK)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  if (status == QK_OK && rename(part, path) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  if (status != QK_OK) unlink(part);
out:
  free(part);
  return status;
}
