/*
 * The gate: what is open, what needs which credential, and the answers and records of refusals. The
 * exchange is simulated; credentials are real ones, from files.
 */
#include <alertscaler/base/log.h>

#include "auth_gate.h"

TestSuite(auth, .init = setup, .fini = teardown);

static void open_gate(bool enable_admin_api, struct as_token_settings *tokens, size_t count)
{
    struct as_credentials *credentials;
    auth = as_auth_new(&(struct as_auth_config){
        .clock = &test_clock, .enable_admin_api = enable_admin_api, .denied = on_denied});
    char files[3][64];
    for (size_t i = 0; i < count; i++) {
        write_token(tokens[i].name, tokens[i].name);
        (void)snprintf(files[i], sizeof(files[i]), "%s/%s", folder, tokens[i].name);
        tokens[i].file = files[i];
    }
    const struct as_receiver_settings settings = {.tokens = tokens, .token_count = count};
    cr_assert_eq(as_credentials_new(&settings, NULL, &credentials, NULL), 0);
    cr_assert_null(as_auth_swap_credentials(auth, credentials));
}

static void open_three(bool enable_admin_api)
{
    struct as_token_settings tokens[] = {
        {.name = "am", .access.permissions = BIT(NOTIFY)},
        {.name = "prometheus", .access.permissions = BIT(READ)},
        {.name = "operator", .access.permissions = BIT(READ) | BIT(ADMIN)},
    };
    open_gate(enable_admin_api, tokens, 3);
}

static int ask(const char *where, const char *authorization, enum as_permission permission)
{
    forget();
    exchange = (struct as_http_exchange){.path = where, .authorization = authorization};
    const enum as_http_admission admission = as_auth_admit(auth, &exchange, "tested", permission);
    cr_assert_eq(admission == AS_HTTP_ADMITTED ? 0 : 1, exchange.replies);
    return admission == AS_HTTP_ADMITTED ? 200 : exchange.status;
}

Test(auth, without_credentials_everyone_notifies_and_reads_and_nobody_administers)
{
    open_gate(true, NULL, 0);
    cr_expect_eq(ask("/webhook", NULL, AS_PERMISSION_NOTIFY), 200);
    cr_expect_str_eq(as_auth_get_credential(&exchange), "");
    cr_expect_eq(ask("/metrics", "Bearer whatever", AS_PERMISSION_READ), 200);
    cr_expect_eq(ask("/-/reload", NULL, AS_PERMISSION_ADMIN), 403);
    cr_expect(strstr(exchange.body, "permissions: [admin]"), "%s", exchange.body);
}

Test(auth, each_credential_may_do_what_it_was_given)
{
    static const struct {
        const char *authorization;
        int notify, read, admin;
    } rows[] = {
        {"Bearer am", 200, 403, 403},
        {"Bearer prometheus", 403, 200, 403},
        {"Bearer operator", 403, 200, 200},
        {"bearer   operator", 403, 200, 200}, /* schemes have no case */
        {"Bearer nobody", 401, 401, 401},
        {"Bearer ", 401, 401, 401},
        {"Bearer", 401, 401, 401},
        {"Basic b3BlcmF0b3I6", 401, 401, 401},
        {"operator", 401, 401, 401},
        {"", 401, 401, 401},
        {NULL, 401, 401, 401},
    };
    open_three(true);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const char *given = rows[i].authorization;
        cr_expect_eq(ask("/webhook", given, AS_PERMISSION_NOTIFY), rows[i].notify, "row %zu", i);
        cr_expect_eq(ask("/metrics", given, AS_PERMISSION_READ), rows[i].read, "row %zu", i);
        cr_expect_eq(ask("/-/reload", given, AS_PERMISSION_ADMIN), rows[i].admin, "row %zu", i);
        if (exchange.status == 401)
            cr_expect_str_eq(exchange.headers,
                             "WWW-Authenticate: Bearer realm=\"alertscaler\"\r\n");
    }
}

