/*
 * The sandbox knows every key of the configuration that names a file: for each such key in the
 * tables, a configuration with a file in its own folder is collected.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/rules/provider_kind.h>
#include <alertscaler/rules/tables.h>
#include <alertscaler/rules/web_config.h>

#include "access_env.h"
#include "daemon/sandbox.h"
#include "files.h"

#define OAUTH2 "client_id: a, token_url: 'https://a', "

#define HTTP(holder, before, after)                                                                \
    {holder "basic_auth.username_file",                                                            \
     before "basic_auth: {username_file: FILE, password_file: /dev/null}" after},                  \
        {holder "basic_auth.password_file",                                                        \
         before "basic_auth: {username: a, password_file: FILE}" after},                           \
        {holder "authorization.credentials_file",                                                  \
         before "authorization: {credentials_file: FILE}" after},                                  \
        {holder "oauth2.client_secret_file",                                                       \
         before "oauth2: {" OAUTH2 "client_secret_file: FILE}" after},                             \
        {holder "oauth2.tls_config.ca_file", before                                                \
         "oauth2: {" OAUTH2 "client_secret_file: /dev/null, tls_config: {ca_file: FILE}}" after},  \
        {holder "oauth2.tls_config.cert_file",                                                     \
         before "oauth2: {" OAUTH2 "client_secret_file: /dev/null, tls_config: {cert_file: FILE, " \
                "key_file: /dev/null}}" after},                                                    \
        {holder "oauth2.tls_config.key_file",                                                      \
         before "oauth2: {" OAUTH2 "client_secret_file: /dev/null, tls_config: {key_file: FILE, "  \
                "cert_file: /dev/null}}" after},                                                   \
        {holder "azuread.workload_identity.token_file_path",                                       \
         before "azuread: {workload_identity: {token_file_path: FILE}}" after},                    \
        {holder "azuread.oauth.client_secret_file",                                                \
         before "azuread: {oauth: {client_id: a, tenant_id: b, client_secret_file: FILE}}" after}, \
        {holder "google_iam.credentials_file",                                                     \
         before "google_iam: {credentials_file: FILE}" after},                                     \
        {holder "tls_config.ca_file", before "tls_config: {ca_file: FILE}" after},                 \
        {holder "tls_config.cert_file",                                                            \
         before "tls_config: {cert_file: FILE, key_file: /dev/null}" after},                       \
        {holder "tls_config.key_file",                                                             \
         before "tls_config: {cert_file: /dev/null, key_file: FILE}" after},                       \
    {                                                                                              \
        holder "http_headers.files", before "http_headers: {X: {files: [FILE]}}" after             \
    }

static const struct row {
    const char *key;
    const char *text; /* FILE: the file in its own folder */
} rows[] = {
    HTTP("action_log.replicas.http_config.",
         "action_log: {replicas: {urls: ['http://a'], http_config: {", "}}}"),
    HTTP("alertmanager.http_config.", "alertmanager: {urls: ['http://a'], http_config: {", "}}"),
    HTTP("notify.alertmanager.http_config.",
         "notify: [{name: a, on: [failed], alertmanager: {urls: ['http://a'], http_config: {",
         "}}}]"),
    HTTP("notify.webhook.http_config.",
         "notify: [{name: a, on: [failed], webhook: {url: 'http://a', http_config: {", "}}}]"),
    HTTP("prometheus.http_config.", "prometheus: {url: 'http://a', http_config: {", "}}"),
    HTTP("objects.prometheus.http_config.",
         "objects: {enabled: true, prometheus: {url: 'http://a/{{ .Namespace }}', http_config: {",
         "}}}"),
    {"objects.admission.cert_file",
     "objects: {enabled: true, admission: {address: ':1', cert_file: FILE, key_file: /dev/null}}"},
    {"objects.admission.key_file",
     "objects: {enabled: true, admission: {address: ':1', cert_file: /dev/null, key_file: FILE}}"},
    HTTP("providers.http_config.", "providers: {mine: {type: http, http_config: {", "}}}"),
    {"clusters.kubeconfig", "clusters: {default: {kubeconfig: FILE}}"},
    {"rule_files", "rule_files: [FILE]"},
    {"state.path", "state: {path: FILE}"},
    {"action_log.path", "action_log: {path: FILE}"},
    {"kill_switch.file", "kill_switch: {file: FILE}"},
    {"receiver.tokens.file", "receiver: {tokens: [{name: a, file: FILE}]}"},
    {"receiver.hmac.secret_file", "receiver: {hmac: [{name: a, secret_file: FILE}]}"},
    {"web.tls_server_config.cert_file",
     "tls_server_config: {cert_file: FILE, key_file: /dev/null}"},
    {"web.tls_server_config.key_file", "tls_server_config: {cert_file: /dev/null, key_file: FILE}"},
    {"web.tls_server_config.client_ca_file",
     "tls_server_config: {cert_file: /dev/null, key_file: /dev/null, client_ca_file: FILE, "
     "client_auth_type: RequireAndVerifyClientCert}"},
};

