/*
 * Admission of policies: reads the review, compares the old object with the new one, and writes the
 * judgement.
 *
 * A stranger may send any text. The text is parsed with a bounded number of values and levels, and
 * each object of it is compared in the time of a sort.
 */
#include <alertscaler/tools/admission_review.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/rules/policy.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/tools/lint.h>

#define TREE_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define UID_MAX        256
#define MESSAGE_BYTES  1024 /* of one error */
#define API_VERSION    "admission.k8s.io/v1"
#define REVIEW_KIND    "AdmissionReview"

const char *as_admission_outcome_get_word(enum as_admission_outcome outcome)
{
    static const char *const words[] = {
        [AS_ADMISSION_ALLOWED] = "allowed",
        [AS_ADMISSION_PASSED] = "passed",
        [AS_ADMISSION_DENIED] = "denied",
        [AS_ADMISSION_INVALID] = "invalid",
    };
    return words[outcome];
}

/*
 * Two values of a document.
 */

static bool value_is_same(const struct tree_value *a, const struct tree_value *b);

static int compare_member_names(const void *left, const void *right)
{
    const struct tree_value *const *a = left, *const *b = right;
    const size_t size = (*a)->name_size < (*b)->name_size ? (*a)->name_size : (*b)->name_size;
    const int order = memcmp((*a)->name, (*b)->name, size);
    return order != 0 ? order
                      : ((*a)->name_size > (*b)->name_size) - ((*a)->name_size < (*b)->name_size);
}

static const struct tree_value **sort_members(const struct tree_value *object)
{
    const struct tree_value **members = as_xcalloc(object->size + 1, sizeof(*members));
    size_t count = 0;
    for (const struct tree_value *member = object->first; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof(*members), compare_member_names);
    return members;
}

/* Members have no order. */
static bool object_is_same(const struct tree_value *a, const struct tree_value *b)
{
    AS_CLEANUP(as_free_p) const struct tree_value **left = sort_members(a);
    AS_CLEANUP(as_free_p) const struct tree_value **right = sort_members(b);
    for (size_t i = 0; i < a->size; i++)
        if (compare_member_names(&left[i], &right[i]) != 0 || !value_is_same(left[i], right[i]))
            return false;
    return true;
}

static bool array_is_same(const struct tree_value *a, const struct tree_value *b)
{
    const struct tree_value *right = b->first;
    for (const struct tree_value *left = a->first; left; left = left->next) {
        if (!value_is_same(left, right))
            return false;
        right = right->next;
    }
    return true;
}

static bool value_is_same(const struct tree_value *a, const struct tree_value *b)
{
    double left, right;
    if (a->kind != b->kind)
        return tree_get_double(a, &left) && tree_get_double(b, &right) && left == right;
    switch (a->kind) {
    case TREE_NULL: return true;
    case TREE_BOOLEAN: return a->boolean == b->boolean;
    case TREE_INTEGER: return a->integer == b->integer;
    case TREE_REAL: return a->real == b->real;
    case TREE_TEXT: return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
    case TREE_ARRAY: return a->size == b->size && array_is_same(a, b);
    case TREE_OBJECT: return a->size == b->size && object_is_same(a, b);
    }
    return false;
}

/*
 * The review.
 */

struct review { /* borrowed from the body and its tree */
    const char *uid;
    const struct tree_value *request;
    const char *operation;
    const char *object; /* its text */
    size_t object_size;
};

static bool text_is(const struct tree_value *object, const char *name, const char *expected)
{
    return as_str_equal(tree_find_text(object, name), expected);
}

static const char *get_word(const struct tree_value *object, const char *name)
{
    const char *text = tree_find_text(object, name);
    return text ? text : "";
}

/* 0, or -EINVAL with an error. */
static int review_check_kind(const struct tree_value *request, struct as_error *error)
{
    const struct tree_value *kind = tree_find(request, "kind");
    if (text_is(kind, "group", AS_POLICY_GROUP) && text_is(kind, "version", AS_POLICY_VERSION) &&
        text_is(kind, "kind", AS_POLICY_KIND))
        return 0;
    as_error_set(error,
                 "expected a " AS_POLICY_KIND " of " AS_POLICY_GROUP "/" AS_POLICY_VERSION
                 ", found `%.100s` of `%.100s/%.100s`",
                 get_word(kind, "kind"), get_word(kind, "group"), get_word(kind, "version"));
    return -EINVAL;
}

