/*
 * A target's address: which keys it has, which of them hold templates, and what templates may
 * select. Values without templates are checked completely.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>

#include "resolve.h"

#define MACHINES "cluster.x-k8s.io" /* the API group of Cluster API */

void add_address_field(struct resolver *resolver, struct as_target_config *config, const char *key,
                       const char *value, const struct as_yaml_node *node, bool *is_good)
{
    struct as_error error = AS_ERROR_INIT;
    char found[AS_YAML_FOUND_SIZE];
    struct as_template *template = NULL;
    if (as_template_new(value, &template, &error) < 0) {
        report_in_text(&resolver->loader, node, error.text);
        *is_good = false;
        return;
    }
    config->address[config->address_count++] =
        (struct as_address_field){.key = as_xstrdup(key), .value = template};
    if (!as_template_is_plain(template)) {
        config->is_templated = true;
        return;
    }
    const char *expected = as_target_check_value(config->kind, key, value);
    if (expected && node) {
        loader_report(&resolver->loader, node, "expected %s, found %s", expected,
                      as_yaml_describe(node, found));
        *is_good = false;
    }
}

bool is_template(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR && strstr(node->text, "{{");
}

static void check_cluster(struct resolver *resolver, const struct as_yaml_node *node)
{
    char hint[SUGGESTION_SIZE];
    const struct as_settings *settings = resolver->settings;
    struct loader *loader = &resolver->loader;
    if (!settings || !node || node->kind != AS_YAML_SCALAR || is_template(node) ||
        as_settings_find_cluster(settings, node->text))
        return;
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < settings->cluster_count && !loader_is_full(loader); i++)
        suggestion_offer(&suggestion, settings->clusters[i].name);
    loader_report(loader, node, "there is no cluster `%s` under `clusters`%s", node->text,
                  suggestion_print(&suggestion, hint));
}

/* Scheme and host are fixed by the author; templates may only follow them. */
static bool check_group_url(struct resolver *resolver, const struct as_yaml_node *url)
{
    char found[AS_YAML_FOUND_SIZE];
    bool is_http =
        as_str_starts_with(url->text, "http://") || as_str_starts_with(url->text, "https://");
    const char *host = is_http ? strstr(url->text, "://") + 3 : "";
    size_t size = strcspn(host, "/?#{");
    if (size == 0 || host[size] == '{' || (!is_template(url) && strpbrk(url->text, " #"))) {
        loader_report(&resolver->loader, url,
                      is_template(url) ? "a template may stand only behind http://host/%s"
                                       : "expected a URL like http://host:8080/group, found %s",
                      is_template(url) ? "" : as_yaml_describe(url, found));
        return false;
    }
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    const char *fault = as_template_new(url->text, &template, NULL) == 0
                            ? as_target_url_find_fault(template)
                            : NULL;
    if (fault) {
        loader_report(&resolver->loader, url, "%s", fault);
        return false;
    }
    if (memchr(host, '@', size)) {
        as_yaml_report(resolver->loader.tree, url, AS_YAML_HIDE, resolver->loader.diagnostics,
                       "credentials do not stand in a URL: use `basic_auth` in the provider's "
                       "`http_config`");
        return false;
    }
    return true;
}

/* `nodes.select` is for groups whose instances have no names. */
static bool check_select(struct resolver *resolver, const struct raw_target *raw,
                         const struct as_provider_kind *kind)
{
    if (!raw->nodes.select)
        return true;
    const struct as_yaml_node *key = schema_find_key(as_yaml_find(raw->node, "nodes"), "select");
    if (!kind->names_no_instances)
        loader_report(&resolver->loader, key,
                      "a provider of type %s names its instances: their nodes are found by "
                      "spec.providerID, not by labels",
                      kind->type);
    else if (as_yaml_find(raw->address, "node_label"))
        loader_report(&resolver->loader, key,
                      "`node_label` in the `node_group` already says the labels of the nodes");
    else
        return true;
    return false;
}

