/*
 * log.h: the only way to write to the log (stderr). A message is one line of at most 2 KiB: UTC
 * time, level, program[rank], subsystem, job id if there is one, and the exact cause in lower case.
 * Thread-safe.
 *
 * In JSON each line is one object with these keys: time (RFC 3339, milliseconds), level, program,
 * rank (or null), subsystem, job (or null), text. It is always valid UTF-8.
 */
#ifndef QK_BASE_LOG_H
#define QK_BASE_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_level { QK_LOG_ERROR, QK_LOG_WARN, QK_LOG_INFO, QK_LOG_DEBUG } qk_level_t;

typedef enum qk_log_format { QK_LOG_TEXT, QK_LOG_JSON } qk_log_format_t;

/* program: shown in each line, its first 40 bytes, copied; rank < 0 shows none. */
void qk_log_init(const char *program, int rank, qk_level_t level);
/* From now on. */
void qk_log_set_level(qk_level_t level);

/* The form of all lines from now on; before threads start. Text at first. */
void qk_log_use(qk_log_format_t format);
const char *qk_log_format_name(qk_log_format_t format);
/* "text" or "json"; returns 0, or -1 for another word. */
int qk_log_parse_format(const char *word, qk_log_format_t *format);

/* "error", "warn", "info" or "debug"; returns 0, or -1 for another word. */
int qk_log_parse_level(const char *word, qk_level_t *level);

__attribute__((format(printf, 4, 5))) void qk_log(qk_level_t level, const char *subsystem,
                                                  const char *job, const char *fmt, ...);

#define qk_error(subsystem, ...) qk_log(QK_LOG_ERROR, subsystem, 0, __VA_ARGS__)
#define qk_warn(subsystem, ...) qk_log(QK_LOG_WARN, subsystem, 0, __VA_ARGS__)
#define qk_info(subsystem, ...) qk_log(QK_LOG_INFO, subsystem, 0, __VA_ARGS__)
#define qk_debug(subsystem, ...) qk_log(QK_LOG_DEBUG, subsystem, 0, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