#define HTTP_CUSTOMS(holder)                                                                       \
    holder "oauth2.token_url", holder "oauth2.endpoint_params", holder "azuread.cloud"

/* Keys with a parser of their own. What they hold are no files, or a row below says so. */
static const char *const customs[] = {
    HTTP_CUSTOMS("action_log.replicas.http_config."),
    HTTP_CUSTOMS("alertmanager.http_config."),
    HTTP_CUSTOMS("notify.alertmanager.http_config."),
    HTTP_CUSTOMS("notify.webhook.http_config."),
    HTTP_CUSTOMS("objects.prometheus.http_config."),
    HTTP_CUSTOMS("prometheus.http_config."),
    HTTP_CUSTOMS("providers.http_config."),
    "defaults.approval",
    "defaults.behavior",
    "defaults.cooldown.down_after_down",
    "defaults.tolerance",
    "notify.on",
    "objects.selector",
    "objects.namespace_selector",
    "objects.prometheus.url",
    "providers.type",
    "receiver.tokens.permissions",
    "receiver.users.permissions",
    "receiver.certificates.permissions",
    "receiver.hmac.permissions",
    "receiver.token_review.allow.permissions",
    "receiver.proxy.permissions",
    "receiver.watchdog.match",
    "web.tls_server_config.cipher_suites",
    "web.tls_server_config.curve_preferences",
    "web.http_server_config.http2",
    "web.http_server_config.headers",
    "web.basic_auth_users",
};

static bool is_found[AS_ARRAY_SIZE(rows)];

static void meet(const char *key, bool is_custom)
{
    for (size_t i = 0; !is_custom && i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].key, key) == 0) {
            is_found[i] = true;
            return;
        }
    }
    for (size_t i = 0; is_custom && i < AS_ARRAY_SIZE(customs); i++) {
        if (strcmp(customs[i], key) == 0)
            return;
    }
    cr_expect_fail("%s is a new key: does it name files? Teach sandbox.c, and give it a row "
                   "here",
                   key);
}

static void walk(const struct schema *schema, const char *prefix)
{
    for (const struct schema_field *field = schema->fields; field->key; field++) {
        AS_CLEANUP(as_free_p) char *key = as_xasprintf("%s%s", prefix, field->key);
        AS_CLEANUP(as_free_p) char *inside = as_xasprintf("%s.", key);
        if (field->map)
            walk(field->map, inside);
        else if (field->type == SCHEMA_PATH || field->type == SCHEMA_PATHS)
            meet(key, false);
        else if (field->type == SCHEMA_CUSTOM)
            meet(key, true);
    }
    if (schema->base)
        walk(schema->base, prefix);
}

Test(sandbox_files, every_key_that_names_a_file_is_listed_here)
{
    walk(&schema_settings, "");
    meet("rule_files", false); /* a list of texts, as they may be patterns */
    walk(&schema_web, "web.");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect(is_found[i], "%s is no key any more", rows[i].key);
}

