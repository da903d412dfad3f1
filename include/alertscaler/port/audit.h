/*
 * Port: where the lines of the action log go: a file that rotates, or memory in tests. Synchronous;
 * only one thread calls at a time. After a failure the caller closes the sink and opens it again.
 */
#ifndef ALERTSCALER_PORT_AUDIT_H
#define ALERTSCALER_PORT_AUDIT_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* The last record of the chain: its number and hash. */
#define AS_AUDIT_HASH_SIZE 65 /* hex SHA-256, with NUL */
struct as_audit_head {
    uint64_t seq; /* 0: no record yet; then the hash is 64 zeros */
    char hash[AS_AUDIT_HASH_SIZE];
};

#define AS_AUDIT_HEAD_INIT                                                                         \
    ((struct as_audit_head){                                                                       \
        .hash = "0000000000000000000000000000000000000000000000000000000000000000"})

/* The current file of the log, and the room in it. */
struct as_audit_place {
    uint64_t file; /* 1, 2, 3, ... since the sink was opened */
    uint64_t room; /* this many more bytes of lines go into this file */
};

struct as_audit {
    /* The last whole line. A torn last line was cut off when the sink was opened. */
    struct as_audit_head (*get_head)(const struct as_audit *self);
    /* Appends whole lines; `head` describes the last of them. 0 or a negative errno. */
    int (*append)(struct as_audit *self, const char *lines, size_t size,
                  const struct as_audit_head *head, struct as_error *error) AS_MUST_USE;
    /* The next line follows `head`, which is not the last line here, because another replica wrote
     * the lines between. What is here stays unchanged; a new part (a separate file) begins. */
    int (*begin_part)(struct as_audit *self, const struct as_audit_head *head,
                      struct as_error *error) AS_MUST_USE;
    /* All appended lines are on the disk when it returns 0. */
    int (*sync)(struct as_audit *self, struct as_error *error) AS_MUST_USE;
    /* Closes the file and opens its path again (SIGUSR1, after logrotate has moved the file). */
    int (*reopen)(struct as_audit *self, struct as_error *error) AS_MUST_USE;
    /* The file that the next line goes into. */
    struct as_audit_place (*get_place)(const struct as_audit *self);
    void (*close)(struct as_audit *self); /* frees it too */
};

#endif
