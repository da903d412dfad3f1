/*
 * The tables of `http_config`: keys as in Prometheus' files, without the keys that would put a
 * secret into ours. The module reads no other file.
 */
#include <string.h>
#include <strings.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/rules/settings.h>
#include <alertscaler/rules/tables.h>

#define IN_HTTP(member) offsetof(struct as_http_settings, member)

static const struct schema_field basic_auth_fields[] = {
    SCHEMA_FIELD("username", STRING, as_http_settings, basic_auth.username),
    SCHEMA_FIELD("username_file", PATH, as_http_settings, basic_auth.username_file),
    SCHEMA_FIELD("password_file", PATH, as_http_settings, basic_auth.password_file,
                 .is_required = true),
    {0},
};

static const struct schema basic_auth = {
    .name = "basic_auth",
    .example = "{username: alertscaler, password_file: password}",
    .size = sizeof(struct as_http_settings),
    .fields = basic_auth_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"password", "a password does not stand in this file: use `password_file`", true},
            {0},
        },
    .choices =
        (const struct schema_choice[]){{SCHEMA_ONE_OF("username", "username_file"), false}, {0}},
};

static const struct schema_field authorization_fields[] = {
    SCHEMA_FIELD("type", STRING, as_http_settings, authorization.type, .fallback = "Bearer"),
    SCHEMA_FIELD("credentials_file", PATH, as_http_settings, authorization.credentials_file,
                 .is_required = true),
    {0},
};

static void finish_authorization(struct loader *loader, const struct as_yaml_node *node,
                                 const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *type = as_yaml_find(node, "type");
    if (!type || type->kind != AS_YAML_SCALAR)
        return;
    if (strcasecmp(type->text, "Basic") == 0)
        loader_report(loader, type, "for Basic use `basic_auth`");
    else if (strpbrk(type->text, " ,;:\"="))
        loader_report(loader, type, "expected one word like Bearer");
}

static const struct schema authorization = {
    .name = "authorization",
    .example = "{credentials_file: token}",
    .size = sizeof(struct as_http_settings),
    .fields = authorization_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"credentials", "credentials do not stand in this file: use `credentials_file`", true},
            {0},
        },
    .finish = finish_authorization,
};

static const struct schema_field tls_fields[] = {
    SCHEMA_FIELD("ca_file", PATH, as_tls_settings, ca_file),
    SCHEMA_FIELD("cert_file", PATH, as_tls_settings, cert_file),
    SCHEMA_FIELD("key_file", PATH, as_tls_settings, key_file),
    SCHEMA_FIELD("server_name", STRING, as_tls_settings, server_name),
    SCHEMA_FIELD("insecure_skip_verify", BOOL, as_tls_settings, insecure_skip_verify,
                 .fallback = "false"),
    {0},
};

static void finish_tls(struct loader *loader, const struct as_yaml_node *node,
                       const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *cert = schema_find_key(node, "cert_file");
    const struct as_yaml_node *key = schema_find_key(node, "key_file");
    if (!cert != !key)
        loader_report(loader, cert ? cert : key,
                      "`cert_file` and `key_file` are needed both, or neither");
}

static const struct schema tls_config = {
    .name = "tls_config",
    .example = "{ca_file: ca.pem}",
    .size = sizeof(struct as_tls_settings),
    .fields = tls_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"ca", "use `ca_file`", false},
            {"cert", "use `cert_file`", false},
            {"key", "a private key does not stand in this file: use `key_file`", true},
            {0},
        },
    .finish = finish_tls,
};

static const struct schema_field header_fields[] = {
    SCHEMA_FIELD("values", STRINGS, as_header_settings, values,
                 .count_offset = offsetof(struct as_header_settings, value_count)),
    SCHEMA_FIELD("files", PATHS, as_header_settings, files,
                 .count_offset = offsetof(struct as_header_settings, file_count)),
    {0},
};

/* Absent, or an empty list. */
static bool is_left_out(const struct as_yaml_node *node, const char *key)
{
    const struct as_yaml_node *value = as_yaml_find(node, key);
    return !value || (value->kind == AS_YAML_LIST && value->count == 0);
}

