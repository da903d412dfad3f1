/*
 * Finds the targets and queries of alerts, as the engine would. The history has no annotations.
 */
#include "backtest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/decide/target.h>

#define TARGETS_MAX 10000
#define QUERIES_MAX 10000

/* The text of --target NAME=TEXT; NULL: not given. */
static const char *find_given_query(const struct backtest *backtest, const char *name)
{
    const size_t size = strlen(name);
    const char *text;
    size_t at = 0;

    while ((text = as_args_find_next(backtest->args, "target", &at))) {
        if (strncmp(text, name, size) == 0 && text[size] == '=')
            return text + size + 1;
    }
    return NULL;
}

int backtest_check_target_options(const struct backtest *backtest, struct as_error *error)
{
    const struct as_ruleset *ruleset = backtest->config->ruleset;
    const char *text;
    size_t at = 0;

    while ((text = as_args_find_next(backtest->args, "target", &at))) {
        const size_t size = strcspn(text, "=");
        size_t i = 0;
        while (i < ruleset->target_count && (strncmp(ruleset->targets[i].name, text, size) != 0 ||
                                             ruleset->targets[i].name[size] != '\0'))
            i++;
        if (!text[size] || i == ruleset->target_count) {
            as_error_set(error,
                         text[size] ? "--target: the rules have no target \"%.*s\""
                                    : "--target: \"%.*s\" is not NAME=QUERY",
                         (int)size, text);
            return -EINVAL;
        }
    }
    return 0;
}

static int expand(const struct backtest *backtest, const char *text, const struct as_labels *labels,
                  struct as_buf *out, struct as_error *error)
{
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    int status = as_template_new(text, &template, error);

    if (!status)
        status = as_template_check_promql(template, error);
    if (!status)
        status = as_template_expand_promql(template, labels, backtest->nothing, out, error);
    return status;
}

/* The query for the target's size; NULL if there is none. */
static char *make_size_query(const struct backtest *backtest, const struct as_target_config *config,
                             const struct as_target_ref *ref, const struct as_labels *labels,
                             struct as_error *error)
{
    const struct as_target_kind *kind = ref->kind;
    const char *given = find_given_query(backtest, config->name);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_QUERY_MAX);

    if (given && expand(backtest, given, labels, &text, error) != 0) {
        as_error_wrap(error, "--target %s", config->name);
        return NULL;
    }
    if (given || (kind->append_size_query && kind->append_size_query(ref, &text)))
        return as_buf_take(&text, NULL);
    return NULL;
}

struct history_target *backtest_find_target(const struct backtest *backtest, const char *id)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    struct history_target *target;

    HASH_FIND_STR(backtest->targets, key, target);
    return target;
}

/* 0, or a negative errno. A wrong --target ends the command. */
static int bind_target(struct backtest *backtest, const struct as_target_config *config,
                       const struct as_labels *labels, const char **id_out, struct as_error *error)
{
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    struct history_target *target;

    *id_out = NULL;
    if (as_target_ref_new(config, labels, backtest->nothing, &ref, NULL) != AS_TARGET_OK)
        return 0; /* the rehearsal reports target_not_allowed */
    HASH_FIND_STR(backtest->targets, ref->key, target);
    if (target) {
        *id_out = target->id;
        return 0;
    }
    if (HASH_COUNT(backtest->targets) == TARGETS_MAX) {
        as_error_set(error, "more than %d targets", TARGETS_MAX);
        return -EMSGSIZE;
    }
    struct as_error why = AS_ERROR_INIT;
    char *query = make_size_query(backtest, config, ref, labels, &why);
    if (*why.text) {
        *error = why;
        return -EINVAL;
    }
    target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(ref->id);
    target->key = as_xstrdup(ref->key);
    target->name = as_xstrdup(config->name);
    target->query = query;
    target->config = config;
    if (ref->kind->has_pods && !*as_target_ref_get(ref, "field"))
        target->namespace = as_xstrdup(as_target_ref_get(ref, "namespace"));
    target->size = -1;
    HASH_ADD_KEYPTR(hh, backtest->targets, target->key, strlen(target->key), target);
    *id_out = target->id;
    return 0;
}

