/*
 * `providers.<name>`: accounts for node groups. The kind (rules/provider_kind.h) says which
 * further keys a type has; their values are kept as texts for the provider to read.
 */
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/base/url.h>
#include <alertscaler/rules/tables.h>

#include "schema_writer.h"

static void parse_type(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const char *words[PROVIDER_TYPES_MAX + 1];
    const struct schema_field word = {.type = SCHEMA_WORD, .words = words};
    struct as_provider_settings *provider = object;
    unsigned index = 0;
    provider_kind_list(words);
    if (schema_parse_scalar(loader, &word, value, &index))
        provider->type = words[index];
}

/* Whether the key's value is a secret itself, not the name of a file. */
static bool is_secret_key(const char *key)
{
    static const char *const words[] = {"password", "secret", "token", "credential", "private_key"};
    static const char *const harmless[] = {"*_file", "*_path", "*_url", "*_env", "*_id", "*_name"};
    bool is_secret = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++)
        is_secret = is_secret || strstr(key, words[i]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(harmless); i++)
        is_secret = is_secret && !as_str_glob(harmless[i], key);
    return is_secret;
}

/* Whether a URL is accepted. One unsafe for secrets is refused or warned of: a private cloud may
 * have its own safe network. */
static bool check_privacy(struct loader *loader, const struct as_provider_key *key,
                          const struct as_yaml_node *value)
{
    if (!key->is_url || key->is_metadata || as_url_is_private(value->text))
        return true;
    if (key->is_private)
        loader_report(loader, value, "expected a URL with https:// (http:// only to this machine)");
    else
        as_yaml_warn(loader->tree, value, AS_YAML_SHOW, loader->diagnostics,
                     "what is sent there, and tokens with it, can be read by others on the way: "
                     "use https://");
    return !key->is_private;
}

static bool parse_option(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_pair *pair, void *object)
{
    struct as_provider_settings *provider = object;
    const struct as_yaml_node *type = as_yaml_find(node, "type");
    if (!type || type->kind != AS_YAML_SCALAR || strcmp(type->text, "http") == 0)
        return false;
    if (is_secret_key(pair->key->text)) {
        as_yaml_report(loader->tree, pair->key, AS_YAML_HIDE, loader->diagnostics,
                       "a secret does not stand in this file: use `%s_file`", pair->key->text);
        return true;
    }
    const struct as_provider_kind *kind = as_provider_kind_find(type->text);
    const struct as_provider_key *key = NULL;
    if (!kind) /* reported elsewhere */
        return true;
    if (!provider_key_find(kind->account_keys, pair->key->text, &key)) {
        provider_key_report(loader, kind, kind->account_keys, provider_usual_keys, pair->key);
        return true;
    }
    if (!provider->options)
        provider->options = as_arena_alloc(loader->arena, node->count, sizeof(*provider->options));
    struct as_provider_option *option = &provider->options[provider->option_count];
    const struct schema_field text = {.type = key->is_file  ? SCHEMA_PATH
                                              : key->is_url ? SCHEMA_URL
                                                            : SCHEMA_STRING};
    if (schema_parse_scalar(loader, &text, pair->value, &option->value) &&
        check_privacy(loader, key, pair->value)) {
        option->key = as_arena_strdup(loader->arena, pair->key->text);
        provider->option_count++;
    }
    return true;
}

static const struct schema_field provider_fields[] = {
    {.key = "type",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_type,
     .expected = "word"},
    SCHEMA_FIELD("timeout", DURATION, as_provider_settings, timeout_us, .min = AS_US_PER_MS,
                 .fallback = "10s"),
    SCHEMA_FIELD("http_config", MAP, as_provider_settings, http, .map = &schema_http_config),
    {0},
};

/* Reports login keys that would be ignored. */
static void refuse_logins(struct loader *loader, const struct as_provider_kind *kind,
                          const struct as_yaml_node *node)
{
    const struct as_yaml_node *http = as_yaml_find(node, "http_config");
    for (size_t i = 0; http && http->kind == AS_YAML_MAP && provider_login_keys[i]; i++) {
        const char *key = provider_login_keys[i];
        const struct as_yaml_node *value = as_yaml_find(http, key);
        if (value)
            loader_report(loader, value,
                          "`%s` is not for a provider of type %s: its page says where its "
                          "credentials are found",
                          key, kind->type);
    }
}

static void finish_provider(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    const struct as_provider_settings *provider = object;
    const struct as_provider_kind *kind =
        provider->type ? as_provider_kind_find(provider->type) : NULL;
    if (!kind)
        return;
    (void)provider_keys_check(loader, kind, kind->account_keys, node, at);
    if (kind->warning)
        as_yaml_warn(loader->tree, as_yaml_find(node, "type"), AS_YAML_SHOW, loader->diagnostics,
                     "%s", kind->warning);
    if (!kind->has_http_login)
        refuse_logins(loader, kind, node);
}

const struct schema schema_provider = {
    .name = "providers",
    .size = sizeof(struct as_provider_settings),
    .fields = provider_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"url", "the address stands at the target: `node_group: {provider: ..., url: ...}`",
             false},
            {0},
        },
    .other = parse_option,
    .describe_keys = json_schema_describe_provider_type,
    .describe_map = json_schema_describe_providers,
    .finish = finish_provider,
};
