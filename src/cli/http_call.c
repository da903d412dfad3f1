/*
 * HTTP requests of commands, one after the other: sessions with a monitoring server, by the
 * daemon's own client; and single requests to a running daemon, by curl's easy interface: no
 * redirects, limits on everything, no proxy for the local machine.
 */
#include "http_call.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/login/http_auth.h>
#include <alertscaler/monitoring/prometheus.h>
#include <alertscaler/port/http.h>
#include <alertscaler/runtime/version.h>

#include "client_file.h"

/*
 * An event loop that runs only during a request.
 */

#define TIMEOUT_US (5 * AS_US_PER_MIN)

struct http_session {
    const struct as_adapters *adapters;
    char *url; /* without a trailing slash */
    struct event_base *base;
    struct as_outside *outside;
    struct as_http_auth *auth;
    /* the present request */
    bool is_done;
    struct as_buf *body;
    struct as_error *error;
    int outcome, status;
};

static as_mono_time http_get_mono(const struct as_clock *self)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (as_mono_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static as_wall_time http_get_wall(const struct as_clock *self)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

const struct as_clock session_clock = {.get_mono = http_get_mono, .get_wall = http_get_wall};

void session_ignore_transfer(void *context, const char *client_name, const char *operation,
                             const char *code, int64_t duration_us)
{
}

struct http_session *http_session_open(const struct as_adapters *adapters, const char *url,
                                       const struct as_http_settings *http)
{
    struct http_session *session = as_xcalloc(1, sizeof(*session));
    size_t size = strlen(url);
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGPIPE, &ignore, NULL);
    while (size > 0 && url[size - 1] == '/')
        size--;
    session->adapters = adapters;
    session->url = as_xstrndup(url, size);
    session->base = event_base_new();
    if (!session->base)
        abort();
    session->outside =
        adapters->new_outside(session->base, &session_clock, session_ignore_transfer, NULL);
    const struct as_access_env *env = adapters->get_env(session->outside);
    session->auth = as_http_auth_new(
        http, &(struct as_login_env){adapters->get_http(session->outside), env->loop, env->runner,
                                     &session_clock, env->get_variable});
    return session;
}

struct http_session *http_session_close(struct http_session *session)
{
    if (!session)
        return NULL;
    as_http_auth_free(session->auth);
    session->adapters->free_outside(session->outside);
    event_base_free(session->base);
    free(session->url);
    free(session);
    return NULL;
}

static void http_on_done(void *context, const struct as_http_response *response)
{
    struct http_session *session = context;

    session->is_done = true;
    as_buf_clear(session->body);
    switch (response->outcome) {
    case AS_HTTP_ANSWERED:
        as_buf_append(session->body, response->body, response->body_size);
        session->status = response->status;
        session->outcome = response->status / 100 == 2 ? HTTP_SESSION_OK : HTTP_SESSION_REFUSED;
        if (session->outcome != HTTP_SESSION_OK)
            as_prometheus_explain_status(response->status, response->body, session->error);
        return;
    case AS_HTTP_TOO_LARGE:
        as_error_set(session->error, "the answer is too large");
        session->outcome = HTTP_SESSION_TOO_LARGE;
        return;
    case AS_HTTP_TIMEOUT: session->outcome = -ETIMEDOUT; break;
    case AS_HTTP_UNREACHABLE:
    case AS_HTTP_BROKEN:
    case AS_HTTP_UNSENT: session->outcome = -EIO; break;
    }
    as_error_set(session->error, "%s", response->error);
}

/* `form` NULL: GET. */
static int session_send(struct http_session *session, const char *path, const struct as_buf *form,
                        size_t max, struct as_buf *body_io, struct as_error *error)
{
    static const char *const extra[] = {"Content-Type: application/x-www-form-urlencoded", NULL};
    struct as_http *http = as_http_auth_get_port(session->auth);
    AS_CLEANUP(as_free_p) char *url = as_xasprintf("%s%s", session->url, path);
    struct as_http_request request = {
        .method = form ? "POST" : "GET",
        .url = url,
        .headers = form ? extra : NULL,
        .body = form ? form->data : NULL,
        .body_size = form ? form->size : 0,
        .timeout_us = TIMEOUT_US,
        .max_response = max,
        .client_name = "prometheus",
        .operation = "query_range",
    };

    session->is_done = false;
    session->status = 0;
    session->body = body_io;
    session->error = error;
    (void)!http->start(http, &request, http_on_done, session);
    while (!session->is_done) {
        if (event_base_loop(session->base, EVLOOP_ONCE) != 0)
            abort(); /* a transfer is running: there is always an event to wait for */
    }
    if (session->outcome != HTTP_SESSION_OK)
        as_error_wrap(error, "%s", session->url);
    return session->outcome;
}

