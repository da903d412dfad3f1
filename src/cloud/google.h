/*
 * What Google's APIs have in common: errors, projects, request ids.
 */
#ifndef ALERTSCALER_SRC_CLOUD_GOOGLE_H
#define ALERTSCALER_SRC_CLOUD_GOOGLE_H

#include <stdbool.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/cloud/talk.h>

/* Whether the answer is good. If not, the talk has failed with the error's class and words. The
 * talk's document is the answer's, if it has one. */
bool google_is_good(struct as_talk *talk) AS_MUST_USE;

/* The document of a good answer; NULL after failing the talk. */
const json_t *google_take_answer(struct as_talk *talk) AS_MUST_USE;

/* The class of an error by its reason or code ("rateLimitExceeded", "QUOTA_EXCEEDED") and its
 * message; `fallback` if unknown. */
enum as_talk_fault google_judge(const char *reason, const char *message,
                                enum as_talk_fault fallback) AS_MUST_USE;

/* `project` of the group, else of the account, else of the environment, else of the credentials.
 * NULL after failing the talk. */
const char *google_find_project(struct as_group_talk *talk) AS_MUST_USE;

/* "requestId=UUID" for the change that `what` describes. The same change gets the same id, so that
 * it is not carried out twice. Memory of the talk. */
const char *google_make_request_id(struct as_group_talk *talk, const char *what) AS_MUST_USE;

#endif