static bool check_group(struct resolver *resolver, const struct raw_target *raw,
                        const struct as_provider_kind *kind)
{
    static const char *const others[] = {"provider", NULL};
    const struct as_provider_key *key;
    bool is_good =
        provider_keys_check(&resolver->loader, kind, kind->group_keys, raw->address, raw->address);
    is_good = check_select(resolver, raw, kind) && is_good;
    for (uint32_t i = 0; i < raw->address->count; i++) {
        const struct as_yaml_node *name = raw->address->pairs[i].key;
        if (strcmp(name->text, "provider") == 0 ||
            provider_key_find(kind->group_keys, name->text, &key))
            continue;
        provider_key_report(&resolver->loader, kind, kind->group_keys, others, name);
        is_good = false;
    }
    return is_good;
}

/* Not in the table of providers: its groups are URLs. */
static const struct as_provider_kind http = {
    .type = "http",
    .names_no_instances = true,
    .group_keys = (const struct as_provider_key[]){{.key = "url"}, {.key = "name"}, {0}},
};

static bool check_http_group(struct resolver *resolver, const struct raw_target *raw)
{
    const struct as_yaml_node *url = as_yaml_find(raw->address, "url");
    const struct as_yaml_node *name = as_yaml_find(raw->address, "name");
    bool is_good = check_group(resolver, raw, &http);
    const struct as_yaml_node *nodes = as_yaml_find(raw->node, "nodes");
    if (nodes && !as_yaml_find(nodes, "select")) {
        loader_report(&resolver->loader, schema_find_key(raw->node, "nodes"),
                      "a provider of type http knows no instances: `nodes` needs `select`, the "
                      "labels of the group's nodes");
        is_good = false;
    }
    if (!url)
        loader_report(&resolver->loader, raw->address,
                      "key `url` is missing: a provider of type http needs the group's address");
    if (url && is_template(url) && name && !is_template(name)) {
        loader_report(&resolver->loader, name,
                      "all the groups that `url` may give would go by this one name: put the "
                      "template into the name too, or leave it out");
        is_good = false;
    }
    if (url && !is_template(url) && is_template(name))
        as_yaml_warn(resolver->loader.tree, name, AS_YAML_SHOW, resolver->loader.diagnostics,
                     "all alerts reach the one group of `url`, whatever the name: put a template "
                     "into the `url` for several groups");
    return url && check_group_url(resolver, url) && is_good;
}

static bool is_group_key(const char *key, struct suggestion *suggestion)
{
    static const char *const others[] = {"provider", "url", NULL};
    bool is_known = false;
    for (size_t i = 0; others[i]; i++) {
        suggestion_offer(suggestion, others[i]);
        is_known = is_known || strcmp(others[i], key) == 0;
    }
    for (size_t i = 0; as_provider_kinds[i]; i++) {
        for (const struct as_provider_key *row = as_provider_kinds[i]->group_keys; row->key;
             row++) {
            suggestion_offer(suggestion, row->key);
            is_known = is_known || strcmp(row->key, key) == 0;
        }
    }
    return is_known;
}

/* Without a configuration: the keys of all types are valid. */
static bool check_group_keys(struct resolver *resolver, const struct as_yaml_node *map)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    bool is_good = true;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_node *key = map->pairs[i].key;
        struct suggestion suggestion = suggestion_start(key->text);
        if (is_group_key(key->text, &suggestion))
            continue;
        loader_report(&resolver->loader, key, "unknown key %s%s", as_yaml_describe(key, found),
                      suggestion_print(&suggestion, hint));
        is_good = false;
    }
    return is_good;
}

/* What the target needs of its provider. */
static bool check_provider(struct resolver *resolver, const struct raw_target *raw)
{
    char hint[SUGGESTION_SIZE];
    const struct as_settings *settings = resolver->settings;
    const struct as_yaml_node *node = as_yaml_find(raw->address, "provider");
    if (is_template(node)) {
        loader_report(&resolver->loader, node, "a provider cannot come from a template");
        return false;
    }
    if (!settings)
        return check_group_keys(resolver, raw->address);
    const struct as_provider_settings *provider = as_settings_find_provider(settings, node->text);
    if (!provider) {
        struct suggestion suggestion = suggestion_start(node->text);
        for (size_t i = 0; i < settings->provider_count && !loader_is_full(&resolver->loader); i++)
            suggestion_offer(&suggestion, settings->providers[i].name);
        loader_report(&resolver->loader, node, "there is no provider `%s` under `providers`%s",
                      node->text, suggestion_print(&suggestion, hint));
        return false;
    }
    if (!provider->type)
        return false;
    if (strcmp(provider->type, "http") == 0)
        return check_http_group(resolver, raw);
    return check_group(resolver, raw, as_provider_kind_find(provider->type));
}

