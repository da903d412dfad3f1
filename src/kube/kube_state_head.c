/*
 * The head of the state in API objects: see kube_state.h. Each number is a text of its own, so that
 * kubectl shows it.
 */
#include <alertscaler/kube/kube_state.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define SEGMENTS_SIZE ((size_t)AS_KUBE_STATE_SLOTS_MAX * 32)

static struct as_kube_config_item make_number(const char *key, uint64_t number,
                                              struct as_arena *arena)
{
    char text[AS_NUMBER_SIZE];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return (struct as_kube_config_item){key, as_arena_strdup(arena, text), strlen(text)};
}

static struct as_kube_config_item make_text(const char *key, const char *text)
{
    return (struct as_kube_config_item){key, text, strlen(text)};
}

void as_kube_state_head_encode(const struct as_kube_state_head *head, struct as_arena *arena,
                               struct as_kube_config_item items_out[AS_KUBE_STATE_HEAD_ITEMS])
{
    char *segments = as_arena_alloc(arena, SEGMENTS_SIZE, 1);
    size_t size = 0;
    for (size_t i = 0; i < head->segment_count; i++)
        size += (size_t)snprintf(segments + size, SEGMENTS_SIZE - size, "%s%" PRIu32 ":%" PRIu64,
                                 i ? " " : "", head->segments[i].slot, head->segments[i].serial);
    const struct as_kube_config_item items[AS_KUBE_STATE_HEAD_ITEMS] = {
        make_number("epoch", head->epoch, arena),
        make_number("format", AS_KUBE_STATE_FORMAT, arena),
        make_text("holder", head->holder),
        {"journal", head->journal ? head->journal : "", head->journal_size},
        {"segments", segments, size},
        make_number("sequence", head->sequence, arena),
        make_number("serial", head->serial, arena),
        make_text("write", head->write),
    };
    memcpy(items_out, items, sizeof(items));
}

int as_kube_state_get_number(const struct as_kube_config_map *map, const char *key,
                             uint64_t *number_out, struct as_error *error)
{
    const struct as_kube_config_item *item = as_kube_config_map_find(map, key);
    int64_t number;
    if (!item || as_number_parse_i64(item->text, item->size, &number) < 0 || number < 0) {
        as_error_set(error, "data.%s: expected a number", key);
        return -EBADMSG;
    }
    *number_out = (uint64_t)number;
    return 0;
}

static int get_text(const struct as_kube_config_map *map, const char *key, char *text_out,
                    size_t size, struct as_error *error)
{
    const struct as_kube_config_item *item = as_kube_config_map_find(map, key);
    if (!item || item->size >= size) {
        as_error_set(error, "data.%s: %s", key, item ? "too long" : "missing");
        return -EBADMSG;
    }
    memcpy(text_out, item->text, item->size);
    text_out[item->size] = '\0';
    return 0;
}

/* "3:17": its length, 0 if it is no segment. */
static size_t parse_segment(const char *text, const char *end,
                            struct as_kube_state_segment *segment_out)
{
    const char *stop = memchr(text, ' ', (size_t)(end - text));
    int64_t slot, serial;
    if (!stop)
        stop = end;
    const char *colon = memchr(text, ':', (size_t)(stop - text));
    if (!colon || as_number_parse_i64(text, (size_t)(colon - text), &slot) < 0 ||
        as_number_parse_i64(colon + 1, (size_t)(stop - colon - 1), &serial) < 0 || slot < 0 ||
        slot >= AS_KUBE_STATE_SLOTS_MAX || serial < 0)
        return 0;
    *segment_out = (struct as_kube_state_segment){(uint32_t)slot, (uint64_t)serial};
    return (size_t)(stop - text);
}

static int get_segments(const struct as_kube_config_map *map, struct as_kube_state_head *head,
                        struct as_error *error)
{
    const struct as_kube_config_item *item = as_kube_config_map_find(map, "segments");
    const char *at = item ? item->text : NULL, *end = item ? at + item->size : NULL;
    bool used[AS_KUBE_STATE_SLOTS_MAX] = {false};
    size_t count = 0;
    bool is_good = item;
    while (is_good && at < end) {
        struct as_kube_state_segment segment;
        size_t size = parse_segment(at, end, &segment);
        is_good = size > 0 && count < AS_KUBE_STATE_SLOTS_MAX && !used[segment.slot] &&
                  segment.serial <= head->serial &&
                  (count == 0 || segment.serial > head->segments[count - 1].serial);
        if (!is_good)
            break;
        used[segment.slot] = true;
        head->segments[count++] = segment;
        at += size;
        if (at < end)
            at++;
    }
    if (!is_good) {
        as_error_set(error, "data.segments: expected a list of slots and serial numbers");
        return -EBADMSG;
    }
    head->segment_count = count;
    return 0;
}

int as_kube_state_head_decode(const struct as_kube_config_map *map,
                              struct as_kube_state_head *head_out, struct as_error *error)
{
    struct as_kube_state_head head = {0};
    uint64_t format;
    int status = as_kube_state_get_number(map, "format", &format, error);
    if (!status && format > AS_KUBE_STATE_FORMAT) {
        as_error_set(error,
                     "it is from a newer alertscaler (format %" PRIu64
                     ", this one knows %d): use that version",
                     format, AS_KUBE_STATE_FORMAT);
        return -EPROTO;
    }
    if (status || (status = as_kube_state_get_number(map, "epoch", &head.epoch, error)) ||
        (status = as_kube_state_get_number(map, "sequence", &head.sequence, error)) ||
        (status = as_kube_state_get_number(map, "serial", &head.serial, error)) ||
        (status = get_text(map, "holder", head.holder, sizeof(head.holder), error)) ||
        (status = get_text(map, "write", head.write, sizeof(head.write), error)) ||
        (status = get_segments(map, &head, error)))
        return status;
    const struct as_kube_config_item *journal = as_kube_config_map_find(map, "journal");
    if (!journal) {
        as_error_set(error, "data.journal: missing");
        return -EBADMSG;
    }
    head.journal = journal->text;
    head.journal_size = journal->size;
    *head_out = head;
    return 0;
}
