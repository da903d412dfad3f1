/*
 * Amounts, in whole units, and what a whole pod requests: see the headers.
 *
 * https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/ and, for requests of the
 * pod itself, KEP-2837.
 */
#include "kube_facts_private.h"

#include <string.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/observation.h>

#include "pod_requests.h"

#define MILLI     3
#define SHOWN_MAX 64 /* bytes of a refused text in an error */

/* Without facts only the first four. Extended resources have a domain ("nvidia.com/gpu"). What else
 * a node names (attachable volumes) no pod can ask for. AS_RES_MAX: not counted. */
static int find_index(struct fact_reader *reader, const char *name)
{
    static const char *const names[] = {
        [AS_RES_CPU] = "cpu",
        [AS_RES_MEMORY] = "memory",
        [AS_RES_EPHEMERAL] = "ephemeral-storage",
        [AS_RES_PODS] = "pods",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (strcmp(names[i], name) == 0)
            return (int)i;
    }
    return reader->facts && (strchr(name, '/') || as_str_starts_with(name, "hugepages-"))
               ? as_cluster_facts_name_resource(reader->facts, name)
               : AS_RES_MAX;
}

static int64_t add(int64_t a, int64_t b)
{
    return a > AS_RES_AMOUNT_MAX - b ? AS_RES_AMOUNT_MAX : a + b;
}

static bool read_quantity(struct as_reader *parent, const char *name,
                          const struct tree_value *member, int scale, bool round_up,
                          int64_t *amount_out)
{
    if (member->kind != TREE_TEXT)
        as_read_fail(parent, name, "%.*s: expected a string",
                     (int)as_str_cut_utf8(member->name, member->name_size, SHOWN_MAX),
                     member->name);
    else if (as_quantity_parse_scaled(member->text, member->size, scale, round_up, amount_out) < 0)
        as_read_fail(parent, name, "%.*s: no quantity: \"%.*s\"",
                     (int)as_str_cut_utf8(member->name, member->name_size, SHOWN_MAX), member->name,
                     (int)as_str_cut_utf8(member->text, member->size, SHOWN_MAX), member->text);
    else
        return true;
    return false;
}

uint32_t fact_add_amounts(struct fact_reader *reader, struct as_reader *parent, const char *name,
                          bool round_up, struct as_resources *sums, bool *are_left_out)
{
    uint32_t named = 0;
    size_t count;

    for (const struct tree_value *member = fact_read_map(parent, name, &count); member;
         member = member->next) {
        const int index = find_index(reader, member->name);
        int64_t amount;
        *are_left_out |= index < 0;
        if (index < 0 || index == AS_RES_MAX ||
            !read_quantity(parent, name, member, index == AS_RES_CPU ? MILLI : 0, round_up,
                           &amount))
            continue;
        named |= UINT32_C(1) << index;
        sums->amount[index] = add(sums->amount[index], amount);
    }
    return named;
}

static uint32_t add_requests(struct fact_reader *reader, struct as_reader *of,
                             struct as_resources *sums, unsigned *unchecked)
{
    bool are_left_out = false;
    struct as_reader resources;

    as_read_object(&resources, of, "resources");
    const uint32_t named =
        fact_add_amounts(reader, &resources, "requests", true, sums, &are_left_out);
    *unchecked |= are_left_out ? AS_UNCHECKED_RESOURCES : 0;
    return named;
}

static void raise_to(struct as_resources *most, const struct as_resources *sums)
{
    for (int i = 0; i < AS_RES_MAX; i++) {
        if (sums->amount[i] > most->amount[i])
            most->amount[i] = sums->amount[i];
    }
}

/* An init container runs beside the sidecars that stand before it. */
static uint32_t read_init_containers(struct fact_reader *reader, struct as_reader *spec,
                                     struct as_resources *sidecars, struct as_resources *most,
                                     unsigned *unchecked)
{
    static const char list[] = "initContainers";
    uint32_t named = 0;
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_resources sums = *sidecars;
        struct as_reader container;
        as_read_item(&container, spec, list, item, i);
        named |= add_requests(reader, &container, &sums, unchecked);
        if (as_read_is(&container, "restartPolicy", "Always"))
            *sidecars = sums;
        raise_to(most, &sums);
    }
    return named;
}

uint32_t fact_read_requests(struct fact_reader *reader, struct as_reader *spec,
                            struct as_pod_shape *shape)
{
    static const char list[] = "containers";
    struct as_resources most = {{0}}, sums = {{0}}, own = {{0}};
    bool are_left_out = false;
    size_t count;

    uint32_t named = read_init_containers(reader, spec, &sums, &most, &shape->unchecked);
    const struct tree_value *item = fact_read_list(spec, list, &count);
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader container;
        as_read_item(&container, spec, list, item, i);
        named |= add_requests(reader, &container, &sums, &shape->unchecked);
    }
    raise_to(&most, &sums);
    const uint32_t of_pod = add_requests(reader, spec, &own, &shape->unchecked);
    for (int i = 0; i < AS_RES_MAX; i++) {
        if (of_pod & UINT32_C(1) << i)
            most.amount[i] = own.amount[i];
    }
    named |= of_pod | fact_add_amounts(reader, spec, "overhead", true, &most, &are_left_out);
    shape->unchecked |= are_left_out ? AS_UNCHECKED_RESOURCES : 0;
    most.amount[AS_RES_PODS] = 1;
    shape->requests = most;
    return named;
}

void pod_requests_read(struct as_reader *spec, double absent, double requests_out[])
{
    static const struct {
        int index;
        double unit;
    } rows[AS_RESOURCE_COUNT] = {
        [AS_RESOURCE_CPU] = {AS_RES_CPU, 1000},
        [AS_RESOURCE_MEMORY] = {AS_RES_MEMORY, 1},
    };
    struct fact_reader reader = {.facts = NULL};
    struct as_pod_shape shape = {.unchecked = 0};
    const uint32_t named = fact_read_requests(&reader, spec, &shape);

    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        requests_out[i] = named & UINT32_C(1) << rows[i].index
                              ? (double)shape.requests.amount[rows[i].index] / rows[i].unit
                              : absent;
}
