/*
 * `allow` of a target: lists that the target has no key for, URLs that are not in their normal
 * form, and templates that no list limits.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/decide/target.h>

#include "resolve.h"

/* The URL as a pattern in its normal form: `*` for each template. */
static char *make_url_pattern(const char *text)
{
    struct as_buf pattern = AS_BUF_INIT(AS_TARGET_ID_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf starred = AS_BUF_INIT(AS_TARGET_ID_MAX);
    const char *action;
    for (; (action = strstr(text, "{{")) != NULL && strstr(action, "}}");
         text = strstr(action, "}}") + 2) {
        as_buf_append(&starred, text, (size_t)(action - text));
        as_buf_append_char(&starred, '*');
    }
    as_buf_append_str(&starred, text);
    if (as_buf_check(&starred) < 0 || !as_url_append_normal(starred.data, &pattern) ||
        as_buf_check(&pattern) < 0) {
        as_buf_deinit(&pattern);
        return as_xstrdup("http://host/*");
    }
    return as_buf_take(&pattern, NULL);
}

/* A template without a list that limits it. */
static void report_unlimited(struct resolver *resolver, const struct raw_target *raw,
                             const char *key, enum as_allow limit)
{
    static const char *const examples[AS_ALLOW_COUNT] = {
        [AS_ALLOW_CLUSTERS] = "edge, 'eu-*'",
        [AS_ALLOW_API_VERSIONS] = "apps/v1",
        [AS_ALLOW_KINDS] = "Deployment, StatefulSet",
        [AS_ALLOW_NAMESPACES] = "shop, 'team-*'",
        [AS_ALLOW_NAMES] = "web, 'api-*'",
    };
    const struct as_yaml_node *value = as_yaml_find(raw->address, key);
    if (limit == AS_ALLOW_URLS) {
        AS_CLEANUP(as_free_p) char *pattern = make_url_pattern(value->text);
        loader_report(&resolver->loader, value,
                      "an alert gives more of `url` than its last path segment: say which URLs it "
                      "may give, for example `allow: {urls: ['%s']}`",
                      pattern);
        return;
    }
    loader_report(&resolver->loader, value,
                  "an alert gives `%s`: say which values it may give, for example "
                  "`allow: {%s: [%s]}`%s",
                  key, as_allow_get_word(limit), examples[limit],
                  limit == AS_ALLOW_NAMES ? " (['*']: any)" : "");
}

/* URLs are compared in their normal form. */
static void check_url_patterns(struct resolver *resolver, const struct as_yaml_node *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct as_yaml_node *item = list->items[i];
        AS_CLEANUP(as_free_p) char *normal = as_target_url_normalize(item->text);
        if (strcmp(item->text, "*") == 0)
            continue;
        if (!as_str_starts_with(normal, "http://") && !as_str_starts_with(normal, "https://"))
            loader_report(&resolver->loader, item,
                          "expected a URL like http://host/*/group, with `*` for any text");
        else if (strcmp(normal, item->text) != 0)
            loader_report(&resolver->loader, item,
                          "URLs are compared in their normal form: write `%s`", normal);
    }
}

void check_allow(struct resolver *resolver, const struct raw_target *raw,
                 const struct as_target_config *config)
{
    const struct as_target_kind *kind = config->kind;
    const struct as_yaml_node *map = as_yaml_find(raw->node, "allow");
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++) {
        const char *word = as_allow_get_word(i);
        if (config->allowed[i].count == 0)
            continue;
        if (!kind->allow[i])
            loader_report(&resolver->loader, schema_find_key(map, word),
                          "no alert may select the %.*s of %s", (int)strlen(word) - 1, word,
                          kind->title);
        else if (i == AS_ALLOW_URLS && !as_yaml_find(raw->address, kind->allow[i]))
            loader_report(&resolver->loader, schema_find_key(map, word),
                          "the `node_group` has no `url`: its `name` is limited by `names`");
        else if (i == AS_ALLOW_URLS)
            check_url_patterns(resolver, as_yaml_find(map, word));
    }
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        const enum as_allow limit = as_target_find_limit(config, field->key);
        if (!as_template_is_plain(field->value) && limit < AS_ALLOW_COUNT &&
            config->allowed[limit].count == 0)
            report_unlimited(resolver, raw, field->key, limit);
    }
}
