/*
 * Credentials of Azure: in the order of its own libraries, every request byte by byte.
 */
#include "talker.h"

#include "cloud/providers.h"

#define TOKEN_URL "https://login.microsoftonline.com/ten-1/oauth2/v2.0/token"
#define SCOPE     "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
#define TOKEN     "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"ey.J-0_x\"}"
#define IMDS                                                                                       \
    "http://169.254.169.254/metadata/identity/oauth2/"                                             \
    "token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F"

static struct as_talk *begin(struct talker_source *given, const char *name)
{
    talker_begin_source(given, azure_credentials, name);
    return &given->talk.talk;
}

static void set_identity(void)
{
    talker_set("AZURE_TENANT_ID", "ten-1");
    talker_set("AZURE_CLIENT_ID", "cli-1");
}

static void expect_token(const struct talker_source *given, int64_t expires_s)
{
    talker_expect_found(given, NULL, NULL, "ey.J-0_x", NULL);
    cr_expect(given->talk.found.expires.set);
    cr_expect_eq(given->talk.found.expires.at.us, expires_s * AS_US_PER_S);
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
    struct talker_source given = {0};
    set_identity();
    talker_set("AZURE_CLIENT_SECRET", "s3~cr&et=");
    struct as_talk *talk = begin(&given, "client secret");
    talker_expect(talk, "POST", TOKEN_URL,
                  "grant_type=client_credentials&client_id=cli-1" SCOPE
                  "&client_secret=s3~cr%26et%3D");
    talker_expect_headers(talk, "Content-Type: application/x-www-form-urlencoded\n");
    cr_expect(talk->request.is_plain);
    cr_expect_not(talk->request.is_change);
    cr_expect_not(talk->request.without_proxy);
    talker_answer(talk, 200, TOKEN);
    expect_token(&given, 1715941230 + 3599);
    talker_end_source(&given);
}

/* Options come before the environment; the file is read each time, without its last line's end. */
Test(credentials_azure, secret_of_a_file)
{
    struct talker_source given = {0};
    set_identity();
    talker_set("AZURE_CLIENT_SECRET", "other");
    talker_source_option(&given, "tenant_id", "ten/2");
    talker_source_option(&given, "client_id", "cli-2");
    talker_source_option(&given, "client_secret_file", "/etc/secret");
    struct as_talk *talk = begin(&given, "client secret");
    talker_expect_file(talk, "/etc/secret");
    talker_content(talk, " s3cret\r\n", 0);
    talker_expect(talk, "POST", "https://login.microsoftonline.com/ten%2F2/oauth2/v2.0/token",
                  "grant_type=client_credentials&client_id=cli-2" SCOPE "&client_secret=s3cret");
    talker_end_source(&given);
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
        struct talker_source given = {0};
        const size_t row = i / AS_ARRAY_SIZE(variables), variable = i % AS_ARRAY_SIZE(variables);
        talker_set(variables[variable], "s");
        talker_set(variables[1 - variable], "");
        talker_source_option(&given, rows[row].key, rows[row].value);
        const struct as_talk *talk = begin(&given, "client secret");
        cr_expect_eq(given.talk.is_not_here, !rows[row].is_used, "row %zu: %s", row, talk->message);
        talker_end_source(&given);
    }
    struct talker_source given = {0}; /* one without a client in the environment is anybody's */
    talker_set("AZURE_CLIENT_SECRET", "s");
    talker_set("AZURE_CLIENT_ID", "");
    talker_source_option(&given, "client_id", "another");
    cr_expect_eq(begin(&given, "client secret")->want, AS_TALK_SEND);
    talker_end_source(&given);
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
        struct talker_source given = {0};
        talker_source_option(&given, "client_secret_file", "/etc/secret");
        struct as_talk *talk = begin(&given, "client secret");
        talker_content(talk, cases[i].content, cases[i].error_number);
        talker_expect_end(talk, AS_TALK_CONFIGURATION, cases[i].message);
        cr_expect_not(given.talk.is_not_here);
        talker_end_source(&given);
    }
}

/* What is set up in part is an error, and not passed over. */
Test(credentials_azure, secret_needs_an_identity)
{
    struct talker_source given = {0};
    talker_set("AZURE_CLIENT_SECRET", "s");
    struct as_talk *talk = begin(&given, "client secret");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "AZURE_CLIENT_SECRET is set, but `tenant_id` (or AZURE_TENANT_ID) is not");
    talker_end_source(&given);

    struct talker_source other = {0};
    talker_set("AZURE_TENANT_ID", "ten-1");
    talker_source_option(&other, "client_secret_file", "/etc/secret");
    talk = begin(&other, "client secret");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "`client_secret_file` is set, but `client_id` (or AZURE_CLIENT_ID) is not");
    talker_end_source(&other);
}

