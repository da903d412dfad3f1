/*
 * Copies of what an adapter has observed. A copy of containers is one block: the structs, then the
 * texts of their names. So an arena, a heap and a store can hold the block.
 */
#include <alertscaler/decide/observation.h>

#include <string.h>

size_t as_containers_get_size(const struct as_pod_seen *pod)
{
    size_t size = pod->container_count * sizeof(*pod->containers);
    for (size_t i = 0; i < pod->container_count; i++)
        size += strlen(pod->containers[i].name) + 1;
    return size;
}

const struct as_container_seen *as_containers_copy(const struct as_pod_seen *pod, void *memory)
{
    struct as_container_seen *copy = memory;
    char *text = (char *)memory + pod->container_count * sizeof(*copy);
    for (size_t i = 0; i < pod->container_count; i++) {
        const size_t size = strlen(pod->containers[i].name) + 1;
        copy[i] = pod->containers[i];
        copy[i].name = memcpy(text, pod->containers[i].name, size);
        text += size;
    }
    return pod->container_count > 0 ? copy : NULL;
}
