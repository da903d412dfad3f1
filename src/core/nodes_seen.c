#include <alertscaler/core/nodes_seen.h>

#define GET_WORD(enumerator, word) word,
const char *const as_nodes_words[] = {AS_NODES_WORDS(GET_WORD) NULL};

const char *as_nodes_word_get_text(enum as_nodes_word word)
{
    return word == AS_NODES_NONE ? NULL : as_nodes_words[word - 1];
}

/* The larger of cpu's and memory's, as Escalator has it. */
static const char *get_utilization(const struct as_nodes_seen *seen, double *value_out)
{
    double largest = 0;
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++) {
        const double requests = (double)seen->requests[i];
        double value = requests > 0 ? AS_NODES_UTILIZATION_MAX : 0;
        if (seen->allocatable[i] > 0)
            value = 100 * requests / (double)seen->allocatable[i];
        else if (seen->open > 0 || seen->is_template)
            return i == AS_RESOURCE_CPU ? "the nodes have no allocatable cpu"
                                        : "the nodes have no allocatable memory";
        if (value > largest)
            largest = value;
    }
    *value_out = largest;
    return NULL;
}

const char *as_nodes_seen_get(const struct as_nodes_seen *seen, enum as_nodes_word word,
                              double *value_out)
{
    if (seen->error)
        return seen->error;
    switch (word) {
    case AS_NODES_UTILIZATION: return get_utilization(seen, value_out);
    case AS_NODES_COUNT: *value_out = (double)seen->open; return NULL;
    case AS_NODES_CORES:
        *value_out = seen->is_template ? 0 : (double)seen->allocatable[AS_RESOURCE_CPU] / 1000;
        return NULL;
    case AS_NODES_NONE:
    case AS_NODES_WORD_COUNT: break;
    }
    return "no such value of nodes";
}
