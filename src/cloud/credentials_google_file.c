/*
 * Credentials of Google Cloud from a file of any of its kinds: https://google.aip.dev/auth/4112
 * (keys of service accounts), 4113 (users), 4117 (external accounts: workload identity federation).
 *
 * Nothing is kept: the file, and the token files that it names, are read each time.
 */
#include "credentials_google.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>

#include "jwt.h"
#include "provider_answer.h"

#define SCOPE           "https://www.googleapis.com/auth/cloud-platform"
#define TOKEN_URL       "https://oauth2.googleapis.com/token"
#define STS_URL         "https://sts.googleapis.com/v1/token"
#define LIFETIME_S      3600
#define SUBJECT_HEADERS 16 /* of a request for a token to be exchanged */

static struct google_search *get_state(struct as_talk *talk)
{
    return as_credentials_get(talk)->state;
}

static void fail_misses(struct as_talk *talk, const char *key)
{
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: `%s` is missing", get_state(talk)->path, key);
}

/* ---- requests for tokens ---- */

static void ask_token(struct as_talk *talk, const char *url)
{
    as_talk_ask(talk, "POST", "%s", url);
    talk->request.is_plain = true;
    as_talk_header(talk, "Content-Type: application/x-www-form-urlencoded");
}

/* ---- what a file says ---- */

/* A text of the document as memory of the talk; `fallback` if it is missing. With a NULL fallback
 * it must be present: false after failing the talk. */
static bool take_text(struct as_talk *talk, const json_t *document, const char *key,
                      const char *fallback, const char **text_out)
{
    const char *text = answer_text(document, key);
    *text_out = *text ? as_arena_strdup(&talk->arena, text) : fallback;
    if (!*text_out)
        fail_misses(talk, key);
    return *text_out;
}

/* Tokens and keys are sent only to addresses that others can neither read nor impersonate. */
static bool take_url(struct as_talk *talk, const json_t *document, const char *key,
                     const char *fallback, const char **url_out)
{
    if (!take_text(talk, document, key, fallback, url_out))
        return false;
    if (!**url_out || as_url_is_private(*url_out))
        return true;
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: `%s` is not an https address",
                 get_state(talk)->path, key);
    return false;
}

static void take_project(struct as_talk *talk, const json_t *document)
{
    static const char *const keys[] = {"project_id", "quota_project_id"};
    struct as_provider_credentials *found = &as_credentials_get(talk)->found;
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys) && !found->project; i++) {
        const char *project = answer_text(document, keys[i]);
        found->project = *project ? as_xstrdup(project) : NULL;
    }
}

/* Takes `service_account_impersonation_url`; `delegates` may be NULL. False after failing. */
static bool take_impersonation(struct as_talk *talk, const json_t *document,
                               const json_t *delegates)
{
    struct google_search *state = get_state(talk);
    const char *url;
    if (!take_url(talk, document, "service_account_impersonation_url", "", &url))
        return false;
    if (!*url)
        return true;
    const int32_t seconds =
        answer_size(document, "service_account_impersonation.token_lifetime_seconds", LIFETIME_S);
    json_t *body =
        json_pack("{s:[s], s:o}", "scope", SCOPE, "lifetime", json_sprintf("%ds", (int)seconds));
    if (json_array_size(delegates) > 0)
        json_object_set(body, "delegates", (json_t *)delegates);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!text)
        abort();
    state->impersonation_url = url;
    state->impersonation_body = as_arena_strdup(&talk->arena, text);
    free(text);
    return true;
}

/* ---- kinds of files ---- */

static void begin_document(struct as_talk *talk, const json_t *document, bool is_source);

static char *print_claims(const char *email, const char *audience, as_wall_time now)
{
    const json_int_t issued = now.us / AS_US_PER_S;
    json_t *claims = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", email, "scope", SCOPE, "aud",
                               audience, "exp", issued + LIFETIME_S, "iat", issued);
    char *text = claims ? json_dumps(claims, JSON_COMPACT) : NULL;
    json_decref(claims);
    return text;
}

