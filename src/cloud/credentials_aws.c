/*
 * Credentials of AWS: see the header. The order of the sources is that of AWS' own tools. If the
 * configuration names a profile, the environment is not used.
 */
#include "credentials_aws.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/str.h>

#include "aws_search.h"
#include "provider_answer.h"

const char *aws_find_region(const struct as_provider_settings *account,
                            const struct as_provider_credentials *credentials)
{
    const char *region = as_account_get(account, "region");
    return region ? region : credentials->region;
}

const char *aws_make_endpoint(struct as_talk *talk, const struct as_provider_settings *account,
                              const char *key, const char *service, const char *region)
{
    if (!as_region_check(talk, region))
        return NULL;
    const char *usual = as_talk_print(talk, "https://%s.%s.amazonaws.com%s", service, region,
                                      as_str_starts_with(region, "cn-") ? ".cn" : "");
    return as_account_get_endpoint(talk, account, key, usual);
}

/* ---- the search ---- */

struct aws_search *aws_search_get(struct as_talk *talk)
{
    return as_credentials_get(talk)->state;
}

const char *aws_search_profile(const struct as_credentials_talk *talk, bool *is_explicit_out)
{
    const char *name = as_account_get(talk->account, "profile");
    if (!name)
        name = as_variable_find(&talk->talk, "AWS_DEFAULT_PROFILE");
    if (!name)
        name = as_variable_find(&talk->talk, "AWS_PROFILE");
    *is_explicit_out = name != NULL;
    return name ? name : "default";
}

const char *aws_search_region(const struct as_credentials_talk *talk)
{
    const struct aws_search *search = talk->state;
    bool is_explicit;
    const char *region = as_account_get(talk->account, "region");
    if (!region)
        region = as_variable_find(&talk->talk, "AWS_REGION");
    if (!region)
        region = as_variable_find(&talk->talk, "AWS_DEFAULT_REGION");
    if (!region)
        region =
            aws_profiles_find(&search->profiles, aws_search_profile(talk, &is_explicit), "region");
    return region;
}

/* ---- the files ---- */

static const char *find_path(struct as_credentials_talk *talk, const char *variable,
                             const char *usual)
{
    const char *path = as_variable_find(&talk->talk, variable);
    const char *home = as_variable_find(&talk->talk, "HOME");
    if (!path)
        path = usual;
    if (!as_str_starts_with(path, "~/"))
        return path;
    return home ? as_talk_print(&talk->talk, "%s%s", home, path + 1) : NULL;
}

/* False after failing the talk. A missing file has no profiles. */
static bool take_file(struct as_talk *talk, enum aws_profile_file file)
{
    struct as_error error;
    const int number = talk->error_number;
    if (!talk->content && (number == ENOENT || number == ENOTDIR || number == EACCES))
        return true;
    if (!talk->content) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s", talk->path, as_errno_get_text(number));
        return false;
    }
    if (aws_profiles_parse(&aws_search_get(talk)->profiles, &talk->arena, talk->content, file,
                           &error) == 0)
        return true;
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s", talk->path, error.text);
    return false;
}

static void hear_config(struct as_talk *talk)
{
    struct aws_search *search = aws_search_get(talk);
    if (!take_file(talk, AWS_FILE_CONFIG))
        return;
    search->has_profiles = true;
    search->then(as_credentials_get(talk));
}

static void hear_credentials(struct as_talk *talk)
{
    if (take_file(talk, AWS_FILE_CREDENTIALS))
        as_talk_read(talk, aws_search_get(talk)->config_path, hear_config);
}