static int read_review(const struct tree_value *root, struct review *review, struct as_error *error)
{
    const struct tree_value *request = tree_find(root, "request");
    if (!text_is(root, "kind", REVIEW_KIND) || !text_is(root, "apiVersion", API_VERSION)) {
        as_error_set(error,
                     "expected an " REVIEW_KIND " of " API_VERSION ", found `%.100s` of `%.100s`",
                     get_word(root, "kind"), get_word(root, "apiVersion"));
        return -EINVAL;
    }
    if (!tree_is(request, TREE_OBJECT)) {
        as_error_set(error, "the review has no `request`");
        return -EINVAL;
    }
    review->request = request;
    review->uid = get_word(request, "uid");
    if (!*review->uid || strlen(review->uid) > UID_MAX) {
        as_error_set(error, "`request.uid` is missing, or has more than %d bytes", UID_MAX);
        return -EINVAL;
    }
    review->operation = get_word(request, "operation");
    if (!*review->operation) {
        as_error_set(error, "`request.operation` is missing");
        return -EINVAL;
    }
    return review_check_kind(request, error);
}

/* Whether the request needs no judgement. */
static bool review_is_passed(const struct review *review)
{
    const struct tree_value *request = review->request;
    const struct tree_value *object = tree_find(request, "object");
    const bool is_update = strcmp(review->operation, "UPDATE") == 0;
    if ((!is_update && strcmp(review->operation, "CREATE") != 0) ||
        *get_word(request, "subResource"))
        return true;
    if (*get_word(tree_find(object, "metadata"), "deletionTimestamp"))
        return true;
    const struct tree_value *spec = tree_find(object, "spec");
    const struct tree_value *old_spec = tree_find(tree_find(request, "oldObject"), "spec");
    return is_update && spec && old_spec && value_is_same(spec, old_spec);
}

/* The bytes of the object. The tree has shown that no name stands twice. */
static int find_object(const char *body, size_t size, struct review *review, struct as_error *error)
{
    const char *request;
    size_t request_size;
    if (json_scan_find_member(body, size, "request", &request, &request_size) &&
        json_scan_find_member(request, request_size, "object", &review->object,
                              &review->object_size))
        return 0;
    as_error_set(error, "`request.object` is missing, or the review has more than %d levels",
                 JSON_SCAN_DEPTH_MAX);
    return -EINVAL;
}

/*
 * The judgement.
 */

/* Warnings about what is valid, and does not do what it seems to do. */
static void review_lint(const struct as_settings *settings, const char *object, size_t size,
                        struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_ruleset_free_p) struct as_ruleset *ruleset = NULL;
    AS_CLEANUP(as_diagnostics_deinit) struct as_diagnostics known = AS_DIAGNOSTICS_INIT;
    struct as_settings own = *settings; /* its queries were judged */
    if (!own.prometheus.url)
        own.prometheus.url = "of tenants";
    if (as_policy_compile(&own, object, size, &ruleset, &known) == 0)
        as_lint_check_policy(&own, ruleset, object, size, diagnostics);
}

enum as_policy_reason as_admission_judge(const struct as_settings *settings, const char *object,
                                         size_t size, struct as_diagnostics *diagnostics)
{
    if (size > AS_POLICY_SIZE_MAX) {
        as_diagnostics_add(
            diagnostics,
            &(struct as_diagnostic){.file = "", .message = "the object is larger than 256 KiB"});
        return AS_POLICY_INVALID;
    }
    const enum as_policy_reason reason = as_policy_judge(settings, object, size, diagnostics);
    if (reason == AS_POLICY_READY || reason == AS_POLICY_SHADOW)
        review_lint(settings, object, size, diagnostics);
    return reason;
}

/* The text in one line, at most `max` bytes with the NUL. What could forge a line or change the
 * order of characters is replaced. */
static void print_text(const char *text, char *line_out, size_t max)
{
    static const char more[] = "...";
    size_t size = 0, kept = 0; /* kept: where there is room for `more` */
    for (const char *at = text; *at;) {
        const struct as_safe_char c = as_safe_char_read(at, strlen(at));
        const size_t add = c.is_unsafe ? 1 : c.size;
        if (size + add >= max) {
            memcpy(line_out + kept, more, sizeof(more));
            return;
        }
        memcpy(line_out + size, c.is_unsafe ? "?" : at, add);
        size += add;
        if (size + sizeof(more) <= max)
            kept = size;
        at += c.size;
    }
    line_out[size] = '\0';
}

/* "PATH: MESSAGE" */
static void print_line(const struct as_diagnostic *item, char *line_out, size_t max)
{
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("%s%s%s", item->file, *item->file ? ": " : "", item->message);
    print_text(text, line_out, max);
}

static void write_warnings(struct as_json_writer *json, const struct as_diagnostics *diagnostics)
{
    size_t count = 0;
    for (size_t i = 0; i < diagnostics->count && count < AS_ADMISSION_WARNINGS_MAX; i++) {
        char line[AS_ADMISSION_WARNING_BYTES + 1];
        if (diagnostics->items[i].severity != AS_SEVERITY_WARNING)
            continue;
        if (count++ == 0) {
            as_json_write_key(json, "warnings");
            as_json_begin_array(json);
        }
        print_line(&diagnostics->items[i], line, sizeof(line));
        as_json_write_string(json, line);
    }
    if (count > 0)
        as_json_end_array(json);
}

