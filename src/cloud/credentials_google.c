/*
 * Credentials of Google Cloud: where they are found, and their tokens; see the header.
 * https://google.aip.dev/auth/4110, and 4115 for the metadata service.
 */
#include "credentials_google.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/str.h>

#include "google.h"
#include "provider_answer.h"

#define METADATA_US        (3 * AS_US_PER_S)
#define WITHOUT_PROJECT_US (5 * AS_US_PER_MIN)
#define WELL_KNOWN_FILE    "application_default_credentials.json"

static struct google_search *get_state(struct as_talk *talk)
{
    return as_credentials_get(talk)->state;
}

/* ---- answers with tokens ---- */

/* The document of a good answer; NULL after failing the talk with the words of OAuth 2.0 (RFC 6749,
 * section 5.2) or of Google's APIs. */
static const json_t *take_answer(struct as_talk *talk)
{
    if (google_is_good(talk))
        return answer_json(talk);
    const json_t *document = talk->document;
    const char *code = talk->http_status ? answer_text(document, "error") : "";
    const char *text = answer_text(document, "error_description");
    if (*code)
        as_talk_fail(talk, strcmp(code, "invalid_grant") == 0 ? AS_TALK_UNAUTHORIZED : talk->fault,
                     "%s: %s%s%s", talk->request.operation, code, *text ? ": " : "", text);
    return NULL;
}

static void find(struct as_talk *talk, const char *token)
{
    char **place = &as_credentials_get(talk)->found.token;
    as_wipe_free(*place);
    *place = as_xstrdup(token);
    as_talk_end(talk);
}

static void hear_impersonation(struct as_talk *talk)
{
    const json_t *document = take_answer(talk);
    if (!document)
        return;
    const char *token = answer_text(document, "accessToken");
    as_credentials_get(talk)->found.expires = answer_time(document, "expireTime");
    if (*token)
        find(talk, token);
    else
        (void)answer_misses(talk, "accessToken");
}

static void impersonate(struct as_talk *talk, const char *token)
{
    const struct google_search *state = get_state(talk);
    as_talk_ask(talk, "POST", "%s", state->impersonation_url);
    talk->request.is_plain = true;
    as_talk_header(talk, "Content-Type: application/json");
    as_talk_header(talk, "Authorization: Bearer %s", token);
    as_buf_append_str(&talk->request.body, state->impersonation_body);
    as_talk_send_question(talk, "impersonate", hear_impersonation);
}

/* {"access_token":...,"expires_in":...}; false after failing the talk. */
static bool take_token(struct as_talk *talk, const char **token_out)
{
    const json_t *document = take_answer(talk);
    if (!document)
        return false;
    *token_out = answer_text(document, "access_token");
    if (!**token_out)
        return answer_misses(talk, "access_token");
    const int32_t seconds = answer_size(document, "expires_in", -1);
    if (seconds >= 0)
        as_credentials_get(talk)->found.expires =
            (as_maybe_time){true, {as_time_add(talk->now.us, seconds * AS_US_PER_S)}};
    return true;
}

void google_hear_token(struct as_talk *talk)
{
    const char *token;
    if (!take_token(talk, &token))
        return;
    if (get_state(talk)->impersonation_url)
        impersonate(talk, token);
    else
        find(talk, token);
}

static void hear_file(struct as_talk *talk)
{
    const struct google_search *state = get_state(talk);
    json_error_t problem;
    const int number = talk->error_number;
    const bool is_absent = number == ENOENT || number == ENOTDIR || number == EACCES;
    if (!talk->content && is_absent && state->may_be_absent) { /* perhaps another user's home */
        as_credentials_not_here(as_credentials_get(talk));
        return;
    }
    if (!talk->content) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s", state->path, as_errno_get_text(number));
        return;
    }
    json_t *document =
        json_loadb(talk->content, talk->content_size, JSON_REJECT_DUPLICATES, &problem);
    if (json_is_object(document))
        google_begin_document(talk, document);
    else
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: not a JSON document of credentials",
                     state->path);
    answer_wipe(document);
    json_decref(document);
}

/* ---- the sources ---- */

static void begin_file(struct as_credentials_talk *talk, const char *path, bool may_be_absent)
{
    struct google_search *state = as_arena_alloc(&talk->talk.arena, 1, sizeof(*state));
    talk->state = state;
    if (as_str_is_empty(path)) {
        as_credentials_not_here(talk);
        return;
    }
    state->path = as_arena_strdup(&talk->talk.arena, path);
    state->may_be_absent = may_be_absent;
    as_talk_read(&talk->talk, state->path, hear_file);
}

