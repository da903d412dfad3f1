/*
 * Feeds ops by hand: says what they should want, byte by byte, and tells them what came of it.
 *
 *   struct driver_group given = {.credentials = {.region = "eu-central-1"}};
 *   driver_option(&given, "endpoint", "http://127.0.0.1:5000");
 *   driver_field(&given, "name", "ng-1");
 *   driver_begin(&given, "aws", AS_GROUP_READ);
 *   struct as_cloud_op *op = &given.op.op;
 *   driver_expect(op, "POST", "http://127.0.0.1:5000/", "Action=...");
 *   driver_answer(op, 200, "<...>");
 *   driver_expect_end(op, AS_CLOUD_OP_OK, "");
 *   driver_end(&given);
 */
#ifndef ALERTSCALER_TESTS_UNIT_PROVIDER_OP_DRIVER_H
#define ALERTSCALER_TESTS_UNIT_PROVIDER_OP_DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>

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

/* ---- node groups ---- */

struct driver_group { /* zeroed at first, but for the credentials */
    struct as_group_op op;
    const struct as_group_provider *provider;
    struct as_provider_credentials credentials; /* borrowed texts */
    struct as_provider_settings account;
    struct as_provider_option options[16];
    struct as_target_field fields[8];
    size_t field_count;
    struct as_target_ref *group;
};

static inline void driver_option(struct driver_group *given, const char *key, const char *value)
{
    cr_assert_lt(given->account.option_count, AS_ARRAY_SIZE(given->options));
    given->options[given->account.option_count++] =
        (struct as_provider_option){.key = key, .value = value};
}

static inline void driver_field(struct driver_group *given, const char *key, const char *value)
{
    cr_assert_lt(given->field_count, AS_ARRAY_SIZE(given->fields));
    given->fields[given->field_count++] = (struct as_target_field){key, value};
}

/* The verb's arguments (from, to, instances, ...) are filled in before. */
static inline void driver_begin_with(struct driver_group *given,
                                     const struct as_group_provider *provider, const char *type,
                                     enum as_group_verb verb)
{
    given->provider = provider;
    cr_assert_not_null(given->provider);
    given->account.name = "prod";
    given->account.type = type;
    given->account.options = given->options;
    given->group = as_target_ref_make(&as_target_kind_node_group, "node_group/prod/x",
                                      given->fields, given->field_count);
    as_cloud_op_init(&given->op.op, driver_get_variable);
    given->op.op.now = DRIVER_NOW;
    given->op.verb = verb;
    given->op.account = &given->account;
    given->op.group = given->group;
    given->op.credentials = &given->credentials;
    given->provider->begin(&given->op);
}

static inline void driver_begin(struct driver_group *given, const char *type,
                                enum as_group_verb verb)
{
    driver_begin_with(given, as_group_provider_find(type), type, verb);
}

static inline void driver_end(struct driver_group *given)
{
    as_cloud_op_deinit(&given->op.op);
    given->group = as_target_ref_free(given->group);
}

/* The instance at `index`: "id provider-id zone state [unhealthy] [protected]". */
static inline void driver_expect_instance(const struct driver_group *given, size_t index,
                                          const char *words)
{
    static const char *const states[] = {"pending", "running", "leaving", "failed"};
    char text[1024];
    cr_assert_lt(index, given->op.view.instance_count);
    const struct as_instance *it = &given->op.view.instances[index];
    snprintf(text, sizeof(text), "%s %s %s %s%s%s", it->id, it->provider_id,
             *it->zone ? it->zone : "-", states[it->state], it->is_unhealthy ? " unhealthy" : "",
             it->is_protected ? " protected" : "");
    cr_assert_str_eq(text, words);
}

/* The names of the resources behind the group, with a space behind each. */
static inline void driver_expect_backing(const struct driver_group *given, const char *names)
{
    char text[1024] = "";
    for (size_t i = 0; i < given->op.view.backing_count; i++) {
        const size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s ", given->op.view.backing[i]);
    }
    cr_assert_str_eq(text, names);
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
