/*
 * Credentials of OpenStack: every request to Keystone byte by byte, and the results of its answers
 * (as Keystone 22 gives them).
 */
#include "op_driver.h"

#include <alertscaler/login/cloud_credentials.h>

#define URL "https://keystone:5000/v3/auth/tokens"
#define ENDPOINT(interface, region, url)                                                           \
    "{\"id\":\"e\",\"interface\":\"" interface "\",\"region_id\":\"" region                        \
    "\",\"region\":\"" region "\",\"url\":\"" url "\"}"
#define SERVICE(type, endpoints)                                                                   \
    "{\"endpoints\":[" endpoints "],\"type\":\"" type "\",\"name\":\"n\"}"
#define TOKEN(services)                                                                            \
    "{\"token\":{\"methods\":[\"password\"],\"expires_at\":\"2024-05-17T11:20:30.000000Z\","       \
    "\"catalog\":[" services "]}}"
#define MAGNUM                                                                                     \
    SERVICE("identity", ENDPOINT("public", "RegionOne", "https://keystone:5000/v3"))               \
    "," SERVICE("container-infra",                                                                 \
                ENDPOINT("admin", "RegionOne", "https://admin/v1") "," ENDPOINT(                   \
                    "public", "RegionTwo", "https://two/v1") "," ENDPOINT("public", "RegionOne",   \
                                                                          "https://one/v1"))

static void set_user(void)
{
    driver_set("OS_AUTH_URL", "https://keystone:5000/v3");
    driver_set("OS_USERNAME", "scaler");
    driver_set("OS_USER_DOMAIN_NAME", "Default");
    driver_set("OS_PASSWORD", "p\"\\w");
    driver_set("OS_PROJECT_NAME", "prod");
    driver_set("OS_PROJECT_DOMAIN_ID", "default");
}

#define USER "{\"name\":\"scaler\",\"domain\":{\"name\":\"Default\"}"
#define BY_PASSWORD(user, scope)                                                                   \
    "{\"auth\":{\"identity\":{\"methods\":[\"password\"],\"password\":{\"user\":" user "}},"       \
    "\"scope\":" scope "}}"
#define PROD "{\"project\":{\"name\":\"prod\",\"domain\":{\"id\":\"default\"}}}"

static struct as_cloud_op *begin(struct driver_source *given, const char *name)
{
    driver_begin_source(given, openstack_credentials, name);
    return &given->op.op;
}

static void answer_token(struct as_cloud_op *op, const char *body)
{
    driver_respond(op, (struct as_http_response){
                           .status = 201, .body = body, .fields = "X-Subject-Token\0gAAA-_b\0"});
}

Test(credentials_openstack, password)
{
    struct driver_source given = {0};
    set_user();
    struct as_cloud_op *op = begin(&given, "password");
    driver_expect(op, "POST", URL, BY_PASSWORD(USER ",\"password\":\"p\\\"\\\\w\"}", PROD));
    driver_expect_headers(op, "Content-Type: application/json\n");
    cr_expect(op->request.is_plain);
    cr_expect_not(op->request.is_change);
    driver_set("OS_REGION_NAME", "RegionOne");
    answer_token(op, TOKEN(MAGNUM));
    driver_expect_found(&given, NULL, NULL, "gAAA-_b", NULL);
    cr_expect_str_eq(given.op.found.endpoint, "https://one/v1");
    cr_expect(given.op.found.expires.set);
    cr_expect_eq(given.op.found.expires.at.us, DRIVER_NOW.us + 3600 * AS_US_PER_S);
    driver_end_source(&given);
}

