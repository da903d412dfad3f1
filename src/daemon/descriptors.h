/*
 * The process's limit of open files.
 */
#ifndef ALERTSCALER_SRC_DAEMON_DESCRIPTORS_H
#define ALERTSCALER_SRC_DAEMON_DESCRIPTORS_H

/* Raises the soft limit to the hard limit. Warns if that is too low for `max_connections` and other
 * open files. */
void as_descriptors_raise(unsigned max_connections);

#endif
