/*
 * From a target's configuration and an alert to one address. Labels are untrusted input: the result
 * is checked completely here, before it is used in a URL, a lock or a log.
 *
 * In a `url`, an alert may contribute only [A-Za-z0-9._-], only after the host, and no path segment
 * of dots; so scheme, host and the author's path stay as written. Other values are checked after
 * the templates are filled in.
 */
#include <alertscaler/core/target.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/core/scope.h>
#include <alertscaler/core/sized.h>

#include "kind/values.h"
#include "match/template_parts.h"

#define SHOWN_MAX 80 /* bytes of a refused value in an error's text */
#define URL_CHARACTERS                                                                             \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-" /* from alerts */

static int refuse(struct as_error *error, const char *key, const char *value, const char *why)
{
    size_t size = strlen(value), shown = as_str_cut_utf8(value, size, SHOWN_MAX);

    as_error_set(error, "%s \"%.*s%s\": %s", key, (int)shown, value, shown < size ? "..." : "",
                 why);
    return AS_TARGET_NOT_ALLOWED;
}

/* After "scheme://host" comes a '/' or '?': from there an alert may contribute. */
static bool has_host(const char *url)
{
    const char *authority = strstr(url, "://");

    if (!authority || authority == url)
        return false;
    authority += 3;
    size_t size = strcspn(authority, "/?#\\");
    return size > 0 && (authority[size] == '/' || authority[size] == '?');
}