Test(credentials_openstack, ways_to_name_user_and_scope)
{
    static const struct {
        const char *variables[8]; /* name, value; NULL at the end */
        const char *body;
    } rows[] = {
        {{"OS_USER_ID", "u-1"}, BY_PASSWORD("{\"id\":\"u-1\",\"password\":\"p\\\"\\\\w\"}", PROD)},
        {{"OS_USER_DOMAIN_ID", "d-1"},
         BY_PASSWORD("{\"name\":\"scaler\",\"domain\":{\"id\":\"d-1\"},"
                     "\"password\":\"p\\\"\\\\w\"}",
                     PROD)},
        {{"OS_PROJECT_ID", "p-1"},
         BY_PASSWORD(USER ",\"password\":\"p\\\"\\\\w\"}", "{\"project\":{\"id\":\"p-1\"}}")},
        {{"OS_PROJECT_NAME", "", "OS_TENANT_NAME", "old"},
         BY_PASSWORD(USER ",\"password\":\"p\\\"\\\\w\"}",
                     "{\"project\":{\"name\":\"old\",\"domain\":{\"id\":\"default\"}}}")},
        {{"OS_TRUST_ID", "t-1"},
         BY_PASSWORD(USER ",\"password\":\"p\\\"\\\\w\"}",
                     "{\"OS-TRUST:trust\":{\"id\":\"t-1\"}}")},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        driver_variable_count = 0;
        set_user();
        for (size_t v = 0; rows[i].variables[v]; v += 2)
            driver_set(rows[i].variables[v], rows[i].variables[v + 1]);
        struct as_cloud_op *op = begin(&given, "password");
        driver_expect(op, "POST", URL, rows[i].body);
        driver_end_source(&given);
    }
}

