/*
 * Credentials of Azure: in the order of its own libraries, every request byte by byte.
 */
#include "op_driver.h"

#include <alertscaler/login/cloud_credentials.h>

#define TOKEN_URL "https://login.microsoftonline.com/ten-1/oauth2/v2.0/token"
#define SCOPE     "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
#define TOKEN     "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"ey.J-0_x\"}"
#define IMDS                                                                                       \
    "http://169.254.169.254/metadata/identity/oauth2/"                                             \
    "token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F"

static struct as_cloud_op *begin(struct driver_source *given, const char *name)
{
    driver_begin_source(given, azure_credentials, name);
    return &given->op.op;
}

static void set_identity(void)
{
    driver_set("AZURE_TENANT_ID", "ten-1");
    driver_set("AZURE_CLIENT_ID", "cli-1");
}

static void expect_token(const struct driver_source *given, int64_t expires_s)
{
    driver_expect_found(given, NULL, NULL, "ey.J-0_x", NULL);
    cr_expect(given->op.found.expires.set);
    cr_expect_eq(given->op.found.expires.at.us, expires_s * AS_US_PER_S);
}

/* The order of DefaultAzureCredential, as far as these kinds go. */
Test(credentials_azure, order_is_the_vendors)
{
    static const char *const names[] = {"client secret", "workload identity", "managed identity"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        cr_expect_str_eq(azure_credentials[i].name, names[i]);
    cr_expect_null(azure_credentials[AS_ARRAY_SIZE(names)].name);
}

/* ---- client secret ---- */

Test(credentials_azure, secret_of_the_environment)
{
    struct driver_source given = {0};
    set_identity();
    driver_set("AZURE_CLIENT_SECRET", "s3~cr&et=");
    struct as_cloud_op *op = begin(&given, "client secret");
    driver_expect(op, "POST", TOKEN_URL,
                  "grant_type=client_credentials&client_id=cli-1" SCOPE
                  "&client_secret=s3~cr%26et%3D");
    driver_expect_headers(op, "Content-Type: application/x-www-form-urlencoded\n");
    cr_expect(op->request.is_plain);
    cr_expect_not(op->request.is_change);
    cr_expect_not(op->request.without_proxy);
    driver_answer(op, 200, TOKEN);
    expect_token(&given, 1715941230 + 3599);
    driver_end_source(&given);
}

/* Options come before the environment; the file is read each time, without its last line's end. */
Test(credentials_azure, secret_of_a_file)
{
    struct driver_source given = {0};
    set_identity();
    driver_set("AZURE_CLIENT_SECRET", "other");
    driver_source_option(&given, "tenant_id", "ten/2");
    driver_source_option(&given, "client_id", "cli-2");
    driver_source_option(&given, "client_secret_file", "/etc/secret");
    struct as_cloud_op *op = begin(&given, "client secret");
    driver_expect_file(op, "/etc/secret");
    driver_content(op, " s3cret\r\n", 0);
    driver_expect(op, "POST", "https://login.microsoftonline.com/ten%2F2/oauth2/v2.0/token",
                  "grant_type=client_credentials&client_id=cli-2" SCOPE "&client_secret=s3cret");
    driver_end_source(&given);
}

/* What the account itself says is not outdone by the environment. */
Test(credentials_azure, secret_of_the_environment_is_for_its_own_client)
{
    static const struct {
        const char *key, *value;
        bool is_used;
    } rows[] = {
        {"federated_token_file", "/var/run/token", false},
        {"client_id", "another", false},
        {"client_id", "CLI-1", true},
        {"tenant_id", "ten-2", true},
    };
    static const char *const variables[] = {"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH"};
    set_identity();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows) * AS_ARRAY_SIZE(variables); i++) {
        struct driver_source given = {0};
        const size_t row = i / AS_ARRAY_SIZE(variables), variable = i % AS_ARRAY_SIZE(variables);
        driver_set(variables[variable], "s");
        driver_set(variables[1 - variable], "");
        driver_source_option(&given, rows[row].key, rows[row].value);
        const struct as_cloud_op *op = begin(&given, "client secret");
        cr_expect_eq(given.op.is_not_here, !rows[row].is_used, "row %zu: %s", row, op->message);
        driver_end_source(&given);
    }
    struct driver_source given = {0}; /* one without a client in the environment is anybody's */
    driver_set("AZURE_CLIENT_SECRET", "s");
    driver_set("AZURE_CLIENT_ID", "");
    driver_source_option(&given, "client_id", "another");
    cr_expect_eq(begin(&given, "client secret")->want, AS_CLOUD_OP_SEND);
    driver_end_source(&given);
}

