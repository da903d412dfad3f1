/*
 * Credentials of Google Cloud, in the order of its own tools (Application Default Credentials):
 * https://cloud.google.com/docs/authentication/application-default-credentials
 */
#ifndef ALERTSCALER_SRC_CLOUD_CREDENTIALS_GOOGLE_H
#define ALERTSCALER_SRC_CLOUD_CREDENTIALS_GOOGLE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/cloud/provider_credentials.h>
#include <alertscaler/cloud/talk.h>
#include <alertscaler/rules/provider_kind.h>

extern const struct as_credentials_source google_credentials[];

/* For the rows of the table: the files that are read, and the files that these name. */
extern const char *const google_files[];
void google_read_names(const char *content, size_t size, as_provider_names_fn *tell, void *context);

/* ---- between the source files ---- */

struct google_search { /* a credentials talk's state; texts are memory of the talk */
    const char *path;  /* of the file with credentials */
    bool may_be_absent;
    /* for an external account: */
    const char *token_url, *audience, *subject_type, *user_project;
    const char *field; /* of the subject's token in JSON; NULL: the whole text */
    const char *basic; /* header line with the client's own credentials; NULL */
    /* the account to act as; NULL url: none */
    const char *impersonation_url, *impersonation_body;
};

/* Continues with the content of a credentials file of any kind. */
void google_begin_document(struct as_talk *talk, const json_t *document);

/* Hears the answer to a request for a token: the wanted token, or one to be exchanged for it. */
void google_hear_token(struct as_talk *talk);

#endif
