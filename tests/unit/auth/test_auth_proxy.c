/*
 * Persons whom a proxy in front of alertscaler reports: from where the headers count, for what they
 * count, and what is wrong with a forged one.
 */
#include <alertscaler/base/log.h>

#include "auth_gate.h"

#define USER   "X-Forwarded-User"
#define GROUPS "X-Forwarded-Groups"

static unsigned ignored;

static void on_ignored(void *context)
{
    ignored++;
}

static struct as_proxy_group groups[] = {
    {"sre", BIT(READ) | BIT(ADMIN)}, {"dev team", BIT(READ)}, {"other", 0}};

/* With a token for notifications. */
static void open_proxy(const char *certificate, const char **addresses, size_t count)
{
    ignored = 0;
    write_token("am", "am");
    struct as_token_settings token = {
        .name = "am", .file = path, .access.permissions = BIT(NOTIFY) | BIT(ADMIN)};
    const struct as_receiver_settings settings = {.tokens = &token,
                                                  .token_count = 1,
                                                  .proxy = {.header = USER,
                                                            .groups_header = GROUPS,
                                                            .certificate = certificate,
                                                            .addresses = addresses,
                                                            .address_count = count,
                                                            .groups = groups,
                                                            .group_count = AS_ARRAY_SIZE(groups)}};
    gate_config.enable_admin_api = true;
    gate_config.proxy_ignored = on_ignored;
    takes_records = false;
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    open_with(&settings, NULL);
}

TestSuite(auth_proxy, .init = setup, .fini = teardown);

static int admit(struct as_http_exchange request, enum as_permission permission, bool is_form)
{
    forget();
    exchange = request;
    exchange.path = "/";
    const enum as_http_admission admission =
        is_form ? as_auth_admit_form(auth, &exchange, "tested", permission)
                : as_auth_admit(auth, &exchange, "tested", permission);
    return admission == AS_HTTP_ADMITTED ? 200 : exchange.status;
}

#define FROM_HERE .remote = "127.0.0.1:4711"

Test(auth_proxy, a_person_reads_and_uses_forms_and_nothing_else)
{
    open_proxy(NULL, NULL, 0);
    const struct as_http_exchange ada = {FROM_HERE, .fields = {{USER, "ada"}, {GROUPS, "x, sre"}}};
    cr_expect_eq(admit(ada, AS_PERMISSION_READ, false), 200);
    cr_expect_str_eq(as_auth_get_credential(&exchange), "proxy:ada");
    cr_expect_not(as_auth_has_session(&exchange));
    cr_expect(as_auth_may_order(&exchange));
    cr_expect_eq(as_auth_check_whole(auth, &exchange, NULL), 0);
    cr_expect_eq(admit(ada, AS_PERMISSION_ADMIN, true), 200);
    cr_expect_str_eq(as_auth_get_credential(&exchange), "proxy:ada");
    cr_expect_eq(admit(ada, AS_PERMISSION_ADMIN, false), 401, "the admin API");
    cr_expect_eq(admit(ada, AS_PERMISSION_NOTIFY, false), 401, "a notification");
    const struct as_http_exchange with_token = {FROM_HERE, .authorization = "Bearer am",
                                                .fields = {{USER, "ada"}, {GROUPS, "sre"}}};
    cr_expect_eq(admit(with_token, AS_PERMISSION_NOTIFY, false), 200);
    cr_expect_str_eq(as_auth_get_credential(&exchange), "am", "the token decides");
    const struct as_http_exchange with_wrong = {FROM_HERE, .authorization = "Bearer x",
                                                .fields = {{USER, "ada"}, {GROUPS, "sre"}}};
    cr_expect_eq(admit(with_wrong, AS_PERMISSION_READ, false), 401, "a given credential decides");
    cr_expect_eq(ignored, 0);
}

Test(auth_proxy, groups_give_permissions)
{
    static const struct {
        const char *groups;
        int reads, orders;
    } rows[] = {{"sre", 200, 200},       {"dev team", 200, 403}, {" dev team ,other", 200, 403},
                {"other", 403, 403},     {"", 403, 403},         {NULL, 403, 403},
                {"sre2,xsre", 403, 403}, {"dev,team", 403, 403}, {",,sre,,", 200, 200},
                {"SRE", 403, 403}};
    open_proxy(NULL, NULL, 0);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_http_exchange request = {
            FROM_HERE, .fields = {{USER, "ada"}, {rows[i].groups ? GROUPS : NULL, rows[i].groups}}};
        cr_expect_eq(admit(request, AS_PERMISSION_READ, false), rows[i].reads, "%zu", i);
        cr_expect_eq(admit(request, AS_PERMISSION_ADMIN, true), rows[i].orders, "%zu", i);
    }
    cr_expect(strstr(exchange.body, "`proxy:ada` is in no group with the permission `admin`"), "%s",
              exchange.body);
}

