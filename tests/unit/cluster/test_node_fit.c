/*
 * Which pods fit on which nodes, case by case; support/nodes_text.h has the words. The cases of
 * labels and taints are those of kube-scheduler's own tests where these have them (NodeAffinity,
 * TaintToleration, NodePorts, NodeResourcesFit).
 */
#include <alertscaler/cluster/node_fit.h>

#include <stdint.h>

#include <criterion/criterion.h>

#include "../../support/nodes_text.h"

static struct nodes_text texts;

static void prepare(void)
{
    nodes_text_init(&texts);
}

static void clean(void)
{
    nodes_text_deinit(&texts);
}

TestSuite(node_fit, .init = prepare, .fini = clean);

struct admission {
    const char *node, *pod;
    enum as_misfit misfit;
};

static void check_admissions(const struct admission *rows, size_t count, const char *node_name)
{
    for (size_t i = 0; i < count; i++) {
        const struct admission *row = &rows[i];
        const struct as_node_fact node = nodes_text_read_node(&texts, "n1", row->node);
        const struct as_node_shape shape = nodes_text_get_shape(&node, node_name);
        const enum as_misfit misfit = as_node_admits(&shape, nodes_text_read_pod(&texts, row->pod));

        cr_assert_eq(misfit, row->misfit, "%s | %s: %s", row->node, row->pod,
                     as_misfit_get_word(misfit));
    }
}

Test(node_fit, selector)
{
    static const struct admission rows[] = {
        {"a=1", "", AS_FITS},
        {"a=1", "a=1", AS_FITS},
        {"a=1 b=2", "a=1 b=2", AS_FITS},
        {"a=1", "a=1 b=2", AS_MISFIT_SELECTOR},
        {"a=1", "a=2", AS_MISFIT_SELECTOR},
        {"", "a=1", AS_MISFIT_SELECTOR},
        {"a=", "a=", AS_FITS},
        {"", "a=", AS_MISFIT_SELECTOR}, /* an empty value is not an absent label */
        {"a=1", "a=1 ?a:in:2", AS_MISFIT_SELECTOR},
        {"a=1", "a=2 ?a:in:1", AS_MISFIT_SELECTOR},
        {"a=1 b=2", "a=1 ?b:in:2", AS_FITS},
    };

    check_admissions(rows, AS_ARRAY_SIZE(rows), "n1");
}

Test(node_fit, affinity)
{
    static const struct admission rows[] = {
        {"a=1", "?a:in:1,2", AS_FITS},
        {"a=3", "?a:in:1,2", AS_MISFIT_SELECTOR},
        {"", "?a:in:1", AS_MISFIT_SELECTOR},
        {"a=", "?a:in:", AS_FITS},   /* one value, which is empty */
        {"a=", "?a:in:x,", AS_FITS}, /* two values, one of them empty */
        {"a=", "?a:notin:", AS_MISFIT_SELECTOR},
        {"", "?a:in:x,", AS_MISFIT_SELECTOR},
        {"a=3", "?a:notin:1,2", AS_FITS},
        {"a=1", "?a:notin:1,2", AS_MISFIT_SELECTOR},
        {"", "?a:notin:1", AS_FITS},
        {"a=1", "?a:exists", AS_FITS},
        {"a=", "?a:exists", AS_FITS},
        {"b=1", "?a:exists", AS_MISFIT_SELECTOR},
        {"b=1", "?a:absent", AS_FITS},
        {"a=", "?a:absent", AS_MISFIT_SELECTOR},
        /* all requirements of a term, any term */
        {"a=1 b=2", "?a:in:1&b:in:2", AS_FITS},
        {"a=1 b=2", "?a:in:1&b:in:3", AS_MISFIT_SELECTOR},
        {"a=1 b=2", "?a:in:9 ?b:in:2", AS_FITS},
        {"a=1 b=2", "?a:in:9 ?b:in:9", AS_MISFIT_SELECTOR},
        {"a=1", "?a:exists&a:notin:1", AS_MISFIT_SELECTOR},
        /* nothing matches nothing */
        {"a=1", "?", AS_MISFIT_SELECTOR},
        {"a=1", "? ?a:in:1", AS_FITS},
        {"a=1", "??", AS_MISFIT_SELECTOR},
    };

    check_admissions(rows, AS_ARRAY_SIZE(rows), "n1");
}

