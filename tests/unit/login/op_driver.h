/*
 * Feeds ops by hand: says what they should want, byte by byte, and tells them what came of it. The
 * groups of providers are in tests/unit/cloud/op_driver.h.
 */
#ifndef ALERTSCALER_TESTS_UNIT_LOGIN_OP_DRIVER_H
#define ALERTSCALER_TESTS_UNIT_LOGIN_OP_DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>
#include <alertscaler/login/provider_credentials.h>

#define DRIVER_NOW ((as_wall_time){INT64_C(1715941230) * AS_US_PER_S}) /* 2024-05-17T10:20:30Z */

/* ---- the environment ---- */

static struct {
    const char *name, *value;
} driver_variables[64];
static size_t driver_variable_count;

static inline void driver_set(const char *name, const char *value)
{
    cr_assert_lt(driver_variable_count, AS_ARRAY_SIZE(driver_variables));
    driver_variables[driver_variable_count].name = name;
    driver_variables[driver_variable_count++].value = value;
}

static inline const char *driver_get_variable(const char *name)
{
    for (size_t i = driver_variable_count; i-- > 0;) /* the last one set */
        if (strcmp(driver_variables[i].name, name) == 0)
            return driver_variables[i].value;
    return NULL;
}

/* ---- what an op wants and receives ---- */

/* A request; `body` is all of it ("" for none). */
static inline void driver_expect(const struct as_cloud_op *op, const char *method, const char *url,
                                 const char *body)
{
    cr_assert_eq(op->want, AS_CLOUD_OP_SEND, "it has ended: %s", op->message);
    cr_assert_str_eq(op->request.method, method);
    cr_assert_str_eq(op->request.url, url);
    cr_assert_str_eq(op->request.body.data ? op->request.body.data : "", body);
}

/* The request's headers, in their order, with '\n' behind each. */
static inline void driver_expect_headers(const struct as_cloud_op *op, const char *headers)
{
    char text[16384] = "";
    for (size_t i = 0; i < op->request.header_count; i++) {
        const size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s\n", op->request.headers[i]);
    }
    cr_assert_str_eq(text, headers);
    cr_assert_null(op->request.headers[op->request.header_count]);
}

static inline void driver_respond(struct as_cloud_op *op, struct as_http_response answer)
{
    const char **const texts[] = {&answer.body,         &answer.etag,     &answer.retry_after,
                                  &answer.content_type, &answer.location, &answer.error};
    cr_assert_eq(op->want, AS_CLOUD_OP_SEND, "nothing is asked: %s", op->message);
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        *texts[i] = *texts[i] ? *texts[i] : "";
    if (answer.body_size == 0)
        answer.body_size = strlen(answer.body);
    as_cloud_op_on_response(op, DRIVER_NOW, &answer);
}

static inline void driver_answer(struct as_cloud_op *op, int status, const char *body)
{
    driver_respond(op, (struct as_http_response){.status = status, .body = body});
}

/* No answer came. */
static inline void driver_break(struct as_cloud_op *op, enum as_http_outcome outcome,
                                const char *error)
{
    driver_respond(op, (struct as_http_response){.outcome = outcome, .error = error});
}

static inline void driver_expect_file(const struct as_cloud_op *op, const char *path)
{
    cr_assert_eq(op->want, AS_CLOUD_OP_READ, "it has ended: %s", op->message);
    cr_assert_str_eq(op->path, path);
}

/* A program, as its words with a blank between them. */
static inline void driver_expect_program(const struct as_cloud_op *op, const char *words)
{
    char text[1024] = "";
    cr_assert_eq(op->want, AS_CLOUD_OP_RUN, "it has ended: %s", op->message);
    for (size_t i = 0; op->argv[i]; i++) {
        const size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s%s", i ? " " : "", op->argv[i]);
    }
    cr_assert_str_eq(text, words);
}

/* What a file or a program has; NULL: it could not be had, for `error_number`. */
static inline void driver_content(struct as_cloud_op *op, const char *content, int error_number)
{
    cr_assert(op->want == AS_CLOUD_OP_READ || op->want == AS_CLOUD_OP_RUN, "%s", op->message);
    as_cloud_op_on_content(op, DRIVER_NOW, content, content ? strlen(content) : 0, error_number);
}

static inline void driver_expect_end(const struct as_cloud_op *op, enum as_cloud_op_fault fault,
                                     const char *message)
{
    cr_assert_eq(op->want, AS_CLOUD_OP_END, "it goes on");
    cr_assert_str_eq(op->message, message);
    cr_assert_eq(op->fault, fault, "%d", op->fault);
}

/* ---- credentials ---- */

struct driver_source { /* zeroed at first */
    struct as_credentials_op op;
    struct as_provider_settings account;
    struct as_provider_option options[16];
};

static inline void driver_begin_source(struct driver_source *given,
                                       const struct as_credentials_source *chain, const char *name)
{
    while (chain->name && strcmp(chain->name, name) != 0)
        chain++;
    cr_assert_not_null(chain->name, "there is no source %s", name);
    given->account.name = "prod";
    given->account.options = given->options;
    as_cloud_op_init(&given->op.op, driver_get_variable);
    given->op.op.now = DRIVER_NOW;
    given->op.account = &given->account;
    chain->begin(&given->op);
}

static inline void driver_source_option(struct driver_source *given, const char *key,
                                        const char *value)
{
    cr_assert_lt(given->account.option_count, AS_ARRAY_SIZE(given->options));
    given->options[given->account.option_count++] =
        (struct as_provider_option){.key = key, .value = value};
}

/* It has ended well, with these (NULL: has none). */
static inline void driver_expect_found(const struct driver_source *given, const char *key_id,
                                       const char *secret, const char *token, const char *region)
{
    const struct as_provider_credentials *found = &given->op.found;
    driver_expect_end(&given->op.op, AS_CLOUD_OP_OK, "");
    cr_assert_not(given->op.is_not_here);
    cr_assert(as_str_equal(found->key_id, key_id), "%s", found->key_id);
    cr_assert(as_str_equal(found->secret, secret), "%s", found->secret);
    cr_assert(as_str_equal(found->token, token), "%s", found->token);
    cr_assert(as_str_equal(found->region, region), "%s", found->region);
}

static inline void driver_end_source(struct driver_source *given)
{
    as_credentials_deinit(&given->op.found);
    as_cloud_op_deinit(&given->op.op);
}

#endif
