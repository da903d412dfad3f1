/*
 * Fields of objects: see the header.
 *
 * A JSON Patch names elements of lists by their numbers. They are those of the object that was
 * read, and so the object's version is always a condition of the patch.
 */
#include <alertscaler/kube/kube_field.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/model/field_path.h>

#include "kube_object.h"

#define TREE_MAX    ((size_t)64 * 1024 * 1024) /* of an object's values in memory */
#define POINTER_MAX ((size_t)4 * AS_FIELD_PATH_MAX)
#define SHOWN_MAX   80  /* bytes of a value in an error's text */
#define MEMBERS_MAX 200 /* bytes of a list of members there */
#define TEXT_MAX    64  /* bytes of an amount; the API server writes about twenty */

/* Where a path leads in an object. */
struct found {
    const struct tree_value *value;  /* NULL: the member of the step `missing` is absent */
    const struct tree_value *around; /* the last object or list that is there */
    size_t missing;
    struct as_buf pointer; /* JSON Pointer of the value, or of the member that is absent */
};

#define FOUND_INIT ((struct found){.pointer = AS_BUF_INIT(POINTER_MAX)})

static void found_deinit(struct found *found)
{
    as_buf_deinit(&found->pointer);
}

/* "spec.template: ..." with the first `count` steps. */
static int fail_at(const struct as_field_path *path, size_t count, struct as_error *error,
                   const char *message)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(POINTER_MAX);
    as_field_path_print(path, count, &text);
    as_error_set(error, "%s: %s", text.size ? text.data : "the object", message);
    return -EBADMSG;
}

static void append_pointer(struct as_buf *out, const char *name)
{
    as_buf_append_char(out, '/');
    for (const char *c = name; *c; c++) {
        if (*c == '~' || *c == '/')
            as_buf_append_str(out, *c == '~' ? "~0" : "~1");
        else
            as_buf_append_char(out, *c);
    }
}

static void print_integer(const struct tree_value *value, char text_out[AS_NUMBER_SIZE])
{
    (void)as_number_print_i64(value->integer, text_out);
}

/* "it has a, b", of an object's members or of what an element may be selected by. */
static void list_present(const struct tree_value *around, const struct as_field_step *step,
                         struct as_buf *out)
{
    const char *before = "";
    for (const struct tree_value *child = around->first; child; child = child->next) {
        const char *name = step->value   ? tree_find_text(child, step->name)
                           : child->name ? child->name
                                         : "";
        if (!name || out->size + strlen(name) > MEMBERS_MAX)
            continue;
        as_buf_printf(out, "%s%s", before, name);
        before = ", ";
    }
}

static int fail_absent(const struct as_field_path *path, const struct found *found,
                       struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf present = AS_BUF_INIT(2 * MEMBERS_MAX);
    const struct as_field_step *step = &path->steps[found->missing];
    char message[AS_ERROR_SIZE], shown[2 * MEMBERS_MAX];
    list_present(found->around, step, &present);
    as_str_copy_line(present.data ? present.data : "", shown, sizeof(shown));
    if (step->value)
        snprintf(message, sizeof(message), "no element has this %.80s; there is: %s", step->name,
                 *shown ? shown : "none");
    else
        snprintf(message, sizeof(message), "absent; %s: %s",
                 found->missing ? "there is" : "the object has", *shown ? shown : "nothing");
    return fail_at(path, found->missing + 1, error, message);
}

static int find_element(const struct as_field_path *path, size_t at, struct found *found,
                        struct as_error *error)
{
    const struct as_field_step *step = &path->steps[at];
    const struct tree_value *element = NULL;
    size_t index = 0, chosen = 0, kube_field_count = 0;
    char number[AS_NUMBER_SIZE], message[64];
    if (found->around->kind != TREE_ARRAY)
        return fail_at(path, at, error, "expected a list");
    for (const struct tree_value *child = found->around->first; child; child = child->next) {
        if (kube_element_is(child, step)) {
            element = child;
            chosen = index;
            kube_field_count++;
        }
        index++;
    }
    if (kube_field_count > 1) {
        snprintf(message, sizeof(message), "%zu elements have this value, expected one",
                 kube_field_count);
        return fail_at(path, at + 1, error, message);
    }
    found->value = element;
    if (!element)
        return fail_absent(path, found, error);
    (void)as_number_print_i64((int64_t)chosen, number);
    append_pointer(&found->pointer, number);
    return 0;
}

static int find_member(const struct as_field_path *path, size_t at, struct found *found,
                       struct as_error *error)
{
    const char *name = path->steps[at].name;
    if (found->around->kind != TREE_OBJECT)
        return fail_at(path, at, error,
                       found->around->kind == TREE_ARRAY
                           ? "a list; an element is selected by a member, like [name=app]"
                           : "expected an object");
    found->value = tree_find(found->around, name);
    append_pointer(&found->pointer, name);
    if (tree_is(found->value, TREE_NULL))
        found->value = NULL;
    return 0;
}