/* Prometheus reserves them too: the client sets them, or they have their own keys. */
static void finish_header(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    static const char *const reserved[] = {
        "Authorization",      "Host",
        "Content-Encoding",   "Content-Length",
        "Content-Type",       "User-Agent",
        "Connection",         "Keep-Alive",
        "Proxy-Authenticate", "Proxy-Authorization",
        "Www-Authenticate",   "Accept-Encoding",
        "Transfer-Encoding",
    };
    const struct as_header_settings *header = object;
    for (size_t i = 0; i < AS_ARRAY_SIZE(reserved); i++) {
        if (strcasecmp(header->name, reserved[i]) == 0)
            loader_report(loader, at, "the header %s cannot be set here", reserved[i]);
    }
    if (is_left_out(node, "values") && is_left_out(node, "files"))
        loader_report(loader, at, "`values` or `files` is needed");
}

static const struct schema http_header = {
    .name = "http_headers",
    .size = sizeof(struct as_header_settings),
    .fields = header_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"secrets", "secrets do not stand in this file: use `files`", true},
            {0},
        },
    .finish = finish_header,
};

/*
 * Logins with a token server or a cloud. Queries only read: a scope that permits writes is refused.
 */

#define GOOGLE_SCOPE "https://www.googleapis.com/auth/"

/* Azure names a scope by its audience, with `/.default` or `//.default` at the end. */
static bool is_scope(const char *text, size_t size, const char *scope)
{
    static const char *const ends[] = {"", "/", "/.default", "//.default"};
    const size_t start = strlen(scope);
    bool is_found = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends) && size >= start && !is_found; i++)
        is_found = size - start == strlen(ends[i]) &&
                   memcmp(text + start, ends[i], size - start) == 0 &&
                   strncasecmp(text, scope, start) == 0;
    return is_found;
}

/* Refuses scopes that permit more than queries. Spaces separate scopes (RFC 6749, section 3.3). */
static void refuse_write_scopes(struct loader *loader, const struct as_yaml_node *value)
{
    static const struct {
        const char *scope, *instead;
    } rows[] = {
        {GOOGLE_SCOPE "monitoring.write", GOOGLE_SCOPE "monitoring.read"},
        {GOOGLE_SCOPE "monitoring", GOOGLE_SCOPE "monitoring.read"},
        {GOOGLE_SCOPE "cloud-platform", GOOGLE_SCOPE "monitoring.read"},
        {"https://monitor.azure.com", "https://prometheus.monitor.azure.com/.default"},
        {"https://monitor.azure.cn", "https://prometheus.monitor.azure.cn/.default"},
        {"https://monitor.azure.us", "https://prometheus.monitor.azure.us/.default"},
    };
    if (value->kind != AS_YAML_SCALAR)
        return;
    for (const char *text = value->text; *text;) {
        const size_t size = strcspn(text, " ");
        for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
            if (is_scope(text, size, rows[i].scope))
                loader_report(loader, value, "the scope %.*s permits writes: for queries use %s",
                              (int)size, text, rows[i].instead);
        }
        text += size + (text[size] == ' ');
    }
}

static void parse_token_url(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    static const struct schema_field url = SCHEMA_FORM(URL);
    struct as_oauth2_settings *oauth2 = object;
    const char *host = value->kind == AS_YAML_SCALAR ? strstr(value->text, "://") : NULL;
    if (host && memchr(host + 3, '@', strcspn(host + 3, "/?#")))
        as_yaml_report(loader->tree, value, AS_YAML_HIDE, loader->diagnostics,
                       "credentials do not stand in a URL: use `client_id` and "
                       "`client_secret_file`");
    else if (schema_parse_value(loader, &url, value, &oauth2->token_url) &&
             !as_url_is_private(value->text))
        loader_report(loader, value,
                      "the client's secret is sent to this URL: expected a URL with https:// "
                      "(http:// only to this machine)");
}

/* Whether the parameter can be given; if not, the error is reported. */
static bool check_parameter(struct loader *loader, const struct as_yaml_node *name)
{
    static const struct {
        const char *name, *use;
        bool is_secret;
    } rows[] = {
        {"client_id", "`client_id` of `oauth2`", false},
        {"client_secret", "`client_secret_file` of `oauth2`", true},
        {"scope", "`scopes` of `oauth2`", false},
    };
    static const char *const secrets[] = {"secret", "password", "assertion", "refresh_token"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(name->text, rows[i].name) == 0) {
            as_yaml_report(loader->tree, name, rows[i].is_secret ? AS_YAML_HIDE : AS_YAML_SHOW,
                           loader->diagnostics, "`%s` does not stand here: use %s", name->text,
                           rows[i].use);
            return false;
        }
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(secrets); i++) {
        if (strstr(name->text, secrets[i])) {
            as_yaml_report(loader->tree, name, AS_YAML_HIDE, loader->diagnostics,
                           "a secret does not stand in this file: the secret of a client is in "
                           "`client_secret_file`");
            return false;
        }
    }
    const bool is_grant = strcmp(name->text, "grant_type") == 0;
    if (is_grant)
        loader_report(loader, name,
                      "alertscaler sends `grant_type: client_credentials`: leave `grant_type` out");
    else if (name->size == 0)
        loader_report(loader, name, "expected the name of a parameter, like `audience`");
    return !is_grant && name->size > 0;
}

