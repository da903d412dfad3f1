/*
 * What a profile of AWS' shared files says about credentials: keys, a program, a role with a web
 * identity, or a chain of roles, each assumed with the credentials of another profile.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-assume-role-credentials.html
 */
#include "aws_search.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "provider_answer.h"

static const char *find(const struct as_credentials_talk *talk, const char *profile,
                        const char *key)
{
    const struct aws_search *search = talk->state;
    const char *value = aws_profiles_find(&search->profiles, profile, key);
    return as_str_is_empty(value) ? NULL : value;
}

static void fail(struct as_credentials_talk *talk, const char *profile, const char *problem)
{
    as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION, "profile %s: %s", profile, problem);
}

/* ---- keys ---- */

/* Whether the file has keys of the profile; then they are taken, or the talk has failed. */
static bool take_keys(struct as_credentials_talk *talk, const char *profile,
                      enum aws_profile_file file)
{
    const struct aws_profiles *profiles = &((struct aws_search *)talk->state)->profiles;
    const char *key_id = aws_profiles_find_in(profiles, file, profile, "aws_access_key_id");
    const char *secret = aws_profiles_find_in(profiles, file, profile, "aws_secret_access_key");
    if (as_str_is_empty(key_id))
        return false;
    if (as_str_is_empty(secret))
        fail(talk, profile, "it has aws_access_key_id, but no aws_secret_access_key");
    else
        aws_search_found(talk, key_id, secret,
                         aws_profiles_find_in(profiles, file, profile, "aws_session_token"),
                         (as_maybe_time){.set = false});
    return true;
}

static bool has_keys(const struct as_credentials_talk *talk, const char *profile)
{
    return find(talk, profile, "aws_access_key_id") || find(talk, profile, "aws_secret_access_key");
}

/* ---- a program ---- */

static void hear_program(struct as_talk *talk)
{
    json_error_t problem;
    if (!talk->content) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "credential_process %s: %s", talk->argv[0],
                     as_errno_get_text(talk->error_number));
        return;
    }
    json_t *document =
        json_loadb(talk->content, talk->content_size, JSON_REJECT_DUPLICATES, &problem);
    const json_t *version = answer_find(document, "Version");
    if (!document)
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "credential_process %s: its output is not JSON",
                     talk->argv[0]);
    else if (json_integer_value(version) != 1)
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "credential_process %s: its output is not of `Version` 1", talk->argv[0]);
    else
        aws_search_found_in(as_credentials_get(talk), document, "SessionToken");
    json_decref(document);
}

static void run_program(struct as_credentials_talk *talk, const char *profile, const char *command)
{
    const char **words = aws_split_command(&talk->talk.arena, command);
    if (words)
        as_talk_run(&talk->talk, words, hear_program);
    else
        fail(talk, profile, "credential_process is no command: a quote is open, or it is empty");
}

/* ---- one profile ---- */

/* Assumes the profile's role with a web identity. False if the profile has no web identity. */
static bool take_identity(struct as_credentials_talk *talk, const char *profile)
{
    struct aws_search *search = talk->state;
    search->token_path = find(talk, profile, "web_identity_token_file");
    if (!search->token_path)
        return false;
    search->identity = (struct aws_role){.profile = profile,
                                         .arn = find(talk, profile, "role_arn"),
                                         .session = find(talk, profile, "role_session_name")};
    if (search->identity.arn)
        aws_sts_assume_identity(talk);
    else
        fail(talk, profile, "it has web_identity_token_file, but no role_arn");
    return true;
}

static void take_profile(struct as_credentials_talk *talk, const char *profile)
{
    const char *command = find(talk, profile, "credential_process");
    if (take_keys(talk, profile, AWS_FILE_CREDENTIALS))
        return;
    if (command)
        run_program(talk, profile, command);
    else if (take_keys(talk, profile, AWS_FILE_CONFIG))
        return;
    else if (find(talk, profile, "sso_session") || find(talk, profile, "sso_account_id"))
        fail(talk, profile,
             "it signs a person in (sso_...): give a service a role, or use credential_process");
    else
        aws_search_not_here(talk);
}

static void begin_profile(struct as_credentials_talk *talk)
{
    const struct aws_search *search = talk->state;
    bool is_explicit;
    const char *profile = aws_search_profile(talk, &is_explicit);
    if (is_explicit && !aws_profiles_have(&search->profiles, profile))
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION, "there is no profile %s in %s or %s",
                     profile, search->config_path ? search->config_path : "~/.aws/config",
                     search->credentials_path ? search->credentials_path : "~/.aws/credentials");
    else
        take_profile(talk, profile);
}

