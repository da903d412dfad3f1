/*
 * The conversion: reads all files, then converts object by object, then writes the texts. After an
 * error nothing is kept. The table of the kinds of objects, with the reader of each, stands here,
 * on top of the readers.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_text.h>

#include "convert_plan.h"

/* prometheus-adapter's configuration is read first, from all files; then all else. */
enum objects_turn { OBJECTS_ADAPTER, OBJECTS_SCALED, OBJECTS_AUTOSCALER };

/* --- objects of Kubernetes: their heads, and which reader each is for --- */

/* --- tables --- */

/* Keeps the node of a value as it is; a `null` counts as absent. */
#define KEEP_NODE(function, owner, member)                                                         \
    static void function(struct loader *loader, const struct as_yaml_node *value, void *object)    \
    {                                                                                              \
        (void)loader;                                                                              \
        ((struct owner *)object)->member = as_yaml_is_null(value) ? NULL : value;                  \
    }

KEEP_NODE(keep_name, raw_meta, name)
KEEP_NODE(keep_space, raw_meta, name_space)
KEEP_NODE(keep_annotations, raw_meta, annotations)
KEEP_NODE(keep_owners, raw_meta, owners)
KEEP_NODE(keep_spec, raw_object, spec)
KEEP_NODE(keep_data, raw_object, data)

static const struct schema_field meta_fields[] = {
    {.key = "name", .type = SCHEMA_CUSTOM, .is_required = true, .parse = keep_name},
    {.key = "namespace", .type = SCHEMA_CUSTOM, .parse = keep_space},
    {.key = "annotations", .type = SCHEMA_CUSTOM, .parse = keep_annotations},
    {.key = "ownerReferences", .type = SCHEMA_CUSTOM, .parse = keep_owners},
    {0},
};

static const struct schema meta =
    SCHEMA("metadata", raw_meta, meta_fields, .other = convert_skip_key);

static const struct schema_field object_fields[] = {
    SCHEMA_FIELD("apiVersion", STRING, raw_object, api_version, .is_required = true),
    SCHEMA_FIELD("kind", STRING, raw_object, kind, .is_required = true),
    SCHEMA_FIELD("metadata", MAP, raw_object, meta, .is_required = true, .map = &meta),
    {.key = "spec", .type = SCHEMA_CUSTOM, .parse = keep_spec},
    {.key = "data", .type = SCHEMA_CUSTOM, .parse = keep_data},
    {0},
};

static const struct schema object_table =
    SCHEMA("object", raw_object, object_fields, .other = convert_skip_key);

/* --- which reader --- */

typedef void read_fn(struct convert *convert, const struct raw_object *object,
                     const struct as_yaml_node *node);

static void lose_job(struct convert *convert, const struct raw_object *object,
                     const struct as_yaml_node *node)
{
    (void)node;
    convert_lose(convert, object->meta.name,
                 "the whole object: jobs have no scale subresource. Leave it to KEDA");
}

static void hint_credentials(struct convert *convert, const struct raw_object *object,
                             const struct as_yaml_node *node)
{
    (void)node;
    convert_hint(convert, object->meta.name,
                 "credentials for Prometheus are `prometheus.http_config` in alertscaler.yaml");
}

static void convert_keep_tree(struct convert *convert, struct as_yaml_tree *tree)
{
    convert->trees = as_xgrow(convert->trees, convert->tree_count, &convert->tree_capacity,
                              sizeof(struct as_yaml_tree *));
    convert->trees[convert->tree_count++] = tree;
}

/* The text of a block, with the lines and columns that it has in its file. */
static char *copy_in_place(const struct as_yaml_tree *tree, const struct as_yaml_node *block,
                           const struct as_yaml_place *place, size_t *size_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(2 * AS_YAML_SIZE_MAX);
    for (uint32_t i = 1; i < place->line; i++)
        as_buf_append_char(&out, '\n');
    for (const char *line = block->text; *line;) {
        const size_t size = strcspn(line, "\n");
        if (size > 0)
            as_buf_printf(&out, "%*s", (int)place->column - 1, "");
        as_buf_append(&out, line, size + (line[size] == '\n'));
        line += size + (line[size] == '\n');
    }
    return as_buf_check(&out) < 0 ? NULL : as_buf_take(&out, size_out);
}