Test(node_fit, numbers)
{
    static const struct admission rows[] = {
        {"g=0206", "?g:gt:0204", AS_FITS},
        {"g=0204", "?g:gt:0204", AS_MISFIT_SELECTOR},
        {"g=204", "?g:gt:00204", AS_MISFIT_SELECTOR},
        {"g=10", "?g:gt:9", AS_FITS}, /* not as texts */
        {"g=0", "?g:gt:00", AS_MISFIT_SELECTOR},
        {"g=0203", "?g:lt:0204", AS_FITS},
        {"g=0204", "?g:lt:0204", AS_MISFIT_SELECTOR},
        {"g=9", "?g:lt:10", AS_FITS},
        {"", "?g:lt:10", AS_MISFIT_SELECTOR},
        {"", "?g:gt:10", AS_MISFIT_SELECTOR},
        {"g=x", "?g:gt:1", AS_MISFIT_SELECTOR},
        {"g=1.5", "?g:gt:1", AS_MISFIT_SELECTOR},
        {"g=", "?g:gt:1", AS_MISFIT_SELECTOR},
        {"g=9223372036854775807", "?g:gt:9223372036854775806", AS_FITS},
        {"g=9223372036854775808", "?g:gt:1", AS_MISFIT_SELECTOR},
        {"g=1", "?g:lt:9223372036854775808", AS_MISFIT_SELECTOR},
        {"g=1", "?g:gt:x", AS_MISFIT_SELECTOR},
    };

    check_admissions(rows, AS_ARRAY_SIZE(rows), "n1");
}

/* A term that the scheduler cannot read matches nothing, whatever its operators; others may. */
Test(node_fit, unreadable_terms)
{
    static const struct admission rows[] = {
        {"a=1", "?a:in", AS_MISFIT_SELECTOR},
        {"a=1", "?b:notin", AS_MISFIT_SELECTOR},
        {"a=1", "?a:exists:1", AS_MISFIT_SELECTOR},
        {"a=1", "?b:absent:1", AS_MISFIT_SELECTOR},
        {"a=5", "?a:gt:1,2", AS_MISFIT_SELECTOR},
        {"a=5", "?a:gt", AS_MISFIT_SELECTOR},
        {"a=5", "?a:gt:-1", AS_MISFIT_SELECTOR}, /* no label may have this value */
        {"a=1", "?b:notin:-x", AS_MISFIT_SELECTOR},
        {"a=1", "?b:notin:x-", AS_MISFIT_SELECTOR},
        {"a=1", "?b:notin:x_.-y", AS_FITS},
        {"a=1", "?b:notin:x/y", AS_MISFIT_SELECTOR},
        {"a=1", "?b:notin:012345678901234567890123456789012345678901234567890123456789012",
         AS_FITS},
        {"a=1", "?b:notin:0123456789012345678901234567890123456789012345678901234567890123",
         AS_MISFIT_SELECTOR},
        {"a=1", "?b:notin:-x ?a:in:1", AS_FITS},
    };

    check_admissions(rows, AS_ARRAY_SIZE(rows), "n1");
}

Test(node_fit, fields)
{
    static const struct admission rows[] = {
        {"", "?=metadata.name:in:n1", AS_FITS},
        {"", "?=metadata.name:in:n2", AS_MISFIT_SELECTOR},
        {"", "?=metadata.name:notin:n2", AS_FITS},
        {"", "?=metadata.name:notin:n1", AS_MISFIT_SELECTOR},
        {"a=1", "?a:in:1&=metadata.name:in:n1", AS_FITS},
        {"a=2", "?a:in:1&=metadata.name:in:n1", AS_MISFIT_SELECTOR},
        {"a=1", "?a:in:1&=metadata.name:in:n2", AS_MISFIT_SELECTOR},
        {"a=2", "?a:in:1 ?=metadata.name:in:n1", AS_FITS},
        {"", "?=metadata.name:in:n1,n2", AS_MISFIT_SELECTOR}, /* one value, no more */
        {"", "?=metadata.name:exists", AS_MISFIT_SELECTOR},
        {"", "?=metadata.name:gt:1", AS_MISFIT_SELECTOR},
        {"", "?=metadata.uid:notin:n2", AS_MISFIT_SELECTOR},
    };
    static const struct admission new_node[] = {
        {"", "?=metadata.name:in:n1", AS_MISFIT_SELECTOR},
        {"", "?=metadata.name:notin:n1", AS_MISFIT_SELECTOR},
        {"a=1", "?a:in:1", AS_FITS},
        {"a=1", "?a:in:1 ?=metadata.name:in:n1", AS_FITS},
    };

    check_admissions(rows, AS_ARRAY_SIZE(rows), "n1");
    check_admissions(new_node, AS_ARRAY_SIZE(new_node), NULL);
}

