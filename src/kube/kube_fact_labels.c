/*
 * Names, labels and selectors, and budgets, which are little more: see the header.
 *
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
 */
#include "kube_facts_private.h"

#include <string.h>

#include <alertscaler/base/str.h>

#define LABEL_PART_MAX 63
#define SHOWN_MAX      64 /* bytes of a refused text in an error */

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters and digits at both ends, and `others` between. */
static bool is_word(const char *text, size_t size, size_t max, const char *others)
{
    if (size == 0 || size > max || !is_alphanumeric(text[0]) || !is_alphanumeric(text[size - 1]))
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_alphanumeric(text[i]) && !strchr(others, text[i]))
            return false;
    }
    return true;
}

/* Upper-case letters are for labels only. */
static bool is_subdomain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] >= 'A' && text[i] <= 'Z')
            return false;
    }
    return is_word(text, size, AS_CLUSTER_NAME_MAX, "-.");
}

static bool is_label_name(const char *text)
{
    const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;
    return (!slash || is_subdomain(text, (size_t)(slash - text))) &&
           is_word(name, strlen(name), LABEL_PART_MAX, "-._");
}

const char *fact_read_name(struct as_reader *metadata, const char *key)
{
    const char *name = as_read_string(metadata, key);
    const size_t size = strlen(name);

    if (is_subdomain(name, size))
        return name;
    as_read_fail(metadata, key, "no name: \"%.*s\"", (int)as_str_cut_utf8(name, size, SHOWN_MAX),
                 name);
    return "";
}

static void check_label(struct as_reader *parent, const char *name, const struct tree_value *member)
{
    if (!is_label_name(member->name))
        as_read_fail(parent, name, "no name of a label: \"%.*s\"",
                     (int)as_str_cut_utf8(member->name, member->name_size, SHOWN_MAX),
                     member->name);
    else if (member->kind != TREE_TEXT)
        as_read_fail(parent, name, "%s: expected a string", member->name);
    else if (member->size > 0 && !is_word(member->text, member->size, LABEL_PART_MAX, "-._"))
        as_read_fail(parent, name, "%s: no value of a label: \"%.*s\"", member->name,
                     (int)as_str_cut_utf8(member->text, member->size, SHOWN_MAX), member->text);
}

const struct as_labels *fact_read_labels(struct fact_reader *reader, struct as_reader *parent,
                                         const char *name)
{
    const struct as_labels *labels = NULL;
    size_t count, used = 0;
    const struct tree_value *member = fact_read_map(parent, name, &count);

    if (count == 0)
        return NULL;
    struct as_label *pairs = as_arena_alloc(reader->arena, count, sizeof(*pairs));
    for (; member; member = member->next) {
        check_label(parent, name, member);
        if (as_read_result(parent) != 0)
            return NULL;
        pairs[used++] = (struct as_label){member->name, member->text};
    }
    if (as_labels_new_in(reader->arena, pairs, used, &labels) < 0)
        as_read_fail(parent, name, "too large");
    return labels;
}

bool fact_find_label(const struct as_labels *labels, const char *name, const char **value_out)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        if (strcmp(labels->items[i].name, name) == 0) {
            *value_out = labels->items[i].value;
            return true;
        }
    }
    return false;
}

/* Selectors */

void fact_begin_requirements(struct fact_reader *reader, struct as_reader *parent,
                             const char *const *names, size_t more, struct fact_requirements *list)
{
    size_t room = more, count;

    for (; *names; names++) {
        fact_read_list(parent, *names, &count);
        room += count;
    }
    *list = (struct fact_requirements){
        .items = as_arena_alloc(reader->arena, room, sizeof(*list->items)),
    };
}

static bool find_operator(const char *word, enum as_node_operator *operator_out)
{
    static const char *const words[] = {
        [AS_NODE_IN] = "In",         [AS_NODE_NOT_IN] = "NotIn",
        [AS_NODE_EXISTS] = "Exists", [AS_NODE_DOES_NOT_EXIST] = "DoesNotExist",
        [AS_NODE_GT] = "Gt",         [AS_NODE_LT] = "Lt",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(words[i], word) == 0) {
            *operator_out = (enum as_node_operator)i;
            return true;
        }
    }
    return false;
}

static void read_values(struct fact_reader *reader, struct as_reader *parent,
                        struct as_node_requirement *requirement)
{
    size_t count;
    const struct tree_value *value = fact_read_list(parent, "values", &count);
    const char **values = as_arena_alloc(reader->arena, count, sizeof(*values));

    for (size_t i = 0; i < count; i++, value = value->next) {
        values[i] = tree_get_text(value);
        if (!values[i])
            as_read_fail(parent, "values", "expected strings");
    }
    requirement->values = values;
    requirement->value_count = count;
}

bool fact_read_expressions(struct fact_reader *reader, struct as_reader *parent, const char *name,
                           struct fact_requirements *list)
{
    bool are_known = true;
    size_t count;
    const struct tree_value *item = fact_read_list(parent, name, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_node_requirement *requirement = &list->items[list->count++];
        struct as_reader inner;
        as_read_item(&inner, parent, name, item, i);
        requirement->key = as_read_string(&inner, "key");
        if (!*requirement->key)
            as_read_fail(&inner, "key", "missing");
        are_known &= find_operator(as_read_string(&inner, "operator"), &requirement->operator_);
        read_values(reader, &inner, requirement);
    }
    return are_known;
}

void fact_read_selector(struct fact_reader *reader, struct as_reader *selector,
                        struct fact_requirements *list)
{
    static const char *const names[] = {"matchExpressions", NULL};
    const struct as_labels *labels = fact_read_labels(reader, selector, "matchLabels");

    fact_begin_requirements(reader, selector, names, labels ? labels->count : 0, list);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        list->items[list->count++] = (struct as_node_requirement){
            .key = labels->items[i].name,
            .operator_ = AS_NODE_IN,
            .values = &labels->items[i].value,
            .value_count = 1,
        };
    if (!fact_read_expressions(reader, selector, names[0], list))
        as_read_fail(selector, names[0],
                     "expected the operators In, NotIn, Exists or DoesNotExist");
}

/* Budgets */

void fact_read_budget(struct fact_reader *reader, struct as_reader *root,
                      struct as_budget_fact *budget_out)
{
    struct as_reader metadata, spec, selector, status;
    struct fact_requirements list = {.items = NULL};

    as_read_object(&metadata, root, "metadata");
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    as_read_object(&selector, &spec, "selector");
    fact_read_selector(reader, &selector, &list);
    *budget_out = (struct as_budget_fact){
        .namespace_ = fact_read_name(&metadata, "namespace"),
        .name = fact_read_name(&metadata, "name"),
        .requirements = list.items,
        .count = list.count,
        .is_nothing = !selector.object,
        .allowed = (int32_t)fact_get_i64(&status, "disruptionsAllowed", INT32_MIN, INT32_MAX),
    };
}