static char root[] = "/tmp/as-files-XXXXXX";
static char *folder, *file, *config_folder, *config_file;

static void make_places(const char *content)
{
    folder = as_xasprintf("%s/own", root);
    file = as_xasprintf("%s/file", folder);
    config_folder = as_xasprintf("%s/config", root);
    config_file = as_xasprintf("%s/file", config_folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    cr_assert_eq(mkdir(config_folder, 0700), 0);
    write_file(file, content);
}

static void remove_places(void)
{
    (void)unlink(file);
    (void)unlink(config_file);
    cr_assert_eq(rmdir(folder), 0);
    cr_assert_eq(rmdir(config_folder), 0);
    free(config_folder);
    free(folder);
    free(file);
    free(config_file);
}

/* Of main.c, which is in no library. */
static void visit_files(struct as_outside *outside, const struct as_settings *settings,
                        as_file_visitor_fn *visit, void *context)
{
    (void)outside;
    for (size_t i = 0; i < settings->cluster_count; i++) {
        const struct as_cluster_settings *cluster = &settings->clusters[i];
        as_kube_access_visit_files(
            &(struct as_kube_access_config){cluster->kubeconfig, cluster->context}, &env, visit,
            context);
    }
}

static const struct as_adapters adapters = {.visit_files = visit_files};

static void write_config(const struct row *row)
{
    const char *mark = strstr(row->text, "FILE");
    cr_assert_not_null(mark);
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("%.*s%s%s\n", (int)(mark - row->text), row->text, file, mark + 4);
    write_file(config_file, text);
}

/* Whether the file's own folder is among what a configuration of the row needs. */
static bool is_covered(const struct row *row)
{
    AS_CLEANUP(sandbox_files_deinit) struct sandbox_files files = {0};
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    AS_CLEANUP(as_web_config_free_p) struct as_web_config *web = NULL;
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct sandbox_place *place = NULL;
    if (as_str_starts_with(row->key, "web.")) {
        cr_assert_eq(as_web_config_load(config_file, &web, &diagnostics), 0, "%s", row->key);
        write_file(config_file, "rule_files: []\n");
    }
    const int r = as_config_load(config_file, &config, &diagnostics);
    if (r != 0)
        as_diagnostics_print(&diagnostics, stderr);
    as_diagnostics_deinit(&diagnostics);
    cr_assert_eq(r, 0, "%s", row->key);
    const struct as_sandbox_config needs = {
        .config = config, .web = web ? as_web_config_get(web) : NULL, .adapters = &adapters};
    sandbox_files_collect(&files, &needs);
    for (size_t i = 0; i < files.count; i++) {
        if (strcmp(files.places[i].path, folder) == 0)
            place = &files.places[i];
    }
    return place && place->is_ours;
}

#define KUBECONFIG                                                                                 \
    "current-context: c\n"                                                                         \
    "clusters: [{name: k, cluster: {server: 'https://k'}}]\n"                                      \
    "users: [{name: u, user: {token: t}}]\n"                                                       \
    "contexts: [{name: c, context: {cluster: k, user: u}}]\n"

Test(sandbox_files, the_sandbox_knows_each_of_them)
{
    cr_assert_not_null(mkdtemp(root));
    setup_world();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        make_places(strcmp(rows[i].key, "clusters.kubeconfig") == 0 ? KUBECONFIG : "rules: []\n");
        write_config(&rows[i]);
        cr_expect(is_covered(&rows[i]), "the sandbox does not know %s", rows[i].key);
        remove_places();
    }
    teardown_world();
    cr_assert_eq(rmdir(root), 0);
}

/* ---- providers: what their rows say is read ---- */

