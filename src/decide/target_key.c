/*
 * A target's key: the same text for all ids that lead to one object.
 *
 * The kind (decide/target_kind.h) knows how ids of one object differ. A text that is no id of any
 * kind is its own key.
 */
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>

char *as_target_key_make(const char *id)
{
    struct as_buf key = AS_BUF_INIT(SIZE_MAX / 2);
    const struct as_target_kind *kind = as_target_kind_find_of_id(id);
    size_t size, start = kind ? strlen(kind->word) + 1 : 0;
    as_buf_append(&key, id, start);
    if (!kind || !kind->append_key(id + start, &key)) {
        key.size = 0;
        as_buf_append_str(&key, id);
    }
    if (as_buf_check(&key) < 0)
        abort(); /* only if out of memory */
    return as_buf_take(&key, &size);
}

const char *as_target_id_get_end(const char *id)
{
    const struct as_target_kind *kind = as_target_kind_find_of_id(id);
    const char *rest = kind ? id + strlen(kind->word) + 1 : id;
    const char *end =
        kind && as_target_kind_has_sized(kind) ? rest + as_sized_find(rest) : rest + strlen(rest);
    while (end > id && end[-1] != '/')
        end--;
    return end;
}

bool as_target_is_same(const char *id, const char *other)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    AS_CLEANUP(as_free_p) char *key_of_other = as_target_key_make(other);
    return strcmp(key, key_of_other) == 0;
}