Test(credentials_azure, files_that_hold_nothing)
{
    static const struct {
        const char *content;
        int error_number;
        const char *message;
    } cases[] = {
        {NULL, 2, "cannot read /etc/secret: No such file or directory"},
        {"", 0, "/etc/secret is empty"},
        {" \n\t", 0, "/etc/secret is empty"},
    };
    set_identity();
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_source given = {0};
        driver_source_option(&given, "client_secret_file", "/etc/secret");
        struct as_cloud_op *op = begin(&given, "client secret");
        driver_content(op, cases[i].content, cases[i].error_number);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, cases[i].message);
        cr_expect_not(given.op.is_not_here);
        driver_end_source(&given);
    }
}

/* What is set up in part is an error, and not passed over. */
Test(credentials_azure, secret_needs_an_identity)
{
    struct driver_source given = {0};
    driver_set("AZURE_CLIENT_SECRET", "s");
    struct as_cloud_op *op = begin(&given, "client secret");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "AZURE_CLIENT_SECRET is set, but `tenant_id` (or AZURE_TENANT_ID) is not");
    driver_end_source(&given);

    struct driver_source other = {0};
    driver_set("AZURE_TENANT_ID", "ten-1");
    driver_source_option(&other, "client_secret_file", "/etc/secret");
    op = begin(&other, "client secret");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "`client_secret_file` is set, but `client_id` (or AZURE_CLIENT_ID) is not");
    driver_end_source(&other);
}

Test(credentials_azure, certificate_is_refused)
{
    struct driver_source given = {0};
    set_identity();
    driver_set("AZURE_CLIENT_CERTIFICATE_PATH", "/etc/cert.pem");
    driver_expect_end(begin(&given, "client secret"), AS_CLOUD_OP_CONFIGURATION,
                      "AZURE_CLIENT_CERTIFICATE_PATH is set, but client certificates are not "
                      "supported: use workload identity, or a client secret");
    driver_end_source(&given);
}

Test(credentials_azure, nothing_is_not_here)
{
    static const char *const names[] = {"client secret", "workload identity"};
    set_identity();
    driver_set("AZURE_CLIENT_SECRET", "");
    driver_set("AZURE_FEDERATED_TOKEN_FILE", "");
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        struct driver_source given = {0};
        struct as_cloud_op *op = begin(&given, names[i]);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect(given.op.is_not_here);
        driver_end_source(&given);
    }
}

/* ---- workload identity ---- */

Test(credentials_azure, workload_identity)
{
    struct driver_source given = {0};
    set_identity();
    driver_set("AZURE_FEDERATED_TOKEN_FILE", "/var/run/azure-identity-token");
    driver_set("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us/");
    driver_source_option(&given, "cloud", "usgovernment");
    struct as_cloud_op *op = begin(&given, "workload identity");
    driver_expect_file(op, "/var/run/azure-identity-token");
    driver_content(op, "ey.a-b_c\n", 0);
    driver_expect(op, "POST", "https://login.microsoftonline.us/ten-1/oauth2/v2.0/token",
                  "grant_type=client_credentials&client_id=cli-1"
                  "&scope=https%3A%2F%2Fmanagement.usgovcloudapi.net%2F.default"
                  "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3A"
                  "jwt-bearer&client_assertion=ey.a-b_c");
    cr_expect(op->request.is_plain);
    driver_answer(op, 200, TOKEN);
    expect_token(&given, 1715941230 + 3599);
    driver_end_source(&given);
}

