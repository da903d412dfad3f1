/*
 * Whether this process may write a file of its own at a path. Creates and changes nothing.
 */
#ifndef ALERTSCALER_DAEMON_WRITABLE_H
#define ALERTSCALER_DAEMON_WRITABLE_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/*
 * `has_neighbours`: other files are created beside it, so its folder must be writable even if the
 * file exists. 0; or a negative errno with an error that names folder or file, the user, and what
 * to do: "state.db: the folder /srv/x: Permission denied for user 1000; give this user the right to
 * write there".
 */
int as_writable_check(const char *path, bool has_neighbours, struct as_error *error) AS_MUST_USE;

#endif
