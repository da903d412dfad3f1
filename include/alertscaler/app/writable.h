/*
 * Whether this process may keep a file of its own at a path. Nothing is made or changed.
 */
#ifndef ALERTSCALER_APP_WRITABLE_H
#define ALERTSCALER_APP_WRITABLE_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/*
 * `has_neighbours`: files beside it are made too, so that its folder must be writable even where
 * the file is there. 0; or a negative errno with an error that names folder or file, the user, and
 * what to do: "state.db: the folder /srv/x: Permission denied for user 1000; give this user the
 * right to write there".
 */
int as_writable_check(const char *path, bool has_neighbours, struct as_error *error) AS_MUST_USE;

#endif