Test(credentials_azure, workload_identity_needs_an_identity)
{
    struct driver_source given = {0};
    driver_source_option(&given, "federated_token_file", "/f");
    driver_expect_end(begin(&given, "workload identity"), AS_CLOUD_OP_CONFIGURATION,
                      "`federated_token_file` (or AZURE_FEDERATED_TOKEN_FILE) is set, but "
                      "`tenant_id` (or AZURE_TENANT_ID) is not");
    driver_end_source(&given);
}

/* A secret never goes over the network in clear. */
Test(credentials_azure, authority_is_https)
{
    static const char *const hosts[] = {
        "http://login.example", "login.example", "http://localhost.example",
        "http://127.0.0.1@login.example", "https://127.0.0.1:1@login.example"};
    set_identity();
    for (size_t i = 0; i < AS_ARRAY_SIZE(hosts); i++) {
        char message[256];
        struct driver_source given = {0};
        driver_source_option(&given, "federated_token_file", "/f");
        driver_source_option(&given, "authority", hosts[i]);
        snprintf(message, sizeof(message),
                 "the authority is \"%s\": expected a URL with https:// (http:// only to this "
                 "machine)",
                 hosts[i]);
        driver_expect_end(begin(&given, "workload identity"), AS_CLOUD_OP_CONFIGURATION, message);
        driver_end_source(&given);
    }
}

Test(credentials_azure, authority_of_this_machine)
{
    static const char *const hosts[] = {"http://127.0.0.1:8080", "http://localhost/",
                                        "http://[::1]:1"};
    set_identity();
    for (size_t i = 0; i < AS_ARRAY_SIZE(hosts); i++) {
        struct driver_source given = {0};
        driver_source_option(&given, "federated_token_file", "/f");
        driver_source_option(&given, "authority", hosts[i]);
        driver_expect_file(begin(&given, "workload identity"), "/f");
        driver_end_source(&given);
    }
}

/* ---- what Entra ID answers ---- */

Test(credentials_azure, errors_of_entra)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } cases[] = {
        {401,
         "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid client "
         "secret provided.\\r\\nTrace ID: 1\"}",
         AS_CLOUD_OP_UNAUTHORIZED,
         "get_entra_token: invalid_client: AADSTS7000215: Invalid client secret provided.  Trace "
         "ID: 1"},
        {400, "{\"error\":\"invalid_request\",\"error_description\":\"AADSTS90002: no tenant\"}",
         AS_CLOUD_OP_CONFIGURATION, "get_entra_token: invalid_request: AADSTS90002: no tenant"},
        {404, "", AS_CLOUD_OP_CONFIGURATION, "get_entra_token: HTTP 404"},
        {400, "{\"error\":\"temporarily_unavailable\",\"error_description\":\"d\"}",
         AS_CLOUD_OP_RETRY, "get_entra_token: temporarily_unavailable: d"},
        {429, "", AS_CLOUD_OP_THROTTLED, "get_entra_token: HTTP 429"},
        {503, "<html>", AS_CLOUD_OP_RETRY, "get_entra_token: HTTP 503"},
        {200, "{\"access_to", AS_CLOUD_OP_RETRY,
         "get_entra_token: the answer is not JSON: premature end of input near '\"access_to'"},
        {200, "{}", AS_CLOUD_OP_RETRY, "get_entra_token: the answer has no access_token"},
        {200, "{\"access_token\":7,\"expires_in\":3599}", AS_CLOUD_OP_RETRY,
         "get_entra_token: the answer has no access_token"},
        {200, "{\"access_token\":\"a\\r\\nX: y\",\"expires_in\":3599}", AS_CLOUD_OP_RETRY,
         "get_entra_token: the answer has no access_token"},
    };
    set_identity();
    driver_set("AZURE_CLIENT_SECRET", "s");
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_source given = {0};
        struct as_cloud_op *op = begin(&given, "client secret");
        driver_answer(op, cases[i].status, cases[i].body);
        driver_expect_end(op, cases[i].fault, cases[i].message);
        cr_expect_not(given.op.is_not_here);
        cr_expect_not(op->is_ambiguous);
        cr_expect_null(given.op.found.token);
        driver_end_source(&given);
    }
}

