/*
 * `nodes.select`: the labels of a group's nodes, for providers that do not name instances.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/provider_kind.h>

#include "resolve.h"
#include "rule_parts.h"

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct as_label *)a)->name, ((const struct as_label *)b)->name);
}

static const char *print_select(struct as_arena *arena, struct as_label *labels, size_t count)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT_OPEN((size_t)64 * 1024);
    qsort(labels, count, sizeof(*labels), compare_labels);
    for (size_t i = 0; i < count; i++)
        as_buf_printf(&text, "%s%s=%s", i > 0 ? "," : "", labels[i].name, labels[i].value);
    return as_arena_strdup(arena, text.data ? text.data : "");
}

void parse_nodes_select(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_label labels[NODES_SELECT_MAX];
    size_t count = 0;
    if (!schema_is_kind(loader, value, AS_YAML_MAP))
        return;
    if (value->count == 0 || value->count > NODES_SELECT_MAX) {
        loader_report(loader, value, "expected 1 to %d labels", NODES_SELECT_MAX);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_pair *pair = &value->pairs[i];
        labels[count].name = pair->key->text;
        if (!rule_check_label_key(loader, pair->key) ||
            !rule_parse_label_value(loader, pair->value, &labels[count].value))
            return;
        count++;
    }
    ((struct raw_nodes *)object)->select = print_select(loader->arena, labels, count);
}

/* Whether whoever has the labels of `wide` also has those of `narrow`: "k=v,..." ascending. */
static bool is_part_of(const char *narrow, const char *wide)
{
    for (size_t size = 0; *narrow; narrow += size + (narrow[size] == ',')) {
        size = strcspn(narrow, ",");
        const char *at = wide;
        while (*at && (strncmp(at, narrow, size) != 0 || (at[size] != ',' && at[size] != '\0'))) {
            at += strcspn(at, ",");
            at += *at == ',';
        }
        if (!*at)
            return false;
    }
    return true;
}

static void check_pair(struct resolver *resolver, const struct raw_target *first,
                       const struct raw_target *second)
{
    if (!first->nodes.select || !second->nodes.select ||
        strcmp(first->nodes.cluster, second->nodes.cluster) != 0 ||
        (!is_part_of(first->nodes.select, second->nodes.select) &&
         !is_part_of(second->nodes.select, first->nodes.select)))
        return;
    resolver->loader.tree = second->tree;
    loader_report(&resolver->loader, schema_find_key(as_yaml_find(second->node, "nodes"), "select"),
                  "a node may have these labels and those of target `%s` at %s:%u: a node belongs "
                  "to one group",
                  first->name, as_yaml_get_file(first->tree), first->key->place.line);
}

void check_selects(struct resolver *resolver)
{
    for (size_t i = 0; i < resolver->target_count; i++)
        for (size_t j = i + 1; resolver->targets[i]->nodes.select && j < resolver->target_count;
             j++)
            check_pair(resolver, resolver->targets[i], resolver->targets[j]);
}
