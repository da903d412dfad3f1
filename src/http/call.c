/*
 * A request in curl's terms, and curl's results in ours.
 *
 * The environment has no influence: no proxy variables, no netrc, no redirects, only http and
 * https. Curl itself sends a request again when a kept connection is closed before the first byte
 * of the answer. For reads this is welcome. But a change whose answer was lost would then conflict
 * with itself. So a change is sent only once; if that fails, its outcome is open.
 */
#include "call.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#define HEAD_MAX     ((size_t)64 * 1024)
#define PEM_MAX      ((size_t)1024 * 1024)
#define DEAD_AFTER_S 30L

#define SET(call, option, value)                                                                   \
    do {                                                                                           \
        if ((call)->setup == CURLE_OK)                                                             \
            (call)->setup = curl_easy_setopt((call)->easy, (option), (value));                     \
    } while (0)

int64_t as_http_call_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000;
}

/* For on_body, in a later turn. While there is no room for more, curl waits. */
static size_t take_part(struct as_http_call *call, const char *bytes, size_t size)
{
    if (call->part.size + size > AS_HTTP_PART_MAX) {
        call->is_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    as_buf_append(&call->part, bytes, size);
    call->wake(call);
    return size;
}

static size_t take_body(char *bytes, size_t one, size_t size, void *context)
{
    struct as_http_call *call = context;
    call->heard_us = as_http_call_now();
    if (call->is_streamed)
        return take_part(call, bytes, size);
    as_buf_append(&call->body, bytes, size);
    call->too_large = as_buf_check(&call->body) != 0;
    return call->too_large ? CURL_WRITEFUNC_ERROR : size;
}

static void trim(const char **from_io, const char **to_io)
{
    while (*from_io < *to_io && (**from_io == ' ' || **from_io == '\t'))
        ++*from_io;
    while (*to_io > *from_io && strchr(" \t\r\n", (*to_io)[-1]))
        --*to_io;
}

/* The value without white space around it; empty if it is too long. */
static void keep_value(const char *from, const char *to, char *value_out, size_t room)
{
    trim(&from, &to);
    size_t size = (size_t)(to - from);
    if (size >= room)
        size = 0;
    memcpy(value_out, from, size);
    value_out[size] = '\0';
}

/* "name\0value\0", if the line is a field, not a status line or part of a folded line. */
static void keep_field(struct as_buf *fields, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size);
    if (!colon || colon == line || *line == ' ' || *line == '\t' || memchr(line, '\0', size))
        return;
    const char *from = colon + 1, *to = line + size;
    trim(&from, &to);
    as_buf_append(fields, line, (size_t)(colon - line));
    as_buf_append_char(fields, '\0');
    as_buf_append(fields, from, (size_t)(to - from));
    as_buf_append_char(fields, '\0');
}

/* The head is there. */
static void end_head(struct as_http_call *call)
{
    long status = 0;
    if (call->on_body && !call->is_streamed &&
        curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
        status / 100 == 2) {
        call->is_streamed = true;
        call->wake(call);
    }
}

static size_t take_header(char *line, size_t one, size_t size, void *context)
{
    struct as_http_call *call = context;
    const struct {
        const char *name;
        char *value;
        size_t room;
    } kept[] = {
        {"etag:", call->etag, sizeof(call->etag)},
        {"retry-after:", call->retry_after, sizeof(call->retry_after)},
        {"content-type:", call->content_type, sizeof(call->content_type)},
        {"location:", call->location, sizeof(call->location)},
    };
    call->heard_us = as_http_call_now();
    call->head_size += size;
    call->too_large = call->head_size > HEAD_MAX;
    if (call->too_large)
        return 0;
    bool is_status_line = size > 5 && strncasecmp(line, "HTTP/", 5) == 0;
    if (is_status_line)
        as_buf_clear(&call->fields);
    else
        keep_field(&call->fields, line, size);
    for (size_t i = 0; i < AS_ARRAY_SIZE(kept); i++) {
        size_t name_size = strlen(kept[i].name);
        if (is_status_line) /* what came before belongs to a 1xx answer */
            kept[i].value[0] = '\0';
        else if (size > name_size && strncasecmp(line, kept[i].name, name_size) == 0)
            keep_value(line + name_size, line + size, kept[i].value, kept[i].room);
    }
    if (*line == '\r' || *line == '\n')
        end_head(call);
    return size;
}