/* Places, kinds and clusters of a group: `allow` has no list for them. */
static bool check_templates(struct resolver *resolver, const struct raw_target *raw)
{
    const struct as_yaml_node *map = raw->address;
    bool is_good = true;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_pair *pair = &map->pairs[i];
        const char *key = pair->key->text;
        if (!is_template(pair->value) || strcmp(key, raw->kind->owner) == 0 ||
            as_target_kind_find_allow(raw->kind, key) < AS_ALLOW_COUNT)
            continue;
        loader_report(&resolver->loader, pair->value,
                      "`%s` cannot come from a template: an alert may select a `name` only", key);
        is_good = false;
    }
    return is_good;
}

/* Whether the cluster or provider exists, and accepts the address. */
static bool check_owner(struct resolver *resolver, const struct raw_target *raw)
{
    if (strcmp(raw->kind->owner, "cluster") == 0) {
        check_cluster(resolver, as_yaml_find(raw->address, "cluster"));
        return true;
    }
    const bool is_good = check_provider(resolver, raw);
    return check_templates(resolver, raw) && is_good;
}

static_assert(AS_PLACE_COUNT - 1 <= AS_PLACE_RANK_MAX, "every place stands in an id");

/* The scale of an object of Cluster API may also be a node group of the provider `clusterapi`. */
static bool is_machine_group(const struct as_target_config *config)
{
    bool is_machine = false;
    if (config->kind->has_nodes)
        return false;
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        const struct as_address_key *row = as_target_kind_find_key(config->kind, field->key);
        if (row && row->is_sized)
            return false; /* not the scale */
        is_machine =
            is_machine || (strcmp(field->key, "apiVersion") == 0 &&
                           as_str_starts_with(as_template_get_text(field->value), MACHINES "/"));
    }
    return is_machine;
}

/* Without a configuration the provider's type is unknown: the keys of all types count. */
static void set_places(const struct resolver *resolver, const struct raw_target *raw,
                       struct as_target_config *config)
{
    const struct as_settings *settings = resolver->settings;
    const struct as_yaml_node *node = as_yaml_find(raw->address, "provider");
    const struct as_provider_settings *provider =
        settings && node ? as_settings_find_provider(settings, node->text) : NULL;
    const struct as_provider_kind *kind =
        provider && provider->type ? as_provider_kind_find(provider->type) : NULL;
    for (size_t i = 0; i < config->address_count; i++) {
        struct as_address_field *field = &config->address[i];
        if (!as_target_kind_has_key(config->kind, field->key))
            field->place = provider_key_get_place(kind, field->key);
    }
    if (kind)
        config->family = kind->family ? kind->family : kind->type;
    else if (is_machine_group(config))
        config->family = "clusterapi";
}

/* The address of a pool is its name. */
static bool resolve_pool_name(struct resolver *resolver, const struct raw_target *raw,
                              struct as_target_config *config)
{
    bool is_good = true;
    config->address = as_xcalloc(AS_TARGET_KEYS_MAX, sizeof(*config->address));
    add_address_field(resolver, config, "name", raw->name, raw->key, &is_good);
    return is_good;
}

static const char **get_value(struct raw_target *raw, const char *key)
{
    return &raw->values[as_target_kind_find_key(raw->kind, key) - raw->kind->keys];
}

/* The apiVersion of a Kubernetes object: its kind may imply it. */
static bool complete_version(struct resolver *resolver, struct raw_target *raw)
{
    const struct as_yaml_node *kind = as_yaml_find(raw->address, "kind");
    const char **version = get_value(raw, "apiVersion");
    if (!*get_value(raw, "kind") || as_yaml_find(raw->address, "apiVersion"))
        return *version;
    if (is_template(kind))
        loader_report(&resolver->loader, kind, "a kind from a template needs an `apiVersion`");
    else
        *version = find_api_version(resolver, kind,
                                    !as_yaml_find(raw->address, "field") &&
                                        !as_yaml_find(raw->address, "container"));
    return *version;
}