static void begin_configured(struct as_credentials_talk *talk)
{
    begin_file(talk, as_account_get(talk->account, "credentials_file"), false);
}

static void begin_environment(struct as_credentials_talk *talk)
{
    begin_file(talk, as_variable_find(&talk->talk, "GOOGLE_APPLICATION_CREDENTIALS"), false);
}

static void begin_well_known(struct as_credentials_talk *talk)
{
    const char *folder = as_variable_find(&talk->talk, "CLOUDSDK_CONFIG");
    const char *home = as_variable_find(&talk->talk, "HOME");
    const char *path = NULL;
    if (folder)
        path = as_talk_print(&talk->talk, "%s/" WELL_KNOWN_FILE, folder);
    else if (home)
        path = as_talk_print(&talk->talk, "%s/.config/gcloud/" WELL_KNOWN_FILE, home);
    begin_file(talk, path, true);
}

const char *const google_files[] = {
    "$GOOGLE_APPLICATION_CREDENTIALS",
    "$CLOUDSDK_CONFIG/" WELL_KNOWN_FILE,
    "~/.config/gcloud/" WELL_KNOWN_FILE,
    NULL,
};

/* The file of an external account names the file with its own token. */
void google_read_names(const char *content, size_t size, as_provider_names_fn *tell, void *context)
{
    json_t *document = json_loadb(content, size, JSON_REJECT_DUPLICATES, NULL);
    const char *path = answer_text(document, "credential_source.file");
    if (*path)
        tell(context, path, false);
    answer_wipe(document);
    json_decref(document);
}

/* ---- the metadata service ---- */

static void ask_metadata(struct as_talk *talk, const char *path, const char *operation,
                         as_talk_hear_fn *hear)
{
    const char *host = as_variable_find(talk, "GCE_METADATA_HOST");
    if (!host)
        host = as_variable_find(talk, "GCE_METADATA_IP");
    if (!host)
        host = "metadata.google.internal";
    as_talk_ask(talk, "GET", "%s%s/computeMetadata/v1/%s", strstr(host, "://") ? "" : "http://",
                host, path);
    as_talk_header(talk, "Metadata-Flavor: Google");
    talk->request.is_plain = true;
    talk->request.without_proxy = true;
    talk->request.timeout_us = METADATA_US;
    as_talk_send(talk, operation, hear);
}

/* Another server's answer is not a token. False after failing the talk. */
static bool is_metadata_service(struct as_talk *talk)
{
    if (talk->answer->outcome != AS_HTTP_ANSWERED ||
        strcmp(as_http_response_find(talk->answer, "Metadata-Flavor"), "Google") == 0)
        return true;
    as_talk_fail(talk, AS_TALK_CONFIGURATION,
                 "%s: this is not Google's metadata service: no `Metadata-Flavor: Google`",
                 talk->request.url);
    return false;
}

/* The token is still good: groups may name the project. But it is not kept for long. */
static void hear_metadata_project(struct as_talk *talk)
{
    struct as_provider_credentials *found = &as_credentials_get(talk)->found;
    const as_wall_time soon = {as_time_add(talk->now.us, WITHOUT_PROJECT_US)};
    char line[AS_TALK_ID_SIZE] = "";
    if (is_metadata_service(talk) && as_talk_is_good(talk))
        as_str_copy_line(talk->answer->body, line, sizeof(line));
    if (*line)
        found->project = as_xstrdup(line);
    else if (!found->expires.set || found->expires.at.us > soon.us)
        found->expires = (as_maybe_time){true, soon};
    as_talk_end(talk);
}

static void hear_metadata_token(struct as_talk *talk)
{
    const char *token;
    if (!is_metadata_service(talk))
        return;
    if (talk->answer->outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_fail_unreached(as_credentials_get(talk));
        return;
    }
    if (talk->http_status == 404) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "the metadata service has no service account for this machine or pod");
        return;
    }
    if (!take_token(talk, &token))
        return;
    find(talk, token);
    if (!as_account_get(as_credentials_get(talk)->account, "project") &&
        !as_variable_find(talk, "GOOGLE_CLOUD_PROJECT"))
        ask_metadata(talk, "project/project-id", "metadata_project", hear_metadata_project);
}

static void begin_metadata(struct as_credentials_talk *talk)
{
    ask_metadata(&talk->talk, "instance/service-accounts/default/token", "metadata_token",
                 hear_metadata_token);
}

const struct as_credentials_source google_credentials[] = {
    {"credentials_file", begin_configured},
    {"GOOGLE_APPLICATION_CREDENTIALS", begin_environment},
    {"well-known file", begin_well_known},
    {"metadata service", begin_metadata},
    {0},
};