int http_session_post(struct http_session *session, const char *path, const struct as_buf *form,
                      size_t max, struct as_buf *body_io, struct as_error *error)
{
    return session_send(session, path, form, max, body_io, error);
}

int http_session_get(struct http_session *session, const char *path, size_t max,
                     struct as_buf *body_io, struct as_error *error)
{
    return session_send(session, path, NULL, max, body_io, error);
}

int http_session_get_status(const struct http_session *session)
{
    return session->status;
}

#define DEFAULT_URL        "http://localhost:9096"
#define CONNECT_TIMEOUT_MS 5000L
#define TIMEOUT_MS         30000L
#define TOKEN_MAX          ((size_t)16 * 1024)
#define CA_FILE_MAX        ((size_t)1024 * 1024)
#define HEADERS_MAX        ((size_t)64 * 1024)
#define EXPLANATION_MAX    2048

static const char *get_nonempty(const char *name)
{
    const char *value = getenv(name);
    return as_str_is_empty(value) ? NULL : value;
}

/* Where a request goes, and with what. Borrows from the arguments and the file. */
struct http_daemon {
    struct client_file file;
    const char *url, *token_file, *ca_file; /* NULL: none */
};

static void http_daemon_deinit(struct http_daemon *daemon)
{
    client_file_deinit(&daemon->file);
}

static int http_daemon_find(const struct as_args *args, struct http_daemon *daemon,
                            struct as_error *error)
{
    const char *name = as_args_get(args, "context"), *url = as_args_get(args, "url");
    const char *token_file = as_args_get(args, "token-file"),
               *ca_file = as_args_get(args, "ca-file");
    const struct client_context *context = NULL;
    int status = 0;
    if (name && url) {
        as_error_set(error, "either --context or --url, not both");
        return -EINVAL;
    }
    url = url || name ? url : get_nonempty("ALERTSCALER_URL");
    if (!url) /* a file with errors does not matter where it is not used */
        status = client_file_load(&daemon->file, error);
    if (!url && status == 0)
        status = client_file_find(&daemon->file, name, &context, error);
    if (status != 0)
        return status;
    daemon->url = context ? context->url : url ? url : DEFAULT_URL;
    daemon->token_file = token_file ? token_file
                         : context  ? context->token_file
                                    : get_nonempty("ALERTSCALER_TOKEN_FILE");
    daemon->ca_file = ca_file   ? ca_file
                      : context ? context->ca_file
                                : get_nonempty("ALERTSCALER_CA_FILE");
    return 0;
}

struct place {
    char *url;
    bool is_here; /* it is the local machine */
};

static void place_deinit(struct place *place)
{
    curl_free(place->url);
}

