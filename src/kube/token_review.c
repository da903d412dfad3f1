/*
 * TokenReview. Any deviation from the API is an error: this decides who gets access.
 */
#include <alertscaler/kube/token_review.h>

#include <errno.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_object.h"

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

static bool names_one(const struct tree_value *list, const char *const *audiences, size_t count)
{
    for (const struct tree_value *item = tree_get_first(list); item; item = item->next) {
        for (size_t i = 0; i < count; i++) {
            if (as_str_equal(tree_get_text(item), audiences[i]))
                return true;
        }
    }
    return count == 0;
}

static int read_groups(const struct tree_value *list, const char **groups, size_t *count_out)
{
    size_t count = 0;
    for (const struct tree_value *item = tree_get_first(list); item; item = item->next) {
        if (item->kind != TREE_TEXT)
            return -EBADMSG;
        groups[count++] = item->text;
    }
    *count_out = count;
    return 0;
}

static int use_status(const struct tree_value *status, as_reviewed_fn *use, void *context,
                      struct as_error *error)
{
    const struct tree_value *user = tree_find(status, "user");
    const struct tree_value *list = tree_find(user, "groups");
    struct as_reviewed reviewed = {.authenticated = true, .user = tree_find_text(user, "username")};
    if (as_str_is_empty(reviewed.user)) {
        as_error_set(error, "status.user.username: expected a name");
        return -EBADMSG;
    }
    if (list && (list->kind != TREE_ARRAY || list->size > AS_REVIEW_GROUPS_MAX)) {
        as_error_set(error, "status.user.groups: expected a list of at most %d",
                     AS_REVIEW_GROUPS_MAX);
        return -EBADMSG;
    }
    AS_CLEANUP(as_free_p)
    const char **groups = as_xcalloc(list ? list->size + 1 : 1, sizeof(*groups));
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
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const int code = kube_object_load(&tree, json, size, "TokenReview", error);
    if (code != 0)
        return code;
    const struct tree_value *status = tree_find(tree.root, "status");
    const struct tree_value *authenticated = tree_find(status, "authenticated");
    if (!tree_is(status, TREE_OBJECT) || (authenticated && authenticated->kind != TREE_BOOLEAN)) {
        as_error_set(error, "status.authenticated: expected true or false");
        return -EBADMSG;
    }
    if (!tree_is_true(authenticated)) { /* false is omitted */
        use(context, &(struct as_reviewed){.authenticated = false});
        return 0;
    }
    if (!names_one(tree_find(status, "audiences"), audiences, audience_count)) {
        as_error_set(error, "status.audiences: none of those that were asked for");
        return -EBADMSG;
    }
    return use_status(status, use, context, error);
}