/* A text of a ConfigMap as YAML; NULL: it is none, so it is nothing that is read here. */
static struct as_yaml_tree *parse_data(struct convert *convert, const struct as_yaml_pair *pair)
{
    const struct as_yaml_tree *outside = convert->loader.tree;
    struct as_diagnostics ignored = AS_DIAGNOSTICS_INIT;
    struct as_yaml_tree *tree = NULL;
    struct as_yaml_place place;
    size_t size = 0;
    const bool is_block = as_yaml_find_inside(outside, pair->value, 0, &place) &&
                          place.line > pair->value->place.line;
    AS_CLEANUP(as_free_p)
    char *text = is_block ? copy_in_place(outside, pair->value, &place, &size) : NULL;
    AS_CLEANUP(as_free_p)
    char *file = as_xasprintf(text ? "%s" : "%s#data", as_yaml_get_file(outside));
    if (as_yaml_parse_foreign(file, text ? text : pair->value->text,
                              text ? size : pair->value->size, &ignored, &tree) == AS_YAML_FLAWED)
        tree = as_yaml_free(tree);
    as_diagnostics_deinit(&ignored);
    return tree;
}

static void read_config_map(struct convert *convert, const struct raw_object *object,
                            const struct as_yaml_node *node)
{
    const struct as_yaml_tree *outside = convert->loader.tree;
    const struct as_yaml_node *data = object->data;
    (void)node;
    for (uint32_t i = 0; data && data->kind == AS_YAML_MAP && i < data->count; i++) {
        const struct as_yaml_node *value = data->pairs[i].value;
        if (value->kind != AS_YAML_SCALAR || !strstr(value->text, "ules:"))
            continue; /* cannot be the adapter's */
        struct as_yaml_tree *tree = parse_data(convert, &data->pairs[i]);
        if (!tree)
            continue;
        convert_keep_tree(convert, tree);
        if (!adapter_is_configuration(as_yaml_get_root(tree)))
            continue;
        convert->loader.tree = tree;
        adapter_read(convert, as_yaml_get_root(tree));
        convert->loader.tree = outside;
    }
}

static const struct object_kind {
    const char *kind, *group; /* group: with the slash */
    enum objects_turn turn;
    read_fn *read;
} object_kinds[] = {
    {"HorizontalPodAutoscaler", "autoscaling/", OBJECTS_SCALED, hpa_convert},
    {"ScaledObject", "keda.sh/", OBJECTS_SCALED, keda_convert},
    {"ScaledJob", "keda.sh/", OBJECTS_SCALED, lose_job},
    {"TriggerAuthentication", "keda.sh/", OBJECTS_SCALED, hint_credentials},
    {"ClusterTriggerAuthentication", "keda.sh/", OBJECTS_SCALED, hint_credentials},
    {"ConfigMap", "v1", OBJECTS_ADAPTER, read_config_map},
    {"Deployment", "apps/", OBJECTS_AUTOSCALER, autoscaler_convert},
};

static const char *convert_get_text(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR ? node->text : "";
}

/* Whether objects of the kind are read in a run with this turn; NULL: no kind that is known. */
static bool convert_is_for(const struct object_kind *kind, enum objects_turn turn)
{
    return kind && (kind->turn == OBJECTS_AUTOSCALER) == (turn == OBJECTS_AUTOSCALER);
}

static const struct object_kind *convert_find_kind(const struct as_yaml_node *node)
{
    const char *kind = convert_get_text(as_yaml_find(node, "kind"));
    const char *version = convert_get_text(as_yaml_find(node, "apiVersion"));
    for (size_t i = 0; i < AS_ARRAY_SIZE(object_kinds); i++) {
        if (strcmp(object_kinds[i].kind, kind) == 0 &&
            as_str_starts_with(version, object_kinds[i].group))
            return &object_kinds[i];
    }
    return NULL;
}

static void convert_read_object(struct convert *convert, const struct object_kind *kind,
                                const struct as_yaml_node *node)
{
    const size_t errors = convert_count_errors(convert);
    struct raw_object object = {.spec = NULL};
    schema_parse(&convert->loader, &object_table, node, node, &object);
    if (convert_count_errors(convert) > errors)
        return;
    if (++convert->object_count > AS_CONVERT_OBJECTS_MAX) {
        if (convert->object_count == AS_CONVERT_OBJECTS_MAX + 1)
            loader_report(&convert->loader, node, "more than %d objects: convert a part at a time",
                          AS_CONVERT_OBJECTS_MAX);
        return;
    }
    const struct as_yaml_node *name = object.meta.name;
    const char *space = convert_get_text(object.meta.name_space);
    convert_begin(convert, "%s %.63s%s%.253s", object.kind, space, *space ? "/" : "",
                  convert_get_text(name));
    if (name)
        kind->read(convert, &object, node);
    else
        loader_report(&convert->loader, node, "it has no name");
    convert->shown = "";
}