Test(credentials_azure, entra_that_is_not_reached)
{
    struct driver_source given = {0};
    set_identity();
    driver_set("AZURE_CLIENT_SECRET", "s");
    struct as_cloud_op *op = begin(&given, "client secret");
    driver_break(op, AS_HTTP_UNREACHABLE, "cannot connect");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "get_entra_token: cannot connect");
    cr_expect_not(given.op.is_not_here);
    driver_end_source(&given);
}

Test(credentials_azure, times_to_live)
{
    static const struct {
        const char *body;
        int64_t expires_s; /* 0: not said */
    } cases[] = {
        {"{\"access_token\":\"ey.J-0_x\",\"expires_in\":60}", 1715941290},
        {"{\"access_token\":\"ey.J-0_x\",\"expires_in\":\"60\"}", 1715941290},
        {"{\"access_token\":\"ey.J-0_x\",\"expires_on\":\"1715950000\"}", 1715950000},
        {"{\"access_token\":\"ey.J-0_x\",\"expires_in\":\"soon\",\"expires_on\":1715950000}",
         1715950000},
        {"{\"access_token\":\"ey.J-0_x\"}", 0},
        {"{\"access_token\":\"ey.J-0_x\",\"expires_in\":-5}", 0},
        {"{\"access_token\":\"ey.J-0_x\",\"expires_in\":9223372036854775807}", 0},
    };
    set_identity();
    driver_set("AZURE_CLIENT_SECRET", "s");
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_source given = {0};
        struct as_cloud_op *op = begin(&given, "client secret");
        driver_answer(op, 200, cases[i].body);
        if (cases[i].expires_s)
            expect_token(&given, cases[i].expires_s);
        else
            cr_expect_not(given.op.found.expires.set);
        driver_end_source(&given);
    }
}

/* ---- managed identity ---- */

Test(credentials_azure, metadata_of_the_machine)
{
    struct driver_source given = {0};
    struct as_cloud_op *op = begin(&given, "managed identity");
    driver_expect(op, "GET", IMDS, "");
    driver_expect_headers(op, "Metadata: true\n");
    cr_expect(op->request.is_plain);
    cr_expect(op->request.without_proxy);
    cr_expect_eq(op->request.timeout_us, 3 * AS_US_PER_S);
    driver_answer(op, 200,
                  "{\"access_token\":\"ey.J-0_x\",\"client_id\":\"c\",\"expires_in\":\"86399\","
                  "\"expires_on\":\"1716027629\",\"ext_expires_in\":\"86399\","
                  "\"not_before\":\"1715941229\",\"resource\":\"r\",\"token_type\":\"Bearer\"}");
    expect_token(&given, 1715941230 + 86399);
    driver_end_source(&given);
}

Test(credentials_azure, metadata_with_a_client_and_an_endpoint)
{
    struct driver_source given = {0};
    driver_set("AZURE_CLIENT_ID", "cli 1");
    driver_source_option(&given, "metadata_endpoint", "http://127.0.0.1:99");
    driver_source_option(&given, "cloud", "china");
    driver_expect(begin(&given, "managed identity"), "GET",
                  "http://127.0.0.1:99/metadata/identity/oauth2/token?api-version=2018-02-01&"
                  "resource=https%3A%2F%2Fmanagement.chinacloudapi.cn%2F&client_id=cli%201",
                  "");
    driver_end_source(&given);
}

Test(credentials_azure, app_service)
{
    struct driver_source given = {0};
    driver_set("IDENTITY_ENDPOINT", "http://localhost:42356/msi/token");
    driver_set("IDENTITY_HEADER", "853b9a84");
    driver_set("AZURE_CLIENT_ID", "cli-1");
    struct as_cloud_op *op = begin(&given, "managed identity");
    driver_expect(op, "GET",
                  "http://localhost:42356/msi/token?api-version=2019-08-01&"
                  "resource=https%3A%2F%2Fmanagement.azure.com%2F&client_id=cli-1",
                  "");
    driver_expect_headers(op, "X-IDENTITY-HEADER: 853b9a84\n");
    cr_expect(op->request.without_proxy);
    driver_answer(op, 200, "{\"access_token\":\"ey.J-0_x\",\"expires_on\":\"1715950000\"}");
    expect_token(&given, 1715950000);
    driver_end_source(&given);
}