static bool has_dot_segment(const char *url)
{
    const char *at = strstr(url, "://");

    for (at = at ? at + 3 : url; *at && *at != '?' && *at != '#';) {
        size_t size = strcspn(at, "/?#");
        if ((size == 1 && at[0] == '.') || (size == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at += size + (at[size] == '/');
    }
    return false;
}

/* Checks what the alert adds to a templated url; `url` is the result. */
static int check_url(const struct as_template *template, const char *url,
                     const struct as_labels *labels, const struct as_labels *annotations,
                     struct as_error *error)
{
    for (size_t i = 0; i < template->part_count; i++) {
        const struct template_part *part = &template->parts[i];
        const char *value = template_part_get(part, labels, annotations);
        if (part->kind == TEMPLATE_TEXT)
            continue;
        if (i == 0 || !has_host(template->parts[0].text))
            return refuse(error, "url", template->text,
                          "a template may stand only behind the host");
        for (const char *c = value; *c; c++) {
            if (!strchr(URL_CHARACTERS, *c))
                return refuse(error, part->text, value,
                              "only letters, digits, '.', '_' and '-' may go into a url");
        }
    }
    if (has_dot_segment(url))
        return refuse(error, "url", url, "a path segment of dots");
    return AS_TARGET_OK;
}

const char *as_target_check_value(const struct as_target_kind *kind, const char *key,
                                  const char *value)
{
    const struct as_address_key *row = as_target_kind_find_key(kind, key);
    return row && !row->is_valid(value) ? row->expected : NULL;
}

/* Appends the value with its NUL. */
static int resolve_field(const struct as_target_config *config,
                         const struct as_address_field *field, const struct as_labels *labels,
                         const struct as_labels *annotations, struct as_buf *out,
                         struct as_error *error)
{
    const char *expected = NULL;
    struct as_buf value = AS_BUF_INIT(AS_TARGET_ID_MAX - 1);
    int status = AS_TARGET_NOT_ALLOWED;

    if (as_template_expand(field->value, labels, annotations, &value, error) < 0)
        as_error_wrap(error, "%s", field->key);
    else if (value.size == 0)
        refuse(error, field->key, "", "empty");
    else if ((expected = as_target_check_value(config->kind, field->key, value.data)))
        refuse(error, field->key, value.data, expected);
    else if (strcmp(field->key, "url") == 0 && !as_template_is_plain(field->value))
        status = check_url(field->value, value.data, labels, annotations, error);
    else
        status = AS_TARGET_OK;
    if (status == AS_TARGET_OK)
        as_buf_append(out, value.data, value.size + 1);
    as_buf_deinit(&value);
    return status;
}

static const char *find_field(const struct as_target_ref *ref, const char *key)
{
    for (size_t i = 0; i < ref->field_count; i++) {
        if (strcmp(ref->fields[i].key, key) == 0)
            return ref->fields[i].value;
    }
    return NULL;
}

/* A missing list restricts nothing. */
static bool is_allowed(char *const *globs, size_t count, const char *value)
{
    for (size_t i = 0; i < count; i++) {
        if (as_str_glob(globs[i], value))
            return true;
    }
    return count == 0;
}

static const char *get_name(const struct as_target_ref *ref)
{
    const char *name = find_field(ref, "name");

    return name ? name : as_target_ref_get(ref, "url");
}

/* `allow` limits namespaces only for kinds that have a key for them. */
static size_t count_namespace_globs(const struct as_target_config *config)
{
    return as_target_kind_has_key(config->kind, "namespace") ? config->allow_namespace_count : 0;
}

static int check_allow(const struct as_target_config *config, const struct as_target_ref *ref,
                       struct as_error *error)
{
    const char *name = get_name(ref), *namespace = as_target_ref_get(ref, "namespace");

    if (!is_allowed(config->allow_namespaces, count_namespace_globs(config), namespace))
        return refuse(error, "namespace", namespace, "not among the allowed namespaces");
    if (!is_allowed(config->allow_names, config->allow_name_count, name))
        return refuse(error, "name", name, "not among the allowed names");
    return AS_TARGET_OK;
}

/* Without `allow`, a template's result must never be used: config refuses such a target, and this
 * check is independent of it. */
static bool is_unrestricted(const struct as_target_config *config)
{
    return config->is_templated && config->allow_name_count == 0 &&
           count_namespace_globs(config) == 0;
}

bool as_target_allows(const struct as_target_config *config, const struct as_target_ref *ref)
{
    const char *name = get_name(ref), *namespace = as_target_ref_get(ref, "namespace");

    return name && !is_unrestricted(config) &&
           is_allowed(config->allow_namespaces, count_namespace_globs(config), namespace) &&
           is_allowed(config->allow_names, config->allow_name_count, name);
}

/* "*" if a template gives it. */
static const char *find_plain_value(const struct as_target_config *config, const char *key)
{
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_template *value = config->address[i].value;
        if (strcmp(config->address[i].key, key) == 0)
            return as_template_is_plain(value) ? as_template_get_text(value) : "*";
    }
    return NULL;
}

static const char *find_value(const struct as_target_config *config,
                              const struct as_target_ref *ref, const char *key)
{
    return ref ? find_field(ref, key) : find_plain_value(config, key);
}

static void append_part(struct as_buf *out, const char *part)
{
    as_buf_append_char(out, '/');
    as_buf_append_str(out, part ? part : "");
}

static void append_place(const struct as_target_config *config, const struct as_target_ref *ref,
                         struct as_buf *out)
{
    for (unsigned rank = 1; rank <= AS_PLACE_RANK_MAX; rank++) {
        for (size_t i = 0; i < config->address_count; i++) {
            if (config->address[i].place == rank)
                append_part(out, find_value(config, ref, config->address[i].key));
        }
    }
}

/* ":field/spec.minReplicas"; nothing for the scale. */
static void append_sized(const struct as_target_config *config, const struct as_target_ref *ref,
                         struct as_buf *out)
{
    for (const struct as_sized_kind *kind = as_sized_kinds; kind->word; kind++) {
        if (!find_value(config, ref, kind->keys[0]))
            continue;
        as_buf_printf(out, ":%s", kind->word);
        for (size_t i = 0; i < AS_SIZED_KEYS_MAX && kind->keys[i]; i++) {
            const char *value = find_value(config, ref, kind->keys[i]);
            as_buf_append_char(out, '/');
            kind->append_value(value ? value : "", out);
        }
    }
}

/* Without `ref`: the id with `*` for what a template gives. A literal `*` in an author's name then
 * matches too much, which does no harm here. */
static void append_id(const struct as_target_config *config, const struct as_target_ref *ref,
                      struct as_buf *out)
{
    as_buf_append_str(out, config->kind->word);
    for (const struct as_address_key *row = config->kind->keys; row->is_valid; row++) {
        if (row->is_sized)
            break; /* the last rows of a kind */
        if (row->key) {
            append_part(out, find_value(config, ref, row->key));
            continue;
        }
        const char *name = find_value(config, ref, "name");
        append_place(config, ref, out);
        append_part(out, name ? name : find_value(config, ref, "url"));
    }
    if (as_target_kind_has_sized(config->kind))
        append_sized(config, ref, out);
}

/* One block: the reference and a copy of `texts`: a key and a value per field, the id and its
 * key. */
static struct as_target_ref *assemble(const struct as_target_config *config,
                                      const struct as_buf *texts)
{
    size_t fields = config->address_count * sizeof(struct as_target_field);
    if (as_buf_check(texts) < 0)
        abort(); /* only if out of memory: each text is limited */
    struct as_target_ref *ref = as_xmalloc(sizeof(*ref) + fields + texts->size);
    const char *at = memcpy(&ref->fields[config->address_count], texts->data, texts->size);

    ref->kind = config->kind;
    ref->field_count = config->address_count;
    for (size_t i = 0; i < ref->field_count; i++) {
        ref->fields[i].key = at;
        at += strlen(at) + 1;
        ref->fields[i].value = at;
        at += strlen(at) + 1;
    }
    ref->id = at;
    ref->key = at + strlen(at) + 1;
    return ref;
}

int as_target_ref_new(const struct as_target_config *config, const struct as_labels *labels,
                      const struct as_labels *annotations, struct as_target_ref **ref_out,
                      struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf texts = AS_BUF_INIT(SIZE_MAX / 2);
    AS_CLEANUP(as_buf_deinit) struct as_buf id = AS_BUF_INIT(AS_TARGET_ID_MAX - 1);

    if (is_unrestricted(config)) {
        as_error_set(error, "target %s has templates but nothing under allow", config->name);
        return AS_TARGET_NOT_ALLOWED;
    }
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        as_buf_append(&texts, field->key, strlen(field->key) + 1);
        int status = resolve_field(config, field, labels, annotations, &texts, error);
        if (status != AS_TARGET_OK)
            return status;
    }
    /* The id is made of the fields and placed after them: assembled without it, then with it. */
    size_t size = texts.size;
    as_buf_append(&texts, "\0", 2);
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *fields = assemble(config, &texts);
    int status = check_allow(config, fields, error);
    if (status != AS_TARGET_OK)
        return status;
    append_id(config, fields, &id);
    if (as_buf_check(&id) < 0)
        return refuse(error, "target", get_name(fields), "its id would be too long");
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id.data);
    texts.size = size;
    as_buf_append(&texts, id.data, id.size + 1);
    as_buf_append(&texts, key, strlen(key) + 1);
    *ref_out = assemble(config, &texts);
    return AS_TARGET_OK;
}

