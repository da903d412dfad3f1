/*
 * Reading forms, and answering them with pages and redirects.
 */
#include <alertscaler/ui/forms.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/auth/auth_passwords.h>
#include <alertscaler/auth/browser.h>
#include <alertscaler/auth/reply.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/runtime/requests.h>

#include "form_body.h"
#include "page.h"

#define HANDLER_LOGIN "login"
#define HANDLER_FORM  "form"
#define TO_MAX        ((size_t)2048) /* of the path to return to after a login */
#define HEADERS_MAX   ((size_t)16 * 1024)
#define TYPED_MAX     ((size_t)2 * 1024) /* of fields that a refused form keeps, encoded */
#define STALE                                                                                      \
    "This form was shown to another login, or before alertscaler was started: nothing was done. "  \
    "Load the page again."

struct as_forms {
    struct as_forms_config config;
};

struct as_forms *as_forms_new(const struct as_forms_config *config)
{
    struct as_forms *forms = as_xcalloc(1, sizeof(*forms));
    forms->config = *config;
    return forms;
}

struct as_forms *as_forms_free(struct as_forms *forms)
{
    free(forms);
    return NULL;
}

/* Answers */

static void forms_show(const struct as_forms *forms, struct as_http_exchange *exchange,
                       void (*answer)(struct api_request *request), const struct as_api_note *note)
{
    const struct as_api_endpoint endpoint = {answer, false, NULL};
    as_api_answer(forms->config.api, exchange, &endpoint, "", "", note);
}

static void forms_refuse(const struct as_forms *forms, struct as_http_exchange *exchange,
                         const char *handler, int status, const char *problem)
{
    as_auth_note_refusal(forms->config.auth, exchange, handler, status, problem);
    forms_show(forms, exchange, page_answer_refused,
               &(struct as_api_note){.status = status, .text = problem});
}

/* `path`: of ours, percent-encoded. `headers`: more of them; may be "". */
static void redirect(const struct as_forms *forms, struct as_http_exchange *exchange,
                     const char *path, const char *headers)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf text = AS_BUF_INIT(HEADERS_MAX);
    as_buf_printf(&text, "%sLocation: %s%s\r\n" AS_REPLY_NO_STORE, headers,
                  as_external_url_get_path(forms->config.external_url), path);
    if (as_buf_check(&text) == 0)
        as_reply_text(exchange, 303, text.data, "see %s", path);
    else
        as_reply_text(exchange, 500, NULL, "the address of the page is too long");
}

bool as_forms_check(struct as_forms *forms, struct as_http_exchange *exchange, const char *handler)
{
    struct as_form_way way;
    struct as_error error = AS_ERROR_INIT;
    const int status = as_browser_check_form(exchange, forms->config.external_url, &way, &error);
    if (status != 0)
        forms_refuse(forms, exchange, handler, status, error.text);
    return status == 0;
}

/* False after refusing it. */
static bool forms_read_body(const struct as_forms *forms, struct as_http_exchange *exchange,
                            const char *handler, struct as_form_body *body)
{
    size_t size;
    struct as_error error = AS_ERROR_INIT;
    const char *text = as_http_exchange_get_body(exchange, &size);
    if (as_form_body_decode(text, size, body, &error) == 0)
        return true;
    forms_refuse(forms, exchange, handler, 400, error.text);
    return false;
}

/* Login */

/* A path of ours: nothing that a browser could take for another host, and no header. */
static const char *check_to(const char *to)
{
    const bool is_own = to && to[0] == '/' && to[1] != '/' && !strchr(to, '\\') &&
                        strlen(to) <= TO_MAX && as_str_is_visible(to, strlen(to));
    return is_own ? to : "/";
}

static void on_login(void *context, struct as_http_exchange *exchange,
                     const struct as_login_outcome *outcome)
{
    const struct as_forms *forms = context;
    if (outcome->problem)
        forms_show(forms, exchange, page_answer_login,
                   &(struct as_api_note){
                       .status = outcome->status, .text = outcome->problem, .to = outcome->to});
    else
        redirect(forms, exchange, outcome->to, outcome->headers);
}