#define ENDPOINT_PARAMS_MAX 100

static const struct schema_field endpoint_params_forms[] = {
    SCHEMA_FORM(TABLE, .max = ENDPOINT_PARAMS_MAX, .forms = SCHEMA_FORMS(SCHEMA_FORM(STRING))),
    {0},
};

static void parse_endpoint_params(struct loader *loader, const struct as_yaml_node *value,
                                  void *object)
{
    struct as_oauth2_settings *oauth2 = object;
    if (!schema_is_map(loader, value, "{audience: 'https://prometheus.example.com'}") ||
        !schema_check_count(loader, endpoint_params_forms, value))
        return;
    oauth2->endpoint_params =
        as_arena_alloc(loader->arena, value->count, sizeof(*oauth2->endpoint_params));
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_pair *pair = &value->pairs[i];
        struct as_form_parameter *row = &oauth2->endpoint_params[oauth2->endpoint_param_count];
        if (!check_parameter(loader, pair->key) ||
            !schema_parse_string(loader, pair->value, &row->value))
            continue;
        refuse_write_scopes(loader, pair->value);
        row->name = as_arena_strdup(loader->arena, pair->key->text);
        oauth2->endpoint_param_count++;
    }
}

static const struct schema_field oauth2_fields[] = {
    SCHEMA_FIELD("client_id", STRING, as_oauth2_settings, client_id, .is_required = true),
    SCHEMA_FIELD("client_secret_file", PATH, as_oauth2_settings, client_secret_file,
                 .is_required = true),
    {.key = "token_url",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_token_url,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(URL)),
     .expected = "URL"},
    SCHEMA_FIELD("scopes", STRINGS, as_oauth2_settings, scopes, .max = 100,
                 .count_offset = offsetof(struct as_oauth2_settings, scope_count)),
    {.key = "endpoint_params",
     .type = SCHEMA_CUSTOM,
     .parse = parse_endpoint_params,
     .forms = endpoint_params_forms,
     .expected = "map of texts"},
    SCHEMA_FIELD("tls_config", MAP, as_oauth2_settings, tls, .map = &tls_config),
    {0},
};

static void finish_oauth2(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *scopes = as_yaml_find(node, "scopes");
    for (uint32_t i = 0; scopes && scopes->kind == AS_YAML_LIST && i < scopes->count; i++)
        refuse_write_scopes(loader, scopes->items[i]);
}

static const struct schema oauth2 = {
    .name = "oauth2",
    .example = "{client_id: alertscaler, client_secret_file: client-secret, "
               "token_url: 'https://login.example.com/token'}",
    .size = sizeof(struct as_oauth2_settings),
    .fields = oauth2_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"client_secret", "a secret does not stand in this file: use `client_secret_file`",
             true},
            {"client_certificate_key",
             "a private key does not stand in this file: use `client_secret_file`", true},
            {"grant_type",
             "alertscaler sends `grant_type: client_credentials`: leave `grant_type` out", false},
            {"proxy_url", "`proxy_url` of `http_config` is for the token server too", false},
            {0},
        },
    .finish = finish_oauth2,
};

static const struct schema_field sigv4_fields[] = {
    SCHEMA_FIELD("region", NAME, as_sigv4_settings, region),
    SCHEMA_FIELD("profile", STRING, as_sigv4_settings, profile),
    SCHEMA_FIELD("role_arn", STRING, as_sigv4_settings, role_arn),
    SCHEMA_FIELD("external_id", STRING, as_sigv4_settings, external_id),
    {0},
};

static void finish_sigv4(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct as_sigv4_settings *sigv4 = object;
    const struct as_yaml_node *id = schema_find_key(node, "external_id");
    if (sigv4->role_arn && !as_str_glob("arn:*:iam::*:role/*", sigv4->role_arn))
        loader_report(loader, as_yaml_find(node, "role_arn"),
                      "expected a role like arn:aws:iam::123456789012:role/prometheus-reader");
    if (id && !as_yaml_find(node, "role_arn"))
        loader_report(loader, id, "`external_id` goes with `role_arn`");
}

