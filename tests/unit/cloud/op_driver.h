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

#include <alertscaler/cloud/provider_group.h>

#include "../login/op_driver.h"

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

#endif
