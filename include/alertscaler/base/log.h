/*
 * The daemon's own log on standard error: an event name and fields, as logfmt or JSON. Not the
 * action log. The sink is the only global state of the program. Safe to call from every thread.
 *
 *   as_log(AS_LOG_WARN, "scale failed", AS_F("target", id), AS_F("error", error.text));
 *   ts=2026-11-20T10:00:00.000Z level=warn msg="scale failed" target=... error="..."
 */
#ifndef ALERTSCALER_BASE_LOG_H
#define ALERTSCALER_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

enum as_log_level { AS_LOG_TRACE, AS_LOG_DEBUG, AS_LOG_INFO, AS_LOG_WARN, AS_LOG_ERROR };
enum as_log_format { AS_LOG_LOGFMT, AS_LOG_JSON };

struct as_log_field {
    const char *key;  /* NULL: this field is left out */
    const char *text; /* NULL: `number` is the value */
    int64_t number;
};

static inline const char *as_log_text(const char *text)
{
    return text ? text : "";
}

#define AS_F(name, string) ((struct as_log_field){.key = (name), .text = as_log_text(string)})
/* The field is left out if the text is NULL or empty. */
#define AS_F_IF(name, string)                                                                      \
    ((struct as_log_field){.key = *as_log_text(string) ? (name) : NULL,                            \
                           .text = as_log_text(string)})
#define AS_FI(name, value) ((struct as_log_field){.key = (name), .number = (int64_t)(value)})

int as_log_level_parse(const char *text, enum as_log_level *level_out) AS_MUST_USE;
int as_log_format_parse(const char *text, enum as_log_format *format_out) AS_MUST_USE;
void as_log_configure(enum as_log_level level, enum as_log_format format, int fd);
bool as_log_is_enabled(enum as_log_level level);
void as_log_write(enum as_log_level level, const char *event, const struct as_log_field *fields,
                  unsigned count);

/* How many lines could not be written since the last call. */
uint64_t as_log_take_lost(void);

#define as_log(level, event, ...)                                                                  \
    as_log_write((level), (event), (const struct as_log_field[]){__VA_ARGS__},                     \
                 sizeof((const struct as_log_field[]){__VA_ARGS__}) / sizeof(struct as_log_field))

#endif