Test(credentials_openstack, addresses_of_keystone)
{
    static const struct {
        const char *given, *url;
    } rows[] = {
        {"https://k/v3", "https://k/v3/auth/tokens"},
        {"https://k/v3/", "https://k/v3/auth/tokens"},
        {"https://k//", "https://k/v3/auth/tokens"},
        {"https://k/identity", "https://k/identity/v3/auth/tokens"},
        {"http://127.0.0.1:5000/v2.0/", "http://127.0.0.1:5000/v3/auth/tokens"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        set_user();
        driver_variables[0].value = rows[i].given;
        driver_expect(begin(&given, "password"), "POST", rows[i].url,
                      BY_PASSWORD(USER ",\"password\":\"p\\\"\\\\w\"}", PROD));
        driver_end_source(&given);
        driver_variable_count = 0;
    }
}

/* Options come before the environment; the file is read each time. */
Test(credentials_openstack, password_of_a_file)
{
    struct driver_source given = {0};
    set_user();
    driver_set("OS_AUTH_TYPE", "v3oidcpassword");
    driver_set("OS_CLOUD", "prod");
    driver_source_option(&given, "auth_url", "https://other");
    driver_source_option(&given, "username", "bot");
    driver_source_option(&given, "project_id", "p-2");
    driver_source_option(&given, "password_file", "/etc/password");
    struct as_cloud_op *op = begin(&given, "password");
    driver_expect_file(op, "/etc/password");
    driver_content(op, "secret\n", 0);
    driver_expect(op, "POST", "https://other/v3/auth/tokens",
                  BY_PASSWORD("{\"name\":\"bot\",\"domain\":{\"name\":\"Default\"},"
                              "\"password\":\"secret\"}",
                              "{\"project\":{\"id\":\"p-2\"}}"));
    driver_end_source(&given);
}

Test(credentials_openstack, application_credential)
{
    static const struct {
        const char *id, *name, *user, *proof;
    } rows[] = {
        {"a-1", "n", NULL, "{\"id\":\"a-1\",\"secret\":\"s\"}"},
        {NULL, "n", "scaler",
         "{\"name\":\"n\",\"secret\":\"s\",\"user\":{\"name\":\"scaler\",\"domain\":"
         "{\"name\":\"Default\"}}}"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        char body[512];
        driver_variable_count = 0;
        driver_set("OS_AUTH_URL", "https://keystone:5000");
        driver_set("OS_APPLICATION_CREDENTIAL_ID", rows[i].id);
        driver_set("OS_APPLICATION_CREDENTIAL_NAME", rows[i].name);
        driver_set("OS_APPLICATION_CREDENTIAL_SECRET", "s");
        driver_set("OS_USERNAME", rows[i].user);
        driver_set("OS_USER_DOMAIN_NAME", "Default");
        driver_set("OS_PROJECT_ID", "it has one of its own");
        snprintf(body, sizeof(body),
                 "{\"auth\":{\"identity\":{\"methods\":[\"application_credential\"],"
                 "\"application_credential\":%s}}}",
                 rows[i].proof);
        struct as_cloud_op *op = begin(&given, "application credential");
        driver_expect(op, "POST", URL, body);
        driver_end_source(&given);
    }
}

Test(credentials_openstack, application_credential_of_a_file)
{
    struct driver_source given = {0};
    set_user();
    driver_source_option(&given, "application_credential_id", "a-2");
    driver_source_option(&given, "application_credential_secret_file", "/etc/secret");
    struct as_cloud_op *op = begin(&given, "application credential");
    driver_expect_file(op, "/etc/secret");
    driver_content(op, NULL, 13);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "cannot read /etc/secret: Permission denied");
    cr_expect_not(given.op.is_not_here);
    driver_end_source(&given);
}

/* Which way it is: each is "not here" for the other. */
Test(credentials_openstack, order_of_ways)
{
    static const struct {
        const char *type, *secret, *password, *secret_file, *password_file;
        bool is_application, is_password;
    } rows[] = {
        {NULL, NULL, NULL, NULL, NULL, false, false},
        {NULL, "s", NULL, NULL, NULL, true, false},
        {NULL, NULL, "p", NULL, NULL, false, true},
        {NULL, "s", "p", NULL, NULL, true, false},
        {"password", "s", "p", NULL, NULL, false, true},
        {"v3password", "s", "p", NULL, NULL, false, true},
        {"v3applicationcredential", "s", "p", NULL, NULL, true, false},
        {NULL, "s", NULL, NULL, "/f", false, true},
        {"v3password", NULL, "p", "/f", NULL, true, false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        for (int way = 0; way < 2; way++) {
            struct driver_source given = {0};
            driver_variable_count = 0;
            driver_set("OS_AUTH_URL", "https://k");
            driver_set("OS_AUTH_TYPE", rows[i].type);
            driver_set("OS_APPLICATION_CREDENTIAL_SECRET", rows[i].secret);
            driver_set("OS_PASSWORD", rows[i].password);
            if (rows[i].secret_file)
                driver_source_option(&given, "application_credential_secret_file", "/f");
            if (rows[i].password_file)
                driver_source_option(&given, "password_file", "/f");
            (void)begin(&given, way == 0 ? "application credential" : "password");
            cr_expect_eq(given.op.is_not_here,
                         !(way == 0 ? rows[i].is_application : rows[i].is_password),
                         "row %zu, way %d", i, way);
            driver_end_source(&given);
        }
    }
}

Test(credentials_openstack, what_is_missing_is_named)
{
    static const struct {
        const char *variable, *message;
    } rows[] = {
        {"OS_AUTH_URL", "Keystone's address is not known: set `auth_url` (or OS_AUTH_URL)"},
        {"OS_USERNAME", "the user is not known: set `username` (or OS_USERNAME)"},
        {"OS_USER_DOMAIN_NAME",
         "the domain of the user is not known: set `user_domain_name` (or OS_USER_DOMAIN_NAME)"},
        {"OS_PROJECT_NAME", "the project is not known: set `project_name` (or OS_PROJECT_NAME)"},
        {"OS_PROJECT_DOMAIN_ID", "the domain of the project is not known: set "
                                 "`project_domain_name` (or OS_PROJECT_DOMAIN_NAME)"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        driver_variable_count = 0;
        set_user();
        driver_set(rows[i].variable, "");
        driver_expect_end(begin(&given, "password"), AS_CLOUD_OP_CONFIGURATION, rows[i].message);
        cr_expect_not(given.op.is_not_here);
        driver_end_source(&given);
    }
}

Test(credentials_openstack, secret_that_is_missing)
{
    struct driver_source given = {0};
    driver_set("OS_AUTH_TYPE", "v3applicationcredential");
    driver_expect_end(begin(&given, "application credential"), AS_CLOUD_OP_CONFIGURATION,
                      "the secret is not known: set `application_credential_secret_file` (or "
                      "OS_APPLICATION_CREDENTIAL_SECRET)");
    driver_end_source(&given);

    struct driver_source other = {0};
    driver_set("OS_APPLICATION_CREDENTIAL_SECRET", "s");
    driver_expect_end(begin(&other, "application credential"), AS_CLOUD_OP_CONFIGURATION,
                      "the application credential is not known: set `application_credential_id` "
                      "(or OS_APPLICATION_CREDENTIAL_ID)");
    driver_end_source(&other);
}

/* What the environment asks for and is not done here is not passed over. */
Test(credentials_openstack, environments_that_are_not_supported)
{
    struct driver_source given = {0};
    set_user();
    driver_set("OS_AUTH_TYPE", "v3oidcpassword");
    driver_expect_end(begin(&given, "application credential"), AS_CLOUD_OP_CONFIGURATION,
                      "OS_AUTH_TYPE is v3oidcpassword: only v3applicationcredential and v3password "
                      "are supported");
    driver_end_source(&given);

    struct driver_source other = {0};
    driver_set("OS_AUTH_TYPE", "");
    driver_set("OS_CLOUD", "prod");
    driver_expect_end(begin(&other, "password"), AS_CLOUD_OP_CONFIGURATION,
                      "OS_CLOUD is set, but clouds.yaml is not read: set the provider's own keys, "
                      "or OS_AUTH_URL and its like");
    driver_end_source(&other);
}

/* ---- the catalogue ---- */

Test(credentials_openstack, endpoints_of_a_catalogue)
{
    static const struct {
        const char *region, *interface, *services, *endpoint; /* NULL: none */
    } rows[] = {
        {NULL, NULL, MAGNUM, "https://two/v1"},
        {"RegionTwo", "public", MAGNUM, "https://two/v1"},
        {"RegionOne", "publicURL", MAGNUM, "https://one/v1"},
        {NULL, "admin", MAGNUM, "https://admin/v1"},
        {NULL, "adminURL", MAGNUM, "https://admin/v1"},
        {"RegionTwo", "admin", MAGNUM, NULL},
        {NULL, "publicly", MAGNUM, NULL},
        {"RegionThree", NULL, MAGNUM, NULL},
        {NULL, NULL, "", NULL},
        {NULL, NULL, SERVICE("container", ENDPOINT("public", "r", "https://old/v1")),
         "https://old/v1"},
        {NULL, NULL,
         SERVICE("container", ENDPOINT("public", "r", "https://old/v1")) "," SERVICE(
             "container-infrastructure-management", ENDPOINT("public", "r", "https://new/v1")),
         "https://new/v1"},
        {NULL, NULL, SERVICE("container-infra", ENDPOINT("public", "r", "")), NULL},
        {NULL, NULL, "7", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        char body[4096];
        driver_variable_count = 0;
        set_user();
        driver_set("OS_REGION_NAME", rows[i].region);
        driver_set("OS_INTERFACE", rows[i].interface);
        struct as_cloud_op *op = begin(&given, "password");
        snprintf(body, sizeof(body), TOKEN("%s"), rows[i].services);
        answer_token(op, body);
        if (rows[i].endpoint)
            driver_expect_found(&given, NULL, NULL, "gAAA-_b", NULL);
        else
            cr_expect_eq(op->fault, AS_CLOUD_OP_CONFIGURATION, "row %zu", i);
        cr_expect(as_str_equal(given.op.found.endpoint, rows[i].endpoint), "row %zu: %s", i,
                  given.op.found.endpoint);
        driver_end_source(&given);
    }
}

Test(credentials_openstack, endpoint_that_is_not_in_the_catalogue)
{
    struct driver_source given = {0};
    set_user();
    driver_set("OS_REGION_NAME", "RegionThree");
    answer_token(begin(&given, "password"), TOKEN(MAGNUM));
    driver_expect_end(&given.op.op, AS_CLOUD_OP_CONFIGURATION,
                      "Keystone's catalogue has no service container-infra with a public endpoint "
                      "in region RegionThree: see `region` and `interface`, or set `endpoint`");
    cr_expect_null(given.op.found.token);
    driver_end_source(&given);
}

Test(credentials_openstack, endpoint_of_the_account_needs_no_catalogue)
{
    struct driver_source given = {0};
    set_user();
    driver_source_option(&given, "endpoint", "https://magnum");
    answer_token(begin(&given, "password"), "{\"token\":{}}");
    driver_expect_found(&given, NULL, NULL, "gAAA-_b", NULL);
    cr_expect_null(given.op.found.endpoint);
    cr_expect_not(given.op.found.expires.set);
    driver_end_source(&given);
}

/* ---- what JSON cannot say ---- */

Test(credentials_openstack, texts_that_are_not_utf8_are_named)
{
    static const char *const names[] = {"OS_PASSWORD", "OS_USERNAME", "OS_PROJECT_NAME",
                                        "OS_USER_DOMAIN_NAME"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        struct driver_source given = {0};
        char message[64];
        driver_variable_count = 0;
        set_user();
        driver_set(names[i], "caf\xe9");
        snprintf(message, sizeof(message), "%s is not UTF-8", names[i]);
        driver_expect_end(begin(&given, "password"), AS_CLOUD_OP_CONFIGURATION, message);
        driver_end_source(&given);
    }
    static const char *const files[][2] = {
        {"password_file", "password"},
        {"application_credential_secret_file", "application credential"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(files); i++) {
        struct driver_source given = {0};
        driver_variable_count = 0;
        set_user();
        driver_source_option(&given, files[i][0], "/etc/secret");
        driver_source_option(&given, "application_credential_id", "a");
        struct as_cloud_op *op = begin(&given, files[i][1]);
        driver_content(op, "caf\xe9", 0);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "/etc/secret is not UTF-8");
        driver_end_source(&given);
    }
}

/* ---- secrets in clear ---- */

#define CATALOGUE(url) TOKEN(SERVICE("container-infra", ENDPOINT("public", "r", url)))

/* The environment and a catalogue may not lead there; what stands in the configuration may. */
Test(credentials_openstack, secrets_go_in_clear_only_where_the_account_says_so)
{
    static const struct {
        const char *option, *variable, *message;
    } rows[] = {
        {NULL, "http://127.0.0.1:5000", ""},
        {NULL, "https://k", ""},
        {"http://k:5000", NULL, ""},
        {"http://k:5000", "http://other", ""},
        {NULL, "http://k:5000",
         "OS_AUTH_URL is an address with http://, where others could read the secret on its way: "
         "use https://, or set `auth_url` if that is meant"},
        {NULL, "http://u:hidden@k:5000",
         "OS_AUTH_URL is not a URL like https://host:5000/v3, without credentials in it"},
        {NULL, "/v3",
         "OS_AUTH_URL is not a URL like https://host:5000/v3, without credentials in it"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        driver_variable_count = 0;
        set_user();
        driver_set("OS_AUTH_URL", rows[i].variable);
        if (rows[i].option)
            driver_source_option(&given, "auth_url", rows[i].option);
        struct as_cloud_op *op = begin(&given, "password");
        if (*rows[i].message)
            driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
        else
            cr_expect_eq(op->want, AS_CLOUD_OP_SEND, "row %zu: %s", i, op->message);
        driver_end_source(&given);
    }
}

Test(credentials_openstack, a_token_goes_in_clear_only_where_the_secret_did)
{
    static const struct {
        const char *auth_url, *body, *message;
    } rows[] = {
        {"https://k", CATALOGUE("http://127.0.0.1:9511"), ""},
        {"http://k", CATALOGUE("http://magnum/v1"), ""},
        {"https://k", CATALOGUE("http://magnum/v1"),
         "Keystone's catalogue has http://magnum/v1 for Magnum, where others could read the token "
         "on its way: set `endpoint` if that is meant"},
        {"http://k", CATALOGUE("http://u:p@magnum/v1"),
         "what Keystone's catalogue has for Magnum is not a URL like https://host/v1: set "
         "`endpoint`"},
        {"http://k", CATALOGUE("ftp://magnum"),
         "what Keystone's catalogue has for Magnum is not a URL like https://host/v1: set "
         "`endpoint`"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        driver_variable_count = 0;
        set_user();
        driver_source_option(&given, "auth_url", rows[i].auth_url);
        answer_token(begin(&given, "password"), rows[i].body);
        driver_expect_end(&given.op.op,
                          *rows[i].message ? AS_CLOUD_OP_CONFIGURATION : AS_CLOUD_OP_OK,
                          rows[i].message);
        driver_end_source(&given);
    }
}

/* ---- errors ---- */

Test(credentials_openstack, errors_of_keystone)
{
    static const struct {
        int status;
        const char *body, *fields;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {401,
         "{\"error\":{\"code\":401,\"message\":\"The request you have made requires "
         "authentication.\",\"title\":\"Unauthorized\"}}",
         "", AS_CLOUD_OP_UNAUTHORIZED,
         "get_keystone_token: HTTP 401: The request you have made requires authentication."},
        {400, "{\"error\":{\"message\":\"Expecting to find domain in user.\"}}", "",
         AS_CLOUD_OP_CONFIGURATION,
         "get_keystone_token: HTTP 400: Expecting to find domain in user."},
        {404, "{\"error\":{\"message\":\"(http://x/v3/v3/auth/tokens): not found.\"}}", "",
         AS_CLOUD_OP_CONFIGURATION,
         "get_keystone_token: HTTP 404: (http://x/v3/v3/auth/tokens): not found."},
        {403, "<html/>", "", AS_CLOUD_OP_PERMISSION, "get_keystone_token: HTTP 403"},
        {429, "", "", AS_CLOUD_OP_THROTTLED, "get_keystone_token: HTTP 429"},
        {503, "", "", AS_CLOUD_OP_RETRY, "get_keystone_token: HTTP 503"},
        {300, "{\"versions\":{}}", "", AS_CLOUD_OP_CONFIGURATION, "get_keystone_token: HTTP 300"},
        {201, "{\"token\":{}}", "", AS_CLOUD_OP_RETRY,
         "get_keystone_token: the answer has no X-Subject-Token"},
        {201, "{\"tok", "X-Subject-Token\0t\0", AS_CLOUD_OP_RETRY,
         "get_keystone_token: the answer is not JSON: premature end of input near '\"tok'"},
        {201, "{}", "X-Subject-Token\0t\0", AS_CLOUD_OP_RETRY,
         "get_keystone_token: the answer has no token"},
    };
    set_user();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        struct as_cloud_op *op = begin(&given, "password");
        driver_respond(op, (struct as_http_response){.status = rows[i].status,
                                                     .body = rows[i].body,
                                                     .fields = rows[i].fields});
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_null(given.op.found.token);
        driver_end_source(&given);
    }
}

Test(credentials_openstack, keystone_that_does_not_answer)
{
    struct driver_source given = {0};
    set_user();
    struct as_cloud_op *op = begin(&given, "password");
    driver_break(op, AS_HTTP_UNREACHABLE, "connection refused");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "get_keystone_token: connection refused");
    driver_end_source(&given);
}
