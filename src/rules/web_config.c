/*
 * The web configuration: exporter-toolkit's keys, and the loader of the file. An empty file is
 * valid. Certificates and keys are read by http/tls_server.h, not here.
 */
#include <alertscaler/rules/web_config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/tables.h>

#include "config_private.h"

/*
 * The tables.
 */

#define IN_TLS(member) offsetof(struct as_web_tls_settings, member)
/* crypt(5)'s form, as find_cost reads it */
#define BCRYPT    "^\\$2[aby]\\$(0[4-9]|[12][0-9]|3[01])\\$[./A-Za-z0-9]{53}$"
#define COST_HIGH 14 /* above it a login takes a second or more */

const char *const as_web_client_auth_words[] = {
    "NoClientCert",
    "RequestClientCert",
    "RequireAnyClientCert",
    "VerifyClientCertIfGiven",
    "RequireAndVerifyClientCert",
    NULL,
};

const char *const as_web_version_words[] = {"TLS10", "TLS11", "TLS12", "TLS13", NULL};

const char *const as_web_cipher_words[] = {
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    NULL,
};

const char *const as_web_curve_words[] = {"CurveP256", "CurveP384", "CurveP521", "X25519", NULL};

static void parse_words(struct loader *loader, const struct as_yaml_node *list,
                        const char *const *words, const char ***out, size_t *count_out)
{
    const struct schema_field field = {.type = SCHEMA_WORD, .words = words};
    if (!schema_is_kind(loader, list, AS_YAML_LIST))
        return;
    const char **found = as_arena_alloc(loader->arena, list->count, sizeof(*found));
    size_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        unsigned word;
        if (schema_parse_value(loader, &field, list->items[i], &word))
            found[count++] = words[word];
    }
    *out = found;
    *count_out = count;
}

static void parse_ciphers(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_web_tls_settings *tls = object;
    parse_words(loader, value, as_web_cipher_words, &tls->cipher_suites, &tls->cipher_suite_count);
}

static void parse_curves(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_web_tls_settings *tls = object;
    parse_words(loader, value, as_web_curve_words, &tls->curve_preferences,
                &tls->curve_preference_count);
}

static const struct schema_field tls_fields[] = {
    SCHEMA_FIELD("cert_file", PATH, as_web_tls_settings, cert_file, .is_required = true),
    SCHEMA_FIELD("key_file", PATH, as_web_tls_settings, key_file, .is_required = true),
    SCHEMA_FIELD("client_auth_type", WORD, as_web_tls_settings, client_auth,
                 .words = as_web_client_auth_words, .fallback = "NoClientCert"),
    SCHEMA_FIELD("client_ca_file", PATH, as_web_tls_settings, client_ca_file),
    SCHEMA_FIELD("client_allowed_sans", STRINGS, as_web_tls_settings, client_allowed_sans,
                 .count_offset = IN_TLS(client_allowed_san_count)),
    SCHEMA_FIELD("min_version", WORD, as_web_tls_settings, min_version,
                 .words = as_web_version_words, .fallback = "TLS12"),
    SCHEMA_FIELD("max_version", WORD, as_web_tls_settings, max_version,
                 .words = as_web_version_words, .fallback = "TLS13"),
    {.key = "cipher_suites",
     .type = SCHEMA_CUSTOM,
     .parse = parse_ciphers,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORDS, .words = as_web_cipher_words)),
     .expected = "list of cipher suites"},
    {.key = "curve_preferences",
     .type = SCHEMA_CUSTOM,
     .parse = parse_curves,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORDS, .words = as_web_curve_words)),
     .expected = "list of curves"},
    SCHEMA_FIELD("prefer_server_cipher_suites", BOOL, as_web_tls_settings,
                 prefer_server_cipher_suites, .fallback = "true"),
    {0},
};

static void finish_tls(struct loader *loader, const struct as_yaml_node *node,
                       const struct as_yaml_node *at, void *object)
{
    struct as_web_tls_settings *tls = object;
    const bool verifies = tls->client_auth >= 3;
    tls->is_set = true;
    if (tls->client_ca_file && tls->client_auth == 0)
        loader_report(loader, schema_find_key(node, "client_ca_file"),
                      "without `client_auth_type` no client is asked for a certificate");
    if (verifies && !tls->client_ca_file)
        loader_report(loader, as_yaml_find(node, "client_auth_type"), "%s needs `client_ca_file`",
                      as_web_client_auth_words[tls->client_auth]);
    if (tls->client_allowed_san_count > 0 && !verifies)
        loader_report(loader, schema_find_key(node, "client_allowed_sans"),
                      "names in certificates mean nothing unless `client_auth_type` is "
                      "RequireAndVerifyClientCert or VerifyClientCertIfGiven");
    if (tls->min_version > tls->max_version)
        loader_report(loader, as_yaml_find(node, "max_version"),
                      "`max_version` is below `min_version`");
}

