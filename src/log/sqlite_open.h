/*
 * Opening the state file: everything that can be wrong with it, and the messages.
 */
#ifndef ALERTSCALER_SRC_LOG_SQLITE_OPEN_H
#define ALERTSCALER_SRC_LOG_SQLITE_OPEN_H

#include <stdbool.h>

#include <sqlite3.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* A connection to a file with its tables, locked for this process. *db_out may be set on failure
 * too (close it). */
int as_sqlite_open(const char *path, bool may_create, sqlite3 **db_out,
                   struct as_error *error) AS_MUST_USE;

/* The negative errno of the connection's last error, never 0, with a text that says what to do. */
int as_sqlite_fail(sqlite3 *db, const char *path, const char *what, struct as_error *error);

#endif
