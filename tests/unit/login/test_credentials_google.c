/*
 * providers.h: every source and every kind of file, in the order of Google's own
 * tools; requests equal those of Google's own library (vectors/make_google.mjs).
 */
#include <errno.h>

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "op_driver.h"
#include "source_root.h"
#include <alertscaler/login/cloud_credentials.h>

#define FILE_PATH "/etc/google.json"
#define TOKEN     "{\"access_token\":\"ya29.token\",\"expires_in\":3599,\"token_type\":\"Bearer\"}"
#define METADATA  "http://metadata.google.internal/computeMetadata/v1/"
#define DEFAULT   METADATA "instance/service-accounts/default/token"
#define FLAVOR    "metadata-flavor\0Google\0"

static struct driver_source given;
static struct as_cloud_op *const op = &given.op.op;
static json_t *vectors;

static void init(void)
{
    vectors = json_load_file(TEST_SOURCE_ROOT "/tests/unit/login/vectors/google.json", 0, NULL);
    cr_assert_not_null(vectors);
}

static void deinit(void)
{
    driver_end_source(&given);
    json_decref(vectors);
}

TestSuite(credentials_google, .init = init, .fini = deinit);

static void begin(const char *source)
{
    if (given.op.account)
        driver_end_source(&given);
    given = (struct driver_source){0};
    driver_begin_source(&given, google_credentials, source);
}

/* A file, and what is wrong with it or what comes of it. */
static void begin_text(const char *text)
{
    driver_set("GOOGLE_APPLICATION_CREDENTIALS", FILE_PATH);
    begin("GOOGLE_APPLICATION_CREDENTIALS");
    driver_expect_file(op, FILE_PATH);
    driver_content(op, text, text ? 0 : EACCES);
}

static void begin_json(const json_t *file)
{
    char *text = json_dumps(file, 0);
    begin_text(text);
    free(text);
}

static void expect_found(const char *token, const char *project, int64_t seconds)
{
    driver_expect_found(&given, NULL, NULL, token, NULL);
    cr_assert(as_str_equal(given.op.found.project, project), "%s", given.op.found.project);
    cr_assert_eq(given.op.found.expires.set, seconds >= 0);
    if (seconds >= 0)
        cr_assert_eq(given.op.found.expires.at.us, DRIVER_NOW.us + seconds * AS_US_PER_S);
}

static void expect_refusal(const char *text, const char *message)
{
    begin_text(text);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, message);
}

static void expect_not_here(const char *source)
{
    begin(source);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_not_here);
}

static const json_t *find_row(const char *name)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(vectors, "rows"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
            return row;
    }
    cr_assert_fail("no vector %s", name);
    return NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- signed tokens ---- */

Test(credentials_google, signs_as_google_does)
{
    const json_t *row = json_object_get(vectors, "signed");
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(4096);
    struct as_error error = AS_ERROR_INIT;
    as_buf_append_str(&out, "assertion=");
    cr_assert_eq(jwt_append_rs256(&out, text_of(row, "header"), text_of(row, "claims"),
                                  text_of(row, "key"), &error),
                 0, "%s", error.text);
    cr_assert_str_eq(out.data + strlen("assertion="), text_of(row, "token"));
}

Test(credentials_google, signs_with_no_other_key)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(4096);
    static const char *const keys[] = {
        "",
        "text",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        /* of an elliptic curve */
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
        "-----END PRIVATE KEY-----\n",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(jwt_append_rs256(&out, "{}", "{}", keys[i], &error), -EINVAL);
        cr_assert_str_eq(error.text,
                         "the private key is not an RSA key in PEM form without a passphrase");
    }
    cr_assert_eq(out.size, 0);
}

Test(credentials_google, a_token_that_does_not_fit_is_an_error)
{
    const json_t *row = json_object_get(vectors, "signed");
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(16);
    struct as_error error = AS_ERROR_INIT;
    cr_assert_lt(jwt_append_rs256(&out, text_of(row, "header"), text_of(row, "claims"),
                                  text_of(row, "key"), &error),
                 0);
}

/* ---- what Google's own library asks ---- */