void as_forms_log_in(struct as_forms *forms, struct as_http_exchange *exchange)
{
    AS_CLEANUP(as_form_body_deinit)
    struct as_form_body body = {.names = {"user", "password", "token", "to"}};
    struct as_form_way way;
    if (as_browser_check_form(exchange, forms->config.external_url, &way, NULL) != 0 ||
        !forms_read_body(forms, exchange, HANDLER_LOGIN, &body))
        return;
    const struct as_login login = {
        .handler = HANDLER_LOGIN,
        .user = as_form_body_find(&body, "user"),
        .password = as_form_body_find(&body, "password"),
        .token = as_form_body_find(&body, "token"),
        .to = check_to(as_form_body_find(&body, "to")),
        .is_local = way.is_local,
        .done = on_login,
        .context = forms,
    };
    const bool has_password = login.user && login.password;
    if (has_password == (login.token != NULL) || (login.token && login.user))
        forms_show(forms, exchange, page_answer_login,
                   &(struct as_api_note){.status = 400,
                                         .text = "Give a user with password, or a token.",
                                         .to = login.to});
    else
        as_auth_log_in(forms->config.auth, exchange, &login);
}

void as_forms_show_login(struct as_forms *forms, struct as_http_exchange *exchange)
{
    AS_CLEANUP(as_form_body_deinit) struct as_form_body query = {.names = {"to"}};
    if (!as_auth_is_logged_in(forms->config.auth, exchange)) {
        forms_show(forms, exchange, page_answer_login, NULL);
        return;
    }
    const char *text = as_http_exchange_get_query(exchange);
    const bool has_to = as_form_body_decode(text, strlen(text), &query, NULL) == 0;
    redirect(forms, exchange, has_to ? check_to(as_form_body_find(&query, "to")) : "/account", "");
}

/* False after refusing it. */
static bool check_seal(const struct as_forms *forms, struct as_http_exchange *exchange,
                       const char *handler, const struct as_form_body *body)
{
    if (as_auth_check_seal(exchange, AS_FORM_SEALED, as_form_body_find(body, "form")))
        return true;
    forms_refuse(forms, exchange, handler, 403, STALE);
    return false;
}

void as_forms_log_out(struct as_forms *forms, struct as_http_exchange *exchange)
{
    AS_CLEANUP(as_form_body_deinit) struct as_form_body body = {.names = {"form"}};
    char cookie[AS_COOKIE_SIZE];
    if (!forms_read_body(forms, exchange, HANDLER_LOGIN, &body) ||
        !check_seal(forms, exchange, HANDLER_LOGIN, &body))
        return;
    as_auth_log_out(exchange, cookie);
    redirect(forms, exchange, "/login", cookie);
}

bool as_forms_show_refusal(const struct as_forms *forms, struct as_http_exchange *exchange,
                           int status, const char *headers, const char *problem)
{
    if (!as_browser_wants_page(exchange))
        return false;
    forms_show(forms, exchange, page_answer_refused,
               &(struct as_api_note){.status = status, .text = problem, .headers = headers});
    return true;
}

