/* Any bytes as a rule file, and as a configuration unless they name rule files of the machine. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <alertscaler/decide/ruleset.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/rules/config.h>

#include "fuzz.h"

/* Each template has a list of `allow` that limits it. */
static void check_limits(const struct as_target_config *target)
{
    for (size_t i = 0; i < target->address_count; i++) {
        const struct as_address_field *field = &target->address[i];
        const enum as_allow limit = as_target_find_limit(target, field->key);
        FUZZ_CHECK(as_template_is_plain(field->value) ||
                   (limit < AS_ALLOW_COUNT && target->allowed[limit].count > 0));
    }
}

static void check_target(const struct as_target_config *target)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_target_ref *ref = NULL;

    FUZZ_CHECK(*target->name && target->address_count > 0);
    FUZZ_CHECK(target->bounds.max >= target->bounds.min && target->bounds.min >= 0);
    check_limits(target);
    /* What is written without a template can always be used. */
    if (!target->is_templated)
        FUZZ_CHECK(as_target_ref_new(target, NULL, NULL, &ref, &error) == AS_TARGET_OK);
    as_target_ref_free(ref);
}

static void check_source(const struct as_source *source)
{
    bool has_name = source->kind == AS_SOURCE_ANNOTATION || source->kind == AS_SOURCE_LABEL;
    FUZZ_CHECK(has_name == (source->name != NULL));
    FUZZ_CHECK((source->kind == AS_SOURCE_QUERY) == (source->query != NULL));
    FUZZ_CHECK(source->per_pod == (source->pod_label != NULL));
    if (source->query)
        FUZZ_CHECK(as_template_check_promql(source->query, NULL) == 0);
}

/* What the decision takes for granted of an action. */
static void check_action(const struct as_rule *rule)
{
    const struct as_action *action = &rule->action;
    bool has_source = rule->source.kind != AS_SOURCE_NONE;

    FUZZ_CHECK(action->steps == rule->steps && action->step_count <= AS_STEPS_MAX);
    switch (action->kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN:
        FUZZ_CHECK(has_source == (action->step_count > 0));
        for (size_t i = 0; i < action->step_count; i++)
            FUZZ_CHECK(action->steps[i].amount.at_least >= 1 && action->steps[i].to >= 0);
        FUZZ_CHECK(action->amount.at_least >= 1);
        break;
    case AS_ACTION_SCALE_TO:
        FUZZ_CHECK(has_source == (action->step_count > 0) && action->size >= 0);
        for (size_t i = 0; i < action->step_count; i++)
            FUZZ_CHECK(action->steps[i].amount.size >= 0);
        break;
    case AS_ACTION_TRACK: FUZZ_CHECK(has_source && action->track.value > 0); break;
    case AS_ACTION_PASS_THROUGH: FUZZ_CHECK(has_source); break;
    case AS_ACTION_HOLD: FUZZ_CHECK(rule->action.hold && !has_source); break;
    case AS_ACTION_KIND_COUNT: abort();
    }
}

static void check_rule(const struct as_ruleset *ruleset, const struct as_rule *rule)
{
    FUZZ_CHECK(*rule->name && rule->matcher_count > 0 && rule->target &&
               rule->target == ruleset->targets[rule->target->number]);
    FUZZ_CHECK(rule->every_us >= 0 && rule->max_steps <= INT32_MAX);
    check_action(rule);
    check_source(&rule->source);
    FUZZ_CHECK((rule->guard_kind == AS_GUARD_QUERY) == (rule->guard != NULL));
    if (rule->guard)
        FUZZ_CHECK(as_template_check_promql(rule->guard, NULL) == 0);
    FUZZ_CHECK(rule->on_resolved.kind != AS_ENDING_GIVE_BACK ||
               (rule->on_resolved.step_milli_percent > 0 && rule->on_resolved.after_us >= 0));
    FUZZ_CHECK(rule->on_resolved.kind != AS_ENDING_SCALE ||
               rule->on_resolved.action.kind == AS_ACTION_SCALE_TO ||
               (rule->on_resolved.action.kind == AS_ACTION_SCALE_DOWN &&
                rule->on_resolved.action.amount.at_least >= 1));
}

static void check_config(int result, struct as_config *config, struct as_diagnostics *diagnostics)
{
    FUZZ_CHECK((result == AS_CONFIG_OK) == !diagnostics->has_error);
    FUZZ_CHECK((result == AS_CONFIG_OK) == (config != NULL));
    if (config) {
        const struct as_ruleset *ruleset = config->ruleset;
        for (size_t i = 0; i < ruleset->target_count; i++)
            check_target(ruleset->targets[i]);
        for (size_t i = 0; i < ruleset->rule_count; i++)
            check_rule(ruleset, ruleset->rules[i]);
        as_rule_index_free(as_rule_index_new(ruleset));
    }
    as_config_free(config);
    as_diagnostics_deinit(diagnostics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_config *config = NULL;
    char path[64];
    int fd = memfd_create("rules", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int r = as_config_load_rules((const char *const[]){path}, 1, &config, &diagnostics);
    check_config(r, config, &diagnostics);
    if (!memmem(data, size, "rule_files", 10)) {
        config = NULL;
        r = as_config_load(path, &config, &diagnostics);
        check_config(r, config, &diagnostics);
    }
    close(fd);
    return 0;
}
