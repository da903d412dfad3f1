/*
 * The action log's file: JSON Lines, mode 0640, append-only.
 *
 * Rotation: if an append would take the file above `max_size`, the file is synced and renamed to
 * PATH.1, PATH.1 to PATH.2 and so on. The oldest files are deleted if there are more than `keep`
 * and they are larger than `keep` files of max_size together; 1,000 files, or `keep`, are the most.
 * One append always goes into one file. With max_size 0 nothing is renamed: an outside tool moves
 * the file, then calls for reopen. A new part (port/audit.h) is also a rotation, whatever the size.
 *
 * Opening checks the chain of the file's last 16 MiB and cuts off what is not whole: torn lines,
 * and blocks that a power loss left unwritten (their hash does not match). The caller has those
 * records in its outbox and appends them again. If the file is empty or missing (a crash during a
 * rotation), the head is read from the newest file beside it called PATH.something or
 * PATH-something.
 */
#ifndef ALERTSCALER_LOG_LOG_FILE_H
#define ALERTSCALER_LOG_LOG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/audit.h>

struct as_audit_file_config {
    const char *path; /* copied */
    uint64_t max_size;
    unsigned keep; /* 0 counts as 1 */
};

/* 0; or a negative errno with an error that names the file. */
int as_audit_file_open(const struct as_audit_file_config *config, struct as_audit **audit_out,
                       struct as_error *error) AS_MUST_USE;

/* Whether a file beside the log `log_name` is one of its rotated files: log_name.1,
 * log_name-20261120; but not log_name.1.gz, nor what as_audit_tail_recover has saved. */
static inline bool AS_MUST_USE as_audit_file_is_rotated(const char *log_name, const char *name)
{
    static const char *const others[] = {".gz", ".xz", ".bz2", ".zst", ".damaged"};
    const size_t size = strlen(name), prefix = strlen(log_name);
    if (strncmp(name, log_name, prefix) != 0 || (name[prefix] != '.' && name[prefix] != '-'))
        return false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        const size_t suffix = strlen(others[i]);
        if (size >= suffix && strcmp(name + size - suffix, others[i]) == 0)
            return false;
    }
    return true;
}

/* Whether it is a file of another replica's log that was copied beside this log:
 * replica-NAME-log_name, or a rotated file of that. Only the history reads it. */
static inline bool AS_MUST_USE as_audit_file_is_copy(const char *log_name, const char *name)
{
    static const char prefix[] = "replica-";
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return false;
    const char *replica = name + sizeof(prefix) - 1, *at = strstr(replica, log_name);
    for (; at; at = strstr(at + 1, log_name)) {
        if (at > replica + 1 && at[-1] == '-' &&
            (strcmp(at, log_name) == 0 || as_audit_file_is_rotated(log_name, at)))
            return true;
    }
    return false;
}

/* Whether the history reads it. */
static inline bool AS_MUST_USE as_audit_file_is_history(const char *log_name, const char *name)
{
    return strcmp(name, log_name) == 0 || as_audit_file_is_rotated(log_name, name) ||
           as_audit_file_is_copy(log_name, name);
}

/*
 * The end of an action log file: where the last good record ends, and what follows it.
 */

/*
 * Reads the last `window` bytes of the file (more, if they hold no good record), checks their lines
 * and cuts off what was torn. Damage that a crash cannot have caused is logged and left alone.
 * head_out: the last good record; size_out: of the file now. 0 or a negative errno.
 */
int as_audit_tail_recover(int fd, const char *path, uint64_t window, struct as_audit_head *head_out,
                          uint64_t *size_out, struct as_error *error) AS_MUST_USE;

#endif
