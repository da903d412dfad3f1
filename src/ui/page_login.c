/*
 * The pages around a login. They are shown to everybody: nothing of the replica is in them, not
 * even its version.
 */
#include <alertscaler/auth/auth.h>
#include <alertscaler/auth/browser.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/external_url.h>

#include "page.h"

static void page_login_begin(struct api_request *request, const char *title, bool has_form)
{
    page_begin(request,
               &(struct page_head){
                   .title = title, .place = PAGE_ELSEWHERE, .has_form = has_form, .is_open = true});
}

static void print_problem(struct as_buf *out, const char *problem)
{
    as_buf_append_str(out, "<p class=\"note bad\" role=\"alert\">");
    html_text(out, problem);
    as_buf_append_str(out, "</p>\n");
}

static const char *find_to(const struct api_request *request)
{
    return request->note ? request->note->to : api_parameter_find(request, "to");
}

/* To the address that nobody can read on the way to, whatever address this page has. */
static void begin_login(const struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    const struct as_external_url *url = request->view.external_url;
    const char *to = find_to(request);
    as_buf_append_str(out, "<form class=\"order\" method=\"post\" action=\"");
    as_buf_append_str(out, as_browser_is_local(request->exchange) ? as_external_url_get_path(url)
                                                                  : url->base);
    as_buf_append_str(out, "/login\">\n");
    if (to) {
        as_buf_append_str(out, "<input type=\"hidden\" name=\"to\"");
        html_attribute(out, "value", to);
        as_buf_append_str(out, ">\n");
    }
}

static void print_forms(const struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    if (request->view.has_passwords) {
        page_part(request, "With a name and a password");
        begin_login(request);
        as_buf_append_str(out,
                          "<label>Name<input name=\"user\" autocomplete=\"username\" required>"
                          "</label>\n<label>Password<input name=\"password\" type=\"password\" "
                          "autocomplete=\"current-password\" required></label>\n"
                          "<button>Log in</button></form>\n");
    }
    if (request->view.has_tokens) {
        page_part(request, "With a token");
        begin_login(request);
        as_buf_append_str(out, "<label>Token<input name=\"token\" type=\"password\" "
                               "autocomplete=\"off\" required></label>\n"
                               "<button>Log in with the token</button></form>\n");
    }
}

void page_answer_login(struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    const struct as_external_url *url = request->view.external_url;
    const bool is_possible = as_browser_may_log_in(request->exchange, url);
    const bool has_ways = request->view.has_passwords || request->view.has_tokens;
    page_login_begin(request, "Log in", true);
    if (request->note)
        print_problem(out, request->note->text);
    if (!has_ways)
        html_element(out, "p", NULL,
                     "Nobody can log in: no user with a password and no token is configured.");
    else if (!is_possible)
        html_element(out, "p", NULL,
                     "A password may be typed only where nobody can read it on the way: over TLS "
                     "with an https --web.external-url, or on the machine of alertscaler.");
    else
        print_forms(request);
    if (is_possible && has_ways && !as_browser_is_local(request->exchange)) {
        as_buf_append_str(out, "<p class=\"dim\">This works at ");
        html_text(out, url->base);
        as_buf_append_str(out, "/login, the address of --web.external-url.</p>\n");
    }
    page_end(request, request->note ? request->note->status : 200);
}

void page_answer_refused(struct api_request *request)
{
    const bool is_missing = request->note->status == 404; /* its reader was admitted */
    page_begin(request, &(struct page_head){.title = is_missing ? "Nothing is here" : "Refused",
                                            .place = PAGE_ELSEWHERE,
                                            .is_open = !is_missing});
    print_problem(page_get_out(request), request->note->text);
    page_end(request, request->note->status);
}

/* A page of another site led here, so that the browser did not send the cookie: it does if the way
 * goes on from a page of ours. */
void page_answer_again(struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_free_p)
    char *path = as_xasprintf("%s%s", page_root(request), request->note->to);
    page_begin(request, &(struct page_head){.title = "One moment",
                                            .place = PAGE_ELSEWHERE,
                                            .is_open = true,
                                            .leads_to = path});
    as_buf_append_str(out, "<p>");
    html_link(out, path, "", "Go on");
    as_buf_append_str(out, "</p>\n");
    page_end(request, 200);
}

void page_answer_account(struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    const bool has_session = as_auth_has_session(request->exchange);
    page_begin(request, &(struct page_head){.title = "Account",
                                            .place = PAGE_ELSEWHERE,
                                            .document = "operators.md#in-a-browser",
                                            .has_form = true,
                                            .stays = true});
    as_buf_append_str(out, "<p>");
    if (as_str_is_empty(request->who)) {
        html_text(out, "alertscaler asks for no credential: everyone may read.");
    } else {
        html_text(out, has_session ? "You are logged in as "
                                   : "Your browser sends with each request the credential ");
        html_element(out, "strong", NULL, request->who);
        html_text(out, as_auth_may_order(request->exchange) ? ", which may read and give orders."
                                                            : ", which may read.");
    }
    as_buf_append_str(out, "</p>\n");
    if (has_session) {
        page_begin_form(request, "/logout");
        as_buf_append_str(out, "<button>Log out</button></form>\n");
    }
    page_end(request, 200);
}
