/*
 * A token of a token server, for a client's id and secret: the client credentials grant (RFC 6749,
 * section 4.4). The secret's file is read each time.
 *
 * How the server accepts the secret is not known before. RFC 6749, 2.3.1, requires HTTP Basic of
 * servers; many accept only the form. As in Go's client, Basic is tried first, then the form, and
 * the form is remembered if it succeeds. Only a refusal of the client leads to the form. A server
 * that refuses both has one error: that of the form, unless it says only that the request is wrong.
 *
 * The error names the server without its query, and has the server's code and description. The
 * description is left out if it contains the secret, also as the request has it.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/login/cloud_answer.h>
#include <alertscaler/login/cloud_credentials.h>

#define TOKEN_ANSWER_MAX ((size_t)256 * 1024) /* bytes */
#define SERVER_MAX       120                  /* bytes of the server's address in an error */
#define LIFE_MAX_S       (INT64_C(10) * 365 * 24 * 3600)

struct oauth2_state { /* memory of the op */
    const char *server, *secret;
    bool is_form;
    /* of the refusal of HTTP Basic: */
    bool has_refusal;
    enum as_cloud_op_fault fault;
    const char *message;
};

static struct oauth2_state *oauth2_get_state(struct as_cloud_op *op)
{
    return as_credentials_get(op)->state;
}

static const struct as_oauth2_settings *oauth2_get_settings(struct as_cloud_op *op)
{
    return as_credentials_get(op)->oauth2->settings;
}

/* ---- answers ---- */

/* Both parts are encoded as in a form before they are joined. */
static void oauth2_write_pair(struct as_cloud_op *op, struct as_buf *line)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf plain = AS_BUF_INIT(6 * AS_CLOUD_OP_FILE_MAX);
    const char *client = oauth2_get_settings(op)->client_id;
    const char *secret = oauth2_get_state(op)->secret;
    as_encode_percent(&plain, client, strlen(client), "");
    as_buf_append_char(&plain, ':');
    as_encode_percent(&plain, secret, strlen(secret), "");
    as_encode_base64(line, plain.data, plain.size);
}

/* As it is, and as it was sent: in a form, or in a header. Servers may write %2f for %2F, and leave
 * out the padding. */
static bool oauth2_has_secret(struct as_cloud_op *op, const char *text)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf escaped = AS_BUF_INIT(3 * AS_CLOUD_OP_FILE_MAX);
    AS_CLEANUP(as_buf_wipe) struct as_buf pair = AS_BUF_INIT(9 * AS_CLOUD_OP_FILE_MAX);
    AS_CLEANUP(as_buf_wipe) struct as_buf raw = AS_BUF_INIT(9 * AS_CLOUD_OP_FILE_MAX);
    AS_CLEANUP(as_buf_wipe) struct as_buf plain = AS_BUF_INIT(6 * AS_CLOUD_OP_FILE_MAX);
    const char *secret = oauth2_get_state(op)->secret;
    as_encode_percent(&escaped, secret, strlen(secret), "");
    oauth2_write_pair(op, &pair);
    as_buf_printf(&plain, "%s:%s", oauth2_get_settings(op)->client_id, secret);
    as_encode_base64(&raw, plain.data, plain.size);
    pair.data[strcspn(pair.data, "=")] = '\0';
    raw.data[strcspn(raw.data, "=")] = '\0';
    return strstr(text, secret) || strcasestr(text, escaped.data) || strstr(text, pair.data) ||
           strstr(text, raw.data);
}

static void oauth2_fail(struct as_cloud_op *op, enum as_cloud_op_fault fault, const char *code,
                        const char *text)
{
    const struct oauth2_state *state = oauth2_get_state(op);
    const bool is_secret = oauth2_has_secret(op, text) || oauth2_has_secret(op, code);
    as_cloud_op_fail(op, fault, "%s: %s%s%s", state->server, is_secret ? "refused" : code,
                     *text && !is_secret ? ": " : "", is_secret ? "" : text);
}

/* A number or digits, as some servers write; 0: no end, as in Go's client. */
static int64_t oauth2_take_life(const json_t *document)
{
    const json_t *value = answer_find(document, "expires_in");
    const double seconds =
        json_is_number(value) ? json_number_value(value) : answer_size(document, "expires_in", 0);
    return seconds > 0 && seconds < (double)LIFE_MAX_S ? (int64_t)seconds : 0;
}

static void oauth2_take_token(struct as_cloud_op *op)
{
    struct as_credentials_op *given = as_credentials_get(op);
    const json_t *document = answer_peek_json(op);
    const char *token = answer_text(document, "access_token");
    const char *type = answer_text(document, "token_type");
    const int64_t life_s = oauth2_take_life(document);
    if (!json_is_object(document))
        oauth2_fail(op, AS_CLOUD_OP_RETRY, "the answer is not a JSON object", "");
    else if (!*token)
        oauth2_fail(op, AS_CLOUD_OP_RETRY, "the answer has no access_token", "");
    else if (!as_str_is_visible(token,
                                json_string_length(json_object_get(document, "access_token"))))
        oauth2_fail(op, AS_CLOUD_OP_RETRY,
                    "the access_token has characters that no header line may have", "");
    else if (*type && strcasecmp(type, "bearer") != 0)
        oauth2_fail(op, AS_CLOUD_OP_CONFIGURATION, "the token_type is not Bearer", "");
    else {
        given->oauth2->sends_form = oauth2_get_state(op)->is_form;
        given->found.token = as_xstrdup(token);
        given->found.expires.set = life_s > 0;
        given->found.expires.at.us = as_time_add(op->now.us, life_s * AS_US_PER_S);
        as_cloud_op_end(op);
    }
}