/* Whether the sandbox knows the file's folder for a provider of this kind. */
static bool is_known(const struct as_provider_kind *kind, const char *key)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(1024);
    as_buf_printf(&text, "providers: {mine: {type: %s", kind->type);
    for (const struct as_provider_key *other = kind->account_keys; other->key; other++) {
        if (other->is_required && strcmp(other->key, key) != 0)
            as_buf_printf(&text, ", %s: 'http://x'", other->key);
    }
    as_buf_append_str(&text, *key ? ", " : "}} #");
    as_buf_append_str(&text, key);
    as_buf_append_str(&text, *key ? ": FILE}}" : "FILE");
    const struct row row = {"providers", text.data};
    write_config(&row);
    return is_covered(&row);
}

static void check_keys(const struct as_provider_kind *kind)
{
    for (const struct as_provider_key *key = kind->account_keys; key->key; key++) {
        if (key->is_file)
            cr_expect(is_known(kind, key->key), "%s: %s", kind->type, key->key);
    }
}

/* "$VARIABLE": the file; "$VARIABLE/name": in the folder that it names. */
static void check_variables(const struct as_provider_kind *kind)
{
    const struct as_group_provider *provider = as_group_provider_find(kind->type);
    for (size_t i = 0; provider->files && provider->files[i]; i++) {
        const char *row = provider->files[i], *rest = row + strcspn(row, "/");
        if (*row != '$')
            continue;
        AS_CLEANUP(as_free_p) char *variable = as_xstrndup(row + 1, (size_t)(rest - row - 1));
        cr_expect_not(is_known(kind, ""), "%s", kind->type);
        setenv(variable, *rest ? folder : file, 1);
        cr_expect(is_known(kind, ""), "%s: %s", kind->type, row);
        unsetenv(variable);
    }
}

/* An external account of Google's names a file with its token. */
static void check_names(void)
{
    AS_CLEANUP(as_free_p) char *account = as_xasprintf("%s/account", root);
    AS_CLEANUP(as_free_p)
    char *content = as_xasprintf("{\"credential_source\":{\"file\":\"%s\"}}", file);
    const struct as_provider_kind *kind = as_provider_kind_find("gce");
    write_file(account, content);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", account, 1);
    cr_expect(is_known(kind, ""));
    write_file(account, "{");
    cr_expect_not(is_known(kind, ""), "it names nothing");
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    cr_assert_eq(unlink(account), 0);
}

Test(sandbox_files, the_sandbox_knows_what_providers_read)
{
    cr_assert_not_null(mkdtemp(root));
    setup_world();
    make_places("");
    for (size_t i = 0; as_provider_kinds[i]; i++) {
        check_keys(as_provider_kinds[i]);
        check_variables(as_provider_kinds[i]);
    }
    check_names();
    remove_places();
    teardown_world();
    cr_assert_eq(rmdir(root), 0);
}

/* What a disk that was mounted anew is to the kernel: another folder at the same place. */
static void replace_folder(void)
{
    AS_CLEANUP(as_free_p) char *aside = as_xasprintf("%s/aside", root);
    cr_assert_eq(rename(folder, aside), 0);
    cr_assert_eq(mkdir(folder, 0700), 0);
    write_file(file, "rules: []\n");
}

