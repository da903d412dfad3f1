/*
 * Feeds talks by hand: says what they should want, byte by byte, and tells them what came of it.
 *
 *   struct talker_group given = {.credentials = {.region = "eu-central-1"}};
 *   talker_option(&given, "endpoint", "http://127.0.0.1:5000");
 *   talker_field(&given, "name", "ng-1");
 *   talker_begin(&given, "aws", AS_GROUP_READ);
 *   struct as_talk *talk = &given.talk.talk;
 *   talker_expect(talk, "POST", "http://127.0.0.1:5000/", "Action=...");
 *   talker_answer(talk, 200, "<...>");
 *   talker_expect_end(talk, AS_TALK_OK, "");
 *   talker_end(&given);
 */
#ifndef ALERTSCALER_TESTS_UNIT_PROVIDER_TALKER_H
#define ALERTSCALER_TESTS_UNIT_PROVIDER_TALKER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>

#define TALKER_NOW ((as_wall_time){INT64_C(1715941230) * AS_US_PER_S}) /* 2024-05-17T10:20:30Z */

/* ---- the environment ---- */

static struct {
    const char *name, *value;
} talker_variables[64];
static size_t talker_variable_count;

static inline void talker_set(const char *name, const char *value)
{
    cr_assert_lt(talker_variable_count, AS_ARRAY_SIZE(talker_variables));
    talker_variables[talker_variable_count].name = name;
    talker_variables[talker_variable_count++].value = value;
}

static inline const char *talker_get_variable(const char *name)
{
    for (size_t i = talker_variable_count; i-- > 0;) /* the last one set */
        if (strcmp(talker_variables[i].name, name) == 0)
            return talker_variables[i].value;
    return NULL;
}

/* ---- what a talk wants, and hears ---- */

/* A request; `body` is all of it ("" for none). */
static inline void talker_expect(const struct as_talk *talk, const char *method, const char *url,
                                 const char *body)
{
    cr_assert_eq(talk->want, AS_TALK_SEND, "it has ended: %s", talk->message);
    cr_assert_str_eq(talk->request.method, method);
    cr_assert_str_eq(talk->request.url, url);
    cr_assert_str_eq(talk->request.body.data ? talk->request.body.data : "", body);
}

/* The request's headers, in their order, with '\n' behind each. */
static inline void talker_expect_headers(const struct as_talk *talk, const char *headers)
{
    char text[16384] = "";
    for (size_t i = 0; i < talk->request.header_count; i++) {
        const size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s\n", talk->request.headers[i]);
    }
    cr_assert_str_eq(text, headers);
    cr_assert_null(talk->request.headers[talk->request.header_count]);
}

static inline void talker_hear(struct as_talk *talk, struct as_http_response answer)
{
    const char **const texts[] = {&answer.body,         &answer.etag,     &answer.retry_after,
                                  &answer.content_type, &answer.location, &answer.error};
    cr_assert_eq(talk->want, AS_TALK_SEND, "nothing is asked: %s", talk->message);
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        *texts[i] = *texts[i] ? *texts[i] : "";
    if (answer.body_size == 0)
        answer.body_size = strlen(answer.body);
    as_talk_hear_answer(talk, TALKER_NOW, &answer);
}

static inline void talker_answer(struct as_talk *talk, int status, const char *body)
{
    talker_hear(talk, (struct as_http_response){.status = status, .body = body});
}

/* No answer came. */
static inline void talker_break(struct as_talk *talk, enum as_http_outcome outcome,
                                const char *error)
{
    talker_hear(talk, (struct as_http_response){.outcome = outcome, .error = error});
}

static inline void talker_expect_file(const struct as_talk *talk, const char *path)
{
    cr_assert_eq(talk->want, AS_TALK_READ, "it has ended: %s", talk->message);
    cr_assert_str_eq(talk->path, path);
}

/* A program, as its words with a blank between them. */
static inline void talker_expect_program(const struct as_talk *talk, const char *words)
{
    char text[1024] = "";
    cr_assert_eq(talk->want, AS_TALK_RUN, "it has ended: %s", talk->message);
    for (size_t i = 0; talk->argv[i]; i++) {
        const size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s%s", i ? " " : "", talk->argv[i]);
    }
    cr_assert_str_eq(text, words);
}

/* What a file or a program has; NULL: it could not be had, for `error_number`. */
static inline void talker_content(struct as_talk *talk, const char *content, int error_number)
{
    cr_assert(talk->want == AS_TALK_READ || talk->want == AS_TALK_RUN, "%s", talk->message);
    as_talk_hear_content(talk, TALKER_NOW, content, content ? strlen(content) : 0, error_number);
}

