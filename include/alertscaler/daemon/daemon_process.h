/*
 * The daemon's own process: its name, its rights to write, its limit of open files, its memory. The
 * sandbox is not here.
 */
#ifndef ALERTSCALER_DAEMON_DAEMON_PROCESS_H
#define ALERTSCALER_DAEMON_DAEMON_PROCESS_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* The name of this process in the action log: the pod's name in Kubernetes, else host name and
 * process id. */
#define AS_INSTANCE_SIZE 288
void as_instance_print(char text_out[AS_INSTANCE_SIZE]);

/*
 * Whether this process may write a file of its own at a path. Creates and changes nothing.
 * `has_neighbours`: other files are created beside it, so its folder must be writable even if the
 * file exists. 0; or a negative errno with an error that names folder or file, the user, and what
 * to do: "state.db: the folder /srv/x: Permission denied for user 1000; give this user the right to
 * write there".
 */
int as_writable_check(const char *path, bool has_neighbours, struct as_error *error) AS_MUST_USE;

/* Raises the soft limit of open files to the hard limit. Warns if that is too low for
 * `max_connections` and other open files. */
void as_descriptors_raise(unsigned max_connections);

/* Frees memory that only the start (or a reload) needed: free heap, and the libraries' pages of
 * code and constants, which are read again if needed. */
void as_trim_memory(void);

/*
 * The daemon's status for systemd, by the protocol of sd_notify(3): one datagram per message.
 */

/* The socket of $NOTIFY_SOCKET, which is removed from the environment; -1: not wanted, or not
 * reachable (logged). Open it before the sandbox, which allows sending. */
int notify_open(void);

/* "READY=1", "STOPPING=1". Does nothing with -1. */
void notify_send(int fd, const char *state);

#endif
