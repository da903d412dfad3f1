/*
 * The process's limit of open files.
 */
#ifndef ALERTSCALER_SRC_APP_PROCESS_DESCRIPTORS_H
#define ALERTSCALER_SRC_APP_PROCESS_DESCRIPTORS_H

/* Raises the soft limit to the hard one, and warns where that does not suffice for so many
 * connections and what else is open. */
void as_descriptors_raise(unsigned max_connections);

#endif