static char *print_header(const char *key_id)
{
    json_t *header = json_pack("{s:s, s:s}", "alg", "RS256", "typ", "JWT");
    if (*key_id)
        json_object_set_new(header, "kid", json_string(key_id));
    char *text = header ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

static void begin_service_account(struct as_talk *talk, const json_t *document)
{
    struct as_error error = AS_ERROR_INIT;
    const char *url, *email;
    if (!take_url(talk, document, "token_uri", TOKEN_URL, &url) ||
        !take_text(talk, document, "client_email", NULL, &email))
        return;
    AS_CLEANUP(as_free_p)
    char *header = print_header(answer_text(document, "private_key_id"));
    AS_CLEANUP(as_free_p) char *claims = print_claims(email, url, talk->now);
    if (!header || !claims)
        abort();
    ask_token(talk, url);
    talk->request.is_timed = true;
    as_talk_add_parameter(talk, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    as_buf_append_str(&talk->request.body, "&assertion=");
    if (jwt_append_rs256(&talk->request.body, header, claims, answer_text(document, "private_key"),
                         &error) == 0)
        as_talk_send_question(talk, "token", google_hear_token);
    else
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: `private_key`: %s", get_state(talk)->path,
                     error.text);
}

static void begin_authorized_user(struct as_talk *talk, const json_t *document)
{
    static const char *const keys[] = {"client_id", "client_secret", "refresh_token"};
    const char *url;
    if (!take_url(talk, document, "token_uri", TOKEN_URL, &url))
        return;
    ask_token(talk, url);
    as_talk_add_parameter(talk, "grant_type", "refresh_token");
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const char *value = answer_text(document, keys[i]);
        if (!*value) {
            fail_misses(talk, keys[i]);
            return;
        }
        as_talk_add_parameter(talk, keys[i], value);
    }
    as_talk_send_question(talk, "token", google_hear_token);
}

static void begin_impersonated(struct as_talk *talk, const json_t *document)
{
    const json_t *source = answer_find(document, "source_credentials");
    if (!source)
        fail_misses(talk, "source_credentials");
    else if (take_impersonation(talk, document, answer_find(document, "delegates"))) {
        if (get_state(talk)->impersonation_url)
            begin_document(talk, source, true);
        else
            fail_misses(talk, "service_account_impersonation_url");
    }
}

/* ---- external accounts: a foreign token is exchanged for Google's ---- */

static void exchange(struct as_talk *talk, const char *subject)
{
    const struct google_search *state = get_state(talk);
    ask_token(talk, state->token_url);
    if (state->basic)
        as_talk_header(talk, "%s", state->basic);
    as_talk_add_parameter(talk, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    as_talk_add_parameter(talk, "audience", state->audience);
    as_talk_add_parameter(talk, "scope", SCOPE);
    as_talk_add_parameter(talk, "requested_token_type",
                          "urn:ietf:params:oauth:token-type:access_token");
    as_talk_add_parameter(talk, "subject_token", subject);
    as_talk_add_parameter(talk, "subject_token_type", state->subject_type);
    if (*state->user_project)
        as_talk_add_parameter(talk, "options", state->user_project);
    as_talk_send_question(talk, "token_exchange", google_hear_token);
}

/* Takes the subject's token from a text, or from a field of a JSON document, found at `where`. */
static void take_subject(struct as_talk *talk, const char *content, size_t size, const char *where)
{
    const char *field = get_state(talk)->field;
    json_t *document = field ? json_loadb(content, size, 0, NULL) : NULL;
    const char *token = field ? json_string_value(json_object_get(document, field)) : content;
    while (!field && size > 0 && strchr(" \t\r\n", token[size - 1]))
        size--;
    AS_CLEANUP(as_buf_wipe) struct as_buf subject = AS_BUF_INIT(AS_TALK_ANSWER_MAX);
    if (token)
        as_buf_append(&subject, token, field ? strlen(token) : size);
    if (subject.size > 0)
        exchange(talk, subject.data);
    else if (field)
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: there is no JSON document with a `%s`",
                     where, field);
    else
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: there is no token", where);
    answer_wipe(document);
    json_decref(document);
}

static void hear_subject_file(struct as_talk *talk)
{
    if (talk->content)
        take_subject(talk, talk->content, talk->content_size, talk->path);
    else
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s (`credential_source` of %s)", talk->path,
                     as_errno_get_text(talk->error_number), get_state(talk)->path);
}

static void hear_subject(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        take_subject(talk, talk->answer->body, talk->answer->body_size, talk->request.url);
}

/* False after failing the talk. */
static bool ask_subject(struct as_talk *talk, const json_t *source, const char *url)
{
    const json_t *headers = answer_find(source, "headers");
    const char *name;
    json_t *value;
    if (json_object_size(headers) > SUBJECT_HEADERS) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s: `credential_source` has more than %d headers", get_state(talk)->path,
                     SUBJECT_HEADERS);
        return false;
    }
    as_talk_ask(talk, "GET", "%s", url);
    talk->request.is_plain = true;
    talk->request.without_proxy = as_str_starts_with(url, "http://");
    json_object_foreach((json_t *)headers, name, value)
    {
        if (json_is_string(value))
            as_talk_header(talk, "%s: %s", name, json_string_value(value));
    }
    return true;
}

