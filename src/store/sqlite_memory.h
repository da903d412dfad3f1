/*
 * SQLite's memory: nothing in it is secret, so it is not wiped when it is freed.
 */
#ifndef ALERTSCALER_STORE_SQLITE_MEMORY_PRIVATE_H
#define ALERTSCALER_STORE_SQLITE_MEMORY_PRIVATE_H

/* For all connections to come; any number of times, from any thread. */
void as_sqlite_set_memory(void);

#endif