Test(credentials_azure, certificate_is_refused)
{
    struct talker_source given = {0};
    set_identity();
    talker_set("AZURE_CLIENT_CERTIFICATE_PATH", "/etc/cert.pem");
    talker_expect_end(begin(&given, "client secret"), AS_TALK_CONFIGURATION,
                      "AZURE_CLIENT_CERTIFICATE_PATH is set, but client certificates are not "
                      "supported: use workload identity, or a client secret");
    talker_end_source(&given);
}

Test(credentials_azure, nothing_is_not_here)
{
    static const char *const names[] = {"client secret", "workload identity"};
    set_identity();
    talker_set("AZURE_CLIENT_SECRET", "");
    talker_set("AZURE_FEDERATED_TOKEN_FILE", "");
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        struct talker_source given = {0};
        struct as_talk *talk = begin(&given, names[i]);
        talker_expect_end(talk, AS_TALK_OK, "");
        cr_expect(given.talk.is_not_here);
        talker_end_source(&given);
    }
}

/* ---- workload identity ---- */

Test(credentials_azure, workload_identity)
{
    struct talker_source given = {0};
    set_identity();
    talker_set("AZURE_FEDERATED_TOKEN_FILE", "/var/run/azure-identity-token");
    talker_set("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us/");
    talker_source_option(&given, "cloud", "usgovernment");
    struct as_talk *talk = begin(&given, "workload identity");
    talker_expect_file(talk, "/var/run/azure-identity-token");
    talker_content(talk, "ey.a-b_c\n", 0);
    talker_expect(talk, "POST", "https://login.microsoftonline.us/ten-1/oauth2/v2.0/token",
                  "grant_type=client_credentials&client_id=cli-1"
                  "&scope=https%3A%2F%2Fmanagement.usgovcloudapi.net%2F.default"
                  "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3A"
                  "jwt-bearer&client_assertion=ey.a-b_c");
    cr_expect(talk->request.is_plain);
    talker_answer(talk, 200, TOKEN);
    expect_token(&given, 1715941230 + 3599);
    talker_end_source(&given);
}

Test(credentials_azure, workload_identity_needs_an_identity)
{
    struct talker_source given = {0};
    talker_source_option(&given, "federated_token_file", "/f");
    talker_expect_end(begin(&given, "workload identity"), AS_TALK_CONFIGURATION,
                      "`federated_token_file` (or AZURE_FEDERATED_TOKEN_FILE) is set, but "
                      "`tenant_id` (or AZURE_TENANT_ID) is not");
    talker_end_source(&given);
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
        struct talker_source given = {0};
        talker_source_option(&given, "federated_token_file", "/f");
        talker_source_option(&given, "authority", hosts[i]);
        snprintf(message, sizeof(message),
                 "the authority is \"%s\": expected a URL with https:// (http:// only to this "
                 "machine)",
                 hosts[i]);
        talker_expect_end(begin(&given, "workload identity"), AS_TALK_CONFIGURATION, message);
        talker_end_source(&given);
    }
}

Test(credentials_azure, authority_of_this_machine)
{
    static const char *const hosts[] = {"http://127.0.0.1:8080", "http://localhost/",
                                        "http://[::1]:1"};
    set_identity();
    for (size_t i = 0; i < AS_ARRAY_SIZE(hosts); i++) {
        struct talker_source given = {0};
        talker_source_option(&given, "federated_token_file", "/f");
        talker_source_option(&given, "authority", hosts[i]);
        talker_expect_file(begin(&given, "workload identity"), "/f");
        talker_end_source(&given);
    }
}

/* ---- what Entra ID answers ---- */

