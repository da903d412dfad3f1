/*
 * Targets' addresses. From a target's configuration and an alert to one address with its id and
 * key; what a configuration may name; the lookup of kinds and of keys in the table of kinds.
 *
 * Labels are untrusted input: the result is checked completely here, before it is used in a URL, a
 * lock or a log. A URL has its own checks; other values are checked after the templates are filled
 * in.
 */
#include <alertscaler/decide/target.h>

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/model/template.h>

const struct as_target_kind *as_target_kind_find(const char *word)
{
    for (size_t i = 0; as_target_kinds[i]; i++) {
        if (strcmp(as_target_kinds[i]->word, word) == 0)
            return as_target_kinds[i];
    }
    return NULL;
}

const struct as_target_kind *as_target_kind_find_of_id(const char *id)
{
    for (size_t i = 0; as_target_kinds[i]; i++) {
        const size_t size = strlen(as_target_kinds[i]->word);
        if (strncmp(as_target_kinds[i]->word, id, size) == 0 && id[size] == '/')
            return as_target_kinds[i];
    }
    return NULL;
}

size_t as_target_kind_get_index(const struct as_target_kind *kind)
{
    size_t i = 0;
    while (as_target_kinds[i] != kind) {
        assert(as_target_kinds[i]); /* every kind is in the table */
        i++;
    }
    return i;
}

const struct as_address_key *as_target_kind_find_key(const struct as_target_kind *kind,
                                                     const char *key)
{
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++) {
        if (!row->key || strcmp(row->key, key) == 0)
            return row;
    }
    return NULL;
}

const char *as_allow_get_word(enum as_allow allow)
{
    static const char *const words[AS_ALLOW_COUNT] = {
        [AS_ALLOW_CLUSTERS] = "clusters", [AS_ALLOW_API_VERSIONS] = "apiVersions",
        [AS_ALLOW_KINDS] = "kinds",       [AS_ALLOW_NAMESPACES] = "namespaces",
        [AS_ALLOW_NAMES] = "names",       [AS_ALLOW_URLS] = "urls",
    };
    return words[allow];
}

enum as_allow as_target_kind_find_allow(const struct as_target_kind *kind, const char *key)
{
    enum as_allow i = 0;
    while (i < AS_ALLOW_COUNT && !(kind->allow[i] && strcmp(kind->allow[i], key) == 0))
        i++;
    return i;
}

bool as_target_kind_has_key(const struct as_target_kind *kind, const char *key)
{
    const struct as_address_key *row = as_target_kind_find_key(kind, key);
    return row && row->key;
}

bool as_target_kind_has_sized(const struct as_target_kind *kind)
{
    const struct as_address_key *row = kind->keys;
    while (row->is_valid && !row->is_sized)
        row++;
    return row->is_valid;
}

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

#define SHOWN_MAX 80 /* bytes of a refused value in an error's text */
#define FROM_ALERTS                                                                                \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-" /* characters */

static bool is_text(const struct template_part *part)
{
    return part->kind == TEMPLATE_TEXT;
}

/* After "scheme://host" comes a '/' or '?': from there an alert may contribute. */
static bool has_host(const char *url)
{
    const char *authority = strstr(url, "://");
    if (!authority || authority == url)
        return false;
    authority += 3;
    const size_t size = strcspn(authority, "/?#\\");
    return size > 0 && (authority[size] == '/' || authority[size] == '?');
}

/* The size of a dot at `text`, also of an escaped dot; 0: none. */
static size_t get_dot(const char *text)
{
    if (*text == '.')
        return 1;
    return strncasecmp(text, "%2e", 3) == 0 ? 3 : 0;
}

static bool has_dot_segment(const char *url)
{
    const char *at = strstr(url, "://");
    for (at = at ? at + 3 : url; *at && *at != '?' && *at != '#';) {
        const char *end = at + strcspn(at, "/?#");
        unsigned dots = 0;
        while (at < end && get_dot(at) > 0) {
            at += get_dot(at);
            dots++;
        }
        if (at == end && dots > 0 && dots <= 2)
            return true;
        at = end + (*end == '/');
    }
    return false;
}