/* The body of a form as the vector has it: the same keys with the same values. */
static void expect_form(const json_t *form)
{
    const char *name;
    const json_t *value;
    size_t size = 0;
    const char *body = op->request.body.data;
    json_object_foreach((json_t *)form, name, value)
    {
        AS_CLEANUP(as_buf_deinit) struct as_buf pair = AS_BUF_INIT(8192);
        as_buf_printf(&pair, "%s=%s", name, as_cloud_op_escaped(op, json_string_value(value)));
        const char *found = strstr(body, pair.data);
        cr_assert(found && (found == body || found[-1] == '&') &&
                      (!found[pair.size] || found[pair.size] == '&'),
                  "%s in %s", pair.data, body);
        size += pair.size + 1;
    }
    cr_assert_eq(op->request.body.size + 1, size, "%s", body);
}

static void expect_request(const json_t *want)
{
    const json_t *body = json_object_get(want, "body");
    const char *authorization = text_of(json_object_get(want, "headers"), "authorization");
    const char *subject = text_of(json_object_get(want, "headers"), "x-subject");
    bool has_authorization = false, has_subject = false;
    cr_assert_eq(op->want, AS_CLOUD_OP_SEND, "%s", op->message);
    cr_assert(op->request.is_plain);
    cr_assert_not(op->request.is_change);
    cr_assert_str_eq(op->request.method, text_of(want, "method"));
    cr_assert_str_eq(op->request.url, text_of(want, "url"));
    for (size_t i = 0; i < op->request.header_count; i++) {
        const char *line = op->request.headers[i];
        if (as_str_starts_with(line, "Authorization: ")) {
            cr_assert_str_eq(line + strlen("Authorization: "), authorization);
            has_authorization = true;
        }
        has_subject = has_subject || strcmp(line, "x-subject: yes") == 0;
    }
    cr_assert_eq(has_authorization, authorization != NULL);
    cr_assert_eq(has_subject, subject != NULL);
    if (json_object_get(body, "lifetime")) {
        json_t *sent = json_loads(op->request.body.data, 0, NULL);
        cr_assert(json_equal(sent, body), "%s", op->request.body.data);
        json_decref(sent);
    } else if (json_is_object(body)) {
        expect_form(body);
    }
}

static void answer(const json_t *given_answer)
{
    char *text = json_is_string(given_answer) ? strdup(json_string_value(given_answer))
                                              : json_dumps(given_answer, 0);
    driver_answer(op, 200, text);
    free(text);
}

Test(credentials_google, asks_as_googles_library_does)
{
    const json_t *row, *want;
    size_t i, k;
    json_array_foreach(json_object_get(vectors, "rows"), i, row)
    {
        const char *name = text_of(row, "name");
        const json_t *answers = json_object_get(row, "answers");
        if (strcmp(name, "service_account") == 0) /* below: its token has a key's id here */
            continue;
        begin_json(json_object_get(row, "file"));
        if (op->want == AS_CLOUD_OP_READ) {
            driver_expect_file(op, "/var/run/token");
            driver_content(op, text_of(row, "subject"), 0);
        }
        json_array_foreach(json_object_get(row, "requests"), k, want)
        {
            expect_request(want);
            answer(json_array_get(answers, k));
        }
        cr_assert_eq(op->want, AS_CLOUD_OP_END, "%s", name);
        cr_assert_str_eq(given.op.found.token, text_of(row, "token"));
        cr_assert_eq(given.op.found.expires.at.us,
                     DRIVER_NOW.us + (strstr(name, "acting") ? 3600 : 3599) * AS_US_PER_S);
    }
}