int backtest_bind_plain_targets(struct backtest *backtest, struct as_error *error)
{
    const struct as_ruleset *ruleset = backtest->config->ruleset;
    const char *id;
    int status = 0;

    for (size_t i = 0; !status && i < ruleset->target_count; i++) {
        if (!ruleset->targets[i].is_templated)
            status = bind_target(backtest, &ruleset->targets[i], backtest->nothing, &id, error);
    }
    return status;
}

/* NULL if there are too many. */
static struct history_query *get_query(struct backtest *backtest, const char *text,
                                       enum as_query_form form, const char *pod_label,
                                       const char *target)
{
    struct history_query *query;

    HASH_FIND_STR(backtest->queries, text, query);
    if (!query && HASH_COUNT(backtest->queries) == QUERIES_MAX) {
        backtest_warn(backtest, "more than %d different queries: %s is not asked", QUERIES_MAX,
                      text);
        return NULL;
    }
    if (!query) {
        query = as_xcalloc(1, sizeof(*query));
        query->text = as_xstrdup(text);
        query->form = form;
        query->pod_label = as_xstrdup(pod_label ? pod_label : "pod");
        query->target = as_xstrdup(target ? target : "");
        HASH_ADD_KEYPTR(hh, backtest->queries, query->text, strlen(query->text), query);
    }
    if (query->form == AS_QUERY_ANY) /* AS_QUERY_ANY: a number also shows that there is data */
        query->form = form;
    query->is_used = true;
    return query;
}

/* NULL if the alert's labels give no query; the rehearsal reports that too. */
static struct history_query *bind_query(struct backtest *backtest,
                                        const struct as_template *template, enum as_query_form form,
                                        const char *pod_label, const struct history_alert *alert,
                                        const char *target)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_QUERY_MAX);

    if (as_template_expand_promql(template, alert->labels, backtest->nothing, &text, NULL) != 0 ||
        !text.data)
        return NULL;
    return get_query(backtest, text.data, form, pod_label, target);
}

/* What the target's pods request, from kube-state-metrics, summed over containers. */
static void bind_resources(struct backtest *backtest, const struct as_track *track,
                           struct history_query *query, const char *id)
{
    static const char *const words[] = {[AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory"};
    const struct history_target *target = backtest_find_target(backtest, id);

    if (!target || !target->namespace)
        return;
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("sum by (pod) (kube_pod_container_resource_%s{resource=\"%s\","
                              "namespace=\"%s\",pod=~\"%s-.*\"})",
                              track->of_limits ? "limits" : "requests", words[track->resource],
                              target->namespace, strrchr(id, '/') + 1);
    query->asked_for = get_query(backtest, text, AS_QUERY_PER_POD, "pod", "");
    query->resource = track->resource;
    if (query->asked_for)
        query->asked_for->is_asked_for = true;
}

static int bind_rule(struct backtest *backtest, const struct as_rule *rule,
                     const struct history_alert *alert, struct as_error *error)
{
    const struct as_target_config *config = &backtest->config->ruleset->targets[rule->target];
    const char *id;
    const int status = bind_target(backtest, config, alert->labels, &id, error);

    if (status)
        return status;
    struct history_query *query = NULL;
    if (rule->source.kind == AS_SOURCE_QUERY)
        query = bind_query(backtest, rule->source.query,
                           rule->source.per_pod ? AS_QUERY_PER_POD : AS_QUERY_NUMBER,
                           rule->source.pod_label, alert, id);
    if (query && id && rule->action.kind == AS_ACTION_TRACK &&
        rule->action.track.goal == AS_GOAL_UTILIZATION)
        bind_resources(backtest, &rule->action.track, query, id);
    if (rule->guard_kind == AS_GUARD_QUERY)
        (void)bind_query(backtest, rule->guard, AS_QUERY_ANY, NULL, alert, id);
    return 0;
}

int backtest_bind_alerts(struct backtest *backtest, struct as_error *error)
{
    const char *receiver = as_args_get(backtest->args, "receiver");
    struct history_alert *alert, *next;
    const uint32_t *rules;

    HASH_ITER (hh, backtest->alerts, alert, next) {
        if (as_labels_are_own(alert->labels))
            continue;
        const size_t count =
            as_rule_index_match(backtest->index, alert->labels, &receiver, 1, &rules);
        for (size_t i = 0; i < count; i++) {
            const struct as_rule *rule = &backtest->config->ruleset->rules[rules[i]];
            const int status = rule->enabled ? bind_rule(backtest, rule, alert, error) : 0;
            if (status)
                return status;
        }
    }
    return 0;
}
