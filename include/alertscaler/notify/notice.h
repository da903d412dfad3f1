/*
 * Notices as JSON: as they wait in the state, as alerts for Alertmanager's API v2, and as events of
 * CloudEvents 1.0 in the structured mode. docs/notify.md shows both for users.
 */
#ifndef ALERTSCALER_NOTIFY_NOTICE_H
#define ALERTSCALER_NOTIFY_NOTICE_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/notice.h>

#define AS_NOTICE_TEXT_MAX 1024 /* bytes of `message`; longer ones are cut */

#define AS_NOTICE_EVENT_LIFE_US (15 * AS_US_PER_MIN) /* of an alert, after its delivery */
#define AS_NOTICE_STATE_LIFE_US (5 * AS_US_PER_MIN)  /* of a state's alert, which is sent again */

/* The document for the state. `at_hash_out`: the offset of the hash, which is 64 zeros until the
 * record is sealed. */
void as_notice_encode(const struct as_notice *notice, struct as_buf *out, size_t *at_hash_out);

/* Reads it back; texts are copied into the arena. 0; -EBADMSG with an error. */
int as_notice_decode(const char *json, size_t size, struct as_arena *arena,
                     struct as_notice *notice_out, struct as_error *error) AS_MUST_USE;

struct as_notice_sender {
    const char *instance;     /* the label's value */
    const char *external_url; /* of the daemon, without a slash at its end; NULL: no links */
};

/* The list that POST /api/v2/alerts takes, delivered at `now`. */
void as_notice_encode_alerts(const struct as_notice *notices, size_t count,
                             const struct as_notice_sender *sender, as_wall_time now,
                             struct as_buf *out);

/* A whole event, as application/cloudevents+json. */
void as_notice_encode_event(const struct as_notice *notice, const struct as_notice_sender *sender,
                            struct as_buf *out);

#endif
