/*
 * The action log in memory, for tests and the simulator. As with as_store_memory, the medium
 * outlives its users; a simulated crash may take away what was not synced.
 */
#ifndef TESTS_AUDIT_MEMORY_H
#define TESTS_AUDIT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/port/audit.h>

struct as_audit_memory; /* the medium */

struct as_audit_memory *as_audit_memory_new(void) AS_MUST_USE;
struct as_audit_memory *as_audit_memory_free(struct as_audit_memory *memory);

/* A sink on the medium; its user calls close(). A torn last line is cut off. What older sinks write
 * from now on is lost, as in the file of a machine that no longer leads. */
struct as_audit *as_audit_memory_attach(struct as_audit_memory *memory) AS_MUST_USE;

/* All lines, NUL-terminated, valid until the next append. */
const char *as_audit_memory_get_lines(const struct as_audit_memory *memory, size_t *size_out);

/* get_synced: bytes from the start that a power loss cannot take. cut: keeps `size` bytes. */
size_t as_audit_memory_get_synced(const struct as_audit_memory *memory);
void as_audit_memory_cut(struct as_audit_memory *memory, size_t size);

/* The append or sync after `calls` more good ones fails with `status`, and so do all later ones
 * until the next attach. A failing append writes the first `torn` bytes. UINT64_MAX: never. */
void as_audit_memory_fail(struct as_audit_memory *memory, uint64_t calls, int status, size_t torn);

/* Every append and sync fails with `status` and writes nothing, even after an attach, as on a full
 * disk. Ends with a call with 0. */
void as_audit_memory_break(struct as_audit_memory *memory, int status);

AS_DEFINE_CLEANUP(struct as_audit_memory *, as_audit_memory_free)

#endif
