/*
 * The store in one SQLite file: WAL, synchronous=FULL, locked for this process, one table per kind.
 * While alertscaler is stopped, an operator can open the file with sqlite3.
 */
#ifndef ALERTSCALER_LOG_SQLITE_H
#define ALERTSCALER_LOG_SQLITE_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/store.h>

/* PRAGMA user_version of the files that this version writes. 2: incidents are keyed by the digests
 * of their labels. */
#define AS_STORE_SQLITE_SCHEMA 2

/*
 * Opens the file. Creates it (mode 0600) only with `may_create`: a process that had the file open
 * before must not take a missing file for an empty state. The directory must exist. The content is
 * checked (PRAGMA quick_check) unless the file is large and was closed cleanly.
 *
 * 0; or with an error that says what to do: -EBUSY (another process uses the file), -EBADMSG
 * (corrupt, or not a state file of alertscaler), -EPROTO (written by a newer version), -EACCES,
 * -EROFS, -ENOENT, -ENOTDIR, -EISDIR, -ENOSPC, -EIO and other negative errno.
 */
int as_store_sqlite_open(const char *path, bool may_create, struct as_store **store_out,
                         struct as_error *error) AS_MUST_USE;

#endif
