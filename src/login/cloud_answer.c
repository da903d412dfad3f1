/*
 * Answers of clouds as documents. An answer that cannot be read fails its operation; nothing is
 * sent again here.
 */
#include <alertscaler/login/cloud_answer.h>

#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define TEXT_MAX ((size_t)64 * 1024) /* bytes of one element */

static const json_t *answer_keep(struct as_cloud_op *op, json_t *document)
{
    json_decref(op->document);
    op->document = document;
    return document;
}

static const json_t *answer_fail(struct as_cloud_op *op, const char *what, const char *problem)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_RETRY, "%s: the answer is not %s: %s", op->request.operation,
                     what, problem);
    op->is_ambiguous = op->request.is_change;
    return NULL;
}

static json_t *parse_json(const struct as_http_response *answer, json_error_t *problem)
{
    return json_loadb(answer->body, answer->body_size, JSON_REJECT_DUPLICATES, problem);
}

const json_t *answer_json(struct as_cloud_op *op)
{
    json_error_t problem;
    const json_t *document = answer_keep(op, parse_json(op->answer, &problem));
    return document ? document : answer_fail(op, "JSON", problem.text);
}

const json_t *answer_peek_json(struct as_cloud_op *op)
{
    json_error_t problem;
    return answer_keep(op, parse_json(op->answer, &problem));
}

/* ---- XML ---- */

struct level { /* an element that is open */
    char *name;
    json_t *value; /* an object, once it contains an element; else NULL */
    struct as_buf text;
};

struct reader {
    XML_Parser parser;
    size_t depth, elements;
    struct level levels[ANSWER_DEPTH_MAX];
    json_t *root;
    const char *problem;
};

static void stop(struct reader *reader, const char *problem)
{
    if (!reader->problem)
        reader->problem = problem;
    XML_StopParser(reader->parser, XML_FALSE);
}

static void XMLCALL on_doctype(void *context, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int has_subset)
{
    stop(context, "it has a document type");
}

static void XMLCALL answer_on_start(void *context, const XML_Char *name,
                                    const XML_Char **attributes)
{
    struct reader *reader = context;
    if (reader->depth == ANSWER_DEPTH_MAX || ++reader->elements > ANSWER_ELEMENTS_MAX) {
        stop(reader, "it has too many elements");
        return;
    }
    if (reader->depth > 0 && !reader->levels[reader->depth - 1].value)
        reader->levels[reader->depth - 1].value = json_object();
    const char *colon = strchr(name, ':');
    struct level *level = &reader->levels[reader->depth++];
    *level =
        (struct level){.name = strdup(colon ? colon + 1 : name), .text = AS_BUF_INIT(TEXT_MAX)};
    if (!level->name)
        abort();
}

static void XMLCALL on_text(void *context, const XML_Char *text, int size)
{
    struct reader *reader = context;
    if (reader->depth > 0)
        as_buf_append(&reader->levels[reader->depth - 1].text, text, (size_t)size);
}

/* Adds a member; members of the same name form an array. */
static void answer_add(json_t *object, const char *name, json_t *value)
{
    json_t *other = json_object_get(object, name);
    if (!other) {
        json_object_set_new_nocheck(object, name, value);
    } else if (json_is_array(other)) {
        json_array_append_new(other, value);
    } else {
        json_t *array = json_array();
        json_array_append(array, other);
        json_array_append_new(array, value);
        json_object_set_new_nocheck(object, name, array);
    }
}

static void XMLCALL on_end(void *context, const XML_Char *name)
{
    struct reader *reader = context;
    if (reader->problem || reader->depth == 0)
        return;
    struct level *level = &reader->levels[--reader->depth];
    json_t *value = level->value;
    if (!value)
        value = json_stringn_nocheck(level->text.data ? level->text.data : "", level->text.size);
    if (as_buf_check(&level->text) != 0)
        stop(reader, "an element is too long");
    if (reader->depth > 0) {
        answer_add(reader->levels[reader->depth - 1].value, level->name, value);
    } else {
        reader->root = json_object();
        json_object_set_new_nocheck(reader->root, level->name, value);
    }
    free(level->name);
    as_buf_deinit(&level->text);
}

