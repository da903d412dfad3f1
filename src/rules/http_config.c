/*
 * The tables of `http_config`: keys as in Prometheus' files, without the keys that would put a
 * secret into ours. The module reads no other file.
 */
#include <string.h>
#include <strings.h>

#include <alertscaler/base/attr.h>
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
    SCHEMA_FIELD("ca_file", PATH, as_http_settings, tls.ca_file),
    SCHEMA_FIELD("cert_file", PATH, as_http_settings, tls.cert_file),
    SCHEMA_FIELD("key_file", PATH, as_http_settings, tls.key_file),
    SCHEMA_FIELD("server_name", STRING, as_http_settings, tls.server_name),
    SCHEMA_FIELD("insecure_skip_verify", BOOL, as_http_settings, tls.insecure_skip_verify,
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
    .size = sizeof(struct as_http_settings),
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

static const struct schema_field http_fields[] = {
    {.key = "basic_auth", .type = SCHEMA_MAP, .map = &basic_auth},
    {.key = "authorization", .type = SCHEMA_MAP, .map = &authorization},
    {.key = "tls_config", .type = SCHEMA_MAP, .map = &tls_config},
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
            {"oauth2", "`oauth2` is not supported: use `authorization` or `basic_auth`", false},
            {0},
        },
    .choices =
        (const struct schema_choice[]){{SCHEMA_ONE_OF("basic_auth", "authorization"), true}, {0}},
};

const struct schema *const schema_http_parts[] = {&basic_auth, &authorization, &tls_config,
                                                  &http_header, NULL};
