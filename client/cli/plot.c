#include "client/cli/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 16, MOST_COLUMNS = 120 };

static void log_range(const ctl_curve_t *curve, double *low, double *high) {
  *low = INFINITY;
  *high = -INFINITY;
  for (int t = 0; t < curve->nt; t++) {
    if (!(curve->c[t] > 0)) continue;
    *low = fmin(*low, log10(curve->c[t]));
    *high = fmax(*high, log10(curve->c[t]));
  }
  if (*high - *low < 1e-6) *high = *low + 1;
}

void ctl_plot_terminal(FILE *to, const ctl_curve_t *curve) {
  double low, high;
  log_range(curve, &low, &high);
  if (!isfinite(low)) return;
  setlocale(LC_CTYPE, "");
  const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  const char *dot = utf8 ? "\u25cf" : "*", *bar = utf8 ? "\u2502" : "|",
             *line = utf8 ? "\u2500" : "-";
  const int width = curve->nt > MOST_COLUMNS / 2 ? 1 : curve->nt > MOST_COLUMNS / 4 ? 2 : 4;
  fprintf(to, "\n  C(t), %s, logarithmic\n", curve->label);
  for (int row = 0; row < ROWS; row++) {
    fprintf(to, "%10.2e %s", pow(10, high - (high - low) * row / (ROWS - 1)), bar);
    for (int t = 0; t < curve->nt; t++) {
      const double c = curve->c[t];
      const bool here = c > 0 && lround((high - log10(c)) / (high - low) * (ROWS - 1)) == row;
      fprintf(to, "%s%*s", here ? dot : " ", width - 1, "");
    }
    fputc('\n', to);
  }
  fprintf(to, "%10s %s", "", utf8 ? "\u2514" : "+");
  for (int i = 0; i < curve->nt * width; i++) fputs(line, to);
  fprintf(to, "\n%12s", "");
  for (int t = 0; t < curve->nt; t++)
    if (t * width % 8 == 0) fprintf(to, "%-8d", t);
  fputs("t\n", to);
}

static void write_data(FILE *to, int i, const ctl_curve_t *curve) {
  fprintf(to, "$data%d << EOD\n", i);
  for (int t = 0; t < curve->nt; t++)
    fprintf(to, "%d %.17g %.17g %.17g %.17g\n", t, curve->c[t], curve->dc ? curve->dc[t] : NAN,
            curve->mass[t], curve->dmass ? curve->dmass[t] : NAN);
  fputs("EOD\n", to);
}

/* Writes text in the quotes of gnuplot. */
static void write_quoted(FILE *to, const char *text) {
  fputc('\'', to);
  for (; *text; text++) fputc(*text == '\'' || *text == '\n' ? ' ' : *text, to);
  fputc('\'', to);
}

/* True if there is a point to draw: gnuplot refuses a plot without any. */
static bool has_points(const ctl_curve_t *curve, bool mass) {
  for (int t = 0; t < curve->nt; t++)
    if (mass ? isfinite(curve->mass[t]) : curve->c[t] > 0) return true;
  return false;
}

/* The values of C or of the masses, with their errors. */
static void write_plot(FILE *to, int n, const ctl_curve_t *curves, bool mass) {
  int plotted = 0;
  for (int i = 0; i < n; i++) {
    if (!has_points(&curves[i], mass)) continue;
    fprintf(to, "%s $data%d using ", plotted++ ? "," : "plot", i);
    fputs(mass ? "($1+0.5):4" : "1:2", to);
    if (mass ? curves[i].dmass != NULL : curves[i].dc != NULL)
      fprintf(to, ":%d with yerrorbars", mass ? 5 : 3);
    else
      fputs(" with points", to);
    fprintf(to, " pt 7 lc %d title ", i + 1);
    write_quoted(to, curves[i].label);
  }
  fputc('\n', to);
}

typedef struct curves {
  const char *title;
  int n;
  const ctl_curve_t *at;
} curves_t;

static void write_curves(FILE *to, const void *arg) {
  const curves_t *all = arg;
  const int n = all->n;
  const ctl_curve_t *curves = all->at;
  fputs("set terminal pngcairo size 900,900 noenhanced font 'sans,11'\n", to);
  for (int i = 0; i < n; i++) write_data(to, i, &curves[i]);
  fputs("set datafile missing 'nan'\nset multiplot layout 2,1 title ", to);
  write_quoted(to, all->title);
  fprintf(to,
          "\nset grid\nset key outside\nset xlabel 't'\nset lmargin 12\nset xrange [-0.5:%g]\n"
          "set logscale y\nset format y '%%.0e'\nset ylabel 'C(t)'\n",
          (double)curves[0].nt);
  write_plot(to, n, curves, false);
  fputs("unset logscale y\nset format y '%g'\nset yrange [0:*]\n"
        "set ylabel 'effective mass'\n",
        to);
  write_plot(to, n, curves, true);
  fputs("unset multiplot\n", to);
}

/* Starts gnuplot. Its picture goes to the descriptor `picture`; its commands are written to
 * *input. */
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

static qk_status_t draw(int picture, ctl_script_fn *script, const void *arg, qk_err_t *err) {
  int input, status;
  const pid_t pid = start_gnuplot(picture, &input);
  if (pid < 0) return qk_fail(err, QK_IO_ERROR, "gnuplot cannot be started: %s", strerror(errno));
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  sigaction(SIGPIPE, &ignore, &before);
  FILE *to = fdopen(input, "w");
  if (to) {
    script(to, arg);
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

qk_status_t ctl_plot_png(const char *path, const char *title, int n, const ctl_curve_t *curves,
                         qk_err_t *err) {
  const curves_t all = {title, n, curves};
  return ctl_plot_script(path, write_curves, &all, err);
}

qk_status_t ctl_plot_script(const char *path, ctl_script_fn *script, const void *arg,
                            qk_err_t *err) {
  char *part;
  if (asprintf(&part, "%s.%ld.part", path, (long)getpid()) < 0)
    return qk_fail(err, QK_NO_MEMORY, "no memory for a name");
  qk_status_t status;
  unlink(part); /* of a process that died */
  const int picture = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (picture < 0) {
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
    goto out;
  }
  status = draw(picture, script, arg, err);
  if (close(picture) != 0 && status == QK_OK)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  if (status == QK_OK && rename(part, path) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  if (status != QK_OK) unlink(part);
out:
  free(part);
  return status;
}
