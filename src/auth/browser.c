/*
 * Each check is by an exact text: what a browser sends as `Origin` is normalized.
 */
#include <alertscaler/auth/browser.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>

#define FORM_TYPE "application/x-www-form-urlencoded"

/* "localhost:9096", "127.0.0.1:4711", "[::1]:80" */
static bool is_this_machine(const char *authority)
{
    char url[AS_URL_HOST_SIZE + 32];
    const int size = snprintf(url, sizeof(url), "http://%s", authority ? authority : "");
    return size > 0 && (size_t)size < sizeof(url) && !strpbrk(authority ? authority : "", "/?#") &&
           as_url_is_private(url);
}

bool as_browser_is_local(const struct as_http_exchange *exchange)
{
    return is_this_machine(as_http_exchange_get_remote(exchange)) &&
           is_this_machine(as_http_exchange_find_header(exchange, "Host"));
}

bool as_browser_may_log_in(const struct as_http_exchange *exchange,
                           const struct as_external_url *url)
{
    return url->is_https || as_browser_is_local(exchange);
}

bool as_browser_wants_page(const struct as_http_exchange *exchange)
{
    const char *accept = as_http_exchange_find_header(exchange, "Accept");
    return accept && strstr(accept, "text/html");
}

bool as_browser_comes_from_elsewhere(const struct as_http_exchange *exchange)
{
    const char *site = as_http_exchange_find_header(exchange, "Sec-Fetch-Site");
    return as_str_equal(site, "cross-site") || as_str_equal(site, "same-site");
}

/* Whether `origin` is "http://HOST" or "https://HOST" of this request. */
static bool is_own_host(const struct as_http_exchange *exchange, const char *origin)
{
    const char *host = as_http_exchange_find_header(exchange, "Host");
    const char *authority = strstr(origin, "://");
    return host && authority && as_str_starts_with(origin, "http") &&
           strcasecmp(authority + strlen("://"), host) == 0;
}

/* Whether the page's origin is the address of this machine that the browser uses. */
static bool is_local_page(const struct as_http_exchange *exchange, const char *origin)
{
    return as_browser_is_local(exchange) && is_own_host(exchange, origin);
}

int as_browser_check_sender(const struct as_http_exchange *exchange,
                            const struct as_external_url *url, struct as_error *error)
{
    const char *site = as_http_exchange_find_header(exchange, "Sec-Fetch-Site");
    const char *origin = as_http_exchange_find_header(exchange, "Origin");
    if (site && strcmp(site, "same-origin") != 0) {
        as_error_set(error, "a page of another site sent this request (Sec-Fetch-Site: %.32s)",
                     site);
        return 403;
    }
    if (!as_str_is_empty(origin) && strcmp(origin, url->origin) != 0 &&
        !is_local_page(exchange, origin)) {
        as_error_set(error,
                     "a page of %.200s sent this request, but --web.external-url is %s: use that "
                     "address, or correct the option",
                     origin, url->base);
        return 403;
    }
    return 0;
}

static int check_source(const struct as_http_exchange *exchange, const struct as_external_url *url,
                        struct as_form_way *way_out, struct as_error *error)
{
    const char *origin = as_http_exchange_find_header(exchange, "Origin");
    const int status = as_browser_check_sender(exchange, url, error);
    if (status != 0)
        return status;
    if (as_str_is_empty(origin)) {
        as_error_set(error, "the header Origin is missing: forms are for browsers; programs use "
                            "the API");
        return 403;
    }
    if (!is_local_page(exchange, origin) && !url->is_https) {
        as_error_set(error, "forms are accepted only over TLS, with an https --web.external-url, "
                            "or from this machine");
        return 403;
    }
    way_out->is_local = !as_str_starts_with(origin, "https:");
    return 0;
}

static int check_body(const struct as_http_exchange *exchange, struct as_error *error)
{
    const char *type = as_http_exchange_find_header(exchange, "Content-Type");
    const char *length = as_http_exchange_find_header(exchange, "Content-Length");
    const size_t size = strlen(FORM_TYPE);
    int64_t bytes = 0;
    if (!type || strncasecmp(type, FORM_TYPE, size) != 0 || !strchr("; \t", type[size])) {
        as_error_set(error, "a form is sent as " FORM_TYPE);
        return 415;
    }
    if (!length) { /* nothing of a body without a limit is read for a stranger */
        as_error_set(error, "a form is sent with its Content-Length");
        return 411;
    }
    if (as_number_parse_i64(length, strlen(length), &bytes) != 0 ||
        bytes > (int64_t)AS_FORM_BODY_MAX) {
        as_error_set(error, "a form has at most %zu bytes", AS_FORM_BODY_MAX);
        return 413;
    }
    return 0;
}

int as_browser_check_form(const struct as_http_exchange *exchange,
                          const struct as_external_url *url, struct as_form_way *way_out,
                          struct as_error *error)
{
    struct as_form_way way = {0};
    int status = check_source(exchange, url, &way, error);
    if (status == 0)
        status = check_body(exchange, error);
    if (status == 0)
        *way_out = way;
    return status;
}
