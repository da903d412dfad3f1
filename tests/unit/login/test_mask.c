/*
 * Secrets in the words of a server: each is masked as it was sent, and nothing else is.
 */
#include "login/mask.h"

#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>

static struct as_buf secrets;

static void setup(void)
{
    secrets = AS_SECRETS_INIT;
}

static void teardown(void)
{
    as_buf_wipe(&secrets);
}

TestSuite(mask, .init = setup, .fini = teardown);

static void expect(int status, const char *body, const char *expected)
{
    const struct as_http_response response = {
        .outcome = AS_HTTP_ANSWERED, .status = status, .body = body, .body_size = strlen(body)};
    char *masked = as_secrets_mask(&secrets, &response);
    if (expected)
        cr_expect_str_eq(masked ? masked : "none", expected);
    else
        cr_expect_null(masked, "%s", masked);
    as_wipe_free(masked);
}

Test(mask, of_header_lines)
{
    static const char *const lines[] = {
        "Authorization: Bearer bearer-1", "authorization:Basic YmFzaWM=", "X-Auth-Token:  token-2",
        "X-Amz-Security-Token: session",  "X-Scope-OrgID: shop-of-all",   "Content-Type: text/json",
        "Authorization: bare-secret",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(lines); i++)
        as_secrets_add_header(&secrets, lines[i]);
    expect(401, "no bearer-1, no bearer-1: Bearer", "no ********, no ********: Bearer");
    expect(500, "YmFzaWM=", "********");
    expect(403, "token-2session", "**************");
    expect(403, "bare-secret", "***********");
    expect(404, "no tenant shop-of-all, no text/json", NULL);
    expect(200, "bearer-1", NULL);
    expect(204, "bearer-1", NULL);
    expect(302, "bearer-", NULL);
}

Test(mask, of_a_form)
{
    static const char form[] = "grant_type=refresh_token&client_id=my-client&client_secret=a%2fb%2B"
                               "c%zz1&refresh_token=r-1234567&scope=metrics.read&empty&assertion=";
    as_secrets_add_form(&secrets, form, strlen(form));
    expect(400, "a/b+c%zz1 a%2fb%2Bc%zz1 r-1234567", "********* ************* *********");
    expect(400, "my-client metrics.read refresh_token", NULL);
    as_secrets_add_form(&secrets, "client_secret=%41%4", 19);
    as_secrets_add_form(&secrets, "client_assertion=last-one", 25);
    expect(400, "last-one A%4", "******** A%4");
}

Test(mask, of_no_short_text)
{
    as_secrets_add(&secrets, "short", 5);
    as_secrets_add(&secrets, "with\0NUL", 8);
    expect(400, "short with", NULL);
    as_secrets_add(&secrets, "longer", 6);
    expect(400, "longer short longer", "****** short ******");
}

Test(mask, of_an_answer_only)
{
    as_secrets_add(&secrets, "longer", 6);
    const struct as_http_response broken = {
        .outcome = AS_HTTP_BROKEN, .body = "", .error = "longer"};
    cr_expect_null(as_secrets_mask(&secrets, &broken));
}
