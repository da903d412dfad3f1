/*
 * The tables of alertscaler.yaml, by section: `notify`, `providers`, `receiver`, and the whole
 * file. `http_config` is in http_config.c. A key's default is its `fallback` and nowhere else.
 *
 * Invariant: no key puts a secret into the file; secrets are in files of their own. The module
 * reads no other file: config.h does.
 */
#include <alertscaler/rules/settings.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <alertscaler/base/address.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/base/url.h>
#include <alertscaler/decide/notice.h>
#include <alertscaler/rules/tables.h>

#include "schema_writer.h"

/*
 * `notify`: the receivers of notices.
 */

#define MAX_AGE_MAX (7 * AS_US_PER_DAY)

static const struct schema_field alertmanager_fields[] = {
    SCHEMA_FIELD("urls", URLS, as_notify_settings, urls, .is_required = true, .max = 100,
                 .count_offset = offsetof(struct as_notify_settings, url_count)),
    SCHEMA_FIELD("http_config", MAP, as_notify_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema alertmanager =
    SCHEMA("notify.alertmanager", as_notify_settings, alertmanager_fields,
           .example = "{urls: ['http://alertmanager:9093']}", .refusals = schema_http_refusals);

static const struct schema_field webhook_fields[] = {
    SCHEMA_FIELD("url", URL, as_notify_settings, url, .is_required = true),
    SCHEMA_FIELD("http_config", MAP, as_notify_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema webhook =
    SCHEMA("notify.webhook", as_notify_settings, webhook_fields,
           .example = "{url: 'https://example.com/hook'}", .refusals = schema_http_refusals);

#define WORD(enumerator, word, ...) [enumerator] = word,
static const char *const on_words[] = {AS_NOTICES(WORD) NULL};

static const struct schema_field on_list[] = {
    SCHEMA_FORM(WORDS, .words = on_words, .when_empty = "expected at least one word: what to tell"),
    {0}};

static void parse_on(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    static const struct schema_field word = {.type = SCHEMA_WORD, .words = on_words};
    struct as_notify_settings *settings = object;
    if (!schema_is_kind(loader, value, AS_YAML_LIST))
        return;
    (void)schema_check_count(loader, on_list, value);
    for (uint32_t i = 0; i < value->count; i++) {
        unsigned kind = 0;
        if (schema_parse_value(loader, &word, value->items[i], &kind))
            settings->on |= 1U << kind;
    }
}

static const struct schema_field notify_fields[] = {
    SCHEMA_FIELD("name", NAME, as_notify_settings, name, .is_required = true),
    {.key = "alertmanager", .type = SCHEMA_MAP, .map = &alertmanager},
    {.key = "webhook", .type = SCHEMA_MAP, .map = &webhook},
    {.key = "on",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_on,
     .forms = on_list,
     .expected = "list of words"},
    SCHEMA_FIELD("max_age", DURATION, as_notify_settings, max_age_us, .min = AS_US_PER_MIN,
                 .max = MAX_AGE_MAX, .fallback = "1h"),
    {0},
};

static void finish_notify(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    struct as_notify_settings *settings = object;
    if (!settings->url)
        return;
    settings->is_webhook = true;
    settings->urls = as_arena_alloc(loader->arena, 1, sizeof(*settings->urls));
    settings->urls[0] = settings->url;
    settings->url_count = 1;
}

static const struct schema_choice notify_choices[] = {
    {SCHEMA_ONE_OF("alertmanager", "webhook"), false}, {0}};
const struct schema schema_notify = SCHEMA("notify", as_notify_settings, notify_fields,
                                           .choices = notify_choices, .finish = finish_notify);

const struct schema *const schema_notify_parts[] = {&alertmanager, &webhook, NULL};

const char *as_settings_get_instance(const struct as_settings *settings,
                                     char host_out[AS_INSTANCE_NAME_SIZE])
{
    char name[AS_INSTANCE_NAME_SIZE] = "";
    if (settings->instance)
        return settings->instance;
    if (settings->state.store == AS_STORE_KUBERNETES)
        return settings->state.lease.name;
    if (gethostname(name, sizeof(name) - 1) != 0 || !name[0])
        (void)snprintf(name, sizeof(name), "localhost");
    (void)snprintf(host_out, AS_INSTANCE_NAME_SIZE, "%s", name);
    return host_out;
}

const struct as_notify_settings *as_settings_find_notify(const struct as_settings *settings,
                                                         const char *name)
{
    for (size_t i = 0; i < settings->notify_count; i++) {
        if (as_str_equal(settings->notify[i].name, name))
            return &settings->notify[i];
    }
    return NULL;
}

/*
 * `providers.<name>`: accounts for node groups. The kind (rules/provider_kind.h) says which
 * further keys a type has; their values are kept as texts for the provider to read.
 */

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
    if (!type || type->kind != AS_YAML_SCALAR)
        return false;
    const struct as_provider_kind *kind = as_provider_kind_find(type->text);
    if (kind && kind->has_url_groups)
        return false;
    if (is_secret_key(pair->key->text)) {
        as_yaml_report(loader->tree, pair->key, AS_YAML_HIDE, loader->diagnostics,
                       "a secret does not stand in this file: use `%s_file`", pair->key->text);
        return true;
    }
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
    .example = "{type: aws, region: eu-central-1}",
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

/*
 * The tables of `receiver`: who may send and read, and what.
 */

#define IN(type, member) offsetof(struct type, member)

const char *const as_permission_words[] = {
    [AS_PERMISSION_NOTIFY] = "notify",
    [AS_PERMISSION_READ] = "read",
    [AS_PERMISSION_ADMIN] = "admin",
    [AS_PERMISSION_COUNT] = NULL,
};

static bool parse_permission(struct loader *loader, const struct as_yaml_node *node,
                             unsigned *permissions)
{
    static const struct schema_field field = {.type = SCHEMA_WORD, .words = as_permission_words};
    unsigned word = 0;
    if (!schema_parse_value(loader, &field, node, &word))
        return false;
    *permissions |= 1U << word;
    return true;
}

static const struct schema_field permission_list[] = {
    SCHEMA_FORM(WORDS, .words = as_permission_words,
                .when_empty = "expected at least one of notify, read and admin"),
    {0}};

static void parse_permissions(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_access_settings *settings = object;
    unsigned permissions = 0;
    if (!schema_is_kind(loader, value, AS_YAML_LIST))
        return;
    (void)schema_check_count(loader, permission_list, value);
    for (uint32_t i = 0; i < value->count; i++)
        (void)parse_permission(loader, value->items[i], &permissions);
    settings->permissions = permissions;
}

static void init_access(struct loader *loader, void *object)
{
    struct as_access_settings *settings = object;
    settings->permissions = 1U << AS_PERMISSION_NOTIFY | 1U << AS_PERMISSION_READ;
}

static const struct schema_field access_fields[] = {
    {.key = "permissions",
     .type = SCHEMA_CUSTOM,
     .parse = parse_permissions,
     .forms = permission_list,
     .expected = "list of permissions"},
    SCHEMA_FIELD("rules", STRINGS, as_access_settings, rules,
                 .count_offset = IN(as_access_settings, rule_count), .max = 1000),
    SCHEMA_FIELD("targets", STRINGS, as_access_settings, targets,
                 .count_offset = IN(as_access_settings, target_count), .max = 1000),
    {0},
};

/* An empty list looks like "nothing" but would mean "everything". */
static void check_access(struct loader *loader, const struct as_yaml_node *node)
{
    static const char *const keys[] = {"rules", "targets"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const struct as_yaml_node *list = as_yaml_find(node, keys[i]);
        if (list && list->kind == AS_YAML_LIST && list->count == 0)
            loader_report(loader, list,
                          "expected at least one pattern: leave `%s` out for everything, give the "
                          "credential `permissions: [read]` for nothing",
                          keys[i]);
    }
}

static void finish_credential(struct loader *loader, const struct as_yaml_node *node,
                              const struct as_yaml_node *at, void *object)
{
    check_access(loader, node);
}

static const struct schema access_schema =
    SCHEMA("access", as_access_settings, access_fields, .init = init_access);

static const struct schema_field token_fields[] = {
    SCHEMA_FIELD("name", NAME, as_token_settings, name, .is_required = true),
    SCHEMA_FIELD("file", PATH, as_token_settings, file, .is_required = true),
    {0},
};

static const struct schema token = {
    .name = "tokens",
    .example = "{name: alertmanager, file: token}",
    .size = sizeof(struct as_token_settings),
    .fields = token_fields,
    .base = &access_schema,
    .base_offset = IN(as_token_settings, access),
    .finish = finish_credential,
    .refusals =
        (const struct schema_refusal[]){
            {"token", "a token does not stand in this file: use `file`", true},
            {"secret", "a secret does not stand in this file: use `file`", true},
            {0},
        },
};

#define ACCESS(type)                                                                               \
    .base = &access_schema, .base_offset = IN(type, access), .finish = finish_credential

static const struct schema_field user_fields[] = {
    SCHEMA_FIELD("name", STRING, as_user_settings, name, .is_required = true),
    {0},
};

static const struct schema user =
    SCHEMA("users", as_user_settings, user_fields, .example = "{name: alertmanager}",
           ACCESS(as_user_settings));

static const struct schema_field certificate_fields[] = {
    SCHEMA_FIELD("name", NAME, as_certificate_settings, name, .is_required = true),
    SCHEMA_FIELD("subject", STRING, as_certificate_settings, subject, .is_required = true),
    {0},
};

static const struct schema certificate = SCHEMA(
    "certificates", as_certificate_settings, certificate_fields, ACCESS(as_certificate_settings));

static const struct schema_field hmac_fields[] = {
    SCHEMA_FIELD("name", NAME, as_hmac_settings, name, .is_required = true),
    SCHEMA_FIELD("secret_file", PATH, as_hmac_settings, secret_file, .is_required = true),
    SCHEMA_FIELD("header", STRING, as_hmac_settings, header,
                 .fallback = "X-Grafana-Alerting-Signature"),
    SCHEMA_FIELD("timestamp_header", STRING, as_hmac_settings, timestamp_header),
    SCHEMA_FIELD("max_skew", DURATION, as_hmac_settings, max_skew_us, .min = AS_US_PER_S,
                 .max = AS_US_PER_DAY, .fallback = "5m"),
    {0},
};

static bool is_field_name(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] ==
           '\0';
}

/* A signature covers a body, and only notifications have a body. */
static void finish_hmac(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct as_hmac_settings *settings = object;
    const struct as_yaml_node *permissions = schema_find_key(node, "permissions");
    finish_credential(loader, node, at, object);
    if (permissions)
        loader_report(loader, permissions,
                      "a signature proves a notification and nothing else: leave it out");
    settings->access.permissions = 1U << AS_PERMISSION_NOTIFY;
    if (settings->header && !is_field_name(settings->header))
        loader_report(loader, as_yaml_find(node, "header"), "expected the name of a header");
    if (settings->timestamp_header && !is_field_name(settings->timestamp_header))
        loader_report(loader, as_yaml_find(node, "timestamp_header"),
                      "expected the name of a header");
    if (!settings->timestamp_header && as_yaml_find(node, "max_skew"))
        loader_report(loader, schema_find_key(node, "max_skew"),
                      "`max_skew` goes with `timestamp_header`");
}

static const struct schema hmac = {
    .name = "hmac",
    .size = sizeof(struct as_hmac_settings),
    .fields = hmac_fields,
    .base = &access_schema,
    .base_offset = IN(as_hmac_settings, access),
    .refusals =
        (const struct schema_refusal[]){
            {"secret", "a secret does not stand in this file: use `secret_file`", true},
            {0},
        },
    .finish = finish_hmac,
};

static const struct schema_field review_fields[] = {
    SCHEMA_FIELD("name", NAME, as_review_settings, name, .is_required = true),
    SCHEMA_FIELD("user", STRING, as_review_settings, user),
    SCHEMA_FIELD("group", STRING, as_review_settings, group),
    {0},
};

static const struct schema_choice review_choices[] = {{SCHEMA_ONE_OF("user", "group"), false}, {0}};

static const struct schema review = SCHEMA("token_review.allow", as_review_settings, review_fields,
                                           ACCESS(as_review_settings), .choices = review_choices);

static const struct schema_field token_review_fields[] = {
    SCHEMA_FIELD("cluster", NAME, as_token_review_settings, cluster, .is_required = true),
    SCHEMA_FIELD("audiences", STRINGS, as_token_review_settings, audiences,
                 .count_offset = IN(as_token_review_settings, audience_count)),
    SCHEMA_FIELD("allow", MAPS, as_token_review_settings, allow, .is_required = true,
                 .count_offset = IN(as_token_review_settings, allow_count), .max = 1000,
                 .map = &review),
    {0},
};

static const struct schema token_review =
    SCHEMA("token_review", as_token_review_settings, token_review_fields,
           .example = "{cluster: default, allow: [{name: prometheus, group: "
                      "'system:serviceaccounts:monitoring'}]}");

/* A person gets no `notify`: notifications come from programs. */
static const char *const proxy_permissions[] = {"read", "admin", NULL};

static const struct schema_field proxy_permission_list[] = {
    SCHEMA_FORM(WORDS, .words = proxy_permissions,
                .when_empty = "expected at least one of read and admin"),
    {0}};

static const struct schema_field proxy_groups[] = {
    SCHEMA_FORM(TABLE, .max = 1000, .when_empty = "expected at least one group",
                .forms = proxy_permission_list),
    {0}};

static void parse_proxy_group(struct loader *loader, const struct as_yaml_pair *pair,
                              struct as_proxy_group *group)
{
    static const struct schema_field word = {.type = SCHEMA_WORD, .words = proxy_permissions};
    static const enum as_permission permissions[] = {AS_PERMISSION_READ, AS_PERMISSION_ADMIN};
    const struct as_yaml_node *list = pair->value;
    *group = (struct as_proxy_group){.name = as_arena_strdup(loader->arena, pair->key->text)};
    if (as_str_is_empty(group->name) || strchr(group->name, ','))
        loader_report(loader, pair->key,
                      "expected the name of a group, without a comma, or `*` for every person");
    if (!schema_is_kind(loader, list, AS_YAML_LIST))
        return;
    (void)schema_check_count(loader, proxy_permission_list, list);
    for (uint32_t i = 0; i < list->count; i++) {
        unsigned index = 0;
        if (schema_parse_value(loader, &word, list->items[i], &index))
            group->permissions |= 1U << permissions[index];
    }
}

static void parse_proxy_groups(struct loader *loader, const struct as_yaml_node *value,
                               void *object)
{
    struct as_proxy_settings *settings = object;
    if (!schema_is_map(loader, value, "{sre: [read, admin], '*': [read]}") ||
        !schema_check_count(loader, proxy_groups, value))
        return;
    settings->groups = as_arena_alloc(loader->arena, value->count, sizeof(*settings->groups));
    for (uint32_t i = 0; i < value->count; i++)
        parse_proxy_group(loader, &value->pairs[i], &settings->groups[settings->group_count++]);
}

static void finish_proxy(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    static const char *const keys[] = {"header", "groups_header"};
    struct as_proxy_settings *settings = object;
    const char *const names[] = {settings->header, settings->groups_header};
    const struct as_yaml_node *addresses = as_yaml_find(node, "addresses");
    struct as_address_range range;
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        if (names[i] && !is_field_name(names[i]))
            loader_report(loader, as_yaml_find(node, keys[i]), "expected the name of a header");
    }
    if (names[0] && names[1] && strcasecmp(names[0], names[1]) == 0)
        loader_report(loader, at, "`header` and `groups_header` must be two headers");
    for (uint32_t i = 0; addresses && addresses->kind == AS_YAML_LIST && i < addresses->count;
         i++) {
        const struct as_yaml_node *item = addresses->items[i];
        if (item->kind == AS_YAML_SCALAR && !as_address_range_parse(item->text, &range))
            loader_report(loader, item,
                          "expected a range of addresses like 10.1.0.0/16, or one address");
    }
}

static const struct schema_field proxy_fields[] = {
    SCHEMA_FIELD("header", STRING, as_proxy_settings, header, .fallback = "X-Forwarded-User"),
    SCHEMA_FIELD("groups_header", STRING, as_proxy_settings, groups_header,
                 .fallback = "X-Forwarded-Groups"),
    SCHEMA_FIELD("certificate", STRING, as_proxy_settings, certificate),
    SCHEMA_FIELD("addresses", STRINGS, as_proxy_settings, addresses,
                 .count_offset = IN(as_proxy_settings, address_count), .min = 1, .max = 100),
    {.key = "permissions",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_proxy_groups,
     .forms = proxy_groups,
     .expected = "map of groups to lists of permissions"},
    {0},
};

static const struct schema proxy =
    SCHEMA("proxy", as_proxy_settings, proxy_fields,
           .example = "{permissions: {sre: [read, admin], '*': [read]}}", .finish = finish_proxy);

static void parse_watchdog_match(struct loader *loader, const struct as_yaml_node *value,
                                 void *object)
{
    struct as_receiver_settings *receiver = object;
    if (!check_matcher_list(loader, value))
        return;
    receiver->watchdog = as_arena_alloc(loader->arena, value->count, sizeof(struct as_matcher));
    for (uint32_t i = 0; i < value->count; i++)
        receiver->watchdog_count +=
            compile_matcher(loader, value->items[i], &receiver->watchdog[receiver->watchdog_count]);
}

static const struct schema_field watchdog_fields[] = {
    {.key = "match",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_watchdog_match,
     .forms = schema_matcher_list,
     .expected = "list of matchers"},
    SCHEMA_FIELD("within", DURATION, as_receiver_settings, watchdog_within_us, .min = AS_US_PER_S,
                 .fallback = "10m"),
    {0},
};

static const struct schema watchdog = SCHEMA("watchdog", as_receiver_settings, watchdog_fields,
                                             .example = "{match: ['alertname=\"Watchdog\"']}");

static const struct schema_field receiver_fields[] = {
    SCHEMA_FIELD("max_body", SIZE, as_receiver_settings, max_body, .min = 1024,
                 .max = INT64_C(1) << 30, .fallback = "16MiB"),
    SCHEMA_FIELD("max_bodies", SIZE, as_receiver_settings, max_bodies, .min = 1024,
                 .max = INT64_C(16) << 30, .fallback = "64MiB"),
    SCHEMA_FIELD("max_connections", INT, as_receiver_settings, max_connections, .min = 1,
                 .max = 1000000, .fallback = "1000"),
    SCHEMA_FIELD("max_incident_memory", SIZE, as_receiver_settings, max_incident_memory,
                 .min = 1 << 20, .max = INT64_C(64) << 30, .fallback = "128MiB"),
    SCHEMA_FIELD("repeat_cache", SIZE, as_receiver_settings, repeat_cache, .max = INT64_C(1) << 30,
                 .fallback = "4MiB"),
    SCHEMA_FIELD("incident_expiry", DURATION, as_receiver_settings, incident_expiry_us,
                 .min = AS_US_PER_S, .fallback = "24h"),
    SCHEMA_FIELD("stale_window", DURATION, as_receiver_settings, stale_window_us, .fallback = "2m"),
    SCHEMA_FIELD("tokens", MAPS, as_receiver_settings, tokens,
                 .count_offset = IN(as_receiver_settings, token_count), .max = 1000, .map = &token),
    SCHEMA_FIELD("users", MAPS, as_receiver_settings, users,
                 .count_offset = IN(as_receiver_settings, user_count), .max = 1000, .map = &user),
    SCHEMA_FIELD("certificates", MAPS, as_receiver_settings, certificates,
                 .count_offset = IN(as_receiver_settings, certificate_count), .max = 1000,
                 .map = &certificate),
    SCHEMA_FIELD("hmac", MAPS, as_receiver_settings, hmac,
                 .count_offset = IN(as_receiver_settings, hmac_count), .max = 100, .map = &hmac),
    SCHEMA_FIELD("token_review", MAP, as_receiver_settings, token_review, .map = &token_review),
    SCHEMA_FIELD("proxy", MAP, as_receiver_settings, proxy, .map = &proxy),
    {.key = "watchdog", .type = SCHEMA_MAP, .map = &watchdog},
    {0},
};

/* Names are unique over all kinds of credentials: rules and records refer to them. */
static void check_names(struct loader *loader, const struct as_yaml_node *list,
                        const struct as_yaml_node *const *earlier, size_t earlier_count)
{
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        const struct as_yaml_node *name = as_yaml_find(list->items[i], "name");
        const struct as_yaml_node *other = NULL;
        for (size_t k = 0; name && name->kind == AS_YAML_SCALAR && !other && k < earlier_count;
             k++) {
            for (uint32_t j = 0; earlier[k] && earlier[k]->kind == AS_YAML_LIST &&
                                 j < (earlier[k] == list ? i : earlier[k]->count);
                 j++) {
                const struct as_yaml_node *found = as_yaml_find(earlier[k]->items[j], "name");
                if (found && found->kind == AS_YAML_SCALAR && as_str_equal(found->text, name->text))
                    other = found;
            }
        }
        if (other)
            loader_report(loader, name, "credential `%s` is given twice, first on line %u",
                          name->text, other->place.line);
    }
}

static void finish_receiver(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *lists[] = {
        as_yaml_find(node, "tokens"),
        as_yaml_find(node, "users"),
        as_yaml_find(node, "certificates"),
        as_yaml_find(node, "hmac"),
        as_yaml_find(as_yaml_find(node, "token_review"), "allow"),
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++)
        check_names(loader, lists[i], lists, i + 1);
}

const struct schema schema_receiver =
    SCHEMA("receiver", as_receiver_settings, receiver_fields,
           .example = "{tokens: [{name: alertmanager, file: token}]}", .finish = finish_receiver);

const struct schema *const schema_receiver_parts[] = {
    &access_schema, &token,  &user,  &certificate, &hmac,
    &token_review,  &review, &proxy, &watchdog,    NULL};

/*
 * The whole file.
 */

#define SETTINGS_IN(type, member) offsetof(struct type, member)

static const struct schema_field settings_alertmanager_fields[] = {
    SCHEMA_FIELD("urls", URLS, as_alertmanager_settings, urls, .is_required = true,
                 .count_offset = SETTINGS_IN(as_alertmanager_settings, url_count)),
    SCHEMA_FIELD("resync_interval", DURATION, as_alertmanager_settings, resync_interval_us,
                 .min = AS_US_PER_S, .fallback = "1m"),
    SCHEMA_FIELD("receivers", STRINGS, as_alertmanager_settings, receivers,
                 .count_offset = SETTINGS_IN(as_alertmanager_settings, receiver_count), .max = 100),
    SCHEMA_FIELD("http_config", MAP, as_alertmanager_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema settings_alertmanager =
    SCHEMA("alertmanager", as_alertmanager_settings, settings_alertmanager_fields,
           .example = "{urls: ['http://alertmanager:9093']}", .refusals = schema_http_refusals);

static const struct schema_field prometheus_fields[] = {
    SCHEMA_FIELD("url", URL, as_prometheus_settings, url, .is_required = true),
    SCHEMA_FIELD("timeout", DURATION, as_prometheus_settings, timeout_us, .min = AS_US_PER_MS,
                 .fallback = "5s"),
    SCHEMA_FIELD("max_queries", INT, as_prometheus_settings, max_queries, .min = 1, .max = 1000,
                 .fallback = "10"),
    SCHEMA_FIELD("http_config", MAP, as_prometheus_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema prometheus =
    SCHEMA("prometheus", as_prometheus_settings, prometheus_fields,
           .example = "{url: 'http://prometheus:9090'}", .refusals = schema_http_refusals);

static const struct schema_field cluster_fields[] = {
    SCHEMA_FIELD("kubeconfig", PATH, as_cluster_settings, kubeconfig),
    SCHEMA_FIELD("context", STRING, as_cluster_settings, context),
    {0},
};

static const struct schema cluster = SCHEMA("clusters", as_cluster_settings, cluster_fields,
                                            .example = "{kubeconfig: edge.kubeconfig}");

static const struct schema_field action_limit_fields[] = {
    SCHEMA_FIELD("max", INT, as_limit_settings, actions_max, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX),
    SCHEMA_FIELD("per", DURATION, as_limit_settings, actions_per_us, .is_required = true,
                 .min = AS_US_PER_S),
    {0},
};

static const struct schema action_limit = SCHEMA(
    "limits.actions", as_limit_settings, action_limit_fields, .example = "{max: 10, per: 1m}");

static const struct schema_field scale_down_limit_fields[] = {
    SCHEMA_FIELD("max", PERCENT, as_limit_settings, scale_down_milli_percent, .is_required = true,
                 .min = 1, .max = 100000),
    SCHEMA_FIELD("per", DURATION, as_limit_settings, scale_down_per_us, .is_required = true,
                 .min = AS_US_PER_S),
    {0},
};

static const struct schema scale_down_limit =
    SCHEMA("limits.scale_down", as_limit_settings, scale_down_limit_fields,
           .example = "{max: 50%, per: 1h}");

static const struct schema_field limit_fields[] = {
    {.key = "actions", .type = SCHEMA_MAP, .map = &action_limit},
    {.key = "scale_down", .type = SCHEMA_MAP, .map = &scale_down_limit},
    {0},
};

static const struct schema limits =
    SCHEMA("limits", as_limit_settings, limit_fields, .example = "{actions: {max: 10, per: 1m}}");

static const struct schema_field lease_fields[] = {
    SCHEMA_FIELD("name", NAME, as_lease_settings, name, .fallback = "alertscaler"),
    SCHEMA_FIELD("duration", DURATION, as_lease_settings, duration_us, .min = AS_US_PER_S,
                 .max = AS_US_PER_H, .fallback = "15s"),
    SCHEMA_FIELD("renew_deadline", DURATION, as_lease_settings, renew_deadline_us,
                 .min = AS_US_PER_S / 2, .max = AS_US_PER_H, .fallback = "10s"),
    SCHEMA_FIELD("retry_period", DURATION, as_lease_settings, retry_period_us,
                 .min = AS_US_PER_S / 10, .max = AS_US_PER_H, .fallback = "2s"),
    {0},
};

/* RFC 1123 subdomain, as the API requires. */
static bool is_object_name(const char *text)
{
    static const char inside[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    const size_t size = strlen(text);
    return strspn(text, inside) == size && !strchr("-.", text[0]) && !strchr("-.", text[size - 1]);
}

/* client-go's rule: a term ends before its lease, and can be renewed before it ends. */
static void finish_lease(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct as_lease_settings *lease = object;
    const struct as_yaml_node *deadline = as_yaml_find(node, "renew_deadline");
    const struct as_yaml_node *retry = as_yaml_find(node, "retry_period");
    const struct as_yaml_node *name = as_yaml_find(node, "name");
    if (name && name->kind == AS_YAML_SCALAR && lease->name && !is_object_name(lease->name))
        loader_report(
            loader, name,
            "an object's name has lower-case letters, digits, `-` and `.`, and begins and "
            "ends with a letter or digit");
    if (lease->renew_deadline_us >= lease->duration_us)
        loader_report(loader, deadline ? deadline : at,
                      "`renew_deadline` must be shorter than `duration`");
    else if (lease->retry_period_us > lease->renew_deadline_us / 12 * 10)
        loader_report(loader, retry ? retry : at,
                      "`retry_period` must be shorter than `renew_deadline` / 1.2");
}

static const struct schema lease = SCHEMA("state.lease", as_lease_settings, lease_fields,
                                          .example = "{duration: 15s}", .finish = finish_lease);

static const struct schema_field state_fields[] = {
    SCHEMA_FIELD("store", WORD, as_state_settings, store,
                 .words = (const char *const[]){"sqlite", "kubernetes", NULL},
                 .fallback = "sqlite"),
    SCHEMA_FIELD("path", PATH, as_state_settings, path,
                 .fallback = "/var/lib/alertscaler/state.db"),
    SCHEMA_FIELD("namespace", NAME, as_state_settings, namespace),
    SCHEMA_FIELD("lease", MAP, as_state_settings, lease, .map = &lease),
    {0},
};

static void finish_state(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    static const struct {
        const char *key;
        enum as_store_type store;
    } rows[] = {{"path", AS_STORE_SQLITE},
                {"namespace", AS_STORE_KUBERNETES},
                {"lease", AS_STORE_KUBERNETES}};
    const struct as_state_settings *settings = object;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_yaml_node *key = schema_find_key(node, rows[i].key);
        if (key && settings->store != rows[i].store)
            loader_report(loader, key, "`%s` goes with `store: %s`", key->text,
                          rows[i].store == AS_STORE_SQLITE ? "sqlite" : "kubernetes");
    }
}

static const struct schema state = SCHEMA("state", as_state_settings, state_fields,
                                          .example = "{store: kubernetes}", .finish = finish_state);

static const struct schema_field replica_fields[] = {
    SCHEMA_FIELD("urls", URLS, as_replica_settings, urls, .is_required = true,
                 .count_offset = SETTINGS_IN(as_replica_settings, url_count)),
    SCHEMA_FIELD("http_config", MAP, as_replica_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema settings_replicas =
    SCHEMA("action_log.replicas", as_replica_settings, replica_fields,
           .example = "{urls: ['http://alertscaler-0:9096']}", .refusals = schema_http_refusals);

static const struct schema_field action_log_fields[] = {
    SCHEMA_FIELD("path", PATH, as_action_log_settings, path,
                 .fallback = "/var/lib/alertscaler/actions.jsonl"),
    SCHEMA_FIELD("max_size", SIZE, as_action_log_settings, max_size, .min = 1024,
                 .max = INT64_C(1) << 40, .fallback = "100MiB"),
    SCHEMA_FIELD("keep", INT, as_action_log_settings, keep, .min = 1, .max = 10000,
                 .fallback = "10"),
    SCHEMA_FIELD("replicas", MAP, as_action_log_settings, replicas, .map = &settings_replicas),
    {0},
};

static const struct schema action_log = SCHEMA(
    "action_log", as_action_log_settings, action_log_fields, .example = "{path: actions.jsonl}");

static const struct schema_field kill_switch_fields[] = {
    SCHEMA_FIELD("file", PATH, as_kill_switch_settings, file, .is_required = true),
    {0},
};

static const struct schema kill_switch =
    SCHEMA("kill_switch", as_kill_switch_settings, kill_switch_fields,
           .example = "{file: /etc/alertscaler/stop}");

static const struct schema_field settings_fields[] = {
    SCHEMA_FIELD("rule_files", STRINGS, as_settings, rule_files,
                 .count_offset = SETTINGS_IN(as_settings, rule_file_count)),
    SCHEMA_FIELD("allow_empty_rules", BOOL, as_settings, allow_empty_rules, .fallback = "false"),
    SCHEMA_FIELD("defaults", MAP, as_settings, defaults, .map = &schema_policy),
    SCHEMA_FIELD("alertmanager", MAP, as_settings, alertmanager, .map = &settings_alertmanager),
    SCHEMA_FIELD("prometheus", MAP, as_settings, prometheus, .map = &prometheus),
    SCHEMA_FIELD("clusters", NAMED, as_settings, clusters,
                 .count_offset = SETTINGS_IN(as_settings, cluster_count), .max = 1000,
                 .map = &cluster),
    SCHEMA_FIELD("providers", NAMED, as_settings, providers,
                 .count_offset = SETTINGS_IN(as_settings, provider_count), .max = 1000,
                 .map = &schema_provider),
    SCHEMA_FIELD("receiver", MAP, as_settings, receiver, .map = &schema_receiver),
    SCHEMA_FIELD("limits", MAP, as_settings, limits, .map = &limits),
    SCHEMA_FIELD("state", MAP, as_settings, state, .map = &state),
    SCHEMA_FIELD("action_log", MAP, as_settings, action_log, .map = &action_log),
    SCHEMA_FIELD("kill_switch", MAP, as_settings, kill_switch, .map = &kill_switch),
    SCHEMA_FIELD("objects", MAP, as_settings, objects, .map = &schema_objects),
    SCHEMA_FIELD("notify", MAPS, as_settings, notify,
                 .count_offset = SETTINGS_IN(as_settings, notify_count), .max = 100,
                 .map = &schema_notify),
    SCHEMA_FIELD("instance", NAME, as_settings, instance),
    SCHEMA_FIELD("dry_run", BOOL, as_settings, dry_run, .fallback = "false"),
    {0},
};

/* Records and metrics name receivers; two with one name could not be told apart. */
static void finish_settings(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    const struct as_settings *settings = object;
    const struct as_yaml_node *list = as_yaml_find(node, "notify");
    for (size_t i = 0; i < settings->notify_count; i++) {
        const char *name = settings->notify[i].name;
        if (name && as_settings_find_notify(settings, name) != &settings->notify[i])
            loader_report(loader, as_yaml_find(list->items[i], "name"),
                          "there already is a receiver `%s`", name);
    }
}

const struct schema schema_settings = {
    .name = "configuration",
    .size = sizeof(struct as_settings),
    .fields = settings_fields,
    .finish = finish_settings,
    .refusals =
        (const struct schema_refusal[]){
            {"rules", "rules stand in files of their own: name them under `rule_files`", false},
            {"targets", "targets stand in rule files: name them under `rule_files`", false},
            {"tests", "this is a file of tests: run it with `alertscaler test`", false},
            {"groups",
             "this looks like a file of Prometheus' alerting rules. To compare it with rules: "
             "check --prometheus-rules FILE",
             false},
            {"route",
             "this looks like Alertmanager's configuration. To compare rules with it: "
             "check --alertmanager FILE",
             false},
            {0},
        },
};

const struct schema *const schema_settings_parts[] = {
    &settings_alertmanager, &prometheus, &cluster, &limits,     &action_limit,
    &scale_down_limit,      &state,      &lease,   &action_log, &settings_replicas,
    &kill_switch,           NULL,
};

const struct as_provider_settings *as_settings_find_provider(const struct as_settings *settings,
                                                             const char *name)
{
    for (size_t i = 0; i < settings->provider_count; i++) {
        if (strcmp(settings->providers[i].name, name) == 0)
            return &settings->providers[i];
    }
    return NULL;
}

const struct as_cluster_settings *as_settings_find_cluster(const struct as_settings *settings,
                                                           const char *name)
{
    for (size_t i = 0; i < settings->cluster_count; i++) {
        if (strcmp(settings->clusters[i].name, name) == 0)
            return &settings->clusters[i];
    }
    return NULL;
}
