/*
 * What browsers send: a login, a logout, and operators' orders. Orders are those of the API
 * (runtime/requests.h); only their reading and their answers are of their own.
 *
 * Three things protect a form: it comes from a page of ours (auth/browser.h), it has the seal that
 * was shown with it to this session or credential (auth/auth.h), and nothing changes by GET.
 * A login has no seal, because nobody is known yet.
 *
 * After an order the browser is redirected (303) to the page it came from, which shows the result:
 * a sealed text in the query string. docs/security.md describes all this.
 */
#ifndef ALERTSCALER_UI_FORMS_H
#define ALERTSCALER_UI_FORMS_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/http/server.h>
#include <alertscaler/rules/external_url.h>
#include <alertscaler/ui/api.h>

struct as_auth;
struct as_forms;
struct as_operators_request;

struct as_forms_config { /* all borrowed */
    struct as_auth *auth;
    struct as_api *api; /* prints the pages */
    const struct as_external_url *external_url;
    void (*order)(void *context, const struct as_operators_request *request);
    void *context;
};

struct as_forms *as_forms_new(const struct as_forms_config *config) AS_MUST_USE;
struct as_forms *as_forms_free(struct as_forms *forms);

/* By the head of a form, before its body is read: false after refusing it. */
bool as_forms_check(struct as_forms *forms, struct as_http_exchange *exchange, const char *handler);

void as_forms_show_login(struct as_forms *forms, struct as_http_exchange *exchange);
void as_forms_log_in(struct as_forms *forms, struct as_http_exchange *exchange);
void as_forms_log_out(struct as_forms *forms, struct as_http_exchange *exchange);

/* `encoded_what`: as in as_operators_request. */
void as_forms_order(struct as_forms *forms, struct as_http_exchange *exchange, const char *who,
                    enum as_operator_command_kind kind, const char *encoded_what);
/* The order's answer: as_operators_form_fn, with the forms as context. */
void as_forms_answer_order(void *context, struct as_http_exchange *exchange, int status,
                           const char *text);

/* For as_auth_config.offer_login: answers a browser that can log in with the way there. */
bool as_forms_offer_login(const struct as_forms *forms, struct as_http_exchange *exchange);

/* For as_auth_config.show_refusal: answers a browser with a page. */
bool as_forms_show_refusal(const struct as_forms *forms, struct as_http_exchange *exchange,
                           int status, const char *headers, const char *problem);

AS_DEFINE_CLEANUP(struct as_forms *, as_forms_free)

#endif