void aws_profile_begin(struct as_credentials_talk *talk)
{
    aws_search_read_profiles(talk, begin_profile);
}

/* ---- web identity ---- */

static void begin_identity(struct as_credentials_talk *talk)
{
    bool is_explicit;
    if (!take_identity(talk, aws_search_profile(talk, &is_explicit)))
        aws_search_not_here(talk);
}

void aws_profile_begin_identity(struct as_credentials_talk *talk)
{
    struct aws_search *search = talk->state;
    search->token_path = as_variable_find(&talk->talk, "AWS_WEB_IDENTITY_TOKEN_FILE");
    if (!search->token_path || as_account_get(talk->account, "profile")) {
        aws_search_read_profiles(talk, begin_identity);
        return;
    }
    search->identity = (struct aws_role){
        .arn = as_variable_find(&talk->talk, "AWS_ROLE_ARN"),
        .session = as_variable_find(&talk->talk, "AWS_ROLE_SESSION_NAME"),
    };
    if (search->identity.arn)
        aws_search_read_profiles(talk, aws_sts_assume_identity); /* to find the region */
    else
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION,
                     "AWS_WEB_IDENTITY_TOKEN_FILE is set, but not AWS_ROLE_ARN");
}

/* ---- roles ---- */

static bool has_role(const struct as_credentials_talk *talk, const char *profile)
{
    return find(talk, profile, "role_arn") && !find(talk, profile, "web_identity_token_file");
}

static void take_source(struct as_credentials_talk *talk, const char *profile, const char *source)
{
    static const struct {
        const char *name;
        aws_search_fn *begin;
    } sources[] = {
        {"Environment", aws_environment_begin},
        {"EcsContainer", aws_container_begin},
        {"Ec2InstanceMetadata", aws_metadata_begin},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(sources); i++) {
        if (strcasecmp(sources[i].name, source) == 0) {
            sources[i].begin(talk);
            return;
        }
    }
    fail(talk, profile,
         "its credential_source is none of Environment, EcsContainer, Ec2InstanceMetadata");
}

/* Adds the role at the end: it is assumed before the others. False after failing the talk. */
static bool push_role(struct as_credentials_talk *talk, const char *profile)
{
    struct aws_search *search = talk->state;
    const char *duration = find(talk, profile, "duration_seconds");
    int64_t seconds;
    for (size_t i = 0; i < search->role_count; i++) {
        if (strcmp(search->roles[i].profile, profile) == 0) {
            fail(talk, profile, "its source_profile leads back to it");
            return false;
        }
    }
    if (search->role_count == AWS_ROLES_MAX) {
        fail(talk, profile, "too many profiles lead to it by source_profile");
        return false;
    }
    if (find(talk, profile, "mfa_serial")) {
        fail(talk, profile, "its role wants a code of a person's device (mfa_serial)");
        return false;
    }
    if (duration && as_number_parse_i64(duration, strlen(duration), &seconds) != 0)
        duration = NULL;
    search->roles[search->role_count++] =
        (struct aws_role){.profile = profile,
                          .arn = find(talk, profile, "role_arn"),
                          .session = find(talk, profile, "role_session_name"),
                          .external_id = find(talk, profile, "external_id"),
                          .duration = duration};
    return true;
}

/* Follows source_profile to a profile with credentials. A profile may name itself, if it also has
 * keys. */
static void follow_roles(struct as_credentials_talk *talk, const char *profile)
{
    const struct aws_search *search = talk->state;
    do {
        const char *next = find(talk, profile, "source_profile");
        const char *source = find(talk, profile, "credential_source");
        if (!push_role(talk, profile))
            return;
        if (!next == !source) {
            fail(talk, profile,
                 "it has a role_arn, so it needs source_profile or "
                 "credential_source, and not both");
            return;
        }
        if (source) {
            take_source(talk, profile, source);
            return;
        }
        if (!aws_profiles_have(&search->profiles, next)) {
            fail(talk, profile, "the profile that its source_profile names is not there");
            return;
        }
        profile = next;
    } while (has_role(talk, profile) && !has_keys(talk, profile));
    if (!take_identity(talk, profile))
        take_profile(talk, profile);
}

static void begin_role(struct as_credentials_talk *talk)
{
    bool is_explicit;
    const char *profile = aws_search_profile(talk, &is_explicit);
    if (has_role(talk, profile))
        follow_roles(talk, profile);
    else
        aws_search_not_here(talk);
}

void aws_profile_begin_role(struct as_credentials_talk *talk)
{
    aws_search_read_profiles(talk, begin_role);
}
