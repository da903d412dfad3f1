/*
 * The search for credentials of AWS: what its sources share. Each source gets the search, and ends
 * with aws_search_found or aws_search_not_here.
 */
#ifndef ALERTSCALER_SRC_CLOUD_AWS_SEARCH_H
#define ALERTSCALER_SRC_CLOUD_AWS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_credentials.h>

#include "aws_profiles.h"

#define AWS_ROLES_MAX 8 /* assumed one after the other */

typedef void aws_search_fn(struct as_credentials_talk *talk);

struct aws_role { /* of a profile, to be assumed with credentials found first */
    const char *profile, *arn, *session, *external_id, *duration; /* NULL: not given */
};

struct aws_search {    /* memory of the talk */
    bool has_profiles; /* the files have been read */
    struct aws_profiles profiles;
    aws_search_fn *then; /* called after reading the files */
    const char *config_path, *credentials_path;
    struct aws_role roles[AWS_ROLES_MAX]; /* the last is assumed first */
    size_t role_count;
    struct aws_role identity; /* assumed by a web identity, whose token is in this file: */
    const char *token_path;
    const char *token; /* sent with the present source's requests; NULL: no token */
    aws_search_fn *with_token;
    unsigned attempts;
    bool is_region_only; /* only the region is missing */
};

struct aws_search *aws_search_get(struct as_talk *talk) AS_MUST_USE;

/* The profile in use; *is_explicit_out: a setting names it. */
const char *aws_search_profile(const struct as_credentials_talk *talk,
                               bool *is_explicit_out) AS_MUST_USE;
/* Reads the files, once, to find the profile's region and other settings. */
void aws_search_read_profiles(struct as_credentials_talk *talk, aws_search_fn *then);
const char *aws_search_region(const struct as_credentials_talk *talk) AS_MUST_USE; /* NULL: none */

void aws_search_found(struct as_credentials_talk *talk, const char *key_id, const char *secret,
                      const char *token, as_maybe_time expires);
/* Takes the credentials with these names from an answer or a program's output; fails the talk if a
 * name is missing. */
void aws_search_found_in(struct as_credentials_talk *talk, const json_t *document,
                         const char *token_name);
void aws_search_not_here(struct as_credentials_talk *talk);

/* aws_sts.c: the last of the roles, with the credentials found; the identity's role. */
void aws_sts_assume_role(struct as_credentials_talk *talk);
void aws_sts_assume_identity(struct as_credentials_talk *talk);

/* aws_profile.c */
void aws_profile_begin_role(struct as_credentials_talk *talk);
void aws_profile_begin_identity(struct as_credentials_talk *talk);
void aws_profile_begin(struct as_credentials_talk *talk);

/* aws_metadata.c */
void aws_metadata_begin(struct as_credentials_talk *talk);
void aws_metadata_begin_region(struct as_credentials_talk *talk); /* always ends the talk */

/* aws_container.c */
void aws_container_begin(struct as_credentials_talk *talk);

/* credentials_aws.c */
void aws_environment_begin(struct as_credentials_talk *talk);

#endif
