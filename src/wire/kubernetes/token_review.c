/*
 * TokenReview. Any deviation from the API is an error: this decides who gets access.
 */
#include <alertscaler/wire/token_review.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "kube_object.h"
#include "json/reader.h"

void as_token_review_encode(const char *token, const char *const *audiences, size_t audience_count,
                            struct as_buf *out)
{
    json_t *spec = json_pack("{s:s}", "token", token);
    if (audience_count > 0) {
        json_t *list = json_array();
        for (size_t i = 0; i < audience_count; i++)
            json_array_append_new(list, json_string(audiences[i]));
        json_object_set_new(spec, "audiences", list);
    }
    AS_CLEANUP(as_json_free_p)
    json_t *json = json_pack("{s:s, s:s, s:o}", "apiVersion", "authentication.k8s.io/v1", "kind",
                             "TokenReview", "spec", spec);
    as_json_dump(json, out);
}

static bool names_one(const json_t *list, const char *const *audiences, size_t count)
{
    size_t at;
    const json_t *item;
    json_array_foreach(list, at, item)
    {
        for (size_t i = 0; i < count; i++) {
            if (as_str_equal(json_string_value(item), audiences[i]))
                return true;
        }
    }
    return count == 0;
}

static int read_groups(const json_t *list, const char **groups, size_t *count_out)
{
    size_t at;
    const json_t *item;
    json_array_foreach(list, at, item)
    {
        if (!json_is_string(item))
            return -EBADMSG;
        groups[at] = json_string_value(item);
    }
    *count_out = json_array_size(list);
    return 0;
}

static int use_status(const json_t *status, as_reviewed_fn *use, void *context,
                      struct as_error *error)
{
    const json_t *user = json_object_get(status, "user");
    const json_t *list = json_object_get(user, "groups");
    struct as_reviewed reviewed = {.authenticated = true,
                                   .user = as_json_find_text(user, "username")};
    if (as_str_is_empty(reviewed.user)) {
        as_error_set(error, "status.user.username: expected a name");
        return -EBADMSG;
    }
    if (list && (!json_is_array(list) || json_array_size(list) > AS_REVIEW_GROUPS_MAX)) {
        as_error_set(error, "status.user.groups: expected a list of at most %d",
                     AS_REVIEW_GROUPS_MAX);
        return -EBADMSG;
    }
    AS_CLEANUP(as_free_p)
    const char **groups = as_xcalloc(json_array_size(list) + 1, sizeof(*groups));
    if (read_groups(list, groups, &reviewed.group_count) != 0) {
        as_error_set(error, "status.user.groups: expected texts");
        return -EBADMSG;
    }
    reviewed.groups = groups;
    use(context, &reviewed);
    return 0;
}

int as_token_review_decode(const char *json, size_t size, const char *const *audiences,
                           size_t audience_count, as_reviewed_fn *use, void *context,
                           struct as_error *error)
{
    AS_CLEANUP(as_json_free_p) json_t *object = NULL;
    const int code = kube_object_load(json, size, "TokenReview", &object, error);
    if (code != 0)
        return code;
    const json_t *status = json_object_get(object, "status");
    const json_t *authenticated = json_object_get(status, "authenticated");
    if (!json_is_object(status) || (authenticated && !json_is_boolean(authenticated))) {
        as_error_set(error, "status.authenticated: expected true or false");
        return -EBADMSG;
    }
    if (!json_is_true(authenticated)) { /* false is omitted */
        use(context, &(struct as_reviewed){.authenticated = false});
        return 0;
    }
    if (!names_one(json_object_get(status, "audiences"), audiences, audience_count)) {
        as_error_set(error, "status.audiences: none of those that were asked for");
        return -EBADMSG;
    }
    return use_status(status, use, context, error);
}