static void convert_read_node(struct convert *convert, const struct as_yaml_node *node,
                              enum objects_turn turn);

static const struct as_yaml_node *convert_make_text(struct convert *convert,
                                                    const struct as_yaml_node *place,
                                                    const char *text)
{
    struct as_yaml_node *node = as_arena_alloc(&convert->arena, 1, sizeof(*node));
    *node = (struct as_yaml_node){.kind = AS_YAML_SCALAR, .place = place->place};
    node->text = text;
    node->size = strlen(text);
    return node;
}

/* The API server's own lists name kind and version once; kubectl's name those of each object. */
static const struct as_yaml_node *add_kind(struct convert *convert, const struct as_yaml_node *list,
                                           const struct as_yaml_node *item)
{
    const char *kind = convert_get_text(as_yaml_find(list, "kind"));
    const struct as_yaml_node *version = as_yaml_find(list, "apiVersion");
    if (item->kind != AS_YAML_MAP || as_yaml_find(item, "kind") || strcmp(kind, "List") == 0 ||
        !version || as_yaml_find(item, "apiVersion"))
        return item;
    struct as_yaml_pair *pairs = as_arena_alloc(&convert->arena, item->count + 2, sizeof(*pairs));
    struct as_yaml_node *whole = as_arena_alloc(&convert->arena, 1, sizeof(*whole));
    if (item->count > 0)
        memcpy(pairs, item->pairs, item->count * sizeof(*pairs));
    *whole = *item;
    whole->pairs = pairs;
    const char *own = convert_text(convert, "%.*s", (int)(strlen(kind) - strlen("List")), kind);
    pairs[whole->count++] = (struct as_yaml_pair){convert_make_text(convert, item, "kind"),
                                                  convert_make_text(convert, item, own)};
    pairs[whole->count++] =
        (struct as_yaml_pair){convert_make_text(convert, item, "apiVersion"), version};
    return whole;
}

static void convert_read_items(struct convert *convert, const struct as_yaml_node *list,
                               const struct as_yaml_node *items, enum objects_turn turn)
{
    for (uint32_t i = 0; items->kind == AS_YAML_LIST && i < items->count; i++)
        convert_read_node(convert,
                          list ? add_kind(convert, list, items->items[i]) : items->items[i], turn);
}

/* A map without a kind: a configuration of a program. */
static void read_configuration(struct convert *convert, const struct as_yaml_node *node,
                               enum objects_turn turn)
{
    const struct as_yaml_node *groups = as_yaml_find(node, "node_groups");
    convert->shown = "";
    if (turn == OBJECTS_AUTOSCALER) {
        loader_report(&convert->loader, node, "expected an object of Kubernetes");
    } else if (adapter_is_configuration(node)) {
        if (turn == OBJECTS_ADAPTER)
            adapter_read(convert, node);
    } else if (groups) {
        if (turn == OBJECTS_SCALED)
            escalator_convert(convert, groups);
    } else if (turn == OBJECTS_SCALED) {
        as_yaml_report(
            convert->loader.tree, node, AS_YAML_HIDE, convert->loader.diagnostics,
            "expected an object of Kubernetes, prometheus-adapter's configuration "
            "(`rules`, `externalRules`, `resourceRules`) or Escalator's (`node_groups`)");
    }
}

static void convert_read_node(struct convert *convert, const struct as_yaml_node *node,
                              enum objects_turn turn)
{
    const struct as_yaml_node *items = as_yaml_find(node, "items");
    const char *word = convert_get_text(as_yaml_find(node, "kind"));
    const size_t size = strlen(word);
    if (as_yaml_is_null(node))
        return;
    if (items && size >= 4 && strcmp(word + size - 4, "List") == 0) {
        convert_read_items(convert, node, items, turn);
        return;
    }
    if (!*word) {
        read_configuration(convert, node, turn);
        return;
    }
    const struct object_kind *kind = convert_find_kind(node);
    if (kind && kind->turn == turn)
        convert_read_object(convert, kind, node);
    else if (turn != OBJECTS_ADAPTER && !convert_is_for(kind, turn))
        convert->conversion->skipped_count++;
}

static void objects_walk(struct convert *convert, const struct as_yaml_tree *tree,
                         enum objects_turn turn)
{
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    convert->loader.tree = tree;
    if (root->kind == AS_YAML_MAP)
        convert_read_node(convert, root, turn);
    else
        convert_read_items(convert, NULL, root, turn);
}

