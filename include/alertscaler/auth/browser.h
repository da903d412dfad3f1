/*
 * What the head of a browser's request says about its way here, and about the page that sent it.
 *
 * A browser's request that may change something is accepted only from a page of ours: `Origin` must
 * be that of --web.external-url, and `Sec-Fetch-Site` must be `same-origin`. A browser on this
 * machine may also use the address that it sees: http://localhost:9096, maybe through `kubectl
 * port-forward`. For that the peer must be this machine and `Host` an address of it, so that no
 * other name that leads here counts (DNS rebinding). Programs send neither header. A form needs
 * `Origin`, and TLS unless the browser is on this machine.
 */
#ifndef ALERTSCALER_AUTH_BROWSER_H
#define ALERTSCALER_AUTH_BROWSER_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/http/server.h>
#include <alertscaler/rules/external_url.h>

/* The limit of a form's body. */
#define AS_FORM_BODY_MAX ((size_t)16 * 1024)

/* The browser runs on this machine, as far as the connection and `Host` say. */
bool as_browser_is_local(const struct as_http_exchange *exchange);

/* Whether a password may be typed into a page of this request: nobody can read it on the way. */
bool as_browser_may_log_in(const struct as_http_exchange *exchange,
                           const struct as_external_url *url);

/* Whether this is a browser that wants a page, by `Accept`. */
bool as_browser_wants_page(const struct as_http_exchange *exchange);

/* Whether a page of another site led here: then the browser keeps a session's cookie to itself. */
bool as_browser_comes_from_elsewhere(const struct as_http_exchange *exchange);

/* 0; or 403 with an error: a page of another site sent this request. 0 also for programs. By the
 * head alone. */
int as_browser_check_sender(const struct as_http_exchange *exchange,
                            const struct as_external_url *url, struct as_error *error) AS_MUST_USE;

/* What a form's request is. */
struct as_form_way {
    bool is_local; /* over plain HTTP from this machine: a cookie cannot be `Secure` */
};

/* 0; or the status of the refusal (403, 411, 413, 415) with an error for the browser's user. By the
 * head alone, before the body is read. */
int as_browser_check_form(const struct as_http_exchange *exchange,
                          const struct as_external_url *url, struct as_form_way *way_out,
                          struct as_error *error) AS_MUST_USE;

#endif