/* A label value would become a part of the escape. */
static bool has_open_escape(const char *text)
{
    const char *last = strrchr(text, '%');
    return last && strlen(last) < strlen("%2f");
}

/* The text with a letter for each template. */
static char *make_sample(const struct as_template *url)
{
    struct as_buf sample = AS_BUF_INIT(SIZE_MAX / 2);
    size_t size;
    for (size_t i = 0; i < url->part_count; i++)
        as_buf_append_str(&sample, is_text(&url->parts[i]) ? url->parts[i].text : "x");
    if (as_buf_check(&sample) < 0)
        abort(); /* only if out of memory */
    return as_buf_take(&sample, &size);
}

const char *as_target_url_find_fault(const struct as_template *url)
{
    if (as_template_is_plain(url))
        return NULL;
    if (!is_text(&url->parts[0]) || !has_host(url->parts[0].text))
        return "a template may stand only behind http://host/";
    for (size_t i = 0; i < url->part_count; i++) {
        if (!is_text(&url->parts[i]))
            continue;
        if (strpbrk(url->parts[i].text, " #"))
            return "a URL with a template has no spaces and no fragment";
        if (i + 1 < url->part_count && has_open_escape(url->parts[i].text))
            return "a template may not complete a `%` escape";
    }
    AS_CLEANUP(as_free_p) char *sample = make_sample(url);
    return has_dot_segment(sample) ? "a URL with a template has no path segment of dots" : NULL;
}

bool as_target_url_varies_at_end(const struct as_template *url)
{
    bool has_varied = false, is_behind = false; /* behind a slash after a template */
    for (size_t i = 0; i < url->part_count; i++) {
        if (!is_text(&url->parts[i])) {
            if (is_behind)
                return false;
            has_varied = true;
            continue;
        }
        for (const char *c = url->parts[i].text; *c && *c != '?'; c++) {
            if (is_behind && *c != '/')
                return false;
            is_behind = is_behind || (has_varied && *c == '/');
        }
        is_behind = is_behind || strchr(url->parts[i].text, '?');
    }
    return has_varied;
}

static int target_refuse(struct as_error *error, const char *key, const char *value,
                         const char *why)
{
    size_t size = strlen(value), shown = as_str_cut_utf8(value, size, SHOWN_MAX);

    as_error_set(error, "%s \"%.*s%s\": %s", key, (int)shown, value, shown < size ? "..." : "",
                 why);
    return AS_TARGET_NOT_ALLOWED;
}

static int url_refuse(struct as_error *error, const char *key, const char *value, const char *why)
{
    (void)target_refuse(error, key, value, why);
    return -EINVAL;
}

int as_target_url_check(const struct as_template *url, const struct as_labels *labels,
                        const struct as_labels *annotations, const char *result,
                        struct as_error *error)
{
    const char *fault = as_target_url_find_fault(url);
    if (fault)
        return url_refuse(error, "url", url->text, fault);
    for (size_t i = 0; i < url->part_count; i++) {
        const struct template_part *part = &url->parts[i];
        if (is_text(part))
            continue;
        const char *value = template_part_get(part, labels, annotations);
        if (value[strspn(value, FROM_ALERTS)] != '\0')
            return url_refuse(error, part->text, value,
                              "only letters, digits, '.', '_' and '-' may go into a url");
    }
    if (!as_template_is_plain(url) && has_dot_segment(result))
        return url_refuse(error, "url", result, "a path segment of dots");
    return 0;
}

char *as_target_url_normalize(const char *url)
{
    struct as_buf normal = AS_BUF_INIT(SIZE_MAX / 2);
    size_t size;
    if (!as_url_append_normal(url, &normal))
        as_buf_append_str(&normal, url);
    if (as_buf_check(&normal) < 0)
        abort(); /* only if out of memory */
    return as_buf_take(&normal, &size);
}

