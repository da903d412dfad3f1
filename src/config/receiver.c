/*
 * The tables of `receiver`: who may send and read, and what.
 */
#include <alertscaler/config/settings.h>

#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#include "tables.h"

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

static void parse_permissions(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_access_settings *settings = object;
    unsigned permissions = 0;
    if (!schema_is_kind(loader, value, AS_YAML_LIST))
        return;
    if (value->count == 0)
        loader_report(loader, value, "expected at least one of notify, read and admin");
    for (uint32_t i = 0; i < value->count; i++)
        (void)parse_permission(loader, value->items[i], &permissions);
    settings->permissions = permissions;
}

static void init_access(struct loader *loader, void *object)
{
    struct as_access_settings *settings = object;
    (void)loader;
    settings->permissions = 1U << AS_PERMISSION_NOTIFY | 1U << AS_PERMISSION_READ;
}

static const struct schema_field access_fields[] = {
    {.key = "permissions",
     .type = SCHEMA_CUSTOM,
     .parse = parse_permissions,
     .expected = "list of permissions"},
    {.key = "rules",
     .type = SCHEMA_STRINGS,
     .offset = IN(as_access_settings, rules),
     .count_offset = IN(as_access_settings, rule_count),
     .max = 1000},
    {.key = "targets",
     .type = SCHEMA_STRINGS,
     .offset = IN(as_access_settings, targets),
     .count_offset = IN(as_access_settings, target_count),
     .max = 1000},
    {0},
};

/* An empty list reads as "nothing" and would mean "everything". */
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
    (void)at;
    (void)object;
    check_access(loader, node);
}

static const struct schema access = {
    .name = "access",
    .size = sizeof(struct as_access_settings),
    .fields = access_fields,
    .init = init_access,
};

static const struct schema_field token_fields[] = {
    {.key = "name",
     .type = SCHEMA_NAME,
     .is_required = true,
     .offset = IN(as_token_settings, name)},
    {.key = "file",
     .type = SCHEMA_PATH,
     .is_required = true,
     .offset = IN(as_token_settings, file)},
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
     .expected = "list of matchers"},
    {.key = "within",
     .type = SCHEMA_DURATION,
     .offset = IN(as_receiver_settings, watchdog_within_us),
     .min = AS_US_PER_S,
     .fallback = "10m"},
    {0},
};

static const struct schema watchdog = {
    .name = "watchdog",
    .size = sizeof(struct as_receiver_settings),
    .fields = watchdog_fields,
};

static const struct schema_field receiver_fields[] = {
    {.key = "max_body",
     .type = SCHEMA_SIZE,
     .offset = IN(as_receiver_settings, max_body),
     .min = 1024,
     .max = INT64_C(1) << 30,
     .fallback = "16MiB"},
    {.key = "max_bodies",
     .type = SCHEMA_SIZE,
     .offset = IN(as_receiver_settings, max_bodies),
     .min = 1024,
     .max = INT64_C(16) << 30,
     .fallback = "64MiB"},
    {.key = "max_connections",
     .type = SCHEMA_INT,
     .offset = IN(as_receiver_settings, max_connections),
     .min = 1,
     .max = 1000000,
     .fallback = "1000"},
    {.key = "incident_expiry",
     .type = SCHEMA_DURATION,
     .offset = IN(as_receiver_settings, incident_expiry_us),
     .min = AS_US_PER_S,
     .fallback = "24h"},
    {.key = "stale_window",
     .type = SCHEMA_DURATION,
     .offset = IN(as_receiver_settings, stale_window_us),
     .fallback = "2m"},
    {.key = "tokens",
     .type = SCHEMA_MAPS,
     .offset = IN(as_receiver_settings, tokens),
     .count_offset = IN(as_receiver_settings, token_count),
     .max = 1000,
     .map = &token},
    {.key = "watchdog", .type = SCHEMA_MAP, .map = &watchdog},
    {0},
};

static void finish_receiver(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    const struct as_receiver_settings *receiver = object;
    const struct as_yaml_node *list = as_yaml_find(node, "tokens");
    for (size_t i = 0; i < receiver->token_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (receiver->tokens[i].name &&
                as_str_equal(receiver->tokens[i].name, receiver->tokens[j].name)) {
                loader_report(loader, as_yaml_find(list->items[i], "name"),
                              "token `%s` is given twice, first on line %u",
                              receiver->tokens[i].name, list->items[j]->place.line);
                break;
            }
        }
    }
}

const struct schema schema_receiver = {
    .name = "receiver",
    .size = sizeof(struct as_receiver_settings),
    .fields = receiver_fields,
    .finish = finish_receiver,
};

const struct schema *const schema_receiver_parts[] = {&access, &token, &watchdog, NULL};
