/*
 * The end of an action log file: where the last good record ends, and what follows it.
 */
#ifndef ALERTSCALER_SRC_LOG_LOG_TAIL_H
#define ALERTSCALER_SRC_LOG_LOG_TAIL_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/audit.h>

/*
 * Reads the last `window` bytes of the file (more, if they hold no good record), checks their lines
 * and cuts off what was torn. Damage that a crash cannot have caused is logged and left alone.
 * head_out: the last good record; size_out: of the file now. 0 or a negative errno.
 */
int as_audit_tail_recover(int fd, const char *path, uint64_t window, struct as_audit_head *head_out,
                          uint64_t *size_out, struct as_error *error) AS_MUST_USE;

#endif
