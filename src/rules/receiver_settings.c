/*
 * The tables of `receiver`: who may send and read, and what.
 */
#include <alertscaler/rules/settings.h>

#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#include <alertscaler/rules/tables.h>

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

static const struct schema access =
    SCHEMA("access", as_access_settings, access_fields, .init = init_access);

static const struct schema_field token_fields[] = {
    SCHEMA_FIELD("name", NAME, as_token_settings, name, .is_required = true),
    SCHEMA_FIELD("file", PATH, as_token_settings, file, .is_required = true),
    {0},
};

static const struct schema token = {
    .name = "tokens",
    .size = sizeof(struct as_token_settings),
    .fields = token_fields,
    .base = &access,
    .base_offset = IN(as_token_settings, access),
    .finish = finish_credential,
    .refusals =
        (const struct schema_refusal[]){
            {"token", "a token does not stand in this file: use `file`", true},
            {"secret", "a secret does not stand in this file: use `file`", true},
            {0},
        },
};

#define ACCESS(type) .base = &access, .base_offset = IN(type, access), .finish = finish_credential

static const struct schema_field user_fields[] = {
    SCHEMA_FIELD("name", STRING, as_user_settings, name, .is_required = true),
    {0},
};

static const struct schema user =
    SCHEMA("users", as_user_settings, user_fields, ACCESS(as_user_settings));

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
    .base = &access,
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
    SCHEMA("token_review", as_token_review_settings, token_review_fields);

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

static const struct schema watchdog = SCHEMA("watchdog", as_receiver_settings, watchdog_fields);

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
    SCHEMA("receiver", as_receiver_settings, receiver_fields, .finish = finish_receiver);

const struct schema *const schema_receiver_parts[] = {
    &access, &token, &user, &certificate, &hmac, &token_review, &review, &watchdog, NULL};