static void oauth2_ask(struct as_cloud_op *op);

/* The server refused the client's secret, or did not find it in the header. */
static bool oauth2_refuses_client(int status, const char *code)
{
    static const char *const codes[] = {"", "invalid_client", "invalid_request",
                                        "unauthorized_client"};
    if (status != 400 && status != 401 && status != 403)
        return false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(codes); i++)
        if (strcmp(codes[i], code) == 0)
            return true;
    return false;
}

/* {"error": "invalid_client", "error_description": "..."} (RFC 6749, section 5.2) */
static void oauth2_refuse(struct as_cloud_op *op)
{
    struct oauth2_state *state = oauth2_get_state(op);
    const int status = op->http_status;
    const enum as_cloud_op_fault fault = status == 404 ? AS_CLOUD_OP_CONFIGURATION : op->fault;
    const json_t *document = answer_peek_json(op);
    const char *code = answer_text(document, "error");
    const bool is_vague = !*code || strcmp(code, "invalid_request") == 0;
    if (state->has_refusal && is_vague) {
        as_cloud_op_fail(op, state->fault, "%s", state->message);
        return;
    }
    if (*code)
        oauth2_fail(op, fault, code, answer_text(document, "error_description"));
    else if (status >= 300 && status < 400)
        oauth2_fail(op, AS_CLOUD_OP_CONFIGURATION,
                    as_cloud_op_print(op, "HTTP %d: redirects are not followed", status), "");
    else
        oauth2_fail(op, fault, as_cloud_op_print(op, "HTTP %d", status), "");
    if (!state->is_form && oauth2_refuses_client(status, code)) {
        state->has_refusal = true;
        state->fault = op->fault;
        state->message = as_arena_strdup(&op->arena, op->message);
        state->is_form = true;
        oauth2_ask(op);
    }
}

static void oauth2_on_token(struct as_cloud_op *op)
{
    const struct oauth2_state *state = oauth2_get_state(op);
    if (as_cloud_op_is_good(op))
        oauth2_take_token(op);
    else if (op->http_status != 0)
        oauth2_refuse(op);
    else if (op->answer->outcome == AS_HTTP_TOO_LARGE)
        oauth2_fail(op, AS_CLOUD_OP_CONFIGURATION, "the answer is larger than 256 KiB", "");
    else
        as_cloud_op_fail(op, op->fault, "%s: %s", state->server, op->answer->error);
}

/* ---- the request ---- */

static void oauth2_add_basic(struct as_cloud_op *op)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf line = AS_BUF_INIT(9 * AS_CLOUD_OP_FILE_MAX);
    oauth2_write_pair(op, &line);
    as_cloud_op_header(op, "Authorization: Basic %s", line.data);
}

static void oauth2_add_escaped(struct as_cloud_op *op, const char *name, const char *value)
{
    as_cloud_op_add_parameter(op, as_cloud_op_escaped(op, name), value);
}

static void oauth2_ask(struct as_cloud_op *op)
{
    const struct as_oauth2_settings *settings = oauth2_get_settings(op);
    const struct oauth2_state *state = oauth2_get_state(op);
    AS_CLEANUP(as_buf_deinit) struct as_buf scopes = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
    as_cloud_op_ask(op, "POST", "%s", settings->token_url);
    as_cloud_op_header(op, "Content-Type: application/x-www-form-urlencoded");
    as_cloud_op_header(op, "Accept: application/json");
    as_cloud_op_add_parameter(op, "grant_type", "client_credentials");
    for (size_t i = 0; i < settings->scope_count; i++)
        as_buf_printf(&scopes, "%s%s", i ? " " : "", settings->scopes[i]);
    if (scopes.size > 0)
        as_cloud_op_add_parameter(op, "scope", scopes.data);
    for (size_t i = 0; i < settings->endpoint_param_count; i++)
        oauth2_add_escaped(op, settings->endpoint_params[i].name,
                           settings->endpoint_params[i].value);
    if (state->is_form) {
        as_cloud_op_add_parameter(op, "client_id", settings->client_id);
        as_cloud_op_add_parameter(op, "client_secret", state->secret);
    } else {
        oauth2_add_basic(op);
    }
    op->request.is_plain = true;
    op->request.max_response = TOKEN_ANSWER_MAX;
    as_cloud_op_send_question(op, "get_oauth2_token", oauth2_on_token);
}

static void oauth2_on_secret(struct as_cloud_op *op)
{
    struct oauth2_state *state = oauth2_get_state(op);
    state->secret = as_credentials_take_file(op);
    if (state->secret)
        oauth2_ask(op);
    else
        as_cloud_op_fail(op, op->fault, "client_secret_file: %s",
                         as_arena_strdup(&op->arena, op->message));
}

static void oauth2_begin(struct as_credentials_op *given)
{
    struct oauth2_state *state = as_arena_alloc(&given->op.arena, 1, sizeof(*state));
    const struct as_oauth2_settings *settings = given->oauth2->settings;
    const char *url = settings->token_url;
    const int size = (int)strcspn(url, "?#");
    *state = (struct oauth2_state){
        .server = as_cloud_op_print(&given->op, "%.*s", size < SERVER_MAX ? size : SERVER_MAX, url),
        .is_form = given->oauth2->sends_form,
    };
    given->state = state;
    if (as_url_is_private(url))
        as_cloud_op_read(&given->op, settings->client_secret_file, oauth2_on_secret);
    else
        as_cloud_op_fail(&given->op, AS_CLOUD_OP_CONFIGURATION,
                         "token_url: expected a URL with https:// (http:// only to this machine)");
}

/* The messages name the server, in place of the source. */
const struct as_credentials_source oauth2_credentials[] = {{"", oauth2_begin}, {0}};
