/*
 * Credentials of Google Cloud, in the order of its own tools (Application Default Credentials):
 * https://cloud.google.com/docs/authentication/application-default-credentials
 */
#ifndef ALERTSCALER_SRC_PROVIDER_CREDENTIALS_GOOGLE_H
#define ALERTSCALER_SRC_PROVIDER_CREDENTIALS_GOOGLE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/config/provider_kind.h>
#include <alertscaler/provider/credentials.h>
#include <alertscaler/provider/talk.h>

extern const struct as_credentials_source google_credentials[];

/* For the rows of the table: the files that are read, and what they name. */
extern const char *const google_files[];
void google_read_names(const char *content, size_t size, as_provider_names_fn *tell, void *context);

/* ---- between the files that make them up ---- */

struct google_search { /* a credentials talk's state; texts: memory of the talk */
    const char *path;  /* of the file with credentials */
    bool may_be_absent;
    /* of an external account */
    const char *token_url, *audience, *subject_type, *user_project;
    const char *field; /* of the subject's token in JSON; NULL: all of the text */
    const char *basic; /* header line of the client's own credentials; NULL */
    /* of whom it acts as; a NULL url: itself */
    const char *impersonation_url, *impersonation_body;
};

/* Goes on with what a file says, of whichever kind it is. */
void google_begin_document(struct as_talk *talk, const json_t *document);

/* The answer to a request for a token: what was looked for, or what it is exchanged for. */
void google_hear_token(struct as_talk *talk);

#endif