bool as_forms_offer_login(const struct as_forms *forms, struct as_http_exchange *exchange)
{
    const char *method = as_http_exchange_get_method(exchange);
    const bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const struct as_credential_counts counts =
        as_credentials_count(as_auth_get_credentials(forms->config.auth));
    if (counts.users + counts.tokens + counts.reviews == 0 || !as_browser_wants_page(exchange) ||
        !as_browser_may_log_in(exchange, forms->config.external_url))
        return false;
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(HEADERS_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf to = AS_BUF_INIT(HEADERS_MAX);
    const char *query = as_http_exchange_get_query(exchange);
    as_buf_append_str(&to, reads ? as_http_exchange_get_path(exchange) : "/");
    if (reads && *query)
        as_buf_printf(&to, "?%s", query);
    as_buf_append_str(&path, "/login?to=");
    as_encode_percent(&path, to.data, to.size, "/");
    if (as_buf_check(&path) != 0)
        return false;
    if (reads && as_browser_comes_from_elsewhere(exchange))
        forms_show(forms, exchange, page_answer_again,
                   &(struct as_api_note){.status = 200, .text = "", .to = path.data});
    else
        redirect(forms, exchange, path.data, "");
    return true;
}

/* Orders */

/* What an order's form may have, as the API's members. */
static const struct order_field {
    const char *name;
    enum { FIELD_TEXT, FIELD_NUMBER, FIELD_FLAG } kind;
} order_fields[] = {
    {"reason", FIELD_TEXT}, {"for", FIELD_TEXT}, {"replicas", FIELD_NUMBER},
    {"force", FIELD_FLAG},  {"end", FIELD_FLAG}, {"direction", FIELD_TEXT},
};

static void forms_write_field(struct as_json_writer *json, const struct order_field *field,
                              const char *value)
{
    int64_t number = 0;
    if (field->kind == FIELD_FLAG)
        as_json_write_member_bool(json, field->name, true);
    else if (field->kind == FIELD_NUMBER && as_number_parse_i64(value, strlen(value), &number) == 0)
        as_json_write_member_i64(json, field->name, number);
    else /* the API says what is wrong with it */
        as_json_write_member(json, field->name, value);
}

static void forms_write_document(const struct as_form_body *body, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    for (size_t i = 0; i < AS_ARRAY_SIZE(order_fields); i++) {
        const char *value = as_form_body_find(body, order_fields[i].name);
        if (value)
            forms_write_field(&json, &order_fields[i], value);
    }
    as_json_end_object(&json);
}

static struct as_form_body expect_order(void)
{
    struct as_form_body body = {.names = {"form", "to"}};
    _Static_assert(AS_ARRAY_SIZE(order_fields) + 2 <= AS_FORM_FIELDS_MAX, "there is room");
    for (size_t i = 0; i < AS_ARRAY_SIZE(order_fields); i++)
        body.names[i + 2] = order_fields[i].name;
    return body;
}

void as_forms_order(struct as_forms *forms, struct as_http_exchange *exchange, const char *who,
                    enum as_operator_command_kind kind, const char *encoded_what)
{
    AS_CLEANUP(as_form_body_deinit) struct as_form_body body = expect_order();
    AS_CLEANUP(as_buf_deinit) struct as_buf document = AS_BUF_INIT(8 * AS_FORM_BODY_MAX);
    if (!forms_read_body(forms, exchange, HANDLER_FORM, &body) ||
        !check_seal(forms, exchange, HANDLER_FORM, &body))
        return;
    forms_write_document(&body, &document);
    forms->config.order(forms->config.context, &(struct as_operators_request){
                                                   .exchange = exchange,
                                                   .who = who,
                                                   .kind = kind,
                                                   .encoded_what = encoded_what,
                                                   .body = document.data,
                                                   .body_size = document.size,
                                                   .is_form = true,
                                               });
}

/* The page with the form. A request stands on two pages: its form says on which; else the first. */
static void append_page(const struct as_http_exchange *exchange, const struct as_form_body *body,
                        struct as_buf *path)
{
    const char *page = as_http_exchange_get_path(exchange);
    size_t size = (size_t)(strrchr(page, '/') - page); /* "/targets/a/pause": "/targets/a" */
    if (as_str_starts_with(page, "/approvals/")) {
        page = check_to(as_form_body_find(body, "to"));
        size = strcspn(page, "?#");
    }
    as_buf_append(path, page, size > 0 ? size : 1);
}

/* The field that the answer is about: answers about a field begin with its name. */
static const char *find_wrong_field(int status, const char *text)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(order_fields); i++) {
        const char *name = order_fields[i].name;
        if (as_str_starts_with(text, name) && text[strlen(name)] == ':')
            return name;
    }
    return status == 422 ? "replicas" : NULL; /* beyond the bounds */
}

/* In the words of the form. */
static void print_result_text(const char *text, struct as_buf *out)
{
    static const char option[] = "; add `--force`";
    const char *at = strstr(text, option);
    as_buf_append(out, text, at ? (size_t)(at - text) : strlen(text));
    if (at)
        as_buf_printf(out, ". To set it anyway, select \"Ignore its bounds\"%s",
                      at + strlen(option));
}

void as_forms_answer_order(void *context, struct as_http_exchange *exchange, int status,
                           const char *text)
{
    const struct as_forms *forms = context;
    AS_CLEANUP(as_form_body_deinit) struct as_form_body body = expect_order();
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(HEADERS_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf typed = AS_BUF_INIT(TYPED_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf shown = AS_BUF_INIT(HEADERS_MAX);
    struct page_refused refused = {.form = NULL};
    size_t size;
    const char *sent = as_http_exchange_get_body(exchange, &size);
    (void)!as_form_body_decode(sent, size, &body, NULL); /* it was decoded before */
    for (size_t i = 0; i < AS_ARRAY_SIZE(order_fields); i++) {
        const char *value = as_form_body_find(&body, order_fields[i].name);
        if (value)
            html_query(&typed, order_fields[i].name, value);
    }
    if (status != 200) {
        refused.form = as_http_exchange_get_path(exchange);
        refused.field = find_wrong_field(status, text);
        if (as_buf_check(&typed) == 0 && typed.size > 0) {
            typed.data[typed.size - 1] = '\0'; /* the last `&` */
            refused.typed = typed.data;
        }
    }
    append_page(exchange, &body, &path);
    print_result_text(text, &shown);
    page_append_result(exchange, status == 200, as_buf_check(&shown) == 0 ? shown.data : text,
                       &refused, &path);
    redirect(forms, exchange, path.data, "");
}