char *as_target_url_get_end(const char *url)
{
    AS_CLEANUP(as_free_p) char *normal = as_target_url_normalize(url);
    const char *authority = strstr(normal, "://");
    const char *path = authority ? authority + 3 : normal;
    path += strcspn(path, "/?");
    const size_t size = strcspn(path, "?");
    const char *slash = memrchr(path, '/', size);
    return slash ? as_xstrndup(slash + 1, (size_t)(path + size - slash - 1)) : as_xstrdup("");
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
        target_refuse(error, field->key, "", "empty");
    else if ((expected = as_target_check_value(config->kind, field->key, value.data)))
        target_refuse(error, field->key, value.data, expected);
    else if (strcmp(field->key, "url") != 0 ||
             as_target_url_check(field->value, labels, annotations, value.data, error) == 0)
        status = AS_TARGET_OK;
    if (status == AS_TARGET_OK)
        as_buf_append(out, value.data, value.size + 1);
    as_buf_deinit(&value);
    return status;
}

/* A missing list restricts nothing. */
static bool is_allowed(const struct as_target_config *config, enum as_allow list, const char *value)
{
    const struct as_allowed *allowed = &config->allowed[list];
    for (size_t i = 0; i < allowed->count; i++) {
        if (list == AS_ALLOW_URLS ? as_scope_match(allowed->items[i], value)
                                  : as_str_glob(allowed->items[i], value))
            return true;
    }
    return allowed->count == 0;
}

static const struct as_template *find_template(const struct as_target_config *config,
                                               const char *key)
{
    for (size_t i = 0; i < config->address_count; i++) {
        if (strcmp(config->address[i].key, key) == 0)
            return as_template_is_plain(config->address[i].value) ? NULL : config->address[i].value;
    }
    return NULL;
}

enum as_allow as_target_find_limit(const struct as_target_config *config, const char *key)
{
    const enum as_allow own = as_target_kind_find_allow(config->kind, key);
    const struct as_template *url = own == AS_ALLOW_URLS ? find_template(config, key) : NULL;
    const bool is_by_end =
        url && config->allowed[own].count == 0 && as_target_url_varies_at_end(url);
    return is_by_end ? AS_ALLOW_NAMES : own;
}

/* An HTTP group without a name goes by the last path segment of its URL, or by the URL. */
static int check_end(const struct as_target_config *config, const char *url, bool has_name,
                     struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *end = as_target_url_get_end(url);
    if (is_allowed(config, AS_ALLOW_NAMES, end) ||
        (!has_name && is_allowed(config, AS_ALLOW_NAMES, url)))
        return AS_TARGET_OK;
    return target_refuse(error, has_name ? "url" : "name", url,
                         has_name ? "its last path segment is not among the allowed names"
                                  : "not among the allowed names");
}

static int check_url(const struct as_target_config *config, const char *url, bool has_name,
                     struct as_error *error)
{
    const bool is_by_end =
        find_template(config, "url") && as_target_find_limit(config, "url") == AS_ALLOW_NAMES;
    if (config->allowed[AS_ALLOW_URLS].count > 0) {
        AS_CLEANUP(as_free_p) char *normal = as_target_url_normalize(url);
        if (!is_allowed(config, AS_ALLOW_URLS, normal))
            return target_refuse(error, "url", normal, "not among the allowed urls");
    }
    return is_by_end || !has_name ? check_end(config, url, has_name, error) : AS_TARGET_OK;
}

static int check_allow(const struct as_target_config *config, const struct as_target_ref *ref,
                       struct as_error *error)
{
    const char *url = as_target_ref_find(ref, "url"), *name = as_target_ref_find(ref, "name");
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++) {
        const char *key = config->kind->allow[i];
        const char *value = key ? as_target_ref_get(ref, key) : "";
        if (!key || i == AS_ALLOW_URLS || (i == AS_ALLOW_NAMES && !name && url))
            continue;
        if (!is_allowed(config, i, value)) {
            AS_CLEANUP(as_free_p)
            char *why = as_xasprintf("not among the allowed %s", as_allow_get_word(i));
            return target_refuse(error, key, value, why);
        }
    }
    return url ? check_url(config, url, name != NULL, error) : AS_TARGET_OK;
}