void aws_search_read_profiles(struct as_credentials_talk *talk, aws_search_fn *then)
{
    struct aws_search *search = talk->state;
    search->then = then;
    search->config_path = find_path(talk, "AWS_CONFIG_FILE", "~/.aws/config");
    search->credentials_path = find_path(talk, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
    if (search->has_profiles || !search->config_path || !search->credentials_path) {
        search->has_profiles = true;
        then(talk);
    } else {
        as_talk_read(&talk->talk, search->credentials_path, hear_credentials);
    }
}

/* ---- ends ---- */

/* A missing region is no failure: the account may have it. */
static void end(struct as_credentials_talk *talk)
{
    const char *region = aws_search_region(talk);
    struct aws_search *search = talk->state;
    if (region) {
        talk->found.region = as_xstrdup(region);
        as_talk_end(&talk->talk);
    } else if (!search->has_profiles) {
        aws_search_read_profiles(talk, end);
    } else {
        search->is_region_only = true;
        aws_metadata_begin_region(talk);
    }
}

void aws_search_found(struct as_credentials_talk *talk, const char *key_id, const char *secret,
                      const char *token, as_maybe_time expires)
{
    as_credentials_take_keys(talk, key_id, secret, token, expires);
    if (((struct aws_search *)talk->state)->role_count > 0)
        aws_sts_assume_role(talk);
    else
        end(talk);
}

void aws_search_found_in(struct as_credentials_talk *talk, const json_t *document,
                         const char *token_name)
{
    static const char *const names[] = {"AccessKeyId", "SecretAccessKey"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (!*answer_text(document, names[i])) {
            as_talk_fail(&talk->talk, AS_TALK_RETRY, "there is no %s in what it answers", names[i]);
            return;
        }
    }
    aws_search_found(talk, answer_text(document, "AccessKeyId"),
                     answer_text(document, "SecretAccessKey"), answer_text(document, token_name),
                     answer_time(document, "Expiration"));
}

void aws_search_not_here(struct as_credentials_talk *talk)
{
    const struct aws_search *search = talk->state;
    if (search->role_count > 0)
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION,
                     "profile %s: where its credentials are to come from, there are none",
                     search->roles[search->role_count - 1].profile);
    else
        as_credentials_not_here(talk);
}

/* ---- environment ---- */

void aws_environment_begin(struct as_credentials_talk *talk)
{
    const char *key_id = as_variable_find(&talk->talk, "AWS_ACCESS_KEY_ID");
    const char *secret = as_variable_find(&talk->talk, "AWS_SECRET_ACCESS_KEY");
    const char *token = as_variable_find(&talk->talk, "AWS_SESSION_TOKEN");
    const char *until = as_variable_find(&talk->talk, "AWS_CREDENTIAL_EXPIRATION");
    as_maybe_time expires = {.set = until != NULL};
    if (!key_id && !secret) {
        aws_search_not_here(talk);
        return;
    }
    if (!key_id || !secret) {
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION,
                     "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
        return;
    }
    if (until && as_wall_time_parse(until, strlen(until), &expires.at) != 0) {
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION,
                     "AWS_CREDENTIAL_EXPIRATION is not a time like 2026-11-20T10:00:00Z");
        return;
    }
    aws_search_found(talk, key_id, secret, token, expires);
}

/* ---- the chain ---- */

static void begin(struct as_credentials_talk *talk, aws_search_fn *source)
{
    talk->state = as_arena_alloc(&talk->talk.arena, 1, sizeof(struct aws_search));
    source(talk);
}

static void begin_environment(struct as_credentials_talk *talk)
{
    if (as_account_get(talk->account, "profile"))
        as_credentials_not_here(talk);
    else
        begin(talk, aws_environment_begin);
}

static void begin_role(struct as_credentials_talk *talk)
{
    begin(talk, aws_profile_begin_role);
}

static void begin_identity(struct as_credentials_talk *talk)
{
    begin(talk, aws_profile_begin_identity);
}

static void begin_profile(struct as_credentials_talk *talk)
{
    begin(talk, aws_profile_begin);
}

static void begin_container(struct as_credentials_talk *talk)
{
    begin(talk, aws_container_begin);
}

static void begin_metadata(struct as_credentials_talk *talk)
{
    begin(talk, aws_metadata_begin);
}

const struct as_credentials_source aws_credentials[] = {
    {"environment", begin_environment},
    {"assumed role", begin_role},
    {"web identity", begin_identity},
    {"profile", begin_profile},
    {"container", begin_container},
    {"instance metadata", begin_metadata},
    {0},
};
