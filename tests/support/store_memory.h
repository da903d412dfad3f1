/*
 * The store in memory, for tests and the simulator. It can be told to fail. The medium outlives its
 * users: the next as_store_memory_attach finds what was committed, as in a file after a crash.
 */
#ifndef TESTS_STORE_MEMORY_H
#define TESTS_STORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/port/store.h>

struct as_store_memory; /* the medium */

struct as_store_memory *as_store_memory_new(void) AS_MUST_USE;
struct as_store_memory *as_store_memory_free(struct as_store_memory *memory);

/* A store on the medium; its user calls close(). From then on older stores can still read, but
 * their commits fail with -ESTALE, as those of a former leader do. */
struct as_store *as_store_memory_attach(struct as_store_memory *memory) AS_MUST_USE;

/*
 * The commit after `commits` more good ones fails with `status` (negative errno), and so do all
 * later ones until the next attach. `applied`: the changes are kept anyway (an fsync that failed
 * after the write). UINT64_MAX: never fails.
 */
void as_store_memory_fail(struct as_store_memory *memory, uint64_t commits, int status,
                          bool applied);

/* Every commit fails with `status` and keeps nothing, even after an attach, as on a full disk. Ends
 * with a call with 0. */
void as_store_memory_break(struct as_store_memory *memory, int status);

uint64_t as_store_memory_get_commits(const struct as_store_memory *memory); /* good ones so far */
size_t as_store_memory_get_count(const struct as_store_memory *memory, enum as_store_kind kind);

/* A hash of every key and value that was kept so far, in order, with the boundaries of commits. */
uint64_t as_store_memory_get_digest(const struct as_store_memory *memory);

AS_DEFINE_CLEANUP(struct as_store_memory *, as_store_memory_free)

#endif