/* Appends `path` to the address' own path; the query is that of `path`. */
static int find_place(const char *address, const char *path, struct place *place_out,
                      struct as_error *error)
{
    static const char *const here[] = {"localhost", "127.0.0.1", "[::1]"};
    char *own = NULL, *host = NULL, *scheme = NULL;
    const size_t path_size = strcspn(path, "?");
    const char *query = path[path_size] ? path + path_size + 1 : NULL;
    CURLU *url = curl_url();
    CURLUcode code = curl_url_set(url, CURLUPART_URL, address, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    if (code == CURLUE_OK && strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
        code = CURLUE_UNSUPPORTED_SCHEME;
    if (code == CURLUE_OK)
        code = curl_url_get(url, CURLUPART_HOST, &host, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(url, CURLUPART_PATH, &own, 0);
    if (code == CURLUE_OK) {
        const size_t size = strlen(own);
        own[size - (own[size - 1] == '/')] = '\0';
        AS_CLEANUP(as_free_p)
        char *whole = as_xasprintf("%s%.*s", own, (int)path_size, path);
        code = curl_url_set(url, CURLUPART_PATH, whole, 0);
    }
    (void)curl_url_set(url, CURLUPART_QUERY, query, 0);
    (void)curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
    struct place place = {0};
    if (code == CURLUE_OK)
        code = curl_url_get(url, CURLUPART_URL, &place.url, 0);
    for (size_t i = 0; code == CURLUE_OK && i < AS_ARRAY_SIZE(here); i++)
        place.is_here = place.is_here || strcmp(host, here[i]) == 0;
    curl_free(own);
    curl_free(host);
    curl_free(scheme);
    curl_url_cleanup(url);
    if (code != CURLUE_OK) {
        as_error_set(error, "%s is not an address as " DEFAULT_URL ": %s", address,
                     strstr(address, "://") ? curl_url_strerror(code) : "add http:// or https://");
        return -EINVAL;
    }
    *place_out = place;
    return 0;
}

static int read_token(const char *path, char **token_out, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size;
    const int status = as_file_read_input(path, TOKEN_MAX, &text, &size);
    if (status != 0) {
        as_error_set_errno(error, status, "%s", path);
        return status;
    }
    while (size > 0 && strchr(" \t\r\n", text[size - 1]))
        text[--size] = '\0';
    if (size == 0 || strlen(text) != size || strpbrk(text, "\r\n")) {
        as_error_set(error, "%s: expected a token on one line", path);
        return -EINVAL;
    }
    *token_out = as_xstrdup(text);
    return 0;
}

static int make_headers(const char *token_file, bool has_body, struct curl_slist **headers_out,
                        struct as_error *error)
{
    struct curl_slist *headers = NULL;
    if (token_file) {
        AS_CLEANUP(as_free_p) char *token = NULL;
        const int status = read_token(token_file, &token, error);
        if (status != 0)
            return status;
        AS_CLEANUP(as_free_p) char *line = as_xasprintf("Authorization: Bearer %s", token);
        headers = curl_slist_append(headers, line);
    }
    if (has_body)
        headers = curl_slist_append(headers, "Content-Type: application/json");
    *headers_out = curl_slist_append(headers, "Expect:");
    return 0;
}

static size_t http_take_body(char *data, size_t size, size_t count, void *context)
{
    struct as_buf *body = context;
    as_buf_append(body, data, size * count);
    return as_buf_check(body) == 0 ? size * count : 0;
}

static size_t http_take_header(char *data, size_t size, size_t count, void *context)
{
    struct as_buf *headers = context;
    as_buf_append(headers, data, size * count);
    return as_buf_check(headers) == 0 ? size * count : 0;
}

static void http_set_options(CURL *curl, const struct place *place, const char *ca_pem,
                             struct curl_slist *headers, const struct as_buf *body,
                             struct http_answer *answer)
{
    AS_CLEANUP(as_free_p) char *agent = as_xasprintf("alertscaler/%s", as_version_get());
    curl_easy_setopt(curl, CURLOPT_URL, place->url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, agent);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, http_take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer->body);
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, http_take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer->headers);
    if (ca_pem) {
        struct curl_blob blob = {(void *)(uintptr_t)ca_pem, strlen(ca_pem), CURL_BLOB_COPY};
        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
    }
    if (place->is_here)
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body->size > 0 ? body->data : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size);
    }
}

static int perform(const struct place *place, const char *ca_pem, struct curl_slist *headers,
                   const struct as_buf *body, struct http_answer *answer_out,
                   struct as_error *error)
{
    char text[CURL_ERROR_SIZE] = "";
    struct http_answer answer = {.body = AS_BUF_INIT(HTTP_CALL_BODY_MAX),
                                 .headers = AS_BUF_INIT(HEADERS_MAX)};
    CURL *curl = curl_easy_init();
    if (!curl)
        return -ENOMEM;
    http_set_options(curl, place, ca_pem, headers, body, &answer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
    const CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK) {
        const bool is_long = as_buf_check(&answer.body) != 0;
        as_error_set(error, "%s: %s%s", place->url,
                     is_long ? "the answer is too long"
                     : *text ? text
                             : curl_easy_strerror(code),
                     code == CURLE_COULDNT_CONNECT ? " (is the daemon running? see --url)" : "");
        http_answer_deinit(&answer);
        return code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO;
    }
    answer.status = (int)status;
    *answer_out = answer;
    return 0;
}

int http_call_run(const struct as_args *args, const char *path, const struct as_buf *body,
                  struct http_answer *answer_out, struct as_error *error)
{
    AS_CLEANUP(http_daemon_deinit) struct http_daemon daemon = {0};
    AS_CLEANUP(place_deinit) struct place place = {0};
    AS_CLEANUP(as_free_p) char *ca_pem = NULL;
    size_t ca_size;
    struct curl_slist *headers = NULL;
    int status = http_daemon_find(args, &daemon, error);
    if (status == 0)
        status = find_place(daemon.url, path, &place, error);
    if (status == 0)
        status = make_headers(daemon.token_file, body != NULL, &headers, error);
    if (status == 0 && daemon.ca_file) {
        status = as_file_read_input(daemon.ca_file, CA_FILE_MAX, &ca_pem, &ca_size);
        if (status != 0)
            as_error_set_errno(error, status, "%s", daemon.ca_file);
    }
    if (status == 0)
        status = perform(&place, ca_pem, headers, body, answer_out, error);
    curl_slist_free_all(headers);
    return status;
}

void http_answer_deinit(struct http_answer *answer)
{
    as_buf_deinit(&answer->body);
    as_buf_deinit(&answer->headers);
}

static json_t *make_safe(const json_t *value);