Test(credentials_azure, errors_of_entra)
{
    static const struct {
        int status;
        const char *body;
        enum as_talk_fault fault;
        const char *message;
    } cases[] = {
        {401,
         "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid client "
         "secret provided.\\r\\nTrace ID: 1\"}",
         AS_TALK_UNAUTHORIZED,
         "get_entra_token: invalid_client: AADSTS7000215: Invalid client secret provided.  Trace "
         "ID: 1"},
        {400, "{\"error\":\"invalid_request\",\"error_description\":\"AADSTS90002: no tenant\"}",
         AS_TALK_CONFIGURATION, "get_entra_token: invalid_request: AADSTS90002: no tenant"},
        {404, "", AS_TALK_CONFIGURATION, "get_entra_token: HTTP 404"},
        {400, "{\"error\":\"temporarily_unavailable\",\"error_description\":\"d\"}", AS_TALK_RETRY,
         "get_entra_token: temporarily_unavailable: d"},
        {429, "", AS_TALK_THROTTLED, "get_entra_token: HTTP 429"},
        {503, "<html>", AS_TALK_RETRY, "get_entra_token: HTTP 503"},
        {200, "{\"access_to", AS_TALK_RETRY,
         "get_entra_token: the answer is not JSON: premature end of input near '\"access_to'"},
        {200, "{}", AS_TALK_RETRY, "get_entra_token: the answer has no access_token"},
        {200, "{\"access_token\":7,\"expires_in\":3599}", AS_TALK_RETRY,
         "get_entra_token: the answer has no access_token"},
        {200, "{\"access_token\":\"a\\r\\nX: y\",\"expires_in\":3599}", AS_TALK_RETRY,
         "get_entra_token: the answer has no access_token"},
    };
    set_identity();
    talker_set("AZURE_CLIENT_SECRET", "s");
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct talker_source given = {0};
        struct as_talk *talk = begin(&given, "client secret");
        talker_answer(talk, cases[i].status, cases[i].body);
        talker_expect_end(talk, cases[i].fault, cases[i].message);
        cr_expect_not(given.talk.is_not_here);
        cr_expect_not(talk->is_ambiguous);
        cr_expect_null(given.talk.found.token);
        talker_end_source(&given);
    }
}

Test(credentials_azure, entra_that_is_not_reached)
{
    struct talker_source given = {0};
    set_identity();
    talker_set("AZURE_CLIENT_SECRET", "s");
    struct as_talk *talk = begin(&given, "client secret");
    talker_break(talk, AS_HTTP_UNREACHABLE, "cannot connect");
    talker_expect_end(talk, AS_TALK_RETRY, "get_entra_token: cannot connect");
    cr_expect_not(given.talk.is_not_here);
    talker_end_source(&given);
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
    talker_set("AZURE_CLIENT_SECRET", "s");
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct talker_source given = {0};
        struct as_talk *talk = begin(&given, "client secret");
        talker_answer(talk, 200, cases[i].body);
        if (cases[i].expires_s)
            expect_token(&given, cases[i].expires_s);
        else
            cr_expect_not(given.talk.found.expires.set);
        talker_end_source(&given);
    }
}

/* ---- managed identity ---- */

Test(credentials_azure, metadata_of_the_machine)
{
    struct talker_source given = {0};
    struct as_talk *talk = begin(&given, "managed identity");
    talker_expect(talk, "GET", IMDS, "");
    talker_expect_headers(talk, "Metadata: true\n");
    cr_expect(talk->request.is_plain);
    cr_expect(talk->request.without_proxy);
    cr_expect_eq(talk->request.timeout_us, 3 * AS_US_PER_S);
    talker_answer(talk, 200,
                  "{\"access_token\":\"ey.J-0_x\",\"client_id\":\"c\",\"expires_in\":\"86399\","
                  "\"expires_on\":\"1716027629\",\"ext_expires_in\":\"86399\","
                  "\"not_before\":\"1715941229\",\"resource\":\"r\",\"token_type\":\"Bearer\"}");
    expect_token(&given, 1715941230 + 86399);
    talker_end_source(&given);
}

Test(credentials_azure, metadata_with_a_client_and_an_endpoint)
{
    struct talker_source given = {0};
    talker_set("AZURE_CLIENT_ID", "cli 1");
    talker_source_option(&given, "metadata_endpoint", "http://127.0.0.1:99");
    talker_source_option(&given, "cloud", "china");
    talker_expect(begin(&given, "managed identity"), "GET",
                  "http://127.0.0.1:99/metadata/identity/oauth2/token?api-version=2018-02-01&"
                  "resource=https%3A%2F%2Fmanagement.chinacloudapi.cn%2F&client_id=cli%201",
                  "");
    talker_end_source(&given);
}

Test(credentials_azure, app_service)
{
    struct talker_source given = {0};
    talker_set("IDENTITY_ENDPOINT", "http://localhost:42356/msi/token");
    talker_set("IDENTITY_HEADER", "853b9a84");
    talker_set("AZURE_CLIENT_ID", "cli-1");
    struct as_talk *talk = begin(&given, "managed identity");
    talker_expect(talk, "GET",
                  "http://localhost:42356/msi/token?api-version=2019-08-01&"
                  "resource=https%3A%2F%2Fmanagement.azure.com%2F&client_id=cli-1",
                  "");
    talker_expect_headers(talk, "X-IDENTITY-HEADER: 853b9a84\n");
    cr_expect(talk->request.without_proxy);
    talker_answer(talk, 200, "{\"access_token\":\"ey.J-0_x\",\"expires_on\":\"1715950000\"}");
    expect_token(&given, 1715950000);
    talker_end_source(&given);
}