static void decode(const char *text, size_t size, unsigned char *out, size_t *size_out)
{
    char padded[8192];
    cr_assert_lt(size + 4, sizeof(padded));
    for (size_t i = 0; i < size; i++)
        padded[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    size_t all = size;
    while (all % 4 != 0)
        padded[all++] = '=';
    const int decoded = EVP_DecodeBlock(out, (const unsigned char *)padded, (int)all);
    cr_assert_geq(decoded, 0);
    *size_out = (size_t)decoded - (all - size);
}

/* The middle part of a token. */
static json_t *decode_claims(const char *token)
{
    unsigned char text[8192];
    size_t size;
    const char *claims = strchr(token, '.') + 1;
    decode(claims, strcspn(claims, "."), text, &size);
    json_t *document = json_loadb((const char *)text, size, 0, NULL);
    cr_assert_not_null(document);
    return document;
}

static void expect_signature(const char *token)
{
    unsigned char signature[1024];
    size_t size;
    const char *dot = strrchr(token, '.');
    const char *pem = text_of(json_object_get(vectors, "signed"), "public_key");
    decode(dot + 1, strcspn(dot + 1, "&"), signature, &size);
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    cr_assert_eq(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
    cr_expect_eq(EVP_DigestVerify(context, signature, size, (const unsigned char *)token,
                                  (size_t)(dot - token)),
                 1);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    BIO_free(bio);
}

Test(credentials_google, a_service_account_signs_the_claims_of_googles_library)
{
    static const char start[] =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    const json_t *row = find_row("service_account");
    const json_t *want = json_array_get(json_object_get(row, "requests"), 0);
    begin_json(json_object_get(row, "file"));
    cr_assert_str_eq(op->request.method, "POST");
    cr_assert_str_eq(op->request.url, text_of(want, "url"));
    driver_expect_headers(op, "Content-Type: application/x-www-form-urlencoded\n");
    cr_assert(op->request.is_plain && op->request.is_timed);
    cr_assert(as_str_starts_with(op->request.body.data, start));
    const char *token = op->request.body.data + strlen(start);
    json_t *claims = decode_claims(token);
    json_t *wanted = decode_claims(text_of(json_object_get(want, "body"), "assertion"));
    cr_assert(json_equal(claims, wanted));
    json_decref(claims);
    json_decref(wanted);
    unsigned char head[256];
    size_t size;
    decode(token, strcspn(token, "."), head, &size);
    head[size] = '\0';
    cr_assert_str_eq((char *)head, "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"key-1\"}");
    expect_signature(token);
    driver_answer(op, 200, TOKEN);
    expect_found("ya29.token", "shop", 3599);
}

/* ---- tokens that only read metrics ---- */

#define READ_SCOPE "https://www.googleapis.com/auth/monitoring.read"
#define IAM_SCOPE  "https://www.googleapis.com/auth/iam"

/* Whether the present request asks for this scope, and for no other. */
static void expect_scope(const char *scope)
{
    const char *body = op->request.body.data;
    const char *assertion = strstr(body, "&assertion=");
    cr_expect_null(strstr(body, "cloud-platform"));
    if (assertion) {
        json_t *claims = decode_claims(assertion + strlen("&assertion="));
        cr_expect_str_eq(text_of(claims, "scope"), scope);
        json_decref(claims);
    } else if (*body == '{') {
        json_t *sent = json_loads(body, 0, NULL);
        const json_t *list = json_object_get(sent, "scope");
        cr_expect_eq(json_array_size(list), 1);
        cr_expect_str_eq(json_string_value(json_array_get(list, 0)), scope);
        json_decref(sent);
    } else if (strstr(body, "grant_type=refresh_token")) {
        cr_expect_null(strstr(body, "scope")); /* a user's token has the scopes of the user */
    } else {
        const char *part = as_cloud_op_print(op, "&scope=%s&", as_cloud_op_escaped(op, scope));
        cr_expect_not_null(strstr(body, part), "%s", body);
    }
}

/* A token that is only exchanged has the scope of the exchange. */
Test(credentials_google, asks_for_no_more_than_the_scope)
{
    const json_t *row;
    size_t i, k;
    json_array_foreach(json_object_get(vectors, "rows"), i, row)
    {
        const json_t *answers = json_object_get(row, "answers");
        const size_t count = json_array_size(json_object_get(row, "requests"));
        char *text = json_dumps(json_object_get(row, "file"), 0);
        if (given.op.account)
            driver_end_source(&given);
        given = (struct driver_source){.op.scope = READ_SCOPE};
        driver_set("GOOGLE_APPLICATION_CREDENTIALS", FILE_PATH);
        driver_begin_source(&given, google_credentials, "GOOGLE_APPLICATION_CREDENTIALS");
        driver_content(op, text, 0);
        free(text);
        if (op->want == AS_CLOUD_OP_READ)
            driver_content(op, text_of(row, "subject"), 0);
        for (k = 0; k < count; k++) {
            cr_assert_eq(op->want, AS_CLOUD_OP_SEND, "%s", op->message);
            if (op->request.body.size > 0) /* else it asks for the subject's token */
                expect_scope(k + 1 < count ? IAM_SCOPE : READ_SCOPE);
            answer(json_array_get(answers, k));
        }
        cr_assert_eq(op->want, AS_CLOUD_OP_END);
        cr_assert_str_eq(given.op.found.token, text_of(row, "token"));
    }
}

Test(credentials_google, asks_the_metadata_service_for_the_scope_and_not_for_the_project)
{
    given = (struct driver_source){.op.scope = READ_SCOPE};
    driver_begin_source(&given, google_credentials, "metadata service");
    driver_expect(op, "GET",
                  DEFAULT "?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fmonitoring.read", "");
    driver_respond(op, (struct as_http_response){.status = 200, .body = TOKEN, .fields = FLAVOR});
    expect_found("ya29.token", NULL, 3599);
}

/* ---- the chain ---- */

Test(credentials_google, looks_where_googles_tools_look)
{
    static const char *const want[] = {"credentials_file", "GOOGLE_APPLICATION_CREDENTIALS",
                                       "well-known file", "metadata service", NULL};
    for (size_t i = 0; i <= AS_ARRAY_SIZE(want) - 1; i++)
        cr_assert(as_str_equal(google_credentials[i].name, want[i]));
    expect_not_here("credentials_file");
    expect_not_here("GOOGLE_APPLICATION_CREDENTIALS");
    expect_not_here("well-known file");

    driver_set("HOME", "/h");
    begin("well-known file");
    driver_expect_file(op, "/h/.config/gcloud/application_default_credentials.json");
    driver_content(op, NULL, ENOENT);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_not_here);
    driver_set("CLOUDSDK_CONFIG", "/c");
    begin("well-known file");
    driver_expect_file(op, "/c/application_default_credentials.json");
}

/* What is set up is not passed over. */
Test(credentials_google, a_file_that_was_named_has_to_be_there)
{
    driver_set("GOOGLE_APPLICATION_CREDENTIALS", FILE_PATH);
    begin("GOOGLE_APPLICATION_CREDENTIALS");
    driver_content(op, NULL, ENOENT);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, FILE_PATH ": No such file or directory");
    cr_assert_not(given.op.is_not_here);

    begin("GOOGLE_APPLICATION_CREDENTIALS");
    driver_content(op, NULL, EACCES);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, FILE_PATH ": Permission denied");
}