static inline void talker_expect_end(const struct as_talk *talk, enum as_talk_fault fault,
                                     const char *message)
{
    cr_assert_eq(talk->want, AS_TALK_END, "it goes on");
    cr_assert_str_eq(talk->message, message);
    cr_assert_eq(talk->fault, fault, "%d", talk->fault);
}

/* ---- node groups ---- */

struct talker_group { /* zeroed at first, but for the credentials */
    struct as_group_talk talk;
    const struct as_group_provider *provider;
    struct as_provider_credentials credentials; /* borrowed texts */
    struct as_provider_settings account;
    struct as_provider_option options[16];
    struct as_target_field fields[8];
    size_t field_count;
    struct as_target_ref *group;
};

static inline void talker_option(struct talker_group *given, const char *key, const char *value)
{
    cr_assert_lt(given->account.option_count, AS_ARRAY_SIZE(given->options));
    given->options[given->account.option_count++] =
        (struct as_provider_option){.key = key, .value = value};
}

static inline void talker_field(struct talker_group *given, const char *key, const char *value)
{
    cr_assert_lt(given->field_count, AS_ARRAY_SIZE(given->fields));
    given->fields[given->field_count++] = (struct as_target_field){key, value};
}

/* The verb's arguments (from, to, instances, ...) are filled in before. */
static inline void talker_begin_with(struct talker_group *given,
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
    as_talk_init(&given->talk.talk, talker_get_variable);
    given->talk.talk.now = TALKER_NOW;
    given->talk.verb = verb;
    given->talk.account = &given->account;
    given->talk.group = given->group;
    given->talk.credentials = &given->credentials;
    given->provider->begin(&given->talk);
}

static inline void talker_begin(struct talker_group *given, const char *type,
                                enum as_group_verb verb)
{
    talker_begin_with(given, as_group_provider_find(type), type, verb);
}

static inline void talker_end(struct talker_group *given)
{
    as_talk_deinit(&given->talk.talk);
    given->group = as_target_ref_free(given->group);
}

/* The instance at `index`: "id provider-id zone state [unhealthy] [protected]". */
static inline void talker_expect_instance(const struct talker_group *given, size_t index,
                                          const char *words)
{
    static const char *const states[] = {"pending", "running", "leaving", "failed"};
    char text[1024];
    cr_assert_lt(index, given->talk.view.instance_count);
    const struct as_instance *it = &given->talk.view.instances[index];
    snprintf(text, sizeof(text), "%s %s %s %s%s%s", it->id, it->provider_id,
             *it->zone ? it->zone : "-", states[it->state], it->is_unhealthy ? " unhealthy" : "",
             it->is_protected ? " protected" : "");
    cr_assert_str_eq(text, words);
}

/* The names of the resources behind the group, with a space behind each. */
static inline void talker_expect_backing(const struct talker_group *given, const char *names)
{
    char text[1024] = "";
    for (size_t i = 0; i < given->talk.view.backing_count; i++) {
        const size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s ", given->talk.view.backing[i]);
    }
    cr_assert_str_eq(text, names);
}

/* ---- credentials ---- */

struct talker_source { /* zeroed at first */
    struct as_credentials_talk talk;
    struct as_provider_settings account;
    struct as_provider_option options[16];
};

static inline void talker_begin_source(struct talker_source *given,
                                       const struct as_credentials_source *chain, const char *name)
{
    while (chain->name && strcmp(chain->name, name) != 0)
        chain++;
    cr_assert_not_null(chain->name, "there is no source %s", name);
    given->account.name = "prod";
    given->account.options = given->options;
    as_talk_init(&given->talk.talk, talker_get_variable);
    given->talk.talk.now = TALKER_NOW;
    given->talk.account = &given->account;
    chain->begin(&given->talk);
}

static inline void talker_source_option(struct talker_source *given, const char *key,
                                        const char *value)
{
    cr_assert_lt(given->account.option_count, AS_ARRAY_SIZE(given->options));
    given->options[given->account.option_count++] =
        (struct as_provider_option){.key = key, .value = value};
}

/* It has ended well, with these (NULL: has none). */
static inline void talker_expect_found(const struct talker_source *given, const char *key_id,
                                       const char *secret, const char *token, const char *region)
{
    const struct as_provider_credentials *found = &given->talk.found;
    talker_expect_end(&given->talk.talk, AS_TALK_OK, "");
    cr_assert_not(given->talk.is_not_here);
    cr_assert(as_str_equal(found->key_id, key_id), "%s", found->key_id);
    cr_assert(as_str_equal(found->secret, secret), "%s", found->secret);
    cr_assert(as_str_equal(found->token, token), "%s", found->token);
    cr_assert(as_str_equal(found->region, region), "%s", found->region);
}

static inline void talker_end_source(struct talker_source *given)
{
    as_credentials_deinit(&given->talk.found);
    as_talk_deinit(&given->talk.talk);
}

#endif