static json_t *make_object_safe(const json_t *object)
{
    json_t *safe = json_object();
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        AS_CLEANUP(as_free_p) char *name = as_safe_text_take(as_xstrdup(key));
        json_object_set_new(safe, name, make_safe(value));
    }
    return safe;
}

static json_t *make_array_safe(const json_t *array)
{
    json_t *safe = json_array();
    for (size_t i = 0; i < json_array_size(array); i++)
        json_array_append_new(safe, make_safe(json_array_get(array, i)));
    return safe;
}

/* A copy. Its depth is limited by the parser. */
static json_t *make_safe(const json_t *value)
{
    if (json_is_object(value))
        return make_object_safe(value);
    if (json_is_array(value))
        return make_array_safe(value);
    if (!json_is_string(value))
        return json_incref((json_t *)(uintptr_t)value);
    AS_CLEANUP(as_free_p) char *text = as_safe_text_take(as_xstrdup(json_string_value(value)));
    return json_string(text);
}

json_t *http_answer_load(const struct as_args *args, const struct http_answer *answer)
{
    const char *text = answer->body.data ? answer->body.data : "";
    const char *format = as_args_get(args, "output");
    json_t *json = json_loadb(text, answer->body.size, 0, NULL);
    if (!json || strcmp(format, "json") == 0 || strcmp(format, "yaml") == 0)
        return json;
    json_t *safe = make_safe(json);
    json_decref(json);
    return safe;
}

char *http_answer_explain(const struct http_answer *answer)
{
    const char *text = answer->body.data ? answer->body.data : "";
    json_t *json = json_loadb(text, answer->body.size, 0, NULL);
    const char *own = json_string_value(json_object_get(json, "error"));
    if (own)
        text = own;
    size_t size = strcspn(text, "\r\n");
    if (size > EXPLANATION_MAX)
        size = as_str_cut_utf8(text, size, EXPLANATION_MAX);
    const char *hint = answer->status == 401
                           ? "; --token-file or $ALERTSCALER_TOKEN_FILE names the file of one"
                           : "";
    char *line = as_xasprintf("HTTP %d%s%.*s%s", answer->status, size > 0 ? ": " : "", (int)size,
                              text, hint);
    json_decref(json);
    return as_safe_text_take(line);
}

int http_answer_refuse(const struct as_args *args, const struct http_answer *answer)
{
    AS_CLEANUP(as_free_p) char *line = http_answer_explain(answer);
    (void)as_cli_fail(args, "%s", line);
    return AS_EXIT_NO;
}

json_t *http_call_ask(const struct as_args *args, const char *path, char **problem_out,
                      int *status_out)
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    *status_out = AS_EXIT_USAGE;
    if (http_call_run(args, path, NULL, &answer, &error) != 0) {
        *problem_out = as_safe_text_take(as_xstrdup(error.text));
        return NULL;
    }
    if (answer.status != 200) {
        *problem_out = http_answer_explain(&answer);
        *status_out = AS_EXIT_NO;
        return NULL;
    }
    json_t *json = http_answer_load(args, &answer);
    if (json_object_get(json, "data"))
        return json;
    json_decref(json);
    *problem_out = as_xstrdup("the answer is not alertscaler's");
    return NULL;
}

void http_offer_targets(const struct as_args *args, struct as_spelling *spelling)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    int status;
    json_t *json = http_call_ask(args, "/api/v1/targets", &problem, &status);
    const json_t *each;
    size_t i;
    json_array_foreach(json_object_get(json, "data"), i, each)
    {
        const char *name = json_string_value(json_object_get(each, "name"));
        const char *id = json_string_value(json_object_get(each, "id"));
        as_spelling_offer(spelling, name ? name : "");
        as_spelling_offer(spelling, id ? id : "");
    }
    json_decref(json);
}

void http_suggest_target(const struct as_args *args, const char *target)
{
    struct as_spelling spelling = as_spelling_begin(target);
    http_offer_targets(args, &spelling);
    /* the same name is known, but is refused */
    if (spelling.nearest && strcmp(spelling.nearest, target) != 0)
        (void)as_cli_fail(args, "did you mean \"%s\"?", spelling.nearest);
    free(spelling.nearest);
}

static void put_member(const json_t *object, const char *key, FILE *out)
{
    const char *text = json_string_value(json_object_get(object, key));
    as_safe_text_put(out, text ? text : "");
}

void http_print_next(const json_t *target, FILE *out)
{
    const json_t *next;
    size_t i;
    json_array_foreach(json_object_get(target, "next"), i, next)
    {
        put_member(target, "name", out);
        fputs(": ", out);
        put_member(next, "text", out);
        fputs(" (rule ", out);
        put_member(next, "rule", out);
        fputs(")\n", out);
    }
}
