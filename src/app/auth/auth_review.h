/*
 * Tokens that a Kubernetes API server knows: one TokenReview a token, remembered for a short while
 * where it is somebody's, under its SHA-256. How many are under way, and how many wait for them,
 * has a limit, and each has a time-out.
 */
#ifndef ALERTSCALER_SRC_APP_AUTH_AUTH_REVIEW_H
#define ALERTSCALER_SRC_APP_AUTH_AUTH_REVIEW_H

#include <alertscaler/access/env.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/config/settings.h>
#include <alertscaler/wire/token_review.h>

#define AS_REVIEWS_UNDER_WAY   16
#define AS_REVIEWS_WAITING     256 /* for those under way; each is a connection that stays */
#define AS_REVIEWS_KEPT        4   /* one of so many of both is kept for tokens that are trusted */
#define AS_REVIEWS_REMEMBER    256
#define AS_REVIEW_REMEMBER_US  (10 * AS_US_PER_S)
#define AS_REVIEW_REMEMBER_MAX ((size_t)16 * 1024) /* bytes of names: with more, not remembered */
#define AS_REVIEW_RESPONSE_MAX ((size_t)256 * 1024)
#define AS_REVIEW_TIMEOUT_US   (5 * AS_US_PER_S) /* with all that goes before the request */

struct as_reviewer;
struct as_review_wait;

/* Copies the settings; `env` is borrowed and outlives it. 0; or a negative errno with an error. */
int as_reviewer_new(const struct as_token_review_settings *settings,
                    const struct as_cluster_settings *cluster, const struct as_access_env *env,
                    struct as_reviewer **reviewer_out, struct as_error *error) AS_MUST_USE;
/* Those who wait are told that it could not be asked. */
struct as_reviewer *as_reviewer_free(struct as_reviewer *reviewer);

/* `reviewed` is good for the call; NULL: the API server could not be asked. */
typedef void as_review_fn(void *context, const struct as_reviewed *reviewed);

/* What is remembered of a token, good until the next call; NULL: nothing. */
const struct as_reviewed *as_reviewer_find(struct as_reviewer *reviewer, const char *token);

/* `done` comes once, in a later turn of the loop and within the time-out, unless it is cancelled
 * first; it may free the reviewer. NULL: too many are under way, or wait. `is_trusted`: the token
 * was right lately, and has places that others cannot take. */
struct as_review_wait *as_reviewer_ask(struct as_reviewer *reviewer, const char *token,
                                       bool is_trusted, as_review_fn *done,
                                       void *context) AS_MUST_USE;
void as_review_wait_cancel(struct as_review_wait *wait);

/* Once a second or so: says how many could not be reviewed since that was said last, when it is
 * time. */
void as_reviewer_look(struct as_reviewer *reviewer);

/* Whether it made the API server be asked; false: it joined another. */
bool as_review_wait_is_first(const struct as_review_wait *wait);

AS_DEFINE_CLEANUP(struct as_reviewer *, as_reviewer_free)

#endif