static const struct schema tls_server = {
    .name = "tls_server_config",
    .size = sizeof(struct as_web_tls_settings),
    .fields = tls_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"key", "a key does not stand in this file: use `key_file`", true},
            {"cert", "a certificate does not stand in this file: use `cert_file`", false},
            {"client_ca", "certificates do not stand in this file: use `client_ca_file`", false},
            {0},
        },
    .finish = finish_tls,
};

/* exporter-toolkit's headers, and their allowed values; NULL: any. */
static const struct header_row {
    const char *name;
    const char *const *values;
} header_rows[] = {
    {"Strict-Transport-Security", NULL},
    {"X-Content-Type-Options", (const char *const[]){"nosniff", NULL}},
    {"X-Frame-Options", (const char *const[]){"deny", "sameorigin", NULL}},
    {"X-XSS-Protection", NULL},
    {"Content-Security-Policy", NULL},
};

static const struct header_row *find_header(struct loader *loader, const struct as_yaml_node *key)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(key->text);
    for (size_t i = 0; i < AS_ARRAY_SIZE(header_rows); i++) {
        if (strcmp(header_rows[i].name, key->text) == 0)
            return &header_rows[i];
        suggestion_offer(&suggestion, header_rows[i].name);
    }
    loader_report(loader, key, "unknown header %s%s", as_yaml_describe(key, found),
                  suggestion_print(&suggestion, hint));
    return NULL;
}

static bool parse_header(struct loader *loader, const struct header_row *row,
                         const struct as_yaml_node *value, struct as_web_header *out)
{
    if (!schema_parse_string(loader, value, &out->value))
        return false;
    out->name = row->name;
    for (const char *const *word = row->values; word && *word; word++) {
        if (strcmp(*word, out->value) == 0)
            return true;
    }
    if (row->values)
        loader_report(loader, value, "%s is %s%s%s, or left out", row->name, row->values[0],
                      row->values[1] ? " or " : "", row->values[1] ? row->values[1] : "");
    return !row->values;
}

static void parse_headers(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_web_settings *settings = object;
    if (!schema_is_kind(loader, value, AS_YAML_MAP))
        return;
    settings->headers = as_arena_alloc(loader->arena, value->count, sizeof(*settings->headers));
    size_t size = 0;
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_pair *pair = &value->pairs[i];
        const struct header_row *row = find_header(loader, pair->key);
        struct as_web_header *header = &settings->headers[settings->header_count];
        if (!row || !parse_header(loader, row, pair->value, header))
            continue;
        settings->header_count++;
        size += strlen(header->name) + strlen(": ") + strlen(header->value) + strlen("\r\n");
        if (size > AS_WEB_HEADERS_MAX) {
            loader_report(loader, pair->value,
                          "the headers together take more than the %zu bytes that an answer has "
                          "room for: shorten %s",
                          AS_WEB_HEADERS_MAX, header->name);
            return;
        }
    }
}

static void parse_http2(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    static const struct schema_field field = {.type = SCHEMA_BOOL};
    bool is_wanted = false;
    if (schema_parse_value(loader, &field, value, &is_wanted) && is_wanted)
        as_yaml_warn(loader->tree, value, AS_YAML_SHOW, loader->diagnostics,
                     "alertscaler speaks HTTP/1.1 only, which every client understands too");
}

static const struct schema_field http_fields[] = {
    {.key = "http2",
     .type = SCHEMA_CUSTOM,
     .parse = parse_http2,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(BOOL)),
     .expected = "true or false"},
    {.key = "headers",
     .type = SCHEMA_CUSTOM,
     .parse = parse_headers,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(STRING)))),
     .expected = "map of headers"},
    {0},
};

static const struct schema http_server = SCHEMA("http_server_config", as_web_settings, http_fields);

/* In crypt(5)'s form: "$2b$", a cost of two digits, "$", 22 of salt and 31 of hash. */
static int find_cost(const char *hash)
{
    static const char digits[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const bool is_bcrypt = strlen(hash) == 60 && strncmp(hash, "$2", 2) == 0 &&
                           strchr("aby", hash[2]) && hash[3] == '$' && hash[6] == '$' &&
                           strspn(hash + 7, digits) == 53;
    if (!is_bcrypt || strspn(hash + 4, "0123456789") != 2)
        return -1;
    const int cost = 10 * (hash[4] - '0') + hash[5] - '0';
    return cost >= 4 && cost <= 31 ? cost : -1;
}

static bool check_user(struct loader *loader, const struct as_yaml_pair *pair)
{
    const struct as_yaml_node *value = pair->value;
    const char *name = pair->key->text;
    const bool is_text = value->kind == AS_YAML_SCALAR;
    const int cost = is_text ? find_cost(value->text) : -1;
    if (name[0] == '\0' || strlen(name) > SCHEMA_NAME_MAX || strpbrk(name, ":*\t\r\n")) {
        as_yaml_report(loader->tree, pair->key, AS_YAML_HIDE, loader->diagnostics,
                       "expected a user name of at most %d characters, without `:` and `*`",
                       SCHEMA_NAME_MAX);
        return false;
    }
    if (cost < 0) {
        as_yaml_report(loader->tree, value, AS_YAML_HIDE, loader->diagnostics,
                       "expected a bcrypt hash for %s, as `htpasswd -nBC 10 \"\"` prints it: "
                       "$2y$10$ and 53 characters",
                       name);
        return false;
    }
    if (cost > COST_HIGH)
        as_yaml_warn(loader->tree, value, AS_YAML_HIDE, loader->diagnostics,
                     "a cost of %d makes the first request of %s wait for seconds: 10 to 12 are "
                     "usual",
                     cost, name);
    return true;
}

static void parse_users(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_web_settings *settings = object;
    if (!schema_is_kind(loader, value, AS_YAML_MAP))
        return;
    settings->users = as_arena_alloc(loader->arena, value->count, sizeof(*settings->users));
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_pair *pair = &value->pairs[i];
        if (check_user(loader, pair))
            settings->users[settings->user_count++] = (struct as_web_user){
                .name = as_arena_strdup(loader->arena, pair->key->text),
                .hash = as_arena_strdup(loader->arena, pair->value->text),
            };
    }
}