static bool resolve_keys(struct resolver *resolver, struct raw_target *raw,
                         struct as_target_config *config)
{
    const struct as_target_kind *kind = raw->kind;
    const struct as_yaml_node *map = raw->address;
    bool is_good = check_owner(resolver, raw);
    if (kind == &as_target_kind_kubernetes)
        is_good = complete_version(resolver, raw) && is_good;
    if (kind == &as_target_kind_kubernetes)
        is_good = check_namespace(resolver, raw, *get_value(raw, "kind"),
                                  *get_value(raw, "apiVersion")) &&
                  is_good;
    config->address = as_xcalloc(AS_TARGET_KEYS_MAX + map->count, sizeof(*config->address));
    for (size_t i = 0; kind->keys[i].is_valid; i++) {
        const char *key = kind->keys[i].key;
        is_good = is_good && (raw->values[i] || !kind->keys[i].is_required);
        if (kind->keys[i].is_sized)
            break;
        if (key && raw->values[i])
            add_address_field(resolver, config, key, raw->values[i], as_yaml_find(map, key),
                              &is_good);
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_pair *pair = &map->pairs[i];
        const struct as_address_key *row = as_target_kind_find_key(kind, pair->key->text);
        if (row && !row->key)
            add_address_field(resolver, config, pair->key->text, pair->value->text, pair->value,
                              &is_good);
    }
    is_good = resolve_sized(resolver, raw, config) && is_good;
    set_places(resolver, raw, config);
    return is_good;
}

/* Keys of `nodes` that are about nodes say nothing where the instances are none. */
static bool check_no_nodes(struct resolver *resolver, const struct raw_nodes *from,
                           const struct as_yaml_node *map)
{
    static const char *const keys[] = {"select",   "template", "startup_taints",
                                       "pending",  "priority", "price",
                                       "unneeded", "keep",     "health"};
    bool is_good = true;
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        if (!as_yaml_find(map, keys[i]))
            continue;
        loader_report(&resolver->loader, schema_find_key(map, keys[i]),
                      "`%s` is for nodes, but with `cluster: none` the instances are not nodes",
                      keys[i]);
        is_good = false;
    }
    if (as_yaml_find(map, "drain") && from->drain) {
        loader_report(&resolver->loader, as_yaml_find(map, "drain"),
                      "with `cluster: none` there is nothing to drain");
        is_good = false;
    }
    return is_good;
}

/* `drain_after` is for a node that waits, and no longer than it waits at all. */
static bool check_drain(struct resolver *resolver, const struct raw_nodes *from,
                        const struct as_yaml_node *map)
{
    const struct as_yaml_node *after = as_yaml_find(map, "drain_after");
    if (after && from->drain != AS_NODES_DRAIN_WAIT)
        loader_report(&resolver->loader, schema_find_key(map, "drain_after"),
                      "`drain_after` is for `drain: wait`");
    else if (from->drain == AS_NODES_DRAIN_WAIT && from->drain_after_us >= from->drain_timeout_us)
        loader_report(&resolver->loader, after ? after : as_yaml_find(map, "drain"),
                      "`drain_after` must be shorter than `drain_timeout`");
    else
        return true;
    return false;
}

/* The key `nodes`, for a group whose provider names its instances. */
static bool resolve_nodes(struct resolver *resolver, const struct raw_target *raw,
                          struct as_target_config *config)
{
    const struct as_yaml_node *key = schema_find_key(raw->node, "nodes");
    const struct as_yaml_node *map = as_yaml_find(raw->node, "nodes");
    const struct as_yaml_node *cluster = as_yaml_find(map, "cluster");
    const struct raw_nodes *from = &raw->nodes;
    const bool is_none = strcmp(from->cluster, "none") == 0;
    const bool has_nodes = raw->kind && raw->kind->has_nodes;
    if (key && !has_nodes) {
        loader_report(&resolver->loader, key, "`nodes` is for node groups only");
        return false;
    }
    if (is_template(cluster)) {
        loader_report(&resolver->loader, cluster, "this cluster cannot come from a template");
        return false;
    }
    if (is_none && !check_no_nodes(resolver, from, map))
        return false;
    if (has_nodes && !check_drain(resolver, from, map))
        return false;
    if (!is_none)
        check_cluster(resolver, cluster);
    if (!has_nodes)
        return true;
    config->nodes = (struct as_nodes_config){
        .cluster = is_none ? NULL : as_xstrdup(from->cluster),
        .select = from->select ? as_xstrdup(from->select) : NULL,
        .choose = (enum as_choose_strategy)from->choose,
        .drain = is_none ? AS_NODES_DRAIN_FALSE : (enum as_nodes_drain)from->drain,
        .drain_after_us = from->drain_after_us,
        .drain_timeout_us = from->drain_timeout_us,
        .grace_us = from->grace_us,
        .ready_timeout_us = from->ready_timeout_us,
        .template_ =
            as_yaml_find(map, "template") ? as_node_template_config_copy(&from->template_) : NULL,
        .startup_taints = copy_strings(from->startup_taints, from->startup_taint_count),
        .startup_taint_count = from->startup_taint_count,
        .pending = (enum as_nodes_pending)from->pending,
        .has_priority = as_yaml_find(map, "priority") != NULL,
        .priority = from->priority,
        .has_price = from->price >= 0,
        .price = from->price,
        .unneeded = from->unneeded.of,
        .health = from->health,
    };
    config->nodes.unneeded.below = (double)from->unneeded.below / 1000;
    return true;
}

