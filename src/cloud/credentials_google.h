/*
 * Credentials of Google Cloud, in the order of its own tools (Application Default Credentials), and
 * what else its APIs have in common:
 * https://cloud.google.com/docs/authentication/application-default-credentials
 */
#ifndef ALERTSCALER_SRC_CLOUD_CREDENTIALS_GOOGLE_H
#define ALERTSCALER_SRC_CLOUD_CREDENTIALS_GOOGLE_H

#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_credentials.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/cloud/talk.h>
#include <alertscaler/rules/provider_kind.h>

extern const struct as_credentials_source google_credentials[];

/* For the rows of the table: the files that are read, and the files that these name. */
extern const char *const google_files[];
void google_read_names(const char *content, size_t size, as_provider_names_fn *tell, void *context);

/* ---- what the APIs have in common: errors, projects, request ids ---- */

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
