/*
 * Which pods fit on which nodes, for tests/integration/test_scheduler_agrees.py; driver.h says how
 * it is talked to, tests/support/nodes_text.h has the words.
 *
 *   {"ticket": 1, "op": "node", "name": "n1", "words": "cpu:1000 pods:10 zone=a"}
 *   {"ticket": 2, "op": "ask", "words": "cpu:100"}          verdicts: {"n1": "fits"}
 *   {"ticket": 3, "op": "place", "words": "cpu:100", "name": "n1"}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cluster/node_fit.h>

#include "../support/nodes_text.h"
#include "driver.h"

#define NODES_MAX 256

static struct nodes_text texts;
static struct node {
    const char *name;
    struct as_node_shape shape;
    struct as_node_room room;
} nodes[NODES_MAX];
static size_t node_count;

static void add_node(const char *name, const char *words)
{
    const struct as_node_fact fact = nodes_text_read_node(&texts, name, words);
    struct node *node = &nodes[node_count++];

    if (node_count == NODES_MAX)
        abort();
    node->name = fact.name;
    node->shape = nodes_text_get_shape(&fact, fact.name);
    node->room = (struct as_node_room){.left = fact.allocatable};
}

static enum as_misfit get_verdict(const struct node *node, const struct as_pod_class *pod)
{
    enum as_misfit misfit = as_node_admits(&node->shape, pod);

    if (misfit == AS_FITS && (as_node_room_count(&node->room, &texts.names, pod, 1, &misfit) ==
                              1) != (misfit == AS_FITS))
        abort(); /* the count and the reason contradict each other */
    return misfit;
}

static json_t *get_verdicts(const struct as_pod_class *pod)
{
    json_t *verdicts = json_object();

    for (size_t i = 0; i < node_count; i++)
        json_object_set_new(verdicts, nodes[i].name,
                            json_string(as_misfit_get_word(get_verdict(&nodes[i], pod))));
    return verdicts;
}

static void place(const char *name, const struct as_pod_class *pod)
{
    for (size_t i = 0; i < node_count; i++)
        if (strcmp(nodes[i].name, name) == 0)
            as_node_room_take(&nodes[i].room, &texts.names, pod, 1, &texts.arena);
}

static void carry_out(const json_t *command)
{
    const char *op = driver_get_text(command, "op"), *name = driver_get_text(command, "name");
    const char *words = driver_get_text(command, "words");
    json_t *answer = json_pack("{s:O}", "ticket", json_object_get(command, "ticket"));

    if (strcmp(op, "node") == 0)
        add_node(name, words);
    else if (strcmp(op, "ask") == 0)
        json_object_set_new(answer, "verdicts", get_verdicts(nodes_text_read_pod(&texts, words)));
    else if (strcmp(op, "place") == 0)
        place(name, nodes_text_read_pod(&texts, words));
    else
        abort();
    driver_answer(answer);
}

int main(void)
{
    nodes_text_init(&texts);
    driver_open();
    driver_run(carry_out);
    driver_close();
    nodes_text_deinit(&texts);
    return 0;
}