/* Its secret goes there too. */
Test(credentials_azure, app_service_is_near)
{
    struct driver_source given = {0};
    driver_set("IDENTITY_ENDPOINT", "http://169.254.129.2:8081/msi/token");
    driver_set("IDENTITY_HEADER", "853b9a84");
    cr_expect_eq(begin(&given, "managed identity")->want, AS_CLOUD_OP_SEND);
    driver_end_source(&given);

    struct driver_source other = {0};
    driver_set("IDENTITY_ENDPOINT", "http://127.0.0.1@msi.example/token");
    driver_expect_end(begin(&other, "managed identity"), AS_CLOUD_OP_CONFIGURATION,
                      "IDENTITY_ENDPOINT is \"http://127.0.0.1@msi.example/token\": expected a URL "
                      "with https:// (http:// only to this machine, or a link-local address)");
    driver_end_source(&other);
}

/* It is the last of the sources: what is not reached now may be the next time. */
Test(credentials_azure, machine_that_does_not_answer)
{
    static const struct {
        enum as_http_outcome outcome;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {AS_HTTP_UNREACHABLE, AS_CLOUD_OP_RETRY,
         "no other credentials are set up, and the metadata service cannot be reached: e"},
        {AS_HTTP_TIMEOUT, AS_CLOUD_OP_TIMEOUT, "get_identity_token: e"},
        {AS_HTTP_BROKEN, AS_CLOUD_OP_RETRY, "get_identity_token: e"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        struct as_cloud_op *op = begin(&given, "managed identity");
        driver_break(op, rows[i].outcome, "e");
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_not(given.op.is_not_here);
        driver_end_source(&given);
    }
}

Test(credentials_azure, machine_without_an_identity)
{
    struct driver_source given = {0};
    struct as_cloud_op *op = begin(&given, "managed identity");
    driver_answer(op, 400,
                  "{\"error\":\"invalid_request\",\"error_description\":\"Identity not found\"}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "get_identity_token: invalid_request: Identity not found");
    driver_end_source(&given);
}

static void expect_wait(struct as_cloud_op *op, int64_t us)
{
    cr_assert_eq(op->want, AS_CLOUD_OP_WAIT, "%s", op->message);
    cr_expect_eq(op->wait_us, us);
    as_cloud_op_on_time(op, DRIVER_NOW);
    driver_expect(op, "GET", IMDS, "");
    driver_expect_headers(op, "Metadata: true\n");
}

Test(credentials_azure, metadata_is_asked_again)
{
    static const int statuses[] = {404, 429, 500};
    struct driver_source given = {0};
    struct as_cloud_op *op = begin(&given, "managed identity");
    for (size_t i = 0; i < AS_ARRAY_SIZE(statuses); i++) {
        driver_answer(op, statuses[i], "");
        expect_wait(op, AS_US_PER_S << i);
    }
    driver_answer(op, 503, "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "get_identity_token: HTTP 503");
    driver_end_source(&given);
}

/* 410: it is being updated, which takes up to 70 s. */
Test(credentials_azure, metadata_that_is_updated_is_waited_for)
{
    struct driver_source given = {0};
    struct as_cloud_op *op = begin(&given, "managed identity");
    for (int i = 0; i < 7; i++) {
        driver_answer(op, 410, "");
        expect_wait(op, 10 * AS_US_PER_S);
    }
    driver_answer(op, 200, TOKEN);
    expect_token(&given, 1715941230 + 3599);
    driver_end_source(&given);

    struct driver_source other = {0};
    op = begin(&other, "managed identity");
    for (int i = 0; i < 7; i++) {
        driver_answer(op, 410, "");
        expect_wait(op, 10 * AS_US_PER_S);
    }
    driver_answer(op, 410, "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "get_identity_token: HTTP 410");
    driver_end_source(&other);
}

Test(credentials_azure, unknown_cloud_is_an_error)
{
    struct driver_source given = {0};
    driver_source_option(&given, "cloud", "mars");
    driver_expect_end(begin(&given, "managed identity"), AS_CLOUD_OP_CONFIGURATION,
                      "`cloud` is \"mars\": expected public, china or usgovernment");
    driver_end_source(&given);
}
