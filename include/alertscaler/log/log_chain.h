/*
 * The chain of the action log: numbering, hashing and checking records.
 *
 * A line is the record's canonical JSON: one object, keys sorted by their bytes at every level, no
 * white space, no duplicate keys. `seq` is 1, 2, 3, ... `prev` is the `hash` of the record before,
 * 64 zeros for the first record. `hash` is the hex SHA-256 of the JSON with `seq` and `prev`,
 * without `hash` and without the line's end.
 *
 * Whoever can write the file can also write a new chain. So a chain proves only this: the file
 * belongs, whole and in order, to a hash that is known from elsewhere.
 */
#ifndef ALERTSCALER_LOG_LOG_CHAIN_H
#define ALERTSCALER_LOG_LOG_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/audit.h>

/*
 * A record that is not yet in the chain: its canonical JSON without `hash`, `prev` and `seq`. Each
 * `at_` is the offset where its member `"hash":"...",` (with the comma) is inserted: the opening
 * quote of the first key that sorts after it. There is always such a key, because every record has
 * `time`; so no comma is needed in front. at_hash <= at_prev <= at_seq < size.
 */
struct as_audit_record {
    const char *json;
    size_t size;
    size_t at_hash, at_prev, at_seq;
};

struct as_chain; /* hashing state, reused; for one thread at a time */

struct as_chain *as_chain_new(void) AS_MUST_USE;
struct as_chain *as_chain_free(struct as_chain *chain);

/* Appends the line with its '\n' to `lines` (check `lines` for failure at the end) and advances the
 * head. */
void as_chain_seal(struct as_chain *chain, const struct as_audit_record *record,
                   struct as_audit_head *head, struct as_buf *lines);

enum as_chain_outcome {
    AS_CHAIN_OK,
    AS_CHAIN_MALFORMED, /* not the canonical form of a record */
    AS_CHAIN_CHANGED,   /* the hash does not match the content */
    AS_CHAIN_BROKEN     /* not the next line: lines were removed, inserted or swapped */
};

/* Reads seq and hash of one line (without '\n') and checks its form and its hash. */
int as_chain_check_line(struct as_chain *chain, const char *line, size_t size,
                        struct as_audit_head *head_out, char prev_out[AS_AUDIT_HASH_SIZE],
                        struct as_error *error) AS_MUST_USE;

/* Checks a log line by line. The first line may have any number; each later line must follow. */
struct as_chain_verify {
    struct as_chain *chain; /* borrowed */
    bool started;
    uint64_t first_seq;
    struct as_audit_head head; /* of the last good line */
};

#define AS_CHAIN_VERIFY_INIT(hashing) ((struct as_chain_verify){.chain = (hashing)})

/* An enum as_chain_outcome. Unless AS_CHAIN_OK, `error` is set and the state is unchanged. */
int as_chain_verify_line(struct as_chain_verify *verify, const char *line, size_t size,
                         struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_chain *, as_chain_free)

#endif