/* The configuration was checked for this; the check here is independent of it. */
static const char *find_unlimited(const struct as_target_config *config)
{
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        if (as_template_is_plain(field->value))
            continue;
        const enum as_allow limit = as_target_find_limit(config, field->key);
        if (limit == AS_ALLOW_COUNT || config->allowed[limit].count == 0)
            return field->key;
    }
    return NULL;
}

bool as_target_allows(const struct as_target_config *config, const struct as_target_ref *ref)
{
    return ref->field_count > 0 && !find_unlimited(config) &&
           check_allow(config, ref, NULL) == AS_TARGET_OK;
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

static const char *target_find_value(const struct as_target_config *config,
                                     const struct as_target_ref *ref, const char *key)
{
    return ref ? as_target_ref_find(ref, key) : find_plain_value(config, key);
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
                append_part(out, target_find_value(config, ref, config->address[i].key));
        }
    }
}

/* ":field/spec.minReplicas"; nothing for the scale. */
static void append_sized(const struct as_target_config *config, const struct as_target_ref *ref,
                         struct as_buf *out)
{
    for (const struct as_sized_kind *kind = as_sized_kinds; kind->word; kind++) {
        if (!target_find_value(config, ref, kind->keys[0]))
            continue;
        as_buf_printf(out, ":%s", kind->word);
        for (size_t i = 0; i < AS_SIZED_KEYS_MAX && kind->keys[i]; i++) {
            const char *value = target_find_value(config, ref, kind->keys[i]);
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
            append_part(out, target_find_value(config, ref, row->key));
            continue;
        }
        const char *name = target_find_value(config, ref, "name"),
                   *url = target_find_value(config, ref, "url");
        append_place(config, ref, out);
        append_part(out, name && !(url && config->is_templated) ? name : url);
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

/* From the keys and values in `texts`, which get the id and its key. The id is made of the fields
 * and placed after them: assembled without it, then with it. */
static int finish_ref(const struct as_target_config *config, struct as_buf *texts,
                      struct as_target_ref **ref_out, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf id = AS_BUF_INIT(AS_TARGET_ID_MAX - 1);
    const size_t size = texts->size;
    as_buf_append(texts, "\0", 2);
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *fields = assemble(config, texts);
    const int status = check_allow(config, fields, error);
    if (status != AS_TARGET_OK)
        return status;
    append_id(config, fields, &id);
    if (as_buf_check(&id) < 0)
        return target_refuse(error, "target", config->name, "its id would be too long");
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id.data);
    texts->size = size;
    as_buf_append(texts, id.data, id.size + 1);
    as_buf_append(texts, key, strlen(key) + 1);
    *ref_out = assemble(config, texts);
    return AS_TARGET_OK;
}

int as_target_ref_new(const struct as_target_config *config, const struct as_labels *labels,
                      const struct as_labels *annotations, struct as_target_ref **ref_out,
                      struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf texts = AS_BUF_INIT(SIZE_MAX / 2);
    const char *unlimited = find_unlimited(config);
    if (unlimited) {
        as_error_set(error, "nothing under `allow` of target %s limits the template of `%s`",
                     config->name, unlimited);
        return AS_TARGET_NOT_ALLOWED;
    }
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        as_buf_append(&texts, field->key, strlen(field->key) + 1);
        int status = resolve_field(config, field, labels, annotations, &texts, error);
        if (status != AS_TARGET_OK)
            return status;
    }
    return finish_ref(config, &texts, ref_out, error);
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
    if (strlen(id) >= AS_TARGET_ID_MAX || !as_target_value_is_plain(id))
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

/* The pattern ends with the name, whose template is all behind it. */
struct as_target_ref *as_target_ref_of_group(const struct as_target_config *config, const char *id)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf pattern = AS_BUF_INIT(AS_TARGET_ID_MAX - 1);
    struct as_target_field fields[AS_TARGET_KEYS_MAX];
    append_id(config, NULL, &pattern);
    if (!config->kind->has_nodes || config->address_count > AS_TARGET_KEYS_MAX ||
        as_buf_check(&pattern) < 0 || !as_str_equal(find_plain_value(config, "name"), "*") ||
        pattern.size == 0 || pattern.data[pattern.size - 1] != '*' || strlen(id) < pattern.size ||
        memcmp(id, pattern.data, pattern.size - 1) != 0)
        return NULL;
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        const bool is_name = strcmp(field->key, "name") == 0;
        if (!is_name && !as_template_is_plain(field->value))
            return NULL;
        fields[i] = (struct as_target_field){
            field->key, is_name ? id + pattern.size - 1 : as_template_get_text(field->value)};
    }
    struct as_target_ref *ref = as_target_ref_make(config->kind, id, fields, config->address_count);
    return as_target_allows(config, ref) ? ref : as_target_ref_free(ref);
}