/* Its secret goes there too. */
Test(credentials_azure, app_service_is_near)
{
    struct talker_source given = {0};
    talker_set("IDENTITY_ENDPOINT", "http://169.254.129.2:8081/msi/token");
    talker_set("IDENTITY_HEADER", "853b9a84");
    cr_expect_eq(begin(&given, "managed identity")->want, AS_TALK_SEND);
    talker_end_source(&given);

    struct talker_source other = {0};
    talker_set("IDENTITY_ENDPOINT", "http://127.0.0.1@msi.example/token");
    talker_expect_end(begin(&other, "managed identity"), AS_TALK_CONFIGURATION,
                      "IDENTITY_ENDPOINT is \"http://127.0.0.1@msi.example/token\": expected a URL "
                      "with https:// (http:// only to this machine, or a link-local address)");
    talker_end_source(&other);
}

/* It is the last of the sources: what is not reached now may be the next time. */
Test(credentials_azure, machine_that_does_not_answer)
{
    static const struct {
        enum as_http_outcome outcome;
        enum as_talk_fault fault;
        const char *message;
    } rows[] = {
        {AS_HTTP_UNREACHABLE, AS_TALK_RETRY,
         "no other credentials are set up, and the metadata service cannot be reached: e"},
        {AS_HTTP_TIMEOUT, AS_TALK_TIMEOUT, "get_identity_token: e"},
        {AS_HTTP_BROKEN, AS_TALK_RETRY, "get_identity_token: e"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct talker_source given = {0};
        struct as_talk *talk = begin(&given, "managed identity");
        talker_break(talk, rows[i].outcome, "e");
        talker_expect_end(talk, rows[i].fault, rows[i].message);
        cr_expect_not(given.talk.is_not_here);
        talker_end_source(&given);
    }
}

Test(credentials_azure, machine_without_an_identity)
{
    struct talker_source given = {0};
    struct as_talk *talk = begin(&given, "managed identity");
    talker_answer(talk, 400,
                  "{\"error\":\"invalid_request\",\"error_description\":\"Identity not found\"}");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "get_identity_token: invalid_request: Identity not found");
    talker_end_source(&given);
}

static void expect_wait(struct as_talk *talk, int64_t us)
{
    cr_assert_eq(talk->want, AS_TALK_WAIT, "%s", talk->message);
    cr_expect_eq(talk->wait_us, us);
    as_talk_hear_time(talk, TALKER_NOW);
    talker_expect(talk, "GET", IMDS, "");
    talker_expect_headers(talk, "Metadata: true\n");
}

Test(credentials_azure, metadata_is_asked_again)
{
    static const int statuses[] = {404, 429, 500};
    struct talker_source given = {0};
    struct as_talk *talk = begin(&given, "managed identity");
    for (size_t i = 0; i < AS_ARRAY_SIZE(statuses); i++) {
        talker_answer(talk, statuses[i], "");
        expect_wait(talk, AS_US_PER_S << i);
    }
    talker_answer(talk, 503, "");
    talker_expect_end(talk, AS_TALK_RETRY, "get_identity_token: HTTP 503");
    talker_end_source(&given);
}

/* 410: it is being updated, which takes up to 70 s. */
Test(credentials_azure, metadata_that_is_updated_is_waited_for)
{
    struct talker_source given = {0};
    struct as_talk *talk = begin(&given, "managed identity");
    for (int i = 0; i < 7; i++) {
        talker_answer(talk, 410, "");
        expect_wait(talk, 10 * AS_US_PER_S);
    }
    talker_answer(talk, 200, TOKEN);
    expect_token(&given, 1715941230 + 3599);
    talker_end_source(&given);

    struct talker_source other = {0};
    talk = begin(&other, "managed identity");
    for (int i = 0; i < 7; i++) {
        talker_answer(talk, 410, "");
        expect_wait(talk, 10 * AS_US_PER_S);
    }
    talker_answer(talk, 410, "");
    talker_expect_end(talk, AS_TALK_RETRY, "get_identity_token: HTTP 410");
    talker_end_source(&other);
}

Test(credentials_azure, unknown_cloud_is_an_error)
{
    struct talker_source given = {0};
    talker_source_option(&given, "cloud", "mars");
    talker_expect_end(begin(&given, "managed identity"), AS_TALK_CONFIGURATION,
                      "`cloud` is \"mars\": expected public, china or usgovernment");
    talker_end_source(&given);
}