/* In a container the home may be root's, or no folder at all: Google's libraries pass it over. */
Test(credentials_google, a_home_that_cannot_be_read_has_no_file)
{
    static const int numbers[] = {ENOENT, ENOTDIR, EACCES};
    driver_set("HOME", "/h");
    for (size_t i = 0; i < AS_ARRAY_SIZE(numbers); i++) {
        begin("well-known file");
        driver_content(op, NULL, numbers[i]);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect(given.op.is_not_here);
    }
    begin("well-known file");
    driver_content(op, NULL, EIO);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "/h/.config/gcloud/application_default_credentials.json: Input/output error");
}

Test(credentials_google, the_accounts_own_file_comes_first)
{
    driver_end_source(&given);
    given = (struct driver_source){0};
    driver_source_option(&given, "credentials_file", "/etc/key.json");
    driver_begin_source(&given, google_credentials, "credentials_file");
    driver_expect_file(op, "/etc/key.json");
}

/* ---- files with something wrong ---- */

#define EXTERNAL "{\"type\":\"external_account\",\"audience\":\"a\",\"subject_token_type\":\"t\","

Test(credentials_google, says_what_is_wrong_with_a_file)
{
    static const char user[] = "{\"type\":\"authorized_user\",\"client_id\":\"i\"";
    expect_refusal("", FILE_PATH ": not a JSON document of credentials");
    expect_refusal("[]", FILE_PATH ": not a JSON document of credentials");
    expect_refusal("{\"type\":", FILE_PATH ": not a JSON document of credentials");
    expect_refusal("{}", FILE_PATH ": credentials of type \"\" are not supported");
    expect_refusal("{\"type\":\"gdch_service_account\"}",
                   FILE_PATH ": credentials of type \"gdch_service_account\" are not supported");
    expect_refusal("{\"type\":\"service_account\"}", FILE_PATH ": `client_email` is missing");
    expect_refusal("{\"type\":\"service_account\",\"client_email\":\"e\",\"private_key\":\"x\"}",
                   FILE_PATH ": `private_key`: the private key is not an RSA key in PEM form "
                             "without a passphrase");
    expect_refusal("{\"type\":\"authorized_user\"}", FILE_PATH ": `client_id` is missing");
    char text[256];
    snprintf(text, sizeof(text), "%s,\"client_secret\":\"s\"}", user);
    expect_refusal(text, FILE_PATH ": `refresh_token` is missing");
    expect_refusal("{\"type\":\"external_account\"}", FILE_PATH ": `audience` is missing");
    expect_refusal("{\"type\":\"impersonated_service_account\"}",
                   FILE_PATH ": `source_credentials` is missing");
    expect_refusal("{\"type\":\"impersonated_service_account\",\"source_credentials\":{}}",
                   FILE_PATH ": `service_account_impersonation_url` is missing");
    expect_refusal(EXTERNAL "\"credential_source\":{}}",
                   FILE_PATH ": `credential_source` has no `file` or `url`");
    expect_refusal(EXTERNAL
                   "\"credential_source\":{\"file\":\"f\",\"format\":{\"type\":\"json\"}}}",
                   FILE_PATH ": `format.subject_token_field_name` is missing");
}

