/*
 * The action log's file: JSON Lines, mode 0640, only ever appended to.
 *
 * Rotation: when an append would take the file above `max_size`, it is synced and renamed to
 * PATH.1, PATH.1 to PATH.2 and so on, and the oldest beyond `keep` is deleted. A single append goes
 * into one file whole. With max_size 0 nothing is renamed and an outside tool moves the file
 * (reopen).
 *
 * A new part (port/audit.h) is a rotation too, whatever the size.
 *
 * Opening checks the chain of the file's last 16 MiB and cuts off what is not whole: torn lines and
 * blocks that a power loss left unwritten are found by their hash. The caller has those records in
 * its outbox and appends them again. If the file is empty or not there, the head is that of the
 * newest file beside it called PATH.something or PATH-something (a crash in the middle of a
 * rotation).
 */
#ifndef ALERTSCALER_AUDIT_FILE_H
#define ALERTSCALER_AUDIT_FILE_H

#include <stdint.h>

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

#endif