static const struct schema_field web_fields[] = {
    SCHEMA_FIELD("tls_server_config", MAP, as_web_settings, tls, .map = &tls_server),
    {.key = "http_server_config", .type = SCHEMA_MAP, .map = &http_server},
    {.key = "basic_auth_users",
     .type = SCHEMA_CUSTOM,
     .parse = parse_users,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(
         TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(SCALAR, .pattern = BCRYPT),
                                      SCHEMA_FORM(SCALAR, .pattern = "^[^:*\\t\\r\\n]{1,200}$")))),
     .expected = "map of users"},
    {0},
};

const struct schema schema_web = {
    .name = "web configuration",
    .size = sizeof(struct as_web_settings),
    .fields = web_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"rate_limit", "alertscaler limits connections and wrong passwords by itself", false},
            {0},
        },
};

const struct schema *const schema_web_parts[] = {&tls_server, &http_server, NULL};

/*
 * The loader.
 */

struct as_web_config {
    struct as_web_settings settings;
    struct as_arena arena;
};

static void warn_of_mode(const char *path, const char *what, struct as_diagnostics *diagnostics)
{
    struct stat st;
    if (!path || stat(path, &st) != 0 || !(st.st_mode & S_IROTH))
        return;
    AS_CLEANUP(as_free_p)
    char *message =
        as_xasprintf("everyone on this machine can read it, and it holds %s: chmod o-r", what);
    as_diagnostics_add(
        diagnostics,
        &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING, .file = path, .message = message});
}

static void read_tree(struct as_web_config *config, const char *path,
                      const struct as_yaml_tree *tree, struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_free_p) char *folder = rule_files_copy_folder(path);
    struct loader loader = {
        .tree = tree,
        .diagnostics = diagnostics,
        .arena = &config->arena,
        .folder = folder,
    };
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    schema_fill_defaults(&loader, &schema_web, &config->settings);
    if (!as_yaml_is_null(root))
        schema_parse(&loader, &schema_web, root, root, &config->settings);
    if (config->settings.user_count > 0)
        warn_of_mode(path, "hashes of passwords", diagnostics);
    warn_of_mode(config->settings.tls.key_file, "a private key", diagnostics);
}

static void append(struct as_diagnostics *to, const struct as_diagnostics *from)
{
    for (size_t i = 0; i < from->count; i++)
        as_diagnostics_add(to, &from->items[i]);
}

int as_web_config_load(const char *path, struct as_web_config **config_out,
                       struct as_diagnostics *diagnostics)
{
    struct as_diagnostics own = AS_DIAGNOSTICS_INIT; /* `diagnostics` may have errors already */
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    int status = as_yaml_load_foreign(path, &own, &tree);
    AS_CLEANUP(as_web_config_free_p) struct as_web_config *config = NULL;
    if (status >= 0) {
        config = as_xcalloc(1, sizeof(*config));
        read_tree(config, path, tree, &own);
        status = own.has_error ? -EINVAL : 0;
    }
    append(diagnostics, &own);
    as_diagnostics_deinit(&own);
    if (status != 0)
        return status;
    *config_out = config;
    config = NULL;
    return 0;
}

struct as_web_config *as_web_config_free(struct as_web_config *config)
{
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->settings.user_count; i++) {
        char *hash = (char *)(uintptr_t)config->settings.users[i].hash;
        explicit_bzero(hash, strlen(hash));
    }
    as_arena_deinit(&config->arena);
    free(config);
    return NULL;
}

const struct as_web_settings *as_web_config_get(const struct as_web_config *config)
{
    return &config->settings;
}

bool as_web_is_open(const struct as_web_settings *settings,
                    const struct as_receiver_settings *receiver)
{
    const size_t credentials = settings->user_count + receiver->token_count +
                               receiver->certificate_count + receiver->hmac_count +
                               receiver->token_review.allow_count + receiver->proxy.group_count;
    const char *client_auth = as_web_client_auth_words[settings->tls.client_auth];
    return credentials == 0 && strcmp(client_auth, "RequireAndVerifyClientCert") != 0;
}
