/*
 * Templates of node groups as text: see the header.
 */
#include <alertscaler/cluster/node_template_text.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include <alertscaler/doc/json_reader.h>

static const char *const base_names[AS_RES_NAMED] = {
    [AS_RES_CPU] = "cpu",
    [AS_RES_MEMORY] = "memory",
    [AS_RES_EPHEMERAL] = "ephemeral-storage",
    [AS_RES_PODS] = "pods",
};

static const struct as_read_word effects[] = {
    {"NoSchedule", AS_TAINT_NO_SCHEDULE},
    {"PreferNoSchedule", AS_TAINT_PREFER_NO_SCHEDULE},
    {"NoExecute", AS_TAINT_NO_EXECUTE},
    {0},
};

/* Writing */

struct amount {
    const char *name;
    int64_t amount;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct amount *)a)->name, ((const struct amount *)b)->name);
}

static void write_amounts(struct as_json_writer *json, const char *key,
                          const struct as_resources *amounts, const struct as_res_names *names)
{
    struct amount rows[AS_RES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++)
        if (i < AS_RES_NAMED || amounts->amount[i] != 0)
            rows[count++] = (struct amount){i < AS_RES_NAMED ? base_names[i] : names->name[i],
                                            amounts->amount[i] > 0 ? amounts->amount[i] : 0};
    qsort(rows, count, sizeof(*rows), compare_names);
    as_json_write_key(json, key);
    as_json_begin_object(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_member_i64(json, rows[i].name, rows[i].amount);
    as_json_end_object(json);
}

static const char *get_effect(enum as_taint_effect effect)
{
    size_t i = 0;
    while (effects[i].value != (int)effect)
        i++;
    return effects[i].text;
}

static void write_taints(struct as_json_writer *json, const struct as_node_shape *shape)
{
    as_json_write_key(json, "taints");
    as_json_begin_array(json);
    for (size_t i = 0; i < shape->taint_count; i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "effect", get_effect(shape->taints[i].effect));
        as_json_write_member(json, "key", shape->taints[i].key);
        as_json_write_member(json, "value", shape->taints[i].value);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

/* Left out where there are none: texts that were stored before stay as they are. */
static void write_ports(struct as_json_writer *json, const struct as_node_template *template_)
{
    if (template_->port_count == 0)
        return;
    as_json_write_key(json, "ports");
    as_json_begin_array(json);
    for (size_t i = 0; i < template_->port_count; i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "ip", template_->ports[i].ip);
        as_json_write_member_i64(json, "port", template_->ports[i].port);
        as_json_write_member(json, "protocol", template_->ports[i].protocol);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void as_node_template_encode(const struct as_node_template *template_,
                             const struct as_res_names *names, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    write_amounts(&json, "allocatable", &template_->allocatable, names);
    write_amounts(&json, "capacity", &template_->capacity, names);
    write_amounts(&json, "free", &template_->shape.allocatable, names);
    as_json_write_key(&json, "labels");
    as_json_begin_object(&json);
    for (size_t i = 0; i < template_->shape.labels->count; i++) {
        const struct as_label *label = &template_->shape.labels->items[i];
        if (as_str_is_utf8(label->name, strlen(label->name))) /* no node has others */
            as_json_write_member(&json, label->name, label->value);
    }
    as_json_end_object(&json);
    write_ports(&json, template_);
    write_taints(&json, &template_->shape);
    as_json_end_object(&json);
}

/* Reading */

static void read_amounts(struct as_reader *parent, const char *key,
                         const struct as_res_names *names, struct as_resources *amounts_out)
{
    struct as_reader reader;
    as_read_require(parent, key);
    as_read_object(&reader, parent, key);
    for (size_t i = 0; i < names->count; i++)
        as_read_i64(&reader, i < AS_RES_NAMED ? base_names[i] : names->name[i], 0,
                    AS_RES_AMOUNT_MAX, &amounts_out->amount[i]);
}

static const struct as_labels *read_labels(struct as_reader *parent, struct as_arena *arena)
{
    struct as_reader reader;
    as_read_require(parent, "labels");
    as_read_object(&reader, parent, "labels");
    const size_t size = reader.object ? reader.object->size : 0;
    struct as_label *pairs = as_arena_alloc(arena, size, sizeof(*pairs));
    size_t count = 0;
    for (const struct tree_value *member = reader.object ? reader.object->first : NULL; member;
         member = member->next) {
        if (member->kind == TREE_TEXT)
            pairs[count++] = (struct as_label){member->name, member->text};
        else
            as_read_fail(&reader, member->name, "expected text");
    }
    const struct as_labels *labels = NULL;
    if (as_labels_new_in(arena, pairs, count, &labels) != 0)
        as_read_fail(parent, "labels", "no valid labels");
    return labels;
}

static void read_taints(struct as_reader *parent, struct as_arena *arena,
                        struct as_node_shape *shape)
{
    as_read_require(parent, "taints");
    const struct tree_value *at = as_read_list(parent, "taints", &shape->taint_count);
    struct as_taint *taints = as_arena_alloc(arena, shape->taint_count, sizeof(*taints));
    for (size_t i = 0; i < shape->taint_count; i++, at = at->next) {
        struct as_reader reader;
        const char *key = "", *value = "";
        as_read_item(&reader, parent, "taints", at, i);
        as_read_require(&reader, "effect");
        as_read_require(&reader, "key");
        as_read_text(&reader, "key", &key);
        as_read_text(&reader, "value", &value);
        taints[i] = (struct as_taint){
            .key = as_arena_strdup(arena, key),
            .value = as_arena_strdup(arena, value),
            .effect = (enum as_taint_effect)as_read_enum(&reader, "effect", effects, 0)};
    }
    shape->taints = taints;
}

static void read_ports(struct as_reader *parent, struct as_arena *arena,
                       struct as_node_template *template_)
{
    const struct tree_value *at = as_read_list(parent, "ports", &template_->port_count);
    struct as_host_port *ports = as_arena_alloc(arena, template_->port_count, sizeof(*ports));
    for (size_t i = 0; i < template_->port_count; i++, at = at->next) {
        struct as_reader reader;
        const char *ip = "", *protocol = "";
        int64_t port = 0;
        as_read_item(&reader, parent, "ports", at, i);
        as_read_require(&reader, "ip");
        as_read_require(&reader, "port");
        as_read_require(&reader, "protocol");
        as_read_text(&reader, "ip", &ip);
        as_read_i64(&reader, "port", 1, UINT16_MAX, &port);
        as_read_text(&reader, "protocol", &protocol);
        ports[i] = (struct as_host_port){.ip = as_arena_strdup(arena, ip),
                                         .protocol = as_arena_strdup(arena, protocol),
                                         .port = (uint16_t)port};
    }
    template_->ports = ports;
}

int as_node_template_decode(const char *text, const struct as_res_names *names,
                            struct as_arena *arena, struct as_node_template *template_out,
                            struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_node_template template_ = {.source = AS_NODE_TEMPLATE_LAST};
    struct as_reader reader;
    int status = tree_load_object(&tree, text, strlen(text), error);
    if (status)
        return status;
    as_read_lenient(&reader, tree.root, error);
    read_amounts(&reader, "allocatable", names, &template_.allocatable);
    read_amounts(&reader, "capacity", names, &template_.capacity);
    read_amounts(&reader, "free", names, &template_.shape.allocatable);
    template_.shape.labels = read_labels(&reader, arena);
    read_taints(&reader, arena, &template_.shape);
    read_ports(&reader, arena, &template_);
    status = as_read_result(&reader);
    if (status == 0)
        *template_out = template_;
    return status;
}