/* --- the conversion --- */

#define TEXT_MAX ((size_t)64 * 1024 * 1024) /* of one file of the result */

/* --- the plan --- */

static int convert_compare_names(const void *left, const void *right)
{
    const struct plan_target *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* "apps" of "apps/v1"; the group that is left of "extensions" is "apps". */
static size_t convert_get_group(const struct plan_target *target, const char **group_out)
{
    const char *version = target->api_version ? target->api_version : "apps/v1";
    const char *slash = strchr(version, '/');
    *group_out = version;
    return slash ? (size_t)(slash - version) : 0;
}

static int compare_scaled(const void *left, const void *right)
{
    const struct plan_target *const *a = left, *const *b = right;
    const char *group_a, *group_b;
    if ((*a)->group || (*b)->group)
        return (*a)->group && (*b)->group ? strcmp((*a)->group->group, (*b)->group->group)
                                          : !(*a)->group - !(*b)->group;
    int status = strcmp((*a)->space, (*b)->space);
    status = status ? status : strcmp((*a)->scaled, (*b)->scaled);
    status = status ? status : strcmp((*a)->scaled_kind, (*b)->scaled_kind);
    const size_t size_a = convert_get_group(*a, &group_a), size_b = convert_get_group(*b, &group_b);
    if (status || size_a != size_b)
        return status ? status : size_a < size_b ? -1 : 1;
    return strncmp(group_a, group_b, size_a);
}

/* Of targets that are equal the later ones are reported. */
static void check_once(struct convert *convert, int (*compare)(const void *, const void *),
                       const char *format_is)
{
    const size_t count = convert->target_count;
    struct plan_target **sorted = as_xcalloc(count + 1, sizeof(*sorted));
    if (count > 0)
        memcpy(sorted, convert->targets, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare);
    for (size_t i = 1; i < count; i++) {
        const struct plan_target *first = sorted[i - 1], *second = sorted[i];
        if (compare(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        convert->loader.tree = second->tree;
        loader_report(&convert->loader, second->node, "%s, at %s:%u, %s", first->shown,
                      as_yaml_get_file(first->tree), first->node->place.line, format_is);
    }
    free(sorted);
}

/* --- the result --- */

static void keep_file(struct convert *convert, const char *name, struct as_buf *text)
{
    struct as_conversion *conversion = convert->conversion;
    conversion->files = as_xgrow(conversion->files, conversion->file_count,
                                 &conversion->file_capacity, sizeof(*conversion->files));
    conversion->files[conversion->file_count++] = (struct as_converted_file){
        .name = name,
        .text = as_arena_strdup(&convert->arena, text->size ? text->data : ""),
        .size = text->size,
    };
    as_buf_clear(text);
}

static int write_all(struct convert *convert, bool is_policy)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(TEXT_MAX);
    bool is_whole = true;
    for (size_t i = 0; i < convert->target_count; i++) {
        const struct plan_target *target = convert->targets[i];
        if (is_policy)
            write_policy(convert, target, &text);
        else
            write_rules(convert, target, &text);
        is_whole = is_whole && as_buf_check(&text) == 0;
        keep_file(
            convert,
            convert_text(convert, "%s/%s.yaml", is_policy ? "policies" : "rules", target->name),
            &text);
        write_tests(target, is_policy, &text);
        is_whole = is_whole && as_buf_check(&text) == 0;
        keep_file(convert, convert_text(convert, "tests/%s.yaml", target->name), &text);
        convert->conversion->rule_count += target->group  ? 2U + target->group->starves
                                           : target->pool ? 1U + target->pool->shrinks
                                                          : target->rule_count;
        convert->conversion->target_count += 1 + (target->pool ? target->pool->member_count : 0);
    }
    return is_whole ? 0 : -EMSGSIZE;
}

/* A file is a stream of documents, a text is one object. */
static int convert_load(struct convert *convert, const struct as_convert_input *input)
{
    struct as_diagnostics *diagnostics = convert->loader.diagnostics;
    struct as_yaml_tree *tree = NULL;
    int status = input->text ? as_yaml_parse_foreign(input->name, input->text, input->size,
                                                     diagnostics, &tree)
                             : as_yaml_load_documents(input->name, diagnostics, &tree);
    if (status < 0)
        return status == -EFBIG ? -EINVAL : status;
    convert_keep_tree(convert, tree);
    return 0;
}

/* A list of texts as a tree, so that each flag has a place: its number is the line. */
static int convert_load_flags(struct convert *convert, const struct as_convert_input *flags,
                              size_t count)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_YAML_SIZE_MAX);
    struct as_yaml_tree *tree = NULL;
    for (size_t i = 0; i < count; i++) {
        as_buf_append_str(&text, "- ");
        yaml_append_text(&text, flags[i].name);
        as_buf_append_char(&text, '\n');
    }
    if (as_buf_check(&text) < 0)
        return -EMSGSIZE;
    const int status =
        as_yaml_parse_foreign("flags", text.data, text.size, convert->loader.diagnostics, &tree);
    if (status != AS_YAML_OK) {
        as_yaml_free(tree);
        return -EINVAL;
    }
    convert_keep_tree(convert, tree);
    return 0;
}