static void write_causes(struct as_json_writer *json, const struct as_diagnostics *diagnostics)
{
    size_t count = 0;
    as_json_write_key(json, "causes");
    as_json_begin_array(json);
    for (size_t i = 0; i < diagnostics->count && count < AS_POLICY_ERRORS_MAX; i++) {
        const struct as_diagnostic *item = &diagnostics->items[i];
        char message[MESSAGE_BYTES], field[MESSAGE_BYTES];
        if (item->severity != AS_SEVERITY_ERROR)
            continue;
        count++;
        print_text(item->message, message, sizeof(message));
        print_text(*item->file ? item->file : "spec", field, sizeof(field));
        as_json_begin_object(json);
        as_json_write_member(json, "reason", "FieldValueInvalid");
        as_json_write_member(json, "message", message);
        as_json_write_member(json, "field", field);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static size_t count_errors(const struct as_diagnostics *diagnostics)
{
    size_t count = diagnostics->more;
    for (size_t i = 0; i < diagnostics->count; i++)
        count += diagnostics->items[i].severity == AS_SEVERITY_ERROR;
    return count;
}

/* A line for each of the first errors. */
static void append_message(const struct as_diagnostics *diagnostics, struct as_buf *text)
{
    const size_t all = count_errors(diagnostics);
    size_t count = 0;
    for (size_t i = 0; i < diagnostics->count && count < AS_POLICY_ERRORS_MAX; i++) {
        char line[MESSAGE_BYTES];
        if (diagnostics->items[i].severity != AS_SEVERITY_ERROR)
            continue;
        print_line(&diagnostics->items[i], line, sizeof(line));
        as_buf_printf(text, "%s%s", count++ > 0 ? "\n" : "", line);
    }
    if (all > count)
        as_buf_printf(text, "\n... and %zu more errors", all - count);
    as_buf_append_char(text, '\0');
}

/* As the API server says it of a field that its schema refuses. */
static void review_write_status(struct as_json_writer *json, const struct review *review,
                                const struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_buf_deinit)
    struct as_buf message = AS_BUF_INIT((AS_POLICY_ERRORS_MAX + 1) * MESSAGE_BYTES);
    append_message(diagnostics, &message);
    as_json_write_key(json, "status");
    as_json_begin_object(json);
    as_json_write_member(json, "status", "Failure");
    as_json_write_member(json, "message", message.data);
    as_json_write_member(json, "reason", "Invalid");
    as_json_write_member_i64(json, "code", 422);
    as_json_write_key(json, "details");
    as_json_begin_object(json);
    as_json_write_member(json, "name", get_word(review->request, "name"));
    as_json_write_member(json, "group", AS_POLICY_GROUP);
    as_json_write_member(json, "kind", AS_POLICY_KIND);
    write_causes(json, diagnostics);
    as_json_end_object(json);
    as_json_end_object(json);
}

static void review_write_answer(const struct review *review, bool is_allowed,
                                const struct as_diagnostics *diagnostics, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", API_VERSION);
    as_json_write_member(&json, "kind", REVIEW_KIND);
    as_json_write_key(&json, "response");
    as_json_begin_object(&json);
    as_json_write_member(&json, "uid", review->uid);
    as_json_write_member_bool(&json, "allowed", is_allowed);
    if (!is_allowed)
        review_write_status(&json, review, diagnostics);
    write_warnings(&json, diagnostics);
    as_json_end_object(&json);
    as_json_end_object(&json);
}

enum as_admission_outcome as_admission_review(const struct as_settings *settings, const char *body,
                                              size_t size, struct as_buf *out,
                                              struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_BYTES_MAX);
    AS_CLEANUP(as_diagnostics_deinit) struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct review review = {0};
    if (tree_load_object(&tree, body, size, error) != 0 ||
        read_review(tree.root, &review, error) != 0)
        return AS_ADMISSION_INVALID;
    if (review_is_passed(&review)) {
        review_write_answer(&review, true, &diagnostics, out);
        return AS_ADMISSION_PASSED;
    }
    if (find_object(body, size, &review, error) != 0)
        return AS_ADMISSION_INVALID;
    const enum as_policy_reason reason =
        as_admission_judge(settings, review.object, review.object_size, &diagnostics);
    const bool is_allowed = reason == AS_POLICY_READY || reason == AS_POLICY_SHADOW;
    review_write_answer(&review, is_allowed, &diagnostics, out);
    return is_allowed ? AS_ADMISSION_ALLOWED : AS_ADMISSION_DENIED;
}
