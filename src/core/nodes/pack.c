/*
 * Copying into one block: see the header.
 */
#include "pack.h"

#include <stdalign.h>
#include <string.h>

void *pack_take(struct pack *pack, size_t count, size_t size)
{
    const size_t align = alignof(int64_t);
    const size_t at = (pack->used + align - 1) / align * align;

    pack->used = at + count * size;
    return pack->base ? pack->base + at : NULL;
}

const char *pack_text(struct pack *pack, const char *text)
{
    if (!text)
        return NULL;
    const size_t size = strlen(text) + 1;
    char *copy = pack->base ? pack->base + pack->used : NULL;
    pack->used += size;
    return copy ? memcpy(copy, text, size) : NULL;
}

const struct as_taint *pack_taints(struct pack *pack, const struct as_taint *taints, size_t count)
{
    struct as_taint *copies = pack_take(pack, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_taint copy = taints[i];
        copy.key = pack_text(pack, copy.key);
        copy.value = pack_text(pack, copy.value);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_toleration *pack_tolerations(struct pack *pack,
                                             const struct as_toleration *tolerations, size_t count)
{
    struct as_toleration *copies = pack_take(pack, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_toleration copy = tolerations[i];
        copy.key = pack_text(pack, copy.key);
        copy.value = pack_text(pack, copy.value);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_host_port *pack_ports(struct pack *pack, const struct as_host_port *ports,
                                      size_t count)
{
    struct as_host_port *copies = pack_take(pack, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_host_port copy = ports[i];
        copy.ip = pack_text(pack, copy.ip);
        copy.protocol = pack_text(pack, copy.protocol);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static const char *const *pack_texts(struct pack *pack, const char *const *texts, size_t count)
{
    const char **copies = pack_take(pack, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        const char *copy = pack_text(pack, texts[i]);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_node_requirement *pack_requirements(struct pack *pack,
                                                    const struct as_node_requirement *requirements,
                                                    size_t count)
{
    struct as_node_requirement *copies = pack_take(pack, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_node_requirement copy = requirements[i];
        copy.key = pack_text(pack, copy.key);
        copy.values = pack_texts(pack, copy.values, copy.value_count);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

const struct as_node_term *pack_terms(struct pack *pack, const struct as_node_term *terms,
                                      size_t count)
{
    struct as_node_term *copies = pack_take(pack, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_node_term copy = terms[i];
        copy.requirements = pack_requirements(pack, copy.requirements, copy.count);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}