Test(node_fit, taints)
{
    static const struct admission rows[] = {
        {"!a=1/N", "", AS_MISFIT_TAINT},
        {"!a=1/X", "", AS_MISFIT_TAINT},
        {"!a=1/P", "", AS_FITS},
        {"!a=1/N", "~a=1/N", AS_FITS},
        {"!a=1/N", "~a=2/N", AS_MISFIT_TAINT},
        {"!a=1/N", "~b=1/N", AS_MISFIT_TAINT},
        {"!a=1/N", "~a=1/X", AS_MISFIT_TAINT},
        {"!a=1/N", "~a=1/", AS_FITS},
        {"!a=1/X", "~a=1/", AS_FITS},
        {"!a=1/N", "~a=1/PX", AS_MISFIT_TAINT},
        {"!a=1/N", "~a/N", AS_FITS},
        {"!a=1/N", "~b/N", AS_MISFIT_TAINT},
        {"!a=1/N", "~a/X", AS_MISFIT_TAINT},
        {"!a=1/N !b=2/X", "~/", AS_FITS},
        {"!a=1/N !b=2/X", "~/N", AS_MISFIT_TAINT},
        {"!a=1/N !b=2/X", "~/N ~b=2/X", AS_FITS},
        {"!a=1/N !b=2/N", "~a=1/N", AS_MISFIT_TAINT},
        {"!a/N", "~a=/N", AS_FITS},
        {"!a/N", "~a=1/N", AS_MISFIT_TAINT},
        {"!a=/N", "~=/N", AS_FITS}, /* every key, but only this value */
        {"!a=1/N", "~=/N", AS_MISFIT_TAINT},
        {"a=2 !a=1/N", "a=1", AS_MISFIT_SELECTOR}, /* labels come first */
    };

    check_admissions(rows, AS_ARRAY_SIZE(rows), "n1");
}

Test(node_fit, zones)
{
    static const struct admission rows[] = {
        {"topology.kubernetes.io/zone=a", "%a", AS_FITS},
        {"topology.kubernetes.io/zone=a", "%b", AS_MISFIT_ZONE},
        {"failure-domain.beta.kubernetes.io/zone=a", "%a", AS_FITS},
        {"topology.kubernetes.io/zone=b failure-domain.beta.kubernetes.io/zone=a", "%a",
         AS_MISFIT_ZONE},
        {"", "%a", AS_MISFIT_ZONE},
        {"!a=1/N", "%a", AS_MISFIT_TAINT},
    };

    check_admissions(rows, AS_ARRAY_SIZE(rows), "n1");
}

/* Pods as "3 x cpu:5"; guests are divided by '|'. */
struct room_row {
    const char *node, *guests, *pod;
    uint64_t wanted, count;
    enum as_misfit misfit;
};

static void check_rooms(const struct room_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct room_row *row = &rows[i];
        const struct as_node_fact node = nodes_text_read_node(&texts, "n1", row->node);
        struct as_node_room room = {.left = node.allocatable};
        char *rest = as_arena_strdup(&texts.arena, row->guests), *guest;
        enum as_misfit misfit = AS_MISFIT_COUNT;

        while ((guest = strsep(&rest, "|")) != NULL)
            if (*guest)
                as_node_room_take(&room, &texts.names, nodes_text_read_pod(&texts, guest), 1,
                                  &texts.arena);
        const struct as_pod_class *pod = nodes_text_read_pod(&texts, row->pod);
        const uint64_t fits = as_node_room_count(&room, &texts.names, pod, row->wanted, &misfit);

        cr_assert_eq(fits, row->count, "%s | %s: %zu", row->node, row->pod, (size_t)fits);
        cr_assert_eq(misfit, row->misfit, "%s | %s: %s", row->node, row->pod,
                     as_misfit_get_word(misfit));
        cr_assert_eq(as_node_room_count(&room, &texts.names, pod, row->wanted, NULL), fits);
    }
}