Test(auth, the_name_stays_with_the_request_whatever_is_reloaded)
{
    struct as_credentials *none;
    open_three(true);
    cr_assert_eq(ask("/webhook", "Bearer am", AS_PERMISSION_NOTIFY), 200);
    cr_assert_eq(as_credentials_new(&(struct as_receiver_settings){0}, NULL, &none, NULL), 0);
    as_credentials_free(as_auth_swap_credentials(auth, none));
    cr_expect_str_eq(as_auth_get_credential(&exchange), "am");
}

Test(auth, the_admin_api_is_closed_unless_it_is_asked_for)
{
    open_three(false);
    cr_expect_eq(ask("/-/reload", "Bearer operator", AS_PERMISSION_ADMIN), 403);
    cr_expect(strstr(exchange.body, "--web.enable-admin-api"), "%s", exchange.body);
}

Test(auth, a_refusal_names_what_is_missing_and_never_what_was_given)
{
    open_three(true);
    cr_expect_eq(ask("/api/v1/targets", "Bearer a-secret-guess", AS_PERMISSION_READ), 401);
    cr_expect_str_eq(exchange.body,
                     "{\"status\":\"error\",\"errorType\":\"unauthorized\",\"error\":"
                     "\"the bearer token is not one of receiver.tokens\"}\n");
    cr_expect_eq(ask("/webhook", "Bearer prometheus", AS_PERMISSION_NOTIFY), 403);
    cr_expect_str_eq(exchange.body,
                     "the credential `prometheus` lacks the permission `notify`: use another "
                     "credential, or add `notify` to `permissions` of this credential in the "
                     "configuration\n");
}

Test(auth, refusals_are_recorded_once_in_a_while_with_their_count)
{
    open_three(true);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(ask("/webhook", "Bearer wrong", AS_PERMISSION_NOTIFY), 401);
        now.us += AS_US_PER_MS;
    }
    cr_expect_eq(record_count, 1);
    cr_expect_eq(record_status, 401);
    as_auth_poll(auth);
    cr_expect_eq(record_count, 1);
    now.us += 59 * AS_US_PER_S;
    as_auth_poll(auth); /* the attack has ended, and its size is known all the same */
    cr_expect_eq(record_count, 2);
    cr_expect_eq(record_sum, 1000);
    now.us += 60 * AS_US_PER_S;
    takes_records = false; /* nowhere to put it: it is tried again */
    cr_assert_eq(ask("/webhook", NULL, AS_PERMISSION_NOTIFY), 401);
    takes_records = true;
    as_auth_poll(auth);
    cr_expect_eq(record_count, 3);
    cr_expect_eq(record_sum, 1001);
    cr_assert_eq(ask("/webhook", NULL, AS_PERMISSION_NOTIFY), 401);
    as_auth_conclude(auth); /* the end does not wait */
    cr_expect_eq(record_count, 4);
    cr_expect_eq(record_sum, 1002);
}

/* A standby keeps no action log, and is attacked all the same. */
Test(auth, refusals_are_logged_where_they_cannot_be_recorded)
{
    char name[] = "/tmp/test-auth-log-XXXXXX", text[4096] = "";
    const int fd = mkstemp(name);
    cr_assert_geq(fd, 0);
    (void)unlink(name);
    as_log_configure(AS_LOG_WARN, AS_LOG_LOGFMT, fd);
    open_three(true);
    takes_records = false;
    for (int i = 0; i < 300; i++)
        cr_assert_eq(ask("/webhook", "Bearer wrong", AS_PERMISSION_NOTIFY), 401);
    now.us += 60 * AS_US_PER_S;
    as_auth_poll(auth);
    cr_assert_eq(ask("/webhook", "Bearer wrong", AS_PERMISSION_NOTIFY), 401);
    auth = as_auth_free(auth);
    as_log_configure(AS_LOG_WARN, AS_LOG_LOGFMT, STDERR_FILENO);
    cr_assert_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
    unsigned lines = 0, sum = 0;
    for (const char *at = text; (at = strstr(at, "request denied")); at++) {
        lines++;
        at = strstr(at, "count=");
        sum += (unsigned)strtoul(at + 6, NULL, 10);
    }
    cr_expect_eq(lines, 3, "%s", text);
    cr_expect_eq(sum, 301, "%s", text);
    close(fd);
}

