/*
 * The admission webhook: the listener that the API server asks about each ScalingPolicy that is
 * created or changed (tools/admission_review.h has the answer).
 *
 * It is on every replica, also where another one leads, and has no credentials, because an API
 * server sends none. It changes nothing and shows nothing but the judgement of the text that was
 * sent.
 */
#ifndef ALERTSCALER_SRC_DAEMON_ADMISSION_H
#define ALERTSCALER_SRC_DAEMON_ADMISSION_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

struct daemon;
struct daemon_admission;

/* Listens, if the configuration says so. Call before the sandbox, which allows no new listener. 0;
 * or a negative errno with an error that names the key. */
int daemon_admission_open(struct daemon *daemon, struct as_error *error) AS_MUST_USE;

/* Applies a changed configuration. Call about every second. */
void daemon_admission_poll(struct daemon *daemon);

void daemon_admission_close(struct daemon *daemon);

#endif