/* What is sized has no templates: a `*` of the pattern must not take it in. */
static bool is_sized_alike(const struct as_target_kind *kind, const char *pattern, const char *key)
{
    const size_t skip = strlen(kind->word) + 1;
    return !as_target_kind_has_sized(kind) || strlen(key) < skip ||
           strcmp(pattern + skip + as_sized_find(pattern + skip),
                  key + skip + as_sized_find(key + skip)) == 0;
}

bool as_target_may_have_id(const struct as_target_config *config, const char *id)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf pattern = AS_BUF_INIT(AS_TARGET_ID_MAX - 1);
    if (strlen(id) >= AS_TARGET_ID_MAX || !is_without_controls(id))
        return false;
    append_id(config, NULL, &pattern);
    if (as_buf_check(&pattern) < 0)
        return false;
    AS_CLEANUP(as_free_p) char *key_pattern = as_target_key_make(pattern.data);
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    return is_sized_alike(config->kind, key_pattern, key) && as_scope_match(key_pattern, key);
}

bool as_target_may_match_id(const struct as_target_config *config, const char *pattern)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf id = AS_BUF_INIT(AS_TARGET_ID_MAX - 1);
    append_id(config, NULL, &id);
    return as_buf_check(&id) == 0 && as_scope_may_meet(pattern, id.data);
}

static const char *put_text(char **at_io, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *place = memcpy(*at_io, text, size);
    *at_io += size;
    return place;
}

struct as_target_ref *as_target_ref_make(const struct as_target_kind *kind, const char *id,
                                         const struct as_target_field *fields, size_t field_count)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    size_t size = strlen(id) + strlen(key) + 2;
    for (size_t i = 0; i < field_count; i++)
        size += strlen(fields[i].key) + strlen(fields[i].value) + 2;

    struct as_target_ref *ref = as_xmalloc(sizeof(*ref) + field_count * sizeof(*fields) + size);
    ref->kind = kind;
    ref->field_count = field_count;
    char *at = (char *)&ref->fields[field_count];
    ref->id = put_text(&at, id);
    ref->key = put_text(&at, key);
    for (size_t i = 0; i < field_count; i++) {
        ref->fields[i].key = put_text(&at, fields[i].key);
        ref->fields[i].value = put_text(&at, fields[i].value);
    }
    return ref;
}

struct as_target_ref *as_target_ref_copy(const struct as_target_ref *ref)
{
    return as_target_ref_make(ref->kind, ref->id, ref->fields, ref->field_count);
}

struct as_target_ref *as_target_ref_free(struct as_target_ref *ref)
{
    free(ref);
    return NULL;
}

const char *as_target_ref_get(const struct as_target_ref *ref, const char *key)
{
    const char *value = find_field(ref, key);

    return value ? value : "";
}
