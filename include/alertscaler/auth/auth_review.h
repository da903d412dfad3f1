/*
 * Checks tokens with a Kubernetes API server: one TokenReview per token. Valid tokens are cached
 * briefly, by SHA-256. Running reviews and waiting requests are limited in number, and each has a
 * time-out.
 */
#ifndef ALERTSCALER_AUTH_AUTH_REVIEW_H
#define ALERTSCALER_AUTH_AUTH_REVIEW_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/rules/settings.h>

#define AS_REVIEWS_UNDER_WAY   16
#define AS_REVIEWS_WAITING     256 /* requests waiting for a review; each holds a connection */
#define AS_REVIEWS_KEPT        4   /* 1/4 of both limits is reserved for trusted tokens */
#define AS_REVIEWS_OF_TOKEN    (AS_REVIEWS_WAITING / 2) /* requests waiting for one review */
#define AS_REVIEWS_REMEMBER    256
#define AS_REVIEW_REMEMBER_US  (10 * AS_US_PER_S)
#define AS_REVIEW_REMEMBER_MAX ((size_t)16 * 1024) /* bytes of names: beyond: not cached */
#define AS_REVIEW_RESPONSE_MAX ((size_t)256 * 1024)
#define AS_REVIEW_TIMEOUT_US   (5 * AS_US_PER_S) /* including the wait before the request is sent */

struct as_reviewer;
struct as_review_wait;

/* Copies the settings; `env` is borrowed and outlives it. 0; or a negative errno with an error. */
int as_reviewer_new(const struct as_token_review_settings *settings,
                    const struct as_cluster_settings *cluster, const struct as_access_env *env,
                    struct as_reviewer **reviewer_out, struct as_error *error) AS_MUST_USE;
/* Waiting callbacks get NULL: could not be asked. */
struct as_reviewer *as_reviewer_free(struct as_reviewer *reviewer);

/* `reviewed` is valid for the call; NULL: the API server could not be asked. */
typedef void as_review_fn(void *context, const struct as_reviewed *reviewed);

/* The cached result for a token, valid until the next call; NULL: none. */
const struct as_reviewed *as_reviewer_find(struct as_reviewer *reviewer, const char *token);

/* `done` comes once, in a later turn of the loop and within the time-out, unless cancelled before;
 * it may free the reviewer. NULL: too many reviews or waiting requests. `is_trusted`: the token was
 * right lately and may use the reserved places. */
struct as_review_wait *as_reviewer_ask(struct as_reviewer *reviewer, const char *token,
                                       bool is_trusted, as_review_fn *done,
                                       void *context) AS_MUST_USE;
void as_review_wait_cancel(struct as_review_wait *wait);

/* Call about once a second: logs the number of failed reviews since the last time, if due. */
void as_reviewer_poll(struct as_reviewer *reviewer);

/* Whether this wait started the review; false: it joined another. */
bool as_review_wait_is_first(const struct as_review_wait *wait);

AS_DEFINE_CLEANUP(struct as_reviewer *, as_reviewer_free)

#endif