void resolve_address(struct resolver *resolver, struct raw_target *raw,
                     struct as_target_config *config)
{
    config->kind = raw->kind;
    if (as_target_kind_has_groups(raw->kind)) {
        raw->has_address = resolve_pool_name(resolver, raw, config);
        return;
    }
    bool is_good = raw->address && resolve_keys(resolver, raw, config);
    is_good = resolve_nodes(resolver, raw, config) && is_good;
    if (config->address_count > 0)
        check_allow(resolver, raw, config);
    raw->has_address = is_good && !config->is_templated;
}

struct located {
    const struct raw_target *raw;
    struct as_target_ref *ref;
    char *place; /* its URL's target (with or without a name for its id); "": no URL */
};

static char *make_place(const struct as_target_ref *ref)
{
    AS_CLEANUP(as_free_p) char *id = as_target_ref_make_url_id(ref);
    return id ? as_target_key_make(id) : as_xstrdup("");
}

static int compare_raw(const struct located *a, const struct located *b)
{
    return (a->raw->number > b->raw->number) - (a->raw->number < b->raw->number);
}

static int compare_keys(const void *left, const void *right)
{
    const struct located *a = left, *b = right;
    const int status = strcmp(a->ref->key, b->ref->key);
    return status ? status : compare_raw(a, b);
}

static int compare_places(const void *left, const void *right)
{
    const struct located *a = left, *b = right;
    const int status = strcmp(a->place, b->place);
    return status ? status : compare_raw(a, b);
}

static void report_same(struct resolver *resolver, const struct located *a, const struct located *b)
{
    const struct raw_target *first = a->raw, *second = b->raw;
    resolver->loader.tree = second->tree;
    loader_report(&resolver->loader, second->key, "the same object as target `%s` at %s:%u",
                  first->name, as_yaml_get_file(first->tree), first->key->place.line);
}

static void check_pairs(struct resolver *resolver, struct located *items, size_t count)
{
    qsort(items, count, sizeof(*items), compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(items[i - 1].ref->key, items[i].ref->key) == 0)
            report_same(resolver, &items[i - 1], &items[i]);
    }
    qsort(items, count, sizeof(*items), compare_places);
    for (size_t i = 1; i < count; i++) {
        if (*items[i].place && strcmp(items[i - 1].place, items[i].place) == 0 &&
            strcmp(items[i - 1].ref->key, items[i].ref->key) != 0)
            report_same(resolver, &items[i - 1], &items[i]);
    }
}

void check_addresses(struct resolver *resolver)
{
    struct located *items = as_xcalloc(resolver->target_count + 1, sizeof(*items));
    size_t count = 0;
    for (size_t i = 0; i < resolver->target_count; i++) {
        struct as_error error = AS_ERROR_INIT;
        const struct raw_target *raw = resolver->targets[i];
        if (!raw->has_address)
            continue;
        items[count].raw = raw;
        resolver->loader.tree = raw->tree;
        if (as_target_ref_new(&resolver->ruleset->targets[i], NULL, NULL, &items[count].ref,
                              &error) != AS_TARGET_OK) {
            loader_report(&resolver->loader, raw->key, "%s", error.text);
            continue;
        }
        items[count].place = make_place(items[count].ref);
        count++;
    }
    check_pairs(resolver, items, count);
    for (size_t i = 0; i < count; i++) {
        as_target_ref_free(items[i].ref);
        free(items[i].place);
    }
    free(items);
}