/* In a child of the test, which cannot use Criterion's assertions: it tells by its status. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static bool explains(const struct as_sandbox *sandbox, const char *path, const char *expected)
{
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "before");
    as_sandbox_explain(sandbox, path, &error);
    if (strstr(error.text, expected))
        return true;
    fprintf(stderr, "%s: %s\n", path, error.text);
    return false;
}

static void explain_after_replacement(const struct as_config *config, int go, int done)
{
    const struct as_sandbox_config needs = {
        .mode = AS_SANDBOX_AUTO, .config = config, .adapters = &adapters};
    struct as_sandbox *sandbox = NULL;
    struct as_error error = AS_ERROR_INIT;
    char byte = 0;
    AS_CLEANUP(as_free_p) char *absent = as_xasprintf("%s/absent", folder);
    MUST(as_sandbox_enter(&needs, &sandbox, &error) == 0);
    struct as_error unchanged = AS_ERROR_INIT;
    as_error_set(&unchanged, "before");
    as_sandbox_explain(sandbox, file, &unchanged);
    MUST(strcmp(unchanged.text, "before") == 0);
    MUST(write(go, &byte, 1) == 1 && read(done, &byte, 1) == 1);
    MUST(explains(sandbox, file, "another one than at the start"));
    MUST(explains(sandbox, file, "restart alertscaler"));
    MUST(explains(sandbox, file, folder));
    MUST(explains(sandbox, absent, "another one than at the start"));
    as_sandbox_free(sandbox);
    _exit(0);
}

Test(sandbox_files, a_folder_that_is_another_one_meanwhile_is_named_as_the_reason)
{
    if (sandbox_landlock_get_level() == 0)
        cr_skip_test("this kernel has no Landlock");
    cr_assert_not_null(mkdtemp(root));
    setup_world();
    make_places("rules: []\n");
    write_config(&(struct row){"rule_files", "rule_files: [FILE]"});
    struct as_config *config = NULL;
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    int go[2], done[2], status = 0;
    char byte = 0;
    cr_assert(pipe(go) == 0 && pipe(done) == 0);
    cr_assert_eq(as_config_load(config_file, &config, &diagnostics), 0);
    const pid_t child = fork(); /* what is given up is not had again */
    if (child == 0)
        explain_after_replacement(config, go[1], done[0]);
    close(go[1]);
    if (read(go[0], &byte, 1) == 1) {
        replace_folder();
        cr_assert_eq(write(done[1], &byte, 1), 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    as_config_free(config);
    as_diagnostics_deinit(&diagnostics);
    teardown_world();
    AS_CLEANUP(as_free_p) char *aside = as_xasprintf("%s/aside", root);
    AS_CLEANUP(as_free_p) char *old = as_xasprintf("%s/file", aside);
    remove_places();
    cr_assert(unlink(old) == 0 && rmdir(aside) == 0 && rmdir(root) == 0);
}

/* ---- logins: the files of a provider of the same cloud ---- */

static bool is_known_to_login(const char *text)
{
    const struct row row = {"logins", text};
    write_config(&row);
    return is_covered(&row);
}

Test(sandbox_files, the_sandbox_knows_what_logins_read)
{
    static const struct {
        const char *variable, *text;
    } cases[] = {
        {"AWS_CONFIG_FILE", "sigv4: {}"},
        {"AWS_SHARED_CREDENTIALS_FILE", "sigv4: {}"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE", "sigv4: {}"},
        {"AZURE_FEDERATED_TOKEN_FILE", "azuread: {workload_identity: {}}"},
        {"GOOGLE_APPLICATION_CREDENTIALS", "google_iam: {}"},
    };
    cr_assert_not_null(mkdtemp(root));
    setup_world();
    make_places("");
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        AS_CLEANUP(as_free_p)
        char *text =
            as_xasprintf("prometheus: {url: 'http://a', http_config: {%s}} # FILE", cases[i].text);
        cr_expect_not(is_known_to_login(text), "%s", cases[i].variable);
        setenv(cases[i].variable, file, 1);
        cr_expect(is_known_to_login(text), "%s", cases[i].variable);
        cr_expect_not(is_known_to_login("prometheus: {url: 'http://a'} # FILE"));
        unsetenv(cases[i].variable);
    }
    AS_CLEANUP(as_free_p) char *account = as_xasprintf("%s/account", root);
    AS_CLEANUP(as_free_p)
    char *content = as_xasprintf("{\"credential_source\":{\"file\":\"%s\"}}", file);
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("prometheus: {url: 'http://a', http_config: {google_iam: "
                              "{credentials_file: %s}}} # FILE",
                              account);
    write_file(account, content);
    cr_expect(is_known_to_login(text), "the token of an external account");
    cr_assert_eq(unlink(account), 0);
    remove_places();
    teardown_world();
    cr_assert_eq(rmdir(root), 0);
}