#define NO_ACCESS_KEY                                                                              \
    "a secret does not stand in this file: use `sigv4` with `profile`, or the identity of the "    \
    "pod or machine"

static const struct schema sigv4 = {
    .name = "sigv4",
    .example = "{region: eu-central-1}",
    .size = sizeof(struct as_sigv4_settings),
    .fields = sigv4_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"access_key", NO_ACCESS_KEY, true},
            {"secret_key", NO_ACCESS_KEY, true},
            {"service_name", "alertscaler signs for the service `aps`: leave `service_name` out",
             false},
            {"use_fips_sts_endpoint", "`use_fips_sts_endpoint` is not supported: leave it out",
             false},
            {0},
        },
    .finish = finish_sigv4,
};

static const char *const azure_clouds[] = {"AzurePublic", "AzureChina", "AzureGovernment", NULL};

static void parse_azure_cloud(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    static const struct schema_field word = SCHEMA_FORM(WORD, .words = azure_clouds);
    struct as_azuread_settings *azuread = object;
    unsigned index = 0;
    if (schema_parse_value(loader, &word, value, &index))
        azuread->cloud = azure_clouds[index];
}

static const struct schema_field managed_identity_fields[] = {
    SCHEMA_FIELD("client_id", NAME, as_azuread_settings, managed_identity.client_id),
    {0},
};

static void finish_managed_identity(struct loader *loader, const struct as_yaml_node *node,
                                    const struct as_yaml_node *at, void *object)
{
    struct as_azuread_settings *azuread = object;
    azuread->managed_identity.is_set = true;
}

static const struct schema managed_identity =
    SCHEMA("azuread.managed_identity", as_azuread_settings, managed_identity_fields,
           .example = "{client_id: 00000000-0000-0000-0000-000000000000}",
           .finish = finish_managed_identity);

static const struct schema_field workload_identity_fields[] = {
    SCHEMA_FIELD("client_id", NAME, as_azuread_settings, workload_identity.client_id),
    SCHEMA_FIELD("tenant_id", NAME, as_azuread_settings, workload_identity.tenant_id),
    SCHEMA_FIELD("token_file_path", PATH, as_azuread_settings, workload_identity.token_file_path),
    {0},
};

static void finish_workload_identity(struct loader *loader, const struct as_yaml_node *node,
                                     const struct as_yaml_node *at, void *object)
{
    struct as_azuread_settings *azuread = object;
    azuread->workload_identity.is_set = true;
}

static const struct schema workload_identity =
    SCHEMA("azuread.workload_identity", as_azuread_settings, workload_identity_fields,
           .example = "{}", .finish = finish_workload_identity);

static const struct schema_field azure_oauth_fields[] = {
    SCHEMA_FIELD("client_id", NAME, as_azuread_settings, oauth.client_id, .is_required = true),
    SCHEMA_FIELD("tenant_id", NAME, as_azuread_settings, oauth.tenant_id, .is_required = true),
    SCHEMA_FIELD("client_secret_file", PATH, as_azuread_settings, oauth.client_secret_file,
                 .is_required = true),
    {0},
};

static void finish_azure_oauth(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_yaml_node *at, void *object)
{
    struct as_azuread_settings *azuread = object;
    azuread->oauth.is_set = true;
}

static const struct schema azure_oauth = {
    .name = "azuread.oauth",
    .example = "{client_id: 00000000-0000-0000-0000-000000000000, tenant_id: example.com, "
               "client_secret_file: client-secret}",
    .size = sizeof(struct as_azuread_settings),
    .fields = azure_oauth_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"client_secret", "a secret does not stand in this file: use `client_secret_file`",
             true},
            {0},
        },
    .finish = finish_azure_oauth,
};

static const struct schema_field azuread_fields[] = {
    {.key = "cloud",
     .type = SCHEMA_CUSTOM,
     .parse = parse_azure_cloud,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORD, .words = azure_clouds)),
     .expected = "AzurePublic, AzureChina or AzureGovernment",
     .fallback = "AzurePublic"},
    {.key = "managed_identity", .type = SCHEMA_MAP, .map = &managed_identity},
    {.key = "workload_identity", .type = SCHEMA_MAP, .map = &workload_identity},
    {.key = "oauth", .type = SCHEMA_MAP, .map = &azure_oauth},
    {0},
};