static int convert_load_inputs(struct convert *convert, const struct as_convert_input *inputs,
                               size_t count)
{
    int worst = 0;
    for (size_t i = 0; i < count; i++) {
        int status = convert_load(convert, &inputs[i]);
        if (status < 0 && (worst == 0 || worst == -EINVAL))
            worst = status;
    }
    return worst;
}

/* A policy scales a workload of its namespace. */
static void check_workloads(struct convert *convert)
{
    for (size_t i = 0; i < convert->target_count; i++) {
        const struct plan_target *target = convert->targets[i];
        convert->loader.tree = target->tree;
        if (target->group || target->pool)
            loader_report(&convert->loader, target->node,
                          "a node group has no policy: convert it with --output=rules");
    }
}

/* 0, -EINVAL after errors, or another negative errno. */
static int convert_run(struct convert *convert, enum as_convert_from from,
                       const struct as_convert_input *inputs, size_t count)
{
    const int worst = from == AS_CONVERT_FLAGS ? convert_load_flags(convert, inputs, count)
                                               : convert_load_inputs(convert, inputs, count);
    const size_t file_count = convert->tree_count; /* ConfigMaps add trees */
    const bool are_objects = from == AS_CONVERT_OBJECTS || from == AS_CONVERT_TO_POLICIES;
    for (size_t i = 0; i < file_count; i++) {
        convert->loader.tree = convert->trees[i];
        if (from == AS_CONVERT_FLAGS)
            autoscaler_convert_flags(convert, as_yaml_get_root(convert->trees[i]));
        else
            objects_walk(convert, convert->trees[i],
                         are_objects ? OBJECTS_ADAPTER : OBJECTS_AUTOSCALER);
    }
    for (size_t i = 0; i < file_count && are_objects; i++)
        objects_walk(convert, convert->trees[i], OBJECTS_SCALED);
    check_once(convert, convert_compare_names,
               "makes a target of the same name: rename one of them");
    check_once(convert, compare_scaled,
               "scales the same object: two programs that set one size undo each other's work. "
               "Keep one of them");
    if (from == AS_CONVERT_TO_POLICIES)
        check_workloads(convert);
    if (worst < 0)
        return worst;
    if (convert->loader.diagnostics->has_error)
        return -EINVAL;
    return write_all(convert, from == AS_CONVERT_TO_POLICIES);
}

int as_convert(enum as_convert_from from, const struct as_convert_input *inputs, size_t count,
               const char *name_space, struct as_diagnostics *diagnostics,
               struct as_conversion **conversion_out)
{
    AS_CLEANUP(as_conversion_free_p)
    struct as_conversion *conversion = as_xcalloc(1, sizeof(*conversion));
    struct convert convert = {.conversion = conversion, .name_space = name_space};
    convert.loader =
        (struct loader){.diagnostics = diagnostics, .arena = &convert.arena, .folder = ""};
    int status = convert_run(&convert, from, inputs, count);
    for (size_t i = 0; i < convert.tree_count; i++)
        as_yaml_free(convert.trees[i]);
    free(convert.trees);
    free(convert.targets);
    struct as_arena *memory = as_xcalloc(1, sizeof(*memory));
    *memory = convert.arena;
    conversion->memory = memory;
    if (status < 0)
        return status == -EINVAL ? AS_CONVERT_INVALID : status;
    *conversion_out = conversion;
    conversion = NULL;
    return AS_CONVERT_OK;
}

struct as_conversion *as_conversion_free(struct as_conversion *conversion)
{
    if (!conversion)
        return NULL;
    if (conversion->memory)
        as_arena_deinit(conversion->memory);
    free(conversion->memory);
    free(conversion->files);
    free(conversion->items);
    free(conversion);
    return NULL;
}