const char *as_target_config_find_plain(const struct as_target_config *config, const char *key)
{
    return find_template(config, key) ? NULL : find_plain_value(config, key);
}

/* Whether some alert can give the value. */
static bool template_may_give(const struct as_template *template, const char *value)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf pattern = AS_BUF_INIT(SIZE_MAX / 2);
    if (as_template_is_plain(template))
        return strcmp(as_template_get_text(template), value) == 0;
    for (size_t i = 0; i < template->part_count; i++)
        as_buf_append_str(&pattern, is_text(&template->parts[i]) ? template->parts[i].text : "?*");
    if (as_buf_check(&pattern) < 0)
        abort(); /* only if out of memory */
    return as_str_glob(pattern.data, value);
}

struct as_target_ref *as_target_ref_of_object(const struct as_target_config *config,
                                              const char *namespace_, const char *name)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf texts = AS_BUF_INIT(SIZE_MAX / 2);
    bool has_namespace = false;
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        const bool is_namespace = strcmp(field->key, "namespace") == 0;
        const char *value = is_namespace ? namespace_ : name;
        has_namespace = has_namespace || is_namespace;
        if (!is_namespace && strcmp(field->key, "name") != 0)
            value = as_target_config_find_plain(config, field->key);
        if (!value || !template_may_give(field->value, value) ||
            as_target_check_value(config->kind, field->key, value))
            return NULL;
        as_buf_append(&texts, field->key, strlen(field->key) + 1);
        as_buf_append(&texts, value, strlen(value) + 1);
    }
    struct as_target_ref *ref = NULL;
    if ((*namespace_ != '\0' && !has_namespace) || find_unlimited(config) ||
        finish_ref(config, &texts, &ref, NULL) != AS_TARGET_OK)
        return NULL;
    return ref;
}

static const char *target_put_text(char **at_io, const char *text)
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
    ref->id = target_put_text(&at, id);
    ref->key = target_put_text(&at, key);
    for (size_t i = 0; i < field_count; i++) {
        ref->fields[i].key = target_put_text(&at, fields[i].key);
        ref->fields[i].value = target_put_text(&at, fields[i].value);
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

static char *make_other_id(const struct as_target_ref *ref, const char *end)
{
    return as_xasprintf("%s/%s/%s", ref->kind->word, as_target_ref_get(ref, ref->kind->owner), end);
}

char *as_target_ref_make_url_id(const struct as_target_ref *ref)
{
    const char *url = as_target_ref_get(ref, "url");
    return *url ? make_other_id(ref, url) : NULL;
}

char *as_target_ref_make_name_id(const struct as_target_ref *ref)
{
    const char *name = as_target_ref_get(ref, "name");
    return *name && *as_target_ref_get(ref, "url") ? make_other_id(ref, name) : NULL;
}

bool as_target_ref_has_id(const struct as_target_ref *ref, const char *id)
{
    AS_CLEANUP(as_free_p) char *by_name = as_target_ref_make_name_id(ref);
    return as_target_is_same(ref->id, id) || (by_name && as_target_is_same(by_name, id));
}

const char *as_target_print_measure(const char *id, const char *unit,
                                    char text_out[AS_MEASURE_SIZE])
{
    const struct as_target_kind *kind = as_target_kind_find_of_id(id);
    if (unit && *unit) {
        snprintf(text_out, AS_MEASURE_SIZE, "units of %.*s", AS_AMOUNT_SIZE - 1, unit);
        return text_out;
    }
    if (kind == &as_target_kind_kubernetes && id[as_sized_find(id)])
        return "size";
    return kind ? kind->unit : "replicas";
}