Test(node_fit, resources)
{
    static const struct room_row rows[] = {
        {"cpu:10 memory:20", "", "cpu:1 memory:1", 1, 1, AS_FITS},
        {"cpu:10 memory:20", "cpu:10 memory:20", "cpu:1 memory:1", 1, 0, AS_MISFIT_CPU},
        {"cpu:10 memory:20", "cpu:8 memory:19", "cpu:1 memory:2", 1, 0, AS_MISFIT_MEMORY},
        {"cpu:10 memory:20", "cpu:5 memory:5", "cpu:5 memory:15", 1, 1, AS_FITS},
        {"cpu:10 memory:20", "cpu:5 memory:5", "cpu:6 memory:16", 1, 0, AS_MISFIT_CPU},
        {"cpu:10 memory:20", "cpu:9 memory:5", "cpu:1", 1, 1, AS_FITS},
        /* what is not asked for never misses, also on a node with less than nothing of it */
        {"cpu:10 memory:20", "cpu:10 memory:20", "", 7, 7, AS_FITS},
        {"cpu:10 memory:20", "cpu:12 memory:25", "", 7, 7, AS_FITS},
        {"cpu:10 memory:20", "cpu:12", "memory:1", 1, 1, AS_FITS},
        {"cpu:10 memory:20", "cpu:12", "cpu:1", 1, 0, AS_MISFIT_CPU},
        /* but for its place */
        {"cpu:10 memory:20 pods:1", "", "", 2, 1, AS_MISFIT_PODS},
        {"cpu:10 memory:20 pods:1", "cpu:1", "", 2, 0, AS_MISFIT_PODS},
        {"cpu:10 memory:20 pods:0", "", "", 1, 0, AS_MISFIT_PODS},
        {"disk:10", "disk:4", "disk:6", 1, 1, AS_FITS},
        {"disk:10", "disk:5", "disk:6", 1, 0, AS_MISFIT_EPHEMERAL},
        {"gpu:2", "gpu:1", "gpu:1", 2, 1, AS_MISFIT_NAMED},
        {"cpu:10", "", "gpu:1", 1, 0, AS_MISFIT_NAMED},
        {"cpu:10", "", "gpu:0 cpu:1", 1, 1, AS_FITS},
        {"fpga:3 gpu:2", "", "fpga:1 gpu:1", 3, 2, AS_MISFIT_NAMED},
        /* by division, what misses is the first of the scarcest */
        {"cpu:10 memory:100", "", "cpu:3 memory:10", 100, 3, AS_MISFIT_CPU},
        {"cpu:100 memory:10", "", "cpu:3 memory:3", 100, 3, AS_MISFIT_MEMORY},
        {"cpu:9 memory:9", "", "cpu:3 memory:3", 100, 3, AS_MISFIT_CPU},
        {"cpu:9 memory:9", "", "cpu:3 memory:3", 3, 3, AS_FITS},
        {"cpu:9 memory:9", "", "cpu:3 memory:3", 0, 0, AS_FITS},
        {"cpu:100000 memory:9", "", "cpu:1", 1000, 110, AS_MISFIT_PODS},
    };

    check_rooms(rows, AS_ARRAY_SIZE(rows));
}