static int kube_field_find(const struct tree_value *object, const struct as_field_path *path,
                           struct found *found, struct as_error *error)
{
    found->value = object;
    for (size_t i = 0; i < path->count && found->value; i++) {
        found->around = found->value;
        found->missing = i;
        const int status = path->steps[i].value ? find_element(path, i, found, error)
                                                : find_member(path, i, found, error);
        if (status)
            return status;
    }
    if (as_buf_check(&found->pointer) < 0)
        return fail_at(path, path->count, error, "too long for a JSON Pointer");
    return 0;
}

/* --- values --- */

/* The number as text. False: neither an integer nor text. */
static bool kube_field_get_amount(const struct tree_value *value, char text_out[AS_NUMBER_SIZE],
                                  const char **amount_out)
{
    *amount_out = text_out;
    if (value->kind == TREE_INTEGER)
        print_integer(value, text_out);
    else
        *amount_out = tree_get_text(value);
    return *amount_out != NULL;
}

static void kube_field_describe(const struct tree_value *value, char text_out[SHOWN_MAX])
{
    static const char *const kinds[] = {
        [TREE_NULL] = "null",
        [TREE_BOOLEAN] = "true or false",
        [TREE_REAL] = "a number with a fraction or too many digits",
        [TREE_ARRAY] = "a list",
        [TREE_OBJECT] = "an object",
    };
    char number[AS_NUMBER_SIZE], line[SHOWN_MAX - 8];
    const char *amount;
    if (kube_field_get_amount(value, number, &amount)) {
        as_str_copy_line(amount, line, sizeof(line));
        snprintf(text_out, SHOWN_MAX, "\"%s\"", line);
    } else {
        snprintf(text_out, SHOWN_MAX, "%s", kinds[value->kind]);
    }
}

/* The value's size in the unit. */
static int kube_field_count(const struct as_field_path *path, const struct tree_value *value,
                            const struct as_unit *unit, int32_t *size_out, struct as_error *error)
{
    char number[AS_NUMBER_SIZE], shown[SHOWN_MAX], message[AS_ERROR_SIZE];
    const char *amount;
    const bool has_unit = !as_unit_is_none(unit);
    int32_t of_one;
    int status = -EINVAL;
    if (kube_field_get_amount(value, number, &amount) && strlen(amount) <= TEXT_MAX)
        status = as_unit_count(unit, amount, strlen(amount), size_out);
    if (status == 0)
        return 0;
    kube_field_describe(value, shown);
    if (status == -ERANGE)
        snprintf(message, sizeof(message), "expected a size from 0 to 2147483647%s%s, found %s",
                 has_unit ? " in units of " : "", unit->text, shown);
    else
        snprintf(message, sizeof(message), "expected %s, found %s%s",
                 has_unit ? "an integer or a quantity" : "an integer", shown,
                 !has_unit && amount &&
                         as_unit_count(&(struct as_unit){.text = "1", .amount = 1}, amount,
                                       strlen(amount), &of_one) != -EINVAL
                     ? ": for quantities the target needs a `unit`"
                     : "");
    return fail_at(path, path->count, error, message);
}

/* --- reading --- */

static int kube_field_read_size(const struct tree_value *object, const struct as_sized *sized,
                                int32_t *size_out, struct as_error *error)
{
    struct as_field_path path;
    AS_CLEANUP(found_deinit) struct found found = FOUND_INIT;
    if (as_field_path_parse(sized->field, &path, error) ||
        kube_field_find(object, &path, &found, error))
        return -EBADMSG;
    if (found.value)
        return kube_field_count(&path, found.value, &sized->unit, size_out, error);
    if (sized->absent < 0)
        return fail_absent(&path, &found, error);
    *size_out = sized->absent;
    return 0;
}

static int kube_field_read_status(const struct tree_value *object, const struct as_sized *sized,
                                  int32_t *size_out, struct as_error *error)
{
    struct as_field_path path;
    AS_CLEANUP(found_deinit) struct found found = FOUND_INIT;
    if (as_field_path_parse(sized->status_field, &path, error) ||
        kube_field_find(object, &path, &found, error))
        return -EBADMSG;
    *size_out = 0;
    return found.value ? kube_field_count(&path, found.value, &sized->unit, size_out, error) : 0;
}

