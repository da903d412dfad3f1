/*
 * The web configuration: exporter-toolkit's files are read unchanged, every error has its place,
 * and no hash or key is ever shown.
 */
#include <alertscaler/rules/web_config.h>

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH "$2b$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"

/* The files that a text names are in this folder: it must have no others. */
static char own_folder[] = "/tmp/test-web-XXXXXX";
static char path[sizeof(own_folder) + sizeof("/web.yaml")];
static struct as_diagnostics diagnostics;
static struct as_web_config *config;

static void setup(void)
{
    cr_assert(mkdtemp(own_folder));
    (void)snprintf(path, sizeof(path), "%s/web.yaml", own_folder);
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && close(fd) == 0);
}

static void forget(void)
{
    as_diagnostics_deinit(&diagnostics);
    diagnostics = AS_DIAGNOSTICS_INIT;
    config = as_web_config_free(config);
}

static void teardown(void)
{
    forget();
    (void)unlink(path);
    (void)rmdir(own_folder);
}

TestSuite(web_config, .init = setup, .fini = teardown);

static int load(const char *text)
{
    forget();
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    return as_web_config_load(path, &config, &diagnostics);
}

Test(web_config, a_whole_file)
{
    cr_assert_eq(load("tls_server_config:\n"
                      "  cert_file: server.crt\n"
                      "  key_file: /etc/server.key\n"
                      "  client_auth_type: RequireAndVerifyClientCert\n"
                      "  client_ca_file: ca.crt\n"
                      "  client_allowed_sans: [a.example.com, b.example.com]\n"
                      "  min_version: TLS13\n"
                      "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n"
                      "  curve_preferences: [CurveP256, X25519]\n"
                      "  prefer_server_cipher_suites: false\n"
                      "http_server_config:\n"
                      "  http2: false\n"
                      "  headers: {X-Frame-Options: deny, Content-Security-Policy: \"a; b\"}\n"
                      "basic_auth_users:\n"
                      "  alice: " HASH "\n"
                      "  bob smith: " HASH "\n"),
                 0);
    cr_expect_eq(diagnostics.count, 0);
    const struct as_web_settings *web = as_web_config_get(config);
    cr_expect(web->tls.is_set);
    const int folder = (int)(strrchr(path, '/') - path);
    char beside[64];
    (void)snprintf(beside, sizeof(beside), "%.*s/server.crt", folder, path);
    cr_expect_str_eq(web->tls.cert_file, beside);
    cr_expect_str_eq(web->tls.key_file, "/etc/server.key");
    (void)snprintf(beside, sizeof(beside), "%.*s/ca.crt", folder, path);
    cr_expect_str_eq(web->tls.client_ca_file, beside);
    cr_expect_str_eq(as_web_client_auth_words[web->tls.client_auth], "RequireAndVerifyClientCert");
    cr_expect_eq(web->tls.client_allowed_san_count, 2);
    cr_expect_str_eq(as_web_version_words[web->tls.min_version], "TLS13");
    cr_expect_str_eq(as_web_version_words[web->tls.max_version], "TLS13");
    cr_expect_eq(web->tls.cipher_suite_count, 1);
    cr_expect_str_eq(web->tls.curve_preferences[1], "X25519");
    cr_expect_not(web->tls.prefer_server_cipher_suites);
    cr_expect_eq(web->header_count, 2);
    cr_expect_str_eq(web->headers[1].value, "a; b");
    cr_expect_eq(web->user_count, 2);
    cr_expect_str_eq(web->users[1].name, "bob smith");
    cr_expect_str_eq(web->users[1].hash, HASH);
}

Test(web_config, an_empty_file_asks_for_nothing)
{
    cr_assert_eq(load("# nothing yet\n"), 0);
    cr_expect_not(as_web_config_get(config)->tls.is_set);
    cr_expect_eq(as_web_config_get(config)->user_count, 0);
}

Test(web_config, what_is_wrong_is_said_where_it_stands)
{
    static const struct {
        const char *text, *part;
        unsigned line;
    } rows[] = {
        {"basic_auth_user: {}\n", "did you mean `basic_auth_users`?", 1},
        {"tls_server_config: {key_file: a}\n", "key `cert_file` is missing", 1},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  min_version: TLS14\n", "TLS13", 4},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  min_version: TLS13\n"
         "  max_version: TLS12\n",
         "below `min_version`", 5},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n"
         "  client_auth_type: RequireAndVerifyClientCert\n",
         "needs `client_ca_file`", 4},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  client_ca_file: c\n",
         "without `client_auth_type`", 4},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  client_allowed_sans: [x]\n",
         "mean nothing unless", 4},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n"
         "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n",
         "TLS_AES_128_GCM_SHA256", 4},
        {"tls_server_config:\n  key: secret\n  cert_file: a\n  key_file: b\n", "use `key_file`", 2},
        {"http_server_config:\n  headers:\n    X-Frame-Option: deny\n",
         "did you mean `X-Frame-Options`?", 3},
        {"http_server_config:\n  headers:\n    X-Frame-Options: maybe\n", "deny or sameorigin", 3},
        {"http_server_config:\n  headers:\n    Server: me\n", "unknown header", 3},
        {"http_server_config:\n  headers:\n    X-XSS-Protection: \"1\\r\\nX: y\"\n",
         "control characters", 3},
        {"basic_auth_users:\n  alice: sesame\n", "expected a bcrypt hash for alice", 2},
        {"basic_auth_users:\n  alice: "
         "$2x$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G\n",
         "expected a bcrypt hash", 2},
        {"basic_auth_users:\n  alice: "
         "$2b$99$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G\n",
         "expected a bcrypt hash", 2},
        {"basic_auth_users:\n  \"a:b\": " HASH "\n", "without `:`", 2},
        {"rate_limit: {interval: 1s}\n", "by itself", 1},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_assert_lt(load(rows[i].text), 0, "row %zu", i);
        cr_assert_eq(diagnostics.count, 1, "row %zu: %zu", i, diagnostics.count);
        cr_expect(strstr(diagnostics.items[0].message, rows[i].part), "row %zu: %s", i,
                  diagnostics.items[0].message);
        cr_expect_eq(diagnostics.items[0].line, rows[i].line, "row %zu", i);
    }
}