static const struct schema azuread = {
    .name = "azuread",
    .example = "{workload_identity: {}}",
    .size = sizeof(struct as_azuread_settings),
    .fields = azuread_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"client_secret",
             "a secret does not stand in this file: use `oauth` with `client_secret_file`", true},
            {"sdk",
             "`sdk` is not supported: use `managed_identity`, `workload_identity` or `oauth`",
             false},
            {"scope", "alertscaler requests the scope for queries of `cloud`: leave `scope` out",
             false},
            {0},
        },
    .choices =
        (const struct schema_choice[]){
            {SCHEMA_ONE_OF("managed_identity", "workload_identity", "oauth"), false}, {0}},
};

static const struct schema_field google_iam_fields[] = {
    SCHEMA_FIELD("credentials_file", PATH, as_google_iam_settings, credentials_file),
    {0},
};

static const struct schema google_iam = {
    .name = "google_iam",
    .example = "{credentials_file: credentials.json}",
    .size = sizeof(struct as_google_iam_settings),
    .fields = google_iam_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"credentials", "credentials do not stand in this file: use `credentials_file`", true},
            {0},
        },
};

static const struct {
    const char *key;
    enum as_login_kind kind;
} logins[] = {
    {"oauth2", AS_LOGIN_OAUTH2},
    {"sigv4", AS_LOGIN_SIGV4},
    {"azuread", AS_LOGIN_AZUREAD},
    {"google_iam", AS_LOGIN_GOOGLE_IAM},
};

static void finish_http(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct as_http_settings *http = object;
    for (size_t i = 0; i < AS_ARRAY_SIZE(logins); i++) {
        if (as_yaml_find(node, logins[i].key))
            http->login = logins[i].kind;
    }
}

static const struct schema_field http_fields[] = {
    {.key = "basic_auth", .type = SCHEMA_MAP, .map = &basic_auth},
    {.key = "authorization", .type = SCHEMA_MAP, .map = &authorization},
    SCHEMA_FIELD("oauth2", MAP, as_http_settings, oauth2, .map = &oauth2),
    SCHEMA_FIELD("sigv4", MAP, as_http_settings, sigv4, .map = &sigv4),
    SCHEMA_FIELD("azuread", MAP, as_http_settings, azuread, .map = &azuread),
    SCHEMA_FIELD("google_iam", MAP, as_http_settings, google_iam, .map = &google_iam),
    SCHEMA_FIELD("tls_config", MAP, as_http_settings, tls, .map = &tls_config),
    SCHEMA_FIELD("http_headers", NAMED, as_http_settings, headers,
                 .count_offset = IN_HTTP(header_count), .max = 100, .map = &http_header),
    SCHEMA_FIELD("proxy_url", URL, as_http_settings, proxy_url),
    {0},
};

const struct schema schema_http_config = {
    .name = "http_config",
    .example = "{tls_config: {ca_file: ca.pem}}",
    .size = sizeof(struct as_http_settings),
    .fields = http_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"bearer_token",
             "a token does not stand in this file: use `authorization` with "
             "`credentials_file`",
             true},
            {"bearer_token_file", "use `authorization` with `credentials_file`", false},
            {"client_secret",
             "a secret does not stand in this file: use `oauth2` with `client_secret_file`", true},
            {"access_key", NO_ACCESS_KEY, true},
            {"secret_key", NO_ACCESS_KEY, true},
            {0},
        },
    .choices =
        (const struct schema_choice[]){{SCHEMA_ONE_OF("basic_auth", "authorization", "oauth2",
                                                      "sigv4", "azuread", "google_iam"),
                                        true},
                                       {0}},
    .finish = finish_http,
};

const struct schema *const schema_http_parts[] = {
    &basic_auth,        &authorization, &oauth2,     &sigv4,      &azuread,     &managed_identity,
    &workload_identity, &azure_oauth,   &google_iam, &tls_config, &http_header, NULL,
};

/* Prometheus' files have these keys beside the URL. A secret may be in their maps. */
#define IN_HTTP_CONFIG(key)                                                                        \
    {                                                                                              \
        key, "`" key "` stands under `http_config`", true                                          \
    }
const struct schema_refusal schema_http_refusals[] = {
    IN_HTTP_CONFIG("basic_auth"), IN_HTTP_CONFIG("authorization"),
    IN_HTTP_CONFIG("oauth2"),     IN_HTTP_CONFIG("sigv4"),
    IN_HTTP_CONFIG("azuread"),    IN_HTTP_CONFIG("google_iam"),
    IN_HTTP_CONFIG("tls_config"), IN_HTTP_CONFIG("http_headers"),
    IN_HTTP_CONFIG("proxy_url"),  {0},
};