static json_t *parse_xml(const struct as_http_response *answer, const char **problem_out)
{
    struct reader reader = {.parser = XML_ParserCreate(NULL)};
    if (!reader.parser)
        abort();
    XML_SetUserData(reader.parser, &reader);
    XML_SetStartDoctypeDeclHandler(reader.parser, on_doctype);
    XML_SetElementHandler(reader.parser, answer_on_start, on_end);
    XML_SetCharacterDataHandler(reader.parser, on_text);
    const bool is_good =
        XML_Parse(reader.parser, answer->body, (int)answer->body_size, 1) == XML_STATUS_OK;
    *problem_out =
        reader.problem ? reader.problem : XML_ErrorString(XML_GetErrorCode(reader.parser));
    XML_ParserFree(reader.parser);
    while (reader.depth > 0) {
        struct level *level = &reader.levels[--reader.depth];
        json_decref(level->value);
        free(level->name);
        as_buf_deinit(&level->text);
    }
    if (is_good)
        return reader.root;
    json_decref(reader.root);
    return NULL;
}

const json_t *answer_xml(struct as_cloud_op *op)
{
    const char *problem;
    const json_t *document = answer_keep(op, parse_xml(op->answer, &problem));
    return document ? document : answer_fail(op, "XML", problem);
}

const json_t *answer_peek_xml(struct as_cloud_op *op)
{
    const char *problem;
    return answer_keep(op, parse_xml(op->answer, &problem));
}

/* ---- members ---- */

const json_t *answer_find(const json_t *document, const char *path)
{
    while (document && *path) {
        const size_t size = strcspn(path, ".");
        document = json_object_getn(document, path, size);
        path += size + (path[size] == '.');
    }
    return document && !json_is_null(document) ? document : NULL;
}

const char *answer_text(const json_t *document, const char *path)
{
    const char *text = json_string_value(answer_find(document, path));
    return text ? text : "";
}

bool answer_is_true(const json_t *document, const char *path)
{
    const json_t *value = answer_find(document, path);
    return json_is_true(value) ||
           (json_is_string(value) && strcmp(json_string_value(value), "true") == 0);
}

as_maybe_time answer_time(const json_t *document, const char *path)
{
    const char *text = answer_text(document, path);
    as_maybe_time time = {.set = false};
    time.set = as_wall_time_parse(text, strlen(text), &time.at) == 0;
    return time;
}

int32_t answer_size(const json_t *document, const char *path, int32_t absent)
{
    const json_t *value = answer_find(document, path);
    int64_t number = -1;
    if (json_is_integer(value)) {
        number = json_integer_value(value);
    } else if (json_is_string(value)) {
        const char *text = json_string_value(value);
        if (as_number_parse_i64(text, strlen(text), &number) != 0)
            number = -1;
    }
    return number >= 0 && number <= INT32_MAX ? (int32_t)number : absent;
}

bool answer_take_size(struct as_cloud_op *op, const json_t *document, const char *path,
                      int32_t *size_out)
{
    *size_out = answer_size(document, path, -1);
    return *size_out >= 0 || answer_misses(op, path);
}

const json_t *answer_misses(struct as_cloud_op *op, const char *path)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_RETRY, "%s: the answer has no %s", op->request.operation,
                     path);
    op->is_ambiguous = op->request.is_change;
    return NULL;
}

void answer_wipe(json_t *document)
{
    const char *name;
    size_t index;
    json_t *value;
    if (json_is_string(document))
        explicit_bzero((char *)(uintptr_t)json_string_value(document),
                       json_string_length(document));
    json_object_foreach(document, name, value)
    {
        answer_wipe(value);
    }
    json_array_foreach(document, index, value)
    {
        answer_wipe(value);
    }
}

size_t answer_count(const json_t *document, const char *path)
{
    const json_t *value = answer_find(document, path);
    if (!value || (json_is_string(value) && json_string_length(value) == 0))
        return 0;
    return json_is_array(value) ? json_array_size(value) : 1;
}

const json_t *answer_at(const json_t *document, const char *path, size_t index)
{
    const json_t *value = answer_find(document, path);
    return json_is_array(value) ? json_array_get(value, index) : value;
}

unsigned answer_judge(const struct answer_word *rows, const char *text, unsigned absent)
{
    while (rows->glob && !as_str_glob(rows->glob, text))
        rows++;
    return rows->glob ? rows->value : absent;
}

unsigned answer_judge_message(const struct answer_word *rows, const char *message, unsigned absent)
{
    while (rows->glob && !strcasestr(message, rows->glob))
        rows++;
    return rows->glob ? rows->value : absent;
}

bool answer_has_word(const char *message, const char *const *words)
{
    for (; *words; words++) {
        if (strcasestr(message, *words))
            return true;
    }
    return false;
}
