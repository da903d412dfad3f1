/*
 * The values of the source `nodes`: see the header.
 */
#include <alertscaler/cluster/nodes_seen.h>

#include <errno.h>

#define GET_WORD(enumerator, word) word,
const char *const as_nodes_words[] = {AS_NODES_WORDS(GET_WORD) NULL};

const char *as_nodes_word_get_text(enum as_nodes_word word)
{
    return word == AS_NODES_NONE ? NULL : as_nodes_words[word - 1];
}

/* Whether every open node, or the new node where there is none, says this resource. */
static bool is_known(const struct as_nodes_seen *seen, enum as_resource resource,
                     struct as_error *error)
{
    static const char *const words[AS_RESOURCE_COUNT] = {"cpu", "memory"};

    if (seen->lacking[resource])
        as_error_set(error, "node %s: allocatable %s is missing or 0", seen->lacking[resource],
                     words[resource]);
    else if (seen->allocatable[resource] <= 0)
        as_error_set(error,
                     seen->is_template ? "no node is open, and a new node would have no %s"
                                       : "the nodes have no allocatable %s",
                     words[resource]);
    else
        return true;
    return false;
}

/* The larger of cpu's and memory's, as Escalator has it. */
static int get_utilization(const struct as_nodes_seen *seen, double *value_out,
                           struct as_error *error)
{
    const bool is_none = seen->open == 0 && !seen->is_template;

    double largest = 0;
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++) {
        if (!is_none && !is_known(seen, i, error))
            return -ENODATA;
        const double percent =
            !is_none ? 100.0 * (double)seen->requests[i] / (double)seen->allocatable[i]
            : seen->requests[i] > 0 ? AS_NODES_UTILIZATION_MAX
                                    : 0;
        if (percent > largest)
            largest = percent;
    }
    *value_out = largest;
    return 0;
}

bool as_nodes_seen_is_made_up(const struct as_nodes_seen *seen, enum as_nodes_word word)
{
    return word == AS_NODES_UTILIZATION && !seen->error && seen->open == 0;
}

int as_nodes_seen_get(const struct as_nodes_seen *seen, enum as_nodes_word word, double *value_out,
                      struct as_error *error)
{
    if (seen->error) {
        as_error_set(error, "%s", seen->error);
        return -ENODATA;
    }
    switch (word) {
    case AS_NODES_UTILIZATION: return get_utilization(seen, value_out, error);
    case AS_NODES_COUNT: *value_out = (double)seen->open; return 0;
    case AS_NODES_CORES:
        if (seen->open > 0 && !is_known(seen, AS_RESOURCE_CPU, error))
            return -ENODATA;
        *value_out = seen->open > 0 ? (double)seen->allocatable[AS_RESOURCE_CPU] / 1000 : 0;
        return 0;
    case AS_NODES_NONE:
    case AS_NODES_WORD_COUNT: break;
    }
    as_error_set(error, "no such value of nodes");
    return -ENODATA;
}