/* A program would be run with our rights: never. */
Test(credentials_google, refuses_sources_with_a_clear_word)
{
    expect_refusal(EXTERNAL "\"credential_source\":{\"executable\":{\"command\":\"/bin/sh\"}}}",
                   FILE_PATH
                   ": `credential_source` has `executable`: programs are not run for a token here; "
                   "use a `file` (a projected service account token, say) or a `url`");
    expect_refusal(EXTERNAL "\"credential_source\":{\"certificate\":{}}}", FILE_PATH
                   ": `credential_source` has `certificate`: client certificates are not "
                   "exchanged for a token here; use a `file` (a projected service account "
                   "token, say) or a `url`");
    expect_refusal(EXTERNAL "\"credential_source\":{\"environment_id\":\"aws1\",\"url\":\"u\"}}",
                   FILE_PATH ": `credential_source` has `environment_id`: credentials of AWS are "
                             "not exchanged for a token here; use a `file` (a projected service "
                             "account token, say) or a `url`");
}

/* Keys and tokens go to no address at which others could listen. */
Test(credentials_google, sends_secrets_over_tls_only)
{
    static const struct {
        const char *url;
        bool is_safe;
    } rows[] = {
        {"https://example.com/token", true},
        {"http://127.0.0.1:80/token", true},
        {"http://localhost/token", true},
        {"http://[::1]:80/token", true},
        {"http://example.com/token", false},
        {"http://localhost.example.com/token", false},
        {"http://127.0.0.1@example.com/", false},
        {"http://127.0.0.1:80@example.com/", false},
        {"https://u:p@example.com/", false},
        {"http://169.254.169.254/", false},
        {"ftp://example.com", false},
        {"token", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "{\"type\":\"authorized_user\",\"client_id\":\"i\",\"client_secret\":\"s\","
                 "\"refresh_token\":\"r\",\"token_uri\":\"%s\"}",
                 rows[i].url);
        begin_text(text);
        if (rows[i].is_safe)
            cr_expect_eq(op->want, AS_CLOUD_OP_SEND, "%s", rows[i].url);
        else
            driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                              FILE_PATH ": `token_uri` is not an https address");
    }
    expect_refusal(EXTERNAL "\"token_url\":\"http://example.com/\"}",
                   FILE_PATH ": `token_url` is not an https address");
    expect_refusal(EXTERNAL "\"service_account_impersonation_url\":\"http://example.com/\"}",
                   FILE_PATH ": `service_account_impersonation_url` is not an https address");
}

/* What comes from there is a token, and headers with secrets may go there. */
Test(credentials_google, asks_for_a_subjects_token_near_by_or_over_tls)
{
    static const char *const good[] = {"https://example.com/t", "http://127.0.0.1:5005/",
                                       "http://169.254.169.254/metadata/identity/oauth2/token"};
    static const char *const bad[] = {"http://example.com/t", "http://127.0.0.1:80@example.com/t",
                                      "https://u:p@example.com/t", "file:///etc/passwd", "t"};
    char text[512];
    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++) {
        snprintf(text, sizeof(text), EXTERNAL "\"credential_source\":{\"url\":\"%s\"}}", good[i]);
        begin_text(text);
        driver_expect(op, "GET", good[i], "");
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        snprintf(text, sizeof(text), EXTERNAL "\"credential_source\":{\"url\":\"%s\"}}", bad[i]);
        expect_refusal(text, FILE_PATH ": `credential_source.url` is not an https address, nor one "
                                       "of this machine or of its metadata service");
    }
}

