/*
 * `notify`: who is told of what alertscaler does.
 */
#include <stdio.h>
#include <unistd.h>

#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/notice.h>

#include <alertscaler/rules/tables.h>

#define MAX_AGE_MAX (7 * AS_US_PER_DAY)

static const struct schema_field alertmanager_fields[] = {
    SCHEMA_FIELD("urls", URLS, as_notify_settings, urls, .is_required = true, .max = 100,
                 .count_offset = offsetof(struct as_notify_settings, url_count)),
    SCHEMA_FIELD("http_config", MAP, as_notify_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema alertmanager =
    SCHEMA("notify.alertmanager", as_notify_settings, alertmanager_fields);

static const struct schema_field webhook_fields[] = {
    SCHEMA_FIELD("url", URL, as_notify_settings, url, .is_required = true),
    SCHEMA_FIELD("http_config", MAP, as_notify_settings, http, .map = &schema_http_config),
    {0},
};

static const struct schema webhook = SCHEMA("notify.webhook", as_notify_settings, webhook_fields);

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
