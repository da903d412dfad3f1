/*
 * Sends an order as a request, and prints its answer.
 */
#include "order_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include <alertscaler/base/safe_text.h>

#define BODY_MAX ((size_t)64 * 1024)

int order_call_find_target(const struct as_args *args, const char **target_out)
{
    const bool is_all = as_args_has(args, "all");
    if (is_all == (args->operand_count > 0))
        return as_cli_fail(args, is_all ? "either a TARGET or --all, not both"
                                        : "a TARGET is needed, or --all");
    *target_out = is_all ? NULL : args->operands[0];
    return AS_EXIT_OK;
}

static char *make_path_below(const char *what, const char *name, const char *word)
{
    char *escaped = curl_easy_escape(NULL, name, 0);
    char *path = as_xasprintf("/api/v1/%s/%s/%s", what, escaped ? escaped : "", word);
    curl_free(escaped);
    return path;
}

static char *make_path(enum as_order_kind kind, const char *target)
{
    const char *word = as_order_kind_get_word(kind);
    if (as_order_kind_is_answer(kind))
        return make_path_below("approvals", target, word);
    if (!target)
        return as_xasprintf("/api/v1/%s", word);
    return make_path_below("targets", target, word);
}

static const char *get_text(const json_t *data, const char *key)
{
    const char *text = json_string_value(json_object_get(data, key));
    return text ? text : "";
}

/* One line in the past tense. */
static void print_words(enum as_order_kind kind, const json_t *data)
{
    const char *target = get_text(data, "target"), *until = get_text(data, "until");
    as_safe_text_put(stdout, *target ? target : "all targets");
    switch (kind) {
    case AS_ORDER_PAUSE:
        fputs(*until ? ": paused until " : ": paused until resumed", stdout);
        as_safe_text_put(stdout, until);
        break;
    case AS_ORDER_RESUME: fputs(": resumed", stdout); break;
    case AS_ORDER_SCALE:
        printf(": to be set to %" JSON_INTEGER_FORMAT ", command ",
               json_integer_value(json_object_get(data, "replicas")));
        as_safe_text_put(stdout, get_text(data, "id"));
        break;
    case AS_ORDER_FLOOR:
        if (*until)
            printf(": not below %" JSON_INTEGER_FORMAT " until ",
                   json_integer_value(json_object_get(data, "replicas")));
        else
            fputs(": the floor is ended", stdout);
        as_safe_text_put(stdout, until);
        break;
    case AS_ORDER_UNLOCK: fputs(": unlocked", stdout); break;
    case AS_ORDER_APPROVE: fputs(": approved", stdout); break;
    case AS_ORDER_DENY: fputs(": denied", stdout); break;
    case AS_ORDER_KIND_COUNT: break;
    }
    putchar('\n');
}

static int print_answer(const struct as_args *args, enum as_order_kind kind,
                        const struct http_answer *answer)
{
    json_t *json = http_answer_load(args, answer);
    const json_t *data = json_object_get(json, "data");
    int status = AS_EXIT_OK;
    if (!json_is_object(data)) {
        status = as_cli_fail(args, "the answer is not alertscaler's");
    } else if (as_args_wants_json(args)) {
        as_cli_print_json(data, JSON_INDENT(2), stdout);
    } else {
        print_words(kind, data);
    }
    json_decref(json);
    return status;
}

/* Takes the document over. */
static struct as_buf print_body(json_t *document)
{
    struct as_buf body = AS_BUF_INIT(BODY_MAX);
    char *text = json_dumps(document, JSON_COMPACT);
    if (text)
        as_buf_append_str(&body, text);
    free(text);
    json_decref(document);
    return body;
}

int order_call_run(const struct as_args *args, enum as_order_kind kind, const char *target,
                   json_t *body)
{
    const char *reason = as_args_get(args, "reason");
    struct as_error error = AS_ERROR_INIT;
    const bool is_left_out = !reason && as_order_kind_is_answer(kind);
    if (!is_left_out && (as_str_is_empty(reason) || !as_str_is_utf8(reason, strlen(reason)))) {
        json_decref(body);
        return as_cli_fail(args, "--reason=TEXT is needed: why, for the action log");
    }
    if (reason)
        json_object_set_new(body, "reason", json_string(reason));
    AS_CLEANUP(as_buf_deinit) struct as_buf text = print_body(body);
    AS_CLEANUP(as_free_p) char *path = make_path(kind, target);
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    if (as_buf_check(&text) != 0)
        return as_cli_fail(args, "--reason: too long");
    if (http_call_run(args, path, &text, &answer, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    if (answer.status != 200)
        return http_answer_refuse(args, &answer);
    return print_answer(args, kind, &answer);
}