Test(credentials_google, too_many_headers_are_refused)
{
    char text[2048] = EXTERNAL "\"credential_source\":{\"url\":\"http://127.0.0.1/\",\"headers\":{";
    for (size_t i = 0; i < 17; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\"h%zu\":\"v\"", i ? "," : "",
                 i);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "}}}");
    expect_refusal(text, FILE_PATH ": `credential_source` has more than 16 headers");
}

/* ---- tokens that are exchanged ---- */

#define FROM_FILE EXTERNAL "\"credential_source\":{\"file\":\"/t\"}}"
#define FROM_JSON                                                                                  \
    EXTERNAL "\"credential_source\":{\"file\":\"/t\",\"format\":{\"type\":\"json\","               \
             "\"subject_token_field_name\":\"f\"}}}"

Test(credentials_google, says_what_is_wrong_with_a_subjects_token)
{
    static const struct {
        const char *file, *content, *message;
    } rows[] = {
        {FROM_FILE, NULL, "/t: Permission denied (`credential_source` of " FILE_PATH ")"},
        {FROM_FILE, " \n", "/t: there is no token"},
        {FROM_JSON, "text", "/t: there is no JSON document with a `f`"},
        {FROM_JSON, "{}", "/t: there is no JSON document with a `f`"},
        {FROM_JSON, "{\"f\":7}", "/t: there is no JSON document with a `f`"},
        {FROM_JSON, "{\"f\":\"\"}", "/t: there is no JSON document with a `f`"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_text(rows[i].file);
        driver_expect_file(op, "/t");
        driver_content(op, rows[i].content, EACCES);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
    }
}

/* The line feed that an editor leaves is no part of a token. */
Test(credentials_google, white_space_behind_a_token_is_left_out)
{
    begin_text(FROM_FILE);
    driver_content(op, "eyJ.x\r\n", 0);
    cr_assert(strstr(op->request.body.data, "&subject_token=eyJ.x&"));
    cr_assert_str_eq(op->request.url, "https://sts.googleapis.com/v1/token");
}

static void note_name(void *context, const char *path, bool is_program)
{
    char *names = context;
    const size_t size = strlen(names);
    snprintf(names + size, 128 - size, "%s%s ", is_program ? "!" : "", path);
}

/* So that the sandbox lets it be read. */
Test(credentials_google, what_a_file_names_is_known)
{
    static const struct {
        const char *content, *names;
    } rows[] = {
        {FROM_FILE, "/t "},
        {EXTERNAL "\"credential_source\":{\"url\":\"https://example.com/t\"}}", ""},
        {EXTERNAL "\"credential_source\":{\"file\":7}}", ""},
        {EXTERNAL "\"credential_source\":[]}", ""},
        {"{\"type\":\"service_account\"}", ""},
        {"{\"credential_source\":{\"file\":\"/t\"}", ""},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char names[128] = "";
        google_read_names(rows[i].content, strlen(rows[i].content), note_name, names);
        cr_expect_str_eq(names, rows[i].names, "%s", rows[i].content);
    }
}

Test(credentials_google, a_token_behind_a_url_is_asked_for_without_a_proxy)
{
    begin_text(EXTERNAL "\"credential_source\":{\"url\":\"http://169.254.169.254/t\"}}");
    cr_assert(op->request.without_proxy);
    driver_answer(op, 404, "no");
    driver_expect_end(op, AS_CLOUD_OP_GONE, "subject_token: HTTP 404");
    begin_text(EXTERNAL "\"credential_source\":{\"url\":\"https://example.com/t\"}}");
    cr_assert_not(op->request.without_proxy);
}

/* ---- another one is acted as ---- */

#define ACTING                                                                                     \
    "{\"type\":\"impersonated_service_account\",\"delegates\":[\"d\"],"                            \
    "\"service_account_impersonation_url\":\"https://iam.example/x:generateAccessToken\","         \
    "\"source_credentials\":{\"type\":\"%s\",\"client_id\":\"i\",\"client_secret\":\"s\","         \
    "\"refresh_token\":\"r\"}}"

Test(credentials_google, acts_as_a_service_account)
{
    char text[1024];
    snprintf(text, sizeof(text), ACTING, "authorized_user");
    begin_text(text);
    driver_expect(op, "POST", "https://oauth2.googleapis.com/token",
                  "grant_type=refresh_token&client_id=i&client_secret=s&refresh_token=r");
    driver_answer(op, 200, TOKEN);
    driver_expect(op, "POST", "https://iam.example/x:generateAccessToken",
                  "{\"scope\":[\"https://www.googleapis.com/auth/cloud-platform\"],"
                  "\"lifetime\":\"3600s\",\"delegates\":[\"d\"]}");
    driver_expect_headers(op, "Content-Type: application/json\nAuthorization: Bearer ya29.token\n");
    driver_answer(op, 403,
                  "{\"error\":{\"code\":403,\"message\":\"Permission "
                  "'iam.serviceAccounts.getAccessToken' denied\",\"status\":"
                  "\"PERMISSION_DENIED\"}}");
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION,
                      "impersonate: HTTP 403 PERMISSION_DENIED: Permission "
                      "'iam.serviceAccounts.getAccessToken' denied");
}