Test(node_fit, ports)
{
    static const struct room_row rows[] = {
        {"", "", "@TCP/0.0.0.0/80", 1, 1, AS_FITS},
        {"", "", "@TCP/0.0.0.0/80", 2, 1, AS_MISFIT_PORT},
        {"", "@UDP/127.0.0.1/80", "@UDP/127.0.0.1/90", 1, 1, AS_FITS},
        {"", "@UDP/127.0.0.1/80", "@UDP/127.0.0.1/80", 1, 0, AS_MISFIT_PORT},
        {"", "@TCP/127.0.0.1/80", "@TCP/127.0.0.2/80", 1, 1, AS_FITS},
        {"", "@UDP/127.0.0.1/80", "@TCP/127.0.0.1/80", 1, 1, AS_FITS},
        {"", "@TCP/0.0.0.0/80", "@TCP/127.0.0.1/80", 1, 0, AS_MISFIT_PORT},
        {"", "@TCP/127.0.0.1/80", "@TCP/0.0.0.0/80", 1, 0, AS_MISFIT_PORT},
        {"", "@UDP/127.0.0.1/80", "@TCP/0.0.0.0/80", 1, 1, AS_FITS},
        {"", "@TCP/0.0.0.0/80 @UDP/0.0.0.0/90", "@TCP/0.0.0.0/70 @UDP/1.1.1.1/90", 1, 0,
         AS_MISFIT_PORT},
        {"", "@TCP/0.0.0.0/0", "@TCP/0.0.0.0/0", 2, 2, AS_FITS}, /* 0 is no port */
        {"", "@TCP/127.0.0.1/80|cpu:0|@TCP/127.0.0.2/80", "@TCP/127.0.0.2/80", 1, 0,
         AS_MISFIT_PORT},
        {"cpu:1", "@TCP/0.0.0.0/80", "cpu:2 @TCP/0.0.0.0/80", 1, 0, AS_MISFIT_CPU},
    };

    check_rooms(rows, AS_ARRAY_SIZE(rows));
}

Test(node_fit, loners)
{
    static const struct room_row rows[] = {
        {"", "", "#7", 1, 1, AS_FITS},
        {"", "", "#7", 9, 1, AS_MISFIT_LONER},
        {"", "#7", "#7", 1, 0, AS_MISFIT_LONER},
        {"", "#6", "#7", 1, 1, AS_FITS},
        {"", "#7", "", 1, 1, AS_FITS},
        {"", "#7|@TCP/0.0.0.0/80", "#7 @TCP/0.0.0.0/80", 1, 0, AS_MISFIT_PORT},
        {"", "#1|#2|#3|#4|#5|#6", "#5", 1, 0,
         AS_MISFIT_LONER}, /* more guests than the first room */
        {"", "#1|#2|#3|#4|#5|#6", "#7", 1, 1, AS_FITS},
    };

    check_rooms(rows, AS_ARRAY_SIZE(rows));
}

Test(node_fit, taking)
{
    const struct as_node_fact node = nodes_text_read_node(&texts, "n1", "cpu:10 memory:100 gpu:4");
    const struct as_pod_class *pod = nodes_text_read_pod(&texts, "cpu:3 gpu:1 #1");
    struct as_node_room room = {.left = node.allocatable};

    as_node_room_take(&room, &texts.names, pod, 0, &texts.arena);
    cr_assert_eq(room.guest_count, 0);
    cr_assert_eq(room.left.amount[AS_RES_CPU], 10);
    as_node_room_take(&room, &texts.names, pod, 4, &texts.arena);
    as_node_room_take(&room, &texts.names, pod, 1, &texts.arena);
    cr_assert_eq(room.guest_count, 1); /* once, however often */
    cr_assert_eq(room.left.amount[AS_RES_CPU], -5);
    cr_assert_eq(room.left.amount[AS_RES_PODS], 105);
    cr_assert_eq(room.left.amount[AS_RES_NAMED], -1);
    as_node_room_take(&room, &texts.names, pod, UINT64_MAX, &texts.arena);
    cr_assert_eq(room.left.amount[AS_RES_CPU], -AS_RES_AMOUNT_MAX);
    cr_assert_eq(room.left.amount[AS_RES_MEMORY], 100);
}

Test(node_fit, amounts_saturate)
{
    const int64_t most = AS_RES_AMOUNT_MAX;

    cr_assert_eq(as_amount_add(1, 2, 3), 7);
    cr_assert_eq(as_amount_add(1, -2, 3), -5);
    cr_assert_eq(as_amount_add(most, 1, 1), most);
    cr_assert_eq(as_amount_add(most, most, 1), most);
    cr_assert_eq(as_amount_add(-most, -most, 1), -most);
    cr_assert_eq(as_amount_add(0, most, UINT64_MAX), most);
    cr_assert_eq(as_amount_add(5, -most, UINT64_MAX), -most);
    cr_assert_eq(as_amount_add(most, -most, 1), 0);
    cr_assert_eq(as_amount_add(5, 0, UINT64_MAX), 5);
}

Test(node_fit, words)
{
    for (int i = 0; i < AS_MISFIT_COUNT; i++)
        cr_assert_not_null(as_misfit_get_word((enum as_misfit)i));
}