Test(auth_proxy, headers_of_others_are_ignored_and_counted)
{
    open_proxy(NULL, NULL, 0);
    static const char *const remotes[] = {"192.0.2.7:1", "[2001:db8::1]:1", "128.0.0.1:1",
                                          "[::ffff:192.0.2.7]:1"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(remotes); i++) {
        const struct as_http_exchange forged = {
            .remote = remotes[i], .fields = {{USER, "ada"}, {GROUPS, "sre"}, {USER, "eve"}}};
        cr_expect_eq(admit(forged, AS_PERMISSION_READ, false), 401, "%s", remotes[i]);
    }
    cr_expect_eq(ignored, AS_ARRAY_SIZE(remotes));
    const struct as_http_exchange only_groups = {.fields = {{GROUPS, "sre"}}};
    cr_expect_eq(admit(only_groups, AS_PERMISSION_READ, false), 401);
    const struct as_http_exchange with_token = {.authorization = "Bearer am",
                                                .fields = {{USER, "ada"}}};
    cr_expect_eq(admit(with_token, AS_PERMISSION_NOTIFY, false), 200);
    cr_expect_eq(ignored, AS_ARRAY_SIZE(remotes) + 2);
    const struct as_http_exchange local = {.remote = "[::1]:1",
                                           .fields = {{USER, "ada"}, {GROUPS, "sre"}}};
    cr_expect_eq(admit(local, AS_PERMISSION_READ, false), 200);
}

Test(auth_proxy, what_may_be_a_clients_own_header_is_refused)
{
    static const struct as_http_exchange rows[] = {
        {FROM_HERE, .fields = {{USER, "ada"}, {GROUPS, "sre"}, {USER, "eve"}}},
        {FROM_HERE, .fields = {{USER, "ada"}, {GROUPS, "sre"}, {"x-forwarded-groups", "x"}}},
        {FROM_HERE, .fields = {{USER, "eve, ada"}, {GROUPS, "sre"}}},
        {FROM_HERE, .fields = {{USER, "a\tb"}, {GROUPS, "sre"}}},
        {FROM_HERE, .fields = {{USER, "a\xff"}, {GROUPS, "sre"}}},
        {FROM_HERE, .fields = {{USER, "\xe2\x80\xae"
                                      "ada"},
                               {GROUPS, "sre"}}},
    };
    open_proxy(NULL, NULL, 0);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(admit(rows[i], AS_PERMISSION_READ, false), 400, "%zu", i);
        cr_expect_eq(admit(rows[i], AS_PERMISSION_ADMIN, true), 400, "%zu", i);
        cr_expect_eq(admit(rows[i], AS_PERMISSION_NOTIFY, false), 401, "%zu", i);
    }
    char name[130];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const struct as_http_exchange too_long = {FROM_HERE, .fields = {{USER, name}, {GROUPS, "sre"}}};
    cr_expect_eq(admit(too_long, AS_PERMISSION_READ, false), 400);
    name[128] = '\0';
    cr_expect_eq(admit(too_long, AS_PERMISSION_READ, false), 200);
    const struct as_http_exchange empty = {FROM_HERE, .fields = {{USER, ""}, {GROUPS, "sre"}}};
    cr_expect_eq(admit(empty, AS_PERMISSION_READ, false), 401, "no person signed on");
}

Test(auth_proxy, a_certificate_proves_the_proxy_and_loopback_no_longer)
{
    open_proxy("proxy-*.example", NULL, 0);
    const struct as_http_exchange person = {FROM_HERE, .fields = {{USER, "ada"}, {GROUPS, "sre"}}};
    struct as_http_exchange request = person;
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 401);
    request.client_name = "web.example";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 401);
    cr_expect_eq(ignored, 2);
    request.remote = NULL;
    request.client_name = "proxy-1.example";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 200);
}

Test(auth_proxy, an_address_counts_alone_and_together_with_the_certificate)
{
    static const char *addresses[] = {"10.0.0.0/8", "192.0.2.7"};
    open_proxy(NULL, addresses, 2);
    struct as_http_exchange request = {.fields = {{USER, "ada"}, {GROUPS, "sre"}}};
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 200);
    request.remote = "10.200.0.1:1";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 200);
    request.remote = "192.0.2.8:1";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 401);
    request.remote = "127.0.0.1:1";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 401);
    as_auth_free(auth);
    open_proxy("proxy", addresses, 2);
    request.remote = "10.0.0.1:1";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 401);
    request.client_name = "proxy";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 200);
    request.remote = "11.0.0.1:1";
    cr_expect_eq(admit(request, AS_PERMISSION_READ, false), 401);
}

Test(auth_proxy, a_seal_is_of_one_person)
{
    char seal[AS_FORM_TOKEN_SIZE];
    open_proxy(NULL, NULL, 0);
    const struct as_http_exchange ada = {FROM_HERE, .fields = {{USER, "ada"}, {GROUPS, "sre"}}};
    const struct as_http_exchange bob = {FROM_HERE, .fields = {{USER, "bob"}, {GROUPS, "sre"}}};
    cr_expect_eq(admit(ada, AS_PERMISSION_READ, false), 200);
    as_auth_seal(&exchange, AS_FORM_SEALED, seal);
    cr_expect_eq(admit(ada, AS_PERMISSION_ADMIN, true), 200);
    cr_expect(as_auth_check_seal(&exchange, AS_FORM_SEALED, seal));
    cr_expect_eq(admit(bob, AS_PERMISSION_ADMIN, true), 200);
    cr_expect_not(as_auth_check_seal(&exchange, AS_FORM_SEALED, seal));
}