/* What was asked last, when its password has been checked. */
static int wait_for_answer(void)
{
    while (exchange.admitted + exchange.replies == 0)
        cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    cr_assert_eq(exchange.admitted + exchange.replies, 1);
    return exchange.admitted ? 200 : exchange.status;
}

static enum as_http_admission begin(const char *authorization, enum as_permission permission)
{
    forget();
    exchange = (struct as_http_exchange){.path = "/metrics", .authorization = authorization};
    return as_auth_admit(auth, &exchange, "tested", permission);
}

Test(auth, a_password_is_checked_later_and_the_next_time_at_once)
{
    open_with(&reader_reads, &with_users);
    cr_assert_eq(begin(BASIC_READER, AS_PERMISSION_READ), AS_HTTP_PENDING);
    cr_expect_eq(wait_for_answer(), 200);
    cr_expect_str_eq(as_auth_get_credential(&exchange), "reader");
    cr_expect_eq(begin(BASIC_READER, AS_PERMISSION_READ), AS_HTTP_ADMITTED);
    cr_expect_eq(begin(BASIC_READER, AS_PERMISSION_NOTIFY), AS_HTTP_REPLIED);
    cr_expect_eq(exchange.status, 403);
    cr_assert_eq(begin(BASIC_WRITER, AS_PERMISSION_NOTIFY), AS_HTTP_PENDING);
    cr_expect_eq(wait_for_answer(), 200);
}

Test(auth, who_is_wrong_is_not_told_what_is)
{
    open_with(&reader_reads, &with_users);
    char said[2][128];
    const char *const wrong[] = {BASIC_WRONG, BASIC_NOBODY};
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(begin(wrong[i], AS_PERMISSION_READ), AS_HTTP_PENDING);
        cr_assert_eq(wait_for_answer(), 401);
        cr_expect_str_eq(exchange.headers, "WWW-Authenticate: Basic realm=\"alertscaler\"\r\n");
        (void)snprintf(said[i], sizeof(said[i]), "%s", exchange.body);
    }
    cr_expect_str_eq(said[0], said[1]);
}

Test(auth, after_ten_wrong_ones_only_what_is_known_is_looked_at)
{
    open_with(&reader_reads, &with_users);
    cr_assert_eq(begin(BASIC_READER, AS_PERMISSION_READ), AS_HTTP_PENDING);
    cr_assert_eq(wait_for_answer(), 200);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(begin(BASIC_WRONG, AS_PERMISSION_READ), AS_HTTP_PENDING);
        cr_assert_eq(wait_for_answer(), 401);
    }
    cr_expect_eq(begin(BASIC_WRONG, AS_PERMISSION_READ), AS_HTTP_REPLIED);
    cr_expect_eq(exchange.status, 503);
    cr_expect(strstr(exchange.headers, "Retry-After: "));
    cr_expect_eq(begin(BASIC_READER, AS_PERMISSION_READ), AS_HTTP_ADMITTED);
    now.us += 6 * AS_US_PER_S;
    cr_expect_eq(begin(BASIC_WRONG, AS_PERMISSION_READ), AS_HTTP_PENDING);
    (void)wait_for_answer();
}

/* The peer goes away, and the credentials are others, while the password is being checked. */
Test(auth, what_happens_meanwhile_does_no_harm)
{
    struct as_credentials *none;
    open_with(&reader_reads, &with_users);
    cr_assert_eq(begin(BASIC_READER, AS_PERMISSION_READ), AS_HTTP_PENDING);
    forget();
    cr_assert_eq(begin(BASIC_WRITER, AS_PERMISSION_READ), AS_HTTP_PENDING);
    users[0].name = "other";
    cr_assert_eq(as_credentials_new(&(struct as_receiver_settings){0},
                                    &(struct as_web_settings){.users = users, .user_count = 1},
                                    &none, NULL),
                 0);
    users[0].name = "reader";
    as_credentials_free(as_auth_swap_credentials(auth, none));
    cr_expect_eq(wait_for_answer(), 401);
    cr_assert_eq(begin(BASIC_WRITER, AS_PERMISSION_READ), AS_HTTP_PENDING); /* and the end comes */
}