Test(credentials_google, sources_are_not_nested)
{
    char text[1024];
    snprintf(text, sizeof(text), ACTING, "impersonated_service_account");
    expect_refusal(text, FILE_PATH ": credentials of type \"impersonated_service_account\" are not "
                                   "supported as `source_credentials`");
}

Test(credentials_google, an_answer_without_a_token_is_none)
{
    char text[1024];
    snprintf(text, sizeof(text), ACTING, "authorized_user");
    begin_text(text);
    driver_answer(op, 200, TOKEN);
    driver_answer(op, 200, "{\"expireTime\":\"2024-05-17T11:20:30Z\"}");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "impersonate: the answer has no accessToken");
}

/* ---- answers to requests for tokens ---- */

#define USER                                                                                       \
    "{\"type\":\"authorized_user\",\"client_id\":\"i\",\"client_secret\":\"s\","                   \
    "\"refresh_token\":\"r\",\"quota_project_id\":\"billed\"}"

Test(credentials_google, knows_what_refuses_a_token)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {400, "{\"error\":\"invalid_grant\",\"error_description\":\"Invalid JWT Signature.\"}",
         AS_CLOUD_OP_UNAUTHORIZED, "token: invalid_grant: Invalid JWT Signature."},
        {401, "{\"error\":\"invalid_client\"}", AS_CLOUD_OP_UNAUTHORIZED, "token: invalid_client"},
        {400, "{\"error\":\"invalid_scope\"}", AS_CLOUD_OP_CONFIGURATION, "token: invalid_scope"},
        {400, "<html>", AS_CLOUD_OP_CONFIGURATION, "token: HTTP 400"},
        {429, "", AS_CLOUD_OP_THROTTLED, "token: HTTP 429"},
        {408, "", AS_CLOUD_OP_TIMEOUT, "token: HTTP 408"},
        {500, "", AS_CLOUD_OP_RETRY, "token: HTTP 500"},
        {503, "{\"error\":\"temporarily_unavailable\"}", AS_CLOUD_OP_RETRY,
         "token: temporarily_unavailable"},
        {200, "{}", AS_CLOUD_OP_RETRY, "token: the answer has no access_token"},
        {200, "{\"access_token\":7}", AS_CLOUD_OP_RETRY, "token: the answer has no access_token"},
        {200, "[]", AS_CLOUD_OP_RETRY, "token: the answer has no access_token"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_text(USER);
        driver_answer(op, rows[i].status, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_assert_null(given.op.found.token);
        cr_assert_not(op->is_ambiguous);
    }
}

Test(credentials_google, an_error_of_before_is_not_told_for_a_broken_connection)
{
    begin_text(USER);
    driver_break(op, AS_HTTP_UNREACHABLE, "no route");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "token: no route");
}

Test(credentials_google, a_token_may_have_no_end)
{
    begin_text(USER);
    driver_answer(op, 200, "{\"access_token\":\"t\"}");
    expect_found("t", "billed", -1);
}

