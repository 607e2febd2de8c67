#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/ticket.h"

enum { RETRY_MS = 500 };

typedef struct leaving {
  ctl_work_t *work;
  ctl_ticket_t ticket;
  int64_t next, most; /* right-hand sides that are submitted; of a request */
  void *field;        /* room for one, of an input */
  double give_up;
  ctl_progress_t progress;
} leaving_t;

/* After a refusal: makes requests smaller, waits for a full daemon, or returns an exit code. */
static int refused(leaving_t *l, const quark_error_t *err) {
  if (err->code == QUARK_TOO_LARGE && l->most > 1 && !l->work->whole &&
      l->ticket.parts < CTL_TICKET_PARTS) {
    l->most = (l->most + 1) / 2;
    return 0;
  }
  const bool busy = err->code == QUARK_BUSY || err->code == QUARK_NOT_READY;
  if (busy && ctl_seconds() < l->give_up) {
    ctl_pause(err->retry_after_ms ? err->retry_after_ms : RETRY_MS);
    return 0;
  }
  const int code = ctl_fail(err);
  if (err->code == QUARK_BUSY && l->next > 0)
    ctl_complain("the daemon has room for %lld of %lld right-hand sides and their solutions: "
                 "--detach needs room for all",
                 (long long)l->next, (long long)l->work->nrhs);
  return code;
}

/* Submits the next request and uploads its right-hand sides. */
static int submit(leaving_t *l) {
  ctl_work_t *work = l->work;
  quark_params_t p = work->params;
  quark_error_t err;
  const int64_t left = work->nrhs - l->next, first = l->next;
  ctl_part_t *part = &l->ticket.part[l->ticket.parts];
  uint64_t bytes;
  p.nrhs = (uint32_t)(left < l->most ? left : l->most);
  p.column = work->column ? work->column + first : NULL;
  p.detach_ms = 1000 * work->options->detach_s;
  if (l->ticket.parts == CTL_TICKET_PARTS) {
    ctl_complain("%lld right-hand sides need more than the %d requests that a client may have",
                 (long long)work->nrhs, CTL_TICKET_PARTS);
    return EXIT_DATA;
  }
  if (quark_submit(work->conn, &p, &part->request, &bytes, &err) != QUARK_OK)
    return refused(l, &err);
  part->nrhs = p.nrhs;
  l->ticket.parts++;
  l->next += p.nrhs;
  if (!work->in) return 0;
  if (!l->field && !(l->field = malloc(bytes))) {
    ctl_complain("no memory for one field of %llu bytes", (unsigned long long)bytes);
    return EXIT_AGAIN;
  }
  const int code = ctl_work_upload(work, part->request, first, p.nrhs, l->field, bytes);
  if (code || ctl_interrupted()) return code;
  return quark_flush(work->conn, part->request, &err) == QUARK_OK ? 0 : ctl_fail(&err);
}

static int submit_all(leaving_t *l) {
  char line[96];
  while (l->next < l->work->nrhs) {
    const int code = submit(l);
    if (code) return code;
    if (ctl_interrupted()) return EXIT_AGAIN;
    snprintf(line, sizeof line, "%lld of %lld right-hand sides handed over", (long long)l->next,
             (long long)l->work->nrhs);
    ctl_progress_line(&l->progress, line);
  }
  return 0;
}

/* Numbers as "1" or "1-3". */
static void print_text(const ctl_ticket_t *t, const char *path) {
  char client[2 * QUARK_CLIENT_ID_BYTES + 1];
  ctl_ticket_client(t, client);
  printf("%s client %s requests %llu", path, client, (unsigned long long)t->part[0].request);
  if (t->parts > 1) printf("-%llu", (unsigned long long)t->part[t->parts - 1].request);
  printf(" kept %llu s\n", (unsigned long long)t->kept_s);
}

static int tell(const ctl_work_t *work, const ctl_ticket_t *t, const char *path) {
  if (!work->options->common.json) {
    print_text(t, path);
    return 0;
  }
  char client[2 * QUARK_CLIENT_ID_BYTES + 1];
  ctl_ticket_client(t, client);
  return ctl_print(json_pack("{s:s, s:s, s:o, s:I, s:I}", "ticket", path, "client", client,
                             "requests", ctl_ticket_parts(t), "rhs", (json_int_t)work->nrhs,
                             "kept_seconds", (json_int_t)t->kept_s));
}

/* Writes the ticket, with absolute paths: a fetch may run in another folder. */
static int write_ticket(leaving_t *l, const char *path) {
  const ctl_work_t *work = l->work;
  const ctl_common_t *common = &work->options->common;
  l->ticket.kept_s = work->options->detach_s;
  quark_client_id(work->conn, l->ticket.client);
  ctl_ticket_t t = l->ticket;
  char server_key[QK_KEY_TEXT];
  if (common->server_key && !ctl_server_key(common->server_key, server_key)) return EXIT_CONFIG;
  char *input = work->in ? realpath(work->source, NULL) : NULL;
  char *endpoint = ctl_where_lasting(common->endpoint);
  t.endpoint = endpoint ? endpoint : common->endpoint;
  t.server_key = common->server_key ? server_key : NULL;
  t.format = qk_field_format_name(ctl_work_format(work));
  t.kind = work->kind;
  t.source = work->described_source ? work->described_source : work->source;
  t.input = input;
  t.report = work->report;
  const int code = ctl_ticket_write(path, &t);
  free(input);
  free(endpoint);
  return code;
}

/* Releases what was submitted: without a ticket nobody could fetch it. */
static void take_back(const leaving_t *l) {
  quark_error_t err;
  const bool gone = ctl_ticket_release(&l->ticket, l->work->conn, &err);
  const char *why = ctl_interrupted() ? "interrupted: " : "";
  if (!gone)
    ctl_complain("%sthe daemon has not confirmed that it dropped the uploaded work (%s): that may "
                 "stay there for %llu s",
                 why, err.text, (unsigned long long)l->work->options->detach_s);
  else if (ctl_interrupted())
    ctl_complain("%sthe daemon has dropped all of it", why);
}

int ctl_detach(ctl_work_t *work) {
  leaving_t l = {.work = work,
                 .most = work->nrhs < QK_REQUEST_RHS_MAX ? work->nrhs : QK_REQUEST_RHS_MAX,
                 .give_up = ctl_seconds() + ctl_work_patience(work)};
  char path[QK_PATH_MAX];
  int code = ctl_ticket_path(work->options->out, path);
  if (code == 0) code = ctl_outcome_fits(work);
  if (code) return code;
  ctl_catch_signals();
  ctl_progress_begin(&l.progress, work->nrhs, work->options->progress);
  code = submit_all(&l);
  ctl_progress_end(&l.progress);
  if (code == 0) code = write_ticket(&l, path);
  if (code) take_back(&l);
  free(l.field);
  return code ? code : tell(work, &l.ticket, path);
}
