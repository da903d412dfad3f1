/*
 * Copying into one block: see the header.
 */
#include "fact_block.h"

#include <stdalign.h>
#include <string.h>

void *fact_block_take(struct fact_block *block, size_t count, size_t size)
{
    const size_t align = alignof(int64_t);
    const size_t at = (block->used + align - 1) / align * align;

    block->used = at + count * size;
    return block->base ? block->base + at : NULL;
}

const char *fact_block_text(struct fact_block *block, const char *text)
{
    if (!text)
        return NULL;
    const size_t size = strlen(text) + 1;
    char *copy = block->base ? block->base + block->used : NULL;
    block->used += size;
    return copy ? memcpy(copy, text, size) : NULL;
}

const struct as_taint *fact_block_taints(struct fact_block *block, const struct as_taint *taints,
                                         size_t count)
{
    struct as_taint *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_taint copy = taints[i];
        copy.key = fact_block_text(block, copy.key);
        copy.value = fact_block_text(block, copy.value);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_toleration *fact_block_tolerations(struct fact_block *block,
                                                   const struct as_toleration *tolerations,
                                                   size_t count)
{
    struct as_toleration *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_toleration copy = tolerations[i];
        copy.key = fact_block_text(block, copy.key);
        copy.value = fact_block_text(block, copy.value);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_host_port *fact_block_ports(struct fact_block *block,
                                            const struct as_host_port *ports, size_t count)
{
    struct as_host_port *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_host_port copy = ports[i];
        copy.ip = fact_block_text(block, copy.ip);
        copy.protocol = fact_block_text(block, copy.protocol);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static const char *const *fact_block_texts(struct fact_block *block, const char *const *texts,
                                           size_t count)
{
    const char **copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        const char *copy = fact_block_text(block, texts[i]);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_node_requirement *fact_block_requirements(
    struct fact_block *block, const struct as_node_requirement *requirements, size_t count)
{
    struct as_node_requirement *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_node_requirement copy = requirements[i];
        copy.key = fact_block_text(block, copy.key);
        copy.values = fact_block_texts(block, copy.values, copy.value_count);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_node_term *fact_block_terms(struct fact_block *block,
                                            const struct as_node_term *terms, size_t count)
{
    struct as_node_term *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_node_term copy = terms[i];
        copy.requirements = fact_block_requirements(block, copy.requirements, copy.count);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}
