/*
 * Port: where the lines of the action log end up (a file that rotates; memory in tests).
 * Synchronous, one thread at a time. After a failure the caller closes the sink and opens it again.
 */
#ifndef ALERTSCALER_PORT_AUDIT_H
#define ALERTSCALER_PORT_AUDIT_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* Where the chain stands: the last record's number and hash. */
#define AS_AUDIT_HASH_SIZE 65 /* hex SHA-256, with NUL */
struct as_audit_head {
    uint64_t seq; /* 0: no record yet, and the hash is 64 zeros */
    char hash[AS_AUDIT_HASH_SIZE];
};

#define AS_AUDIT_HEAD_INIT                                                                         \
    ((struct as_audit_head){                                                                       \
        .hash = "0000000000000000000000000000000000000000000000000000000000000000"})

/* A file of the log, and how much of it is left. */
struct as_audit_place {
    uint64_t file; /* 1, 2, 3, ... since the sink was opened */
    uint64_t room; /* lines of so many bytes in all go into it, whatever the calls */
};

struct as_audit {
    /* The last whole line that is there. A torn last line has been cut off. */
    struct as_audit_head (*get_head)(const struct as_audit *self);
    /* Appends whole lines, the last of which is `head`. 0 or a negative errno. */
    int (*append)(struct as_audit *self, const char *lines, size_t size,
                  const struct as_audit_head *head, struct as_error *error) AS_MUST_USE;
    /* The next line follows `head`, which is not the last one here: another replica wrote what is
     * between. What is there stays whole by itself, and a new part begins (a file of its own). */
    int (*begin_part)(struct as_audit *self, const struct as_audit_head *head,
                      struct as_error *error) AS_MUST_USE;
    /* What was appended is on the disk when it returns 0. */
    int (*sync)(struct as_audit *self, struct as_error *error) AS_MUST_USE;
    /* Closes and opens the file again under its name (SIGUSR1, after logrotate has moved it away).
     */
    int (*reopen)(struct as_audit *self, struct as_error *error) AS_MUST_USE;
    /* Where the next line goes. */
    struct as_audit_place (*get_place)(const struct as_audit *self);
    void (*close)(struct as_audit *self); /* frees it too */
};

#endif