/* Finds the subject's token. */
static void begin_subject(struct as_talk *talk, const json_t *source)
{
    static const struct {
        const char *key, *word;
    } refused[] = {
        {"executable", "programs are not run for a token"},
        {"certificate", "client certificates are not exchanged for a token"},
        {"environment_id", "credentials of AWS are not exchanged for a token"},
    };
    struct google_search *state = get_state(talk);
    const char *file = answer_text(source, "file"), *url = answer_text(source, "url");
    for (size_t i = 0; i < AS_ARRAY_SIZE(refused); i++) {
        if (answer_find(source, refused[i].key)) {
            as_talk_fail(talk, AS_TALK_CONFIGURATION,
                         "%s: `credential_source` has `%s`: %s here; use a `file` (a projected "
                         "service account token, say) or a `url`",
                         state->path, refused[i].key, refused[i].word);
            return;
        }
    }
    if (strcmp(answer_text(source, "format.type"), "json") == 0 &&
        !take_text(talk, source, "format.subject_token_field_name", NULL, &state->field))
        return;
    if (*file)
        as_talk_read(talk, as_arena_strdup(&talk->arena, file), hear_subject_file);
    else if (!*url)
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: `credential_source` has no `file` or `url`",
                     state->path);
    else if (!as_url_is_near(url))
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s: `credential_source.url` is not an https address, nor one of this machine "
                     "or of its metadata service",
                     state->path);
    else if (ask_subject(talk, source, url))
        as_talk_send(talk, "subject_token", hear_subject);
}

/* For a client with credentials of its own: workforce identity federation. */
static const char *make_basic(struct as_talk *talk, const json_t *document)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf plain = AS_BUF_INIT(AS_TALK_FILE_MAX);
    AS_CLEANUP(as_buf_wipe) struct as_buf line = AS_BUF_INIT(2 * AS_TALK_FILE_MAX);
    if (!*answer_text(document, "client_id"))
        return NULL;
    as_buf_printf(&plain, "%s:%s", answer_text(document, "client_id"),
                  answer_text(document, "client_secret"));
    as_buf_append_str(&line, "Authorization: Basic ");
    as_encode_base64(&line, plain.data, plain.size);
    return as_arena_strdup(&talk->arena, line.data);
}

static void begin_external(struct as_talk *talk, const json_t *document)
{
    struct google_search *state = get_state(talk);
    if (!take_url(talk, document, "token_url", STS_URL, &state->token_url) ||
        !take_text(talk, document, "audience", NULL, &state->audience) ||
        !take_text(talk, document, "subject_token_type", NULL, &state->subject_type) ||
        !take_text(talk, document, "workforce_pool_user_project", "", &state->user_project) ||
        !take_impersonation(talk, document, NULL))
        return;
    state->basic = make_basic(talk, document);
    if (state->basic)
        state->user_project = "";
    if (*state->user_project) {
        json_t *options = json_pack("{s:s}", "userProject", state->user_project);
        char *text = options ? json_dumps(options, JSON_COMPACT) : NULL;
        if (!text)
            abort();
        state->user_project = as_arena_strdup(&talk->arena, text);
        free(text);
        json_decref(options);
    }
    begin_subject(talk, answer_find(document, "credential_source"));
}

static void begin_document(struct as_talk *talk, const json_t *document, bool is_source)
{
    static const struct {
        const char *type;
        void (*begin)(struct as_talk *talk, const json_t *document);
        bool may_be_source;
    } kinds[] = {
        {"service_account", begin_service_account, true},
        {"authorized_user", begin_authorized_user, true},
        {"external_account", begin_external, false},
        {"impersonated_service_account", begin_impersonated, false},
    };
    const char *type = answer_text(document, "type");
    take_project(talk, document);
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].type, type) == 0 && (kinds[i].may_be_source || !is_source)) {
            kinds[i].begin(talk, document);
            return;
        }
    }
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: credentials of type \"%s\" are not supported%s",
                 get_state(talk)->path, type, is_source ? " as `source_credentials`" : "");
}

void google_begin_document(struct as_talk *talk, const json_t *document)
{
    begin_document(talk, document, false);
}
