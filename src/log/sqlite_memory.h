/*
 * SQLite's memory: it holds no secrets, so it is not wiped when freed.
 */
#ifndef ALERTSCALER_SRC_LOG_SQLITE_MEMORY_H
#define ALERTSCALER_SRC_LOG_SQLITE_MEMORY_H

/* Applies to all later connections. May be called any number of times, from any thread. */
void as_sqlite_set_memory(void);

#endif