/*
 * Close-on-exec; and given up when sent data stays unacknowledged. Otherwise a time-out would end
 * only its call, and HTTP/2 would use the dead connection for the next call, for a quarter of an
 * hour.
 */
static int prepare_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    const unsigned limit_ms = (unsigned)DEAD_AFTER_S * 1000;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms)) != 0)
        return CURL_SOCKOPT_ERROR;
    return CURL_SOCKOPT_OK;
}

static void append(struct as_http_call *call, struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer)
        *list = longer;
    else
        call->setup = CURLE_OUT_OF_MEMORY;
}

static void set_headers(struct as_http_call *call, const struct as_http_request *request)
{
    bool has_type = false;
    for (const char *const *line = request->headers; line && *line; line++) {
        if (strpbrk(*line, "\r\n")) {
            snprintf(call->error, sizeof(call->error), "a request header has a line break in it");
            return;
        }
        has_type = has_type || strncasecmp(*line, "Content-Type:", 13) == 0;
        append(call, &call->headers, *line);
    }
    append(call, &call->headers, "Expect:"); /* saves a round trip; our bodies are small */
    if (!has_type)
        append(call, &call->headers, "Content-Type:"); /* not the type that curl guesses */
}

/* Called before every sending of the request. */
static int allow_once(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct as_http_call *call = context;
    call->wants_again = call->was_begun;
    call->was_begun = true;
    return call->wants_again ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void set_method(struct as_http_call *call, const struct as_http_request *request)
{
    bool without_body = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    if (request->body_size > 0 || (!without_body && strcmp(request->method, "DELETE") != 0)) {
        SET(call, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
        SET(call, CURLOPT_COPYPOSTFIELDS, request->body_size > 0 ? request->body : "");
    }
    if (!without_body) {
        SET(call, CURLOPT_PREREQFUNCTION, allow_once);
        SET(call, CURLOPT_PREREQDATA, call);
    }
    if (strcmp(request->method, "HEAD") == 0)
        SET(call, CURLOPT_NOBODY, 1L);
    else
        SET(call, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_pem(struct as_http_call *call, CURLoption option, const char *pem)
{
    if (!pem)
        return;
    struct curl_blob blob = {
        .data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    SET(call, option, &blob);
}

/* Curl would wait in the loop for the other end of a pipe. By the content, unlike by the name, curl
 * also knows that a connection was made with an older certificate. */
static void set_pem_file(struct as_http_call *call, CURLoption option, const char *path)
{
    char *pem;
    size_t size;
    if (!path || call->error[0])
        return;
    const int status = as_file_read(path, PEM_MAX, &pem, &size);
    if (status) {
        snprintf(call->error, sizeof(call->error), "%s: %s", path, as_errno_get_text(status));
        return;
    }
    if (*pem)
        set_pem(call, option, pem);
    else
        snprintf(call->error, sizeof(call->error), "%s: is empty", path);
    as_wipe_free(pem);
}

static void set_tls(struct as_http_call *call, const struct as_http_tls *tls)
{
    SET(call, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    set_pem_file(call, CURLOPT_CAINFO_BLOB, tls->ca_file);
    set_pem_file(call, CURLOPT_SSLCERT_BLOB, tls->cert_file);
    set_pem_file(call, CURLOPT_SSLKEY_BLOB, tls->key_file);
    set_pem(call, CURLOPT_CAINFO_BLOB, tls->ca_pem);
    set_pem(call, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
    set_pem(call, CURLOPT_SSLKEY_BLOB, tls->key_pem);
    if (tls->insecure_skip_verify) {
        SET(call, CURLOPT_SSL_VERIFYPEER, 0L);
        SET(call, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/*
 * The name for SNI and verification is not the URL's host. Curl supports this only the other way
 * round: a URL with that name, and a connection to another address.
 */
static void set_named_url(struct as_http_call *call, const char *url, const char *server_name)
{
    char *host = NULL, *port = NULL, *named = NULL;
    CURLU *parts = curl_url();
    bool done = parts && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
                curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_set(parts, CURLUPART_HOST, server_name, 0) == CURLUE_OK &&
                curl_url_get(parts, CURLUPART_URL, &named, 0) == CURLUE_OK;
    if (done) {
        AS_CLEANUP(as_free_p) char *route = as_xasprintf("::%s:%s", host, port);
        AS_CLEANUP(as_free_p) char *line = as_xasprintf("Host: %s:%s", host, port);
        append(call, &call->connect_to, route);
        append(call, &call->headers, line);
        SET(call, CURLOPT_CONNECT_TO, call->connect_to);
        SET(call, CURLOPT_URL, named);
    } else {
        snprintf(call->error, sizeof(call->error), "the URL or the TLS server name is malformed");
    }
    curl_free(host);
    curl_free(port);
    curl_free(named);
    curl_url_cleanup(parts);
}

static void set_options(struct as_http_call *call, const struct as_http_request *request)
{
    SET(call, CURLOPT_PRIVATE, call);
    SET(call, CURLOPT_ERRORBUFFER, call->error);
    SET(call, CURLOPT_NOSIGNAL, 1L);
    SET(call, CURLOPT_QUICK_EXIT, 1L); /* else a cancel waits for a slow name server, in the loop */
    SET(call, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(call, CURLOPT_PROXY, request->proxy_url ? request->proxy_url : "");
    SET(call, CURLOPT_NOPROXY, "");
    if (request->on_body)
        SET(call, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's 200 is not the answer's */
    const bool is_tls = strncasecmp(request->url, "https:", 6) == 0;
    const bool is_known = request->is_http2 && !is_tls;
    SET(call, CURLOPT_HTTP_VERSION,
        (long)(is_known ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_2TLS));
    /* Curl 7.88 breaks such a connection with its next request, which starts HTTP/2 again. */
    SET(call, CURLOPT_FRESH_CONNECT, is_known ? 1L : 0L);
    SET(call, CURLOPT_FORBID_REUSE, is_known ? 1L : 0L);
    /* Shares one connection if TLS tells early that it is HTTP/2. Without TLS curl would learn it
     * from the first answer, and a server that hangs would block all other calls. */
    SET(call, CURLOPT_PIPEWAIT, is_tls ? 1L : 0L);
    SET(call, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(call, CURLOPT_TCP_KEEPIDLE, DEAD_AFTER_S);
    SET(call, CURLOPT_TCP_KEEPINTVL, DEAD_AFTER_S / 3);
    SET(call, CURLOPT_USERAGENT, "alertscaler");
    SET(call, CURLOPT_SOCKOPTFUNCTION, prepare_socket);
    SET(call, CURLOPT_WRITEFUNCTION, take_body);
    SET(call, CURLOPT_WRITEDATA, call);
    SET(call, CURLOPT_HEADERFUNCTION, take_header);
    SET(call, CURLOPT_HEADERDATA, call);
    if (is_tls)
        set_tls(call, &request->tls);
    set_headers(call, request);
    if (as_str_is_empty(request->tls.server_name))
        SET(call, CURLOPT_URL, request->url);
    else
        set_named_url(call, request->url, request->tls.server_name);
    SET(call, CURLOPT_HTTPHEADER, call->headers);
    set_method(call, request);
}

struct as_http_call *as_http_call_new(const struct as_http_request *request, as_http_done_fn *done,
                                      void *context)
{
    struct as_http_call *call = as_xcalloc(1, sizeof(*call));
    call->class = request->class;
    call->client_name = request->client_name;
    call->operation = request->operation ? request->operation : "";
    call->done = done;
    call->context = context;
    call->body = AS_BUF_INIT(request->max_response);
    call->fields = AS_BUF_INIT(HEAD_MAX);
    call->part = AS_BUF_INIT(AS_HTTP_PART_MAX);
    call->on_body = request->on_body;
    call->idle_us = request->idle_us;
    call->easy = curl_easy_init();
    if (call->easy)
        set_options(call, request);
    else
        call->setup = CURLE_OUT_OF_MEMORY;
    if (call->setup != CURLE_OK && call->error[0] == '\0')
        snprintf(call->error, sizeof(call->error), "%s", curl_easy_strerror(call->setup));
    return call;
}

struct as_http_call *as_http_call_free(struct as_http_call *call)
{
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    curl_slist_free_all(call->connect_to);
    as_buf_deinit(&call->body);
    as_buf_deinit(&call->fields);
    as_buf_deinit(&call->part);
    free(call);
    return NULL;
}

void as_http_call_settle_unsent(struct as_http_call *call, const char *error)
{
    call->outcome = AS_HTTP_UNREACHABLE;
    if (error != call->error)
        snprintf(call->error, sizeof(call->error), "%s", error);
}

/* Whether bytes of the request went out, in any attempt; a proxy's CONNECT counts too. */
static bool has_sent(const struct as_http_call *call)
{
    long size = 0;
    return curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &size) != CURLE_OK || size > 0;
}

/* A 401 is complete without its body: nothing was carried out, and other credentials are needed.
 * Kubernetes closes the connection of a client with wrong credentials, sometimes before the whole
 * body was sent (UnauthenticatedHTTP2DOSMitigation). A 401 or 403 whose body is too large, for
 * example the page of a proxy, has the beginning of this body. */
static bool is_whole(const struct as_http_call *call, CURLcode result, long status)
{
    if (result == CURLE_OK)
        return true;
    if (call->head_size > HEAD_MAX || result == CURLE_OPERATION_TIMEDOUT)
        return false;
    return status == 401 || (status == 403 && call->too_large);
}

void as_http_call_settle(struct as_http_call *call, CURLcode result)
{
    long status = 0;
    if (curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status > 0 &&
        is_whole(call, result, status)) {
        call->outcome = AS_HTTP_ANSWERED;
        call->status = (int)status;
        call->error[0] = '\0';
        return;
    }
    if (call->wants_again)
        snprintf(call->error, sizeof(call->error), "the connection was closed without an answer");
    else if (call->error[0] == '\0')
        snprintf(call->error, sizeof(call->error), "%s", curl_easy_strerror(result));
    if (!has_sent(call)) {
        call->outcome = AS_HTTP_UNREACHABLE;
    } else if (call->too_large) {
        call->outcome = AS_HTTP_TOO_LARGE;
        snprintf(call->error, sizeof(call->error), "the answer is larger than %zu bytes",
                 call->head_size > HEAD_MAX ? HEAD_MAX : call->body.max);
    } else {
        call->outcome = result == CURLE_OPERATION_TIMEDOUT ? AS_HTTP_TIMEOUT : AS_HTTP_BROKEN;
    }
}

bool as_http_call_hand_over(struct as_http_call *call)
{
    call->has_part = false;
    call->is_handing = true;
    bool wants_more = call->on_body(call->context, call->content_type,
                                    call->part.data ? call->part.data : "", call->part.size);
    call->is_handing = false;
    as_buf_clear(&call->part);
    return wants_more;
}

void as_http_call_settle_refused(struct as_http_call *call)
{
    call->outcome = AS_HTTP_BROKEN;
    snprintf(call->error, sizeof(call->error), "the answer was not what its reader expects");
}

void as_http_call_get_response(const struct as_http_call *call, struct as_http_response *response)
{
    bool answered = call->outcome == AS_HTTP_ANSWERED;
    *response = (struct as_http_response){
        .outcome = call->outcome,
        .status = call->status,
        .body = answered && call->body.data ? call->body.data : "",
        .body_size = answered ? call->body.size : 0,
        .etag = answered ? call->etag : "",
        .retry_after = answered ? call->retry_after : "",
        .content_type = answered ? call->content_type : "",
        .location = answered ? call->location : "",
        .fields = answered ? call->fields.data : NULL,
        .error = call->error,
    };
}