static int kube_field_load(struct tree *tree, const char *json, size_t size, const char *kind,
                           struct as_kube_scale *scale, struct as_error *error)
{
    struct as_reader root, metadata;
    const int status = kube_object_load(tree, json, size, kind, error);
    if (status)
        return status;
    as_read_lenient(&root, tree->root, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_copy(&metadata, "uid", scale->uid, sizeof(scale->uid));
    kube_object_read_version(&metadata, scale->resource_version, sizeof(scale->resource_version));
    return as_read_result(&root);
}

int as_kube_field_decode(const char *json, size_t size, const char *kind,
                         const struct as_sized *sized, struct as_kube_scale *scale_out,
                         struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_MAX);
    struct as_kube_scale scale = {.replicas = 0};
    int status = kube_field_load(&tree, json, size, kind, &scale, error);
    if (status || (status = kube_field_read_size(tree.root, sized, &scale.replicas, error)))
        return status;
    scale.status_replicas = scale.replicas;
    if (*sized->status_field &&
        (status = kube_field_read_status(tree.root, sized, &scale.status_replicas, error)))
        return status;
    *scale_out = scale;
    return 0;
}

/* --- the patch --- */

static void begin_operation(struct as_json_writer *json, const char *operation, const char *pointer)
{
    as_json_begin_object(json);
    as_json_write_member(json, "op", operation);
    as_json_write_member(json, "path", pointer);
    as_json_write_key(json, "value");
}

static void write_old(struct as_json_writer *json, const struct tree_value *value)
{
    if (value->kind == TREE_INTEGER)
        as_json_write_i64(json, value->integer);
    else
        as_json_write_string_size(json, value->text, value->size);
}

/* Where every value is text: metadata, and the data of a ConfigMap. */
static bool is_of_texts(const struct as_field_path *path)
{
    return strcmp(path->steps[0].name, "metadata") == 0 || strcmp(path->steps[0].name, "data") == 0;
}

/* In the form of the old value; a quantity with a suffix is always text. */
static void write_new(struct as_json_writer *json, const struct as_field_path *path,
                      const struct tree_value *old, const struct as_sized *sized, int32_t to)
{
    char amount[AS_AMOUNT_SIZE];
    int64_t number;
    as_unit_print(&sized->unit, to, amount);
    const bool is_text = old ? old->kind == TREE_TEXT : is_of_texts(path);
    if (!is_text && as_number_parse_i64(amount, strlen(amount), &number) == 0)
        as_json_write_i64(json, number);
    else
        as_json_write_string(json, amount);
}

/* The members behind the absent one stand in new objects. */
static int write_added(struct as_json_writer *json, const struct as_field_path *path,
                       size_t missing, const struct as_sized *sized, int32_t to,
                       struct as_error *error)
{
    size_t depth = 0;
    for (size_t i = missing + 1; i < path->count; i++) {
        if (path->steps[i].value)
            return fail_at(path, i + 1, error, "absent, and no element is made");
        if (json->depth + 2 >= AS_JSON_DEPTH_MAX)
            return fail_at(path, i, error, "too many objects are absent");
        as_json_begin_object(json);
        as_json_write_key(json, path->steps[i].name);
        depth++;
    }
    write_new(json, path, NULL, sized, to);
    while (depth-- > 0)
        as_json_end_object(json);
    return 0;
}

static int write_patch(struct as_json_writer *json, const struct as_field_path *path,
                       const struct found *found, const struct as_sized *sized, int32_t to,
                       const char *version, struct as_error *error)
{
    int status = 0;
    as_json_begin_array(json);
    if (found->value) {
        begin_operation(json, "test", found->pointer.data);
        write_old(json, found->value);
        as_json_end_object(json);
    }
    begin_operation(json, "replace", "/metadata/resourceVersion");
    as_json_write_string(json, version);
    as_json_end_object(json);
    begin_operation(json, found->value ? "replace" : "add", found->pointer.data);
    if (found->value)
        write_new(json, path, found->value, sized, to);
    else
        status = write_added(json, path, found->missing, sized, to, error);
    if (status)
        return status;
    as_json_end_object(json);
    as_json_end_array(json);
    return 0;
}

int as_kube_field_encode_patch(const char *json, size_t size, const char *kind,
                               const struct as_sized *sized, int32_t to, struct as_buf *out,
                               struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_MAX);
    AS_CLEANUP(found_deinit) struct found found = FOUND_INIT;
    struct as_kube_scale scale = {.replicas = 0};
    struct as_field_path path;
    struct as_json_writer writer;
    int32_t present = 0;
    int status = kube_field_load(&tree, json, size, kind, &scale, error);
    if (status || (status = kube_field_read_size(tree.root, sized, &present, error)))
        return status;
    if (to < present && strcmp(kind, AS_SIZED_ONLY_UP_KIND) == 0) {
        as_error_set(error, "a PersistentVolumeClaim never shrinks");
        return -EBADMSG;
    }
    if (as_field_path_parse(sized->field, &path, error) ||
        kube_field_find(tree.root, &path, &found, error))
        return -EBADMSG;
    as_json_init(&writer, out, 0);
    return write_patch(&writer, &path, &found, sized, to, scale.resource_version, error);
}
