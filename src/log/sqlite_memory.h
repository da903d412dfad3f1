/*
 * SQLite's allocator, for each module that opens a database. It is set before the first connection
 * of the process, whichever module opens it.
 */
#ifndef ALERTSCALER_SRC_LOG_SQLITE_MEMORY_H
#define ALERTSCALER_SRC_LOG_SQLITE_MEMORY_H

/* Applies to all later connections. May be called any number of times, from any thread. */
void as_sqlite_set_memory(void);

#endif