/* The old password does not let in once more. */
Test(auth, a_password_that_is_changed_while_it_is_checked_is_asked_for_again)
{
    struct as_credentials *later;
    open_with(&reader_reads, &with_users);
    cr_assert_eq(begin(BASIC_READER, AS_PERMISSION_READ), AS_HTTP_PENDING);
    struct as_web_user other = {"reader", OTHER_HASH};
    cr_assert_eq(as_credentials_new(&reader_reads,
                                    &(struct as_web_settings){.users = &other, .user_count = 1},
                                    &later, NULL),
                 0);
    as_credentials_free(as_auth_swap_credentials(auth, later));
    cr_expect_eq(wait_for_answer(), 503);
    cr_expect_eq(begin(BASIC_READER, AS_PERMISSION_READ), AS_HTTP_PENDING);
    cr_expect_eq(wait_for_answer(), 401);
}

Test(auth, what_is_no_user_and_password_is_refused_at_once)
{
    static const char *const rows[] = {"Basic",          "Basic ",        "Basic =",
                                       "Basic ====",     "Basic YQ==",    "Basic YTpi!",
                                       "Basic YQBhOmI=", "Basic cmVhZGVy"};
    open_with(&reader_reads, &with_users);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(begin(rows[i], AS_PERMISSION_READ), AS_HTTP_REPLIED, "%s", rows[i]);
        cr_expect_eq(exchange.status, 401, "%s", rows[i]);
    }
}

Test(auth, a_certificate_is_a_credential_where_it_is_named)
{
    struct as_certificate_settings certificates[] = {
        {.name = "ams", .subject = "am-*.example", .access.permissions = 1}};
    const struct as_receiver_settings settings = {.certificates = certificates,
                                                  .certificate_count = 1};
    open_with(&settings, NULL);
    static const struct {
        const char *name;
        int status;
    } rows[] = {{"am-0.example", 200}, {"am-0.example.org", 401}, {"", 401}, {NULL, 401}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        forget();
        exchange = (struct as_http_exchange){.path = "/webhook", .client_name = rows[i].name};
        const bool is_in =
            as_auth_admit(auth, &exchange, "tested", AS_PERMISSION_NOTIFY) == AS_HTTP_ADMITTED;
        cr_expect_eq(is_in ? 200 : exchange.status, rows[i].status, "row %zu", i);
        cr_expect_str_eq(as_auth_get_credential(&exchange), is_in ? "ams" : "");
    }
}

Test(auth, a_signature_is_known_when_the_body_is_there)
{
    write_token("am", "sesame");
    struct as_hmac_settings hmac[] = {
        {.name = "grafana", .secret_file = path, .header = "X-Signature", .access.permissions = 1}};
    const struct as_receiver_settings settings = {.hmac = hmac, .hmac_count = 1};
    open_with(&settings, NULL);
    static const struct {
        const char *signature;
        bool is_right;
    } rows[] = {{"8e6033a502f8c683d8d9a9cb5ac42d00fa5a4e9ab83cb4ce403eba9e11b0bc24", true},
                {"00000000000000000000000000000000000000000000000000000000000000ff", false}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        forget();
        exchange = (struct as_http_exchange){
            .path = "/webhook", .signature = rows[i].signature, .sent = "{\"a\":1}"};
        cr_assert_eq(as_auth_admit(auth, &exchange, "tested", AS_PERMISSION_NOTIFY),
                     AS_HTTP_ADMITTED);
        cr_expect_str_eq(as_auth_get_credential(&exchange), "");
        cr_expect_eq(as_auth_verify_body(auth, &exchange), rows[i].is_right);
        cr_expect_eq(exchange.status, rows[i].is_right ? 0 : 401);
        cr_expect_str_eq(as_auth_get_credential(&exchange), rows[i].is_right ? "grafana" : "");
    }
    forget();
    exchange = (struct as_http_exchange){.path = "/metrics", .signature = rows[0].signature};
    cr_expect_eq(as_auth_admit(auth, &exchange, "tested", AS_PERMISSION_READ), AS_HTTP_REPLIED);
}