/* They would not fit into an answer, and were left out without a word. */
Test(web_config, headers_have_a_size_that_they_may_reach)
{
    static const char begin[] = "http_server_config:\n  headers:\n    X-Frame-Options: deny\n"
                                "    Content-Security-Policy: \"";
    const size_t others = strlen("X-Frame-Options: deny\r\nContent-Security-Policy: \r\n");
    for (size_t beyond = 0; beyond < 2; beyond++) {
        char text[AS_WEB_HEADERS_MAX + 256];
        const size_t size = AS_WEB_HEADERS_MAX - others + beyond;
        memcpy(text, begin, sizeof(begin) - 1);
        memset(text + sizeof(begin) - 1, 'x', size);
        (void)snprintf(text + sizeof(begin) - 1 + size, 4, "\"\n");
        cr_expect_eq(load(text) < 0, beyond > 0);
        cr_assert_eq(diagnostics.count, beyond);
    }
    cr_expect(strstr(diagnostics.items[0].message, "shorten Content-Security-Policy"), "%s",
              diagnostics.items[0].message);
    cr_expect_eq(diagnostics.items[0].line, 4);
}

Test(web_config, neither_hash_nor_key_is_shown)
{
    cr_assert_lt(load("basic_auth_users:\n  alice: $2b$04$not-quite-a-hash\n"
                      "tls_server_config:\n  key: MIIsecret\n  cert_file: a\n  key_file: b\n"),
                 0);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    as_diagnostics_sort(&diagnostics);
    as_diagnostics_print(&diagnostics, out);
    cr_assert_eq(fclose(out), 0);
    cr_expect(strstr(text, "alice"));
    cr_expect_not(strstr(text, "not-quite"), "%s", text);
    cr_expect_not(strstr(text, "MIIsecret"), "%s", text);
    free(text);
}

Test(web_config, what_works_but_should_not_be_is_warned_of)
{
    cr_assert_eq(load("http_server_config: {http2: true}\n"), 0);
    cr_assert_eq(diagnostics.count, 1);
    cr_expect_eq(diagnostics.items[0].severity, AS_SEVERITY_WARNING);
    cr_expect(strstr(diagnostics.items[0].message, "HTTP/1.1"));
    cr_assert_eq(load("basic_auth_users:\n  alice: "
                      "$2b$16$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G\n"),
                 0);
    cr_assert_eq(diagnostics.count, 1);
    cr_expect(strstr(diagnostics.items[0].message, "cost of 16"));
    cr_assert_eq(chmod(path, 0644), 0);
    cr_assert_eq(load("basic_auth_users:\n  alice: " HASH "\n"), 0);
    cr_assert_eq(diagnostics.count, 1);
    cr_expect(strstr(diagnostics.items[0].message, "chmod o-r"));
}

/* Errors that others have left in the list are not this file's. */
Test(web_config, only_its_own_errors_count)
{
    as_diagnostics_add(&diagnostics, &(struct as_diagnostic){.file = "x", .message = "y"});
    FILE *file = fopen(path, "w");
    cr_assert(file && fclose(file) == 0);
    cr_expect_eq(as_web_config_load(path, &config, &diagnostics), 0);
    cr_expect_eq(as_web_config_load("/nowhere/at/all", &config, &diagnostics), -2);
}

Test(web_config, open_is_what_asks_for_no_credential_anywhere)
{
    const struct as_receiver_settings none = {.max_body = 1};
    cr_assert_eq(load("{}"), 0);
    cr_expect(as_web_is_open(as_web_config_get(config), &none));
    struct as_receiver_settings some[] = {
        {.token_count = 1},
        {.certificate_count = 1},
        {.hmac_count = 1},
        {.token_review = {.allow_count = 1}},
    };
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        cr_expect_not(as_web_is_open(as_web_config_get(config), &some[i]), "%zu", i);
    /* what they may do, not that they exist */
    cr_expect(
        as_web_is_open(as_web_config_get(config), &(struct as_receiver_settings){.user_count = 1}));
    cr_assert_eq(load("basic_auth_users: {alice: '" HASH "'}"), 0);
    cr_expect_not(as_web_is_open(as_web_config_get(config), &none));
    static const char tls[] = "tls_server_config:\n"
                              "  cert_file: server.crt\n"
                              "  key_file: server.key\n"
                              "  client_ca_file: ca.crt\n"
                              "  client_auth_type: ";
    static const struct {
        const char *word;
        bool is_open;
    } words[] = {
        {"VerifyClientCertIfGiven", true},
        {"RequireAnyClientCert", true},
        {"RequireAndVerifyClientCert", false},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        char text[300];
        snprintf(text, sizeof(text), "%s%s\n", tls, words[i].word);
        cr_assert_eq(load(text), 0, "%s", text);
        cr_expect_eq(as_web_is_open(as_web_config_get(config), &none), words[i].is_open, "%s",
                     text);
    }
}