/* ---- the metadata service ---- */

static void answer_metadata(int status, const char *fields, const char *body)
{
    driver_respond(op, (struct as_http_response){.status = status, .body = body, .fields = fields});
}

Test(credentials_google, asks_the_metadata_service)
{
    begin("metadata service");
    driver_expect(op, "GET", DEFAULT, "");
    driver_expect_headers(op, "Metadata-Flavor: Google\n");
    cr_assert(op->request.is_plain);
    cr_assert(op->request.without_proxy);
    cr_assert_eq(op->request.timeout_us, 3 * AS_US_PER_S);
    answer_metadata(200, FLAVOR, TOKEN);
    driver_expect(op, "GET", METADATA "project/project-id", "");
    answer_metadata(200, FLAVOR, "shop");
    expect_found("ya29.token", "shop", 3599);
}

Test(credentials_google, the_project_is_asked_for_only_where_it_is_not_said)
{
    driver_end_source(&given);
    given = (struct driver_source){0};
    driver_source_option(&given, "project", "said");
    driver_begin_source(&given, google_credentials, "metadata service");
    answer_metadata(200, FLAVOR, TOKEN);
    expect_found("ya29.token", NULL, 3599);

    driver_end_source(&given);
    given = (struct driver_source){0};
    driver_set("GOOGLE_CLOUD_PROJECT", "said");
    begin("metadata service");
    answer_metadata(200, FLAVOR, TOKEN);
    expect_found("ya29.token", NULL, 3599);
}

/* The token is good all the same, but the project is asked for again soon. */
Test(credentials_google, a_token_is_kept_where_the_project_is_not_told)
{
    static const struct {
        enum as_http_outcome outcome;
        int status;
        const char *fields, *body;
    } rows[] = {
        {AS_HTTP_ANSWERED, 404, FLAVOR, ""}, {AS_HTTP_ANSWERED, 503, FLAVOR, ""},
        {AS_HTTP_ANSWERED, 200, FLAVOR, ""}, {AS_HTTP_ANSWERED, 200, NULL, "other"},
        {AS_HTTP_TIMEOUT, 0, NULL, ""},      {AS_HTTP_UNREACHABLE, 0, NULL, ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("metadata service");
        answer_metadata(200, FLAVOR, TOKEN);
        driver_respond(op, (struct as_http_response){.outcome = rows[i].outcome,
                                                     .status = rows[i].status,
                                                     .fields = rows[i].fields,
                                                     .body = rows[i].body});
        expect_found("ya29.token", NULL, 300);
    }
}

Test(credentials_google, the_metadata_service_may_be_elsewhere)
{
    driver_set("GCE_METADATA_IP", "10.0.0.2");
    begin("metadata service");
    driver_expect(op, "GET",
                  "http://10.0.0.2/computeMetadata/v1/instance/service-accounts/default/token", "");
    driver_set("GCE_METADATA_HOST", "127.0.0.1:8080");
    begin("metadata service");
    cr_assert(as_str_starts_with(op->request.url, "http://127.0.0.1:8080/computeMetadata/v1/"));
}

Test(credentials_google, another_servers_answer_is_no_token)
{
    static const char *const fields[] = {NULL, "Metadata-Flavor\0Other\0", "Server\0x\0"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(fields); i++) {
        begin("metadata service");
        answer_metadata(200, fields[i], TOKEN);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                          DEFAULT ": this is not Google's metadata service: no `Metadata-Flavor: "
                                  "Google`");
        cr_assert_null(given.op.found.token);
    }
}

Test(credentials_google, says_what_is_wrong_with_the_metadata_service)
{
    begin("metadata service");
    driver_break(op, AS_HTTP_UNREACHABLE, "no such host");
    driver_expect_end(op, AS_CLOUD_OP_RETRY,
                      "no other credentials are set up, and the metadata service cannot be "
                      "reached: no such host");
    begin("metadata service");
    driver_break(op, AS_HTTP_TIMEOUT, "timed out");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "metadata_token: timed out");
    begin("metadata service");
    answer_metadata(404, FLAVOR, "");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "the metadata service has no service account for this machine or pod");
    begin("metadata service");
    answer_metadata(503, FLAVOR, "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "metadata_token: HTTP 503");
}
