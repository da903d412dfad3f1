/*
 * Scaling policies: the columns of `kubectl get`, and what keeps the target from the size that the
 * rules want. One policy has the status of its object too (runtime/policy_report.h).
 *
 * A policy is a target: a credential that may not see the target does not see the policy.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/runtime/policy_report.h>

#include "api_private.h"

#define POLICIES_DEFAULT 1000

struct policy_answer {
    const struct as_policy_view *view;
    const struct as_scaling_policy *policy;
    const char *obstacle; /* the type of a condition; NULL: none */
    struct as_policy_condition condition;
    bool has_obstacle, has_status;
};

static const struct as_row obstacle_rows[] = {
    {AS_ROW("condition", text, policy_answer, obstacle, REQUIRED)},
    {AS_ROW("reason", text, policy_answer, condition.reason, REQUIRED)},
    {AS_ROW("message", text, policy_answer, condition.message, REQUIRED)},
    {.name = NULL},
};

static const char *policy_show_name(const void *request, const char *name)
{
    return api_show_credential(request, name);
}

static struct as_policy_reader policies_get_reader(const struct api_request *request)
{
    return (struct as_policy_reader){policy_show_name, request};
}

static void policy_status_write(struct as_json_writer *json, const struct as_row *row,
                                const void *base)
{
    const struct api_request *request = api_get_request(json);
    const struct policy_answer *answer = base;
    const struct as_policy_reader reader = policies_get_reader(request);
    as_policy_reports_write(request->view.policy_reports, answer->policy, &request->view, &reader,
                            json);
}

#define POLICY .via = AS_ROW_VIA(policy_answer, policy)
#define VIEW   .via = AS_ROW_VIA(policy_answer, view)
#define JUDGED VIEW, .has_at = AS_ROW_HAS(as_policy_view, is_judged)

static const struct as_row policy_rows[] = {
    {AS_ROW("id", text, as_scaling_policy, id, REQUIRED), POLICY},
    {AS_ROW("namespace", text, as_scaling_policy, namespace, REQUIRED), POLICY},
    {AS_ROW("name", text, as_scaling_policy, name, REQUIRED), POLICY},
    {AS_ROW("uid", text, as_scaling_policy, uid, REQUIRED), POLICY},
    {AS_ROW("generation", i64, as_scaling_policy, generation, REQUIRED), POLICY},
    {AS_ROW("created", exact, as_scaling_policy, created, REQUIRED), POLICY},
    {AS_ROW("target", maybe_text, as_policy_view, target, NULLABLE), VIEW},
    {AS_ROW("target_id", maybe_text, as_policy_view, target_id, NULLABLE), VIEW},
    {AS_ROW("size", size, as_policy_view, size, NULLABLE), VIEW},
    {AS_ROW("desired", size, as_policy_view, desired, NULLABLE), VIEW},
    {AS_ROW("min", size, as_policy_view, min, NULLABLE), VIEW},
    {AS_ROW("max", size, as_policy_view, max, NULLABLE), VIEW},
    {AS_ROW("value", maybe_text, as_policy_view, value, NULLABLE), VIEW},
    {AS_ROW("goal", maybe_text, as_policy_view, goal, NULLABLE), VIEW},
    {AS_ROW("locked", maybe_text, as_policy_view, locked, NULLABLE), VIEW},
    {AS_ROW("decision", maybe_text, as_policy_view, decision, NULLABLE), VIEW},
    {AS_ROW("decided", maybe_text, as_policy_view, decided_at, NULLABLE), VIEW},
    {AS_ROW("reason", maybe_text, as_policy_view, reason, NULLABLE), VIEW},
    {AS_ROW("rule", maybe_text, as_policy_view, rule, NULLABLE), VIEW},
    {AS_ROW("ready", flag, as_policy_view, ready.is_true, REQUIRED), JUDGED},
    {AS_ROW("ready_reason", maybe_text, as_policy_view, ready.reason, REQUIRED), JUDGED},
    {AS_ROW("message", maybe_text, as_policy_view, ready.message, REQUIRED), JUDGED},
    {AS_ROW("paused", flag, as_policy_view, is_paused, REQUIRED), VIEW},
    {AS_ROW_SAME("obstacle", REQUIRED, obstacle_rows),
     .has_at = AS_ROW_HAS(policy_answer, has_obstacle)},
    {API_HOOK("status", policy_status_write), .presence = AS_ROW_DEFAULT,
     .has_at = AS_ROW_HAS(policy_answer, has_status)},
    {.name = NULL},
};

/* The first one that needs a person. */
static void policy_find_obstacle(const struct as_policy_view *view, struct policy_answer *answer)
{
    const struct {
        const char *type;
        const struct as_policy_condition *condition;
        bool is_obstacle;
    } rows[] = {
        {"Ready", &view->ready, !view->ready.is_true || view->policy->reason == AS_POLICY_SHADOW},
        {"ScalingActive", &view->active, !view->active.is_true},
        {"Blocked", &view->blocked, view->blocked.is_true},
        {"ScalingLimited", &view->limited, view->limited.is_true},
    };
    for (size_t i = 0; view->is_judged && i < AS_ARRAY_SIZE(rows); i++) {
        if (!rows[i].is_obstacle)
            continue;
        answer->obstacle = rows[i].type;
        answer->condition = *rows[i].condition;
        answer->has_obstacle = true;
        return;
    }
}

static struct policy_answer policy_make_answer(const struct as_policy_view *view)
{
    struct policy_answer answer = {.view = view, .policy = view->policy};
    policy_find_obstacle(view, &answer);
    return answer;
}

static bool policy_may_see(const struct api_request *request, const struct as_policy_view *view)
{
    return as_scope_allows_target(request->view.scopes, request->view.scope_count, request->who,
                                  view->policy->id, view->target_id ? view->target_id : "");
}

static void list_policy(void *context, const struct as_policy_view *view)
{
    struct api_list *list = context;
    if (!policy_may_see(list->request, view))
        return;
    const struct policy_answer answer = policy_make_answer(view);
    api_list_add(list, policy_rows, &answer);
}

static bool visit_policy(void *context, const struct as_scaling_policy *policy)
{
    struct api_list *list = context;
    const struct as_view *view = &list->request->view;
    const struct as_policy_reader reader = policies_get_reader(list->request);
    as_policy_reports_show(view->policy_reports, policy, view, &reader, list_policy, list);
    return list->is_cut;
}

void api_answer_policies(struct api_request *request)
{
    struct api_list list;
    if (!api_list_begin(&list, request, POLICIES_DEFAULT))
        return;
    if (request->view.policies)
        as_policy_set_visit(request->view.policies, visit_policy, &list);
    api_list_end(&list);
}

struct policy_search {
    struct api_request *request;
    bool is_found;
};

static void answer_with_policy(void *context, const struct as_policy_view *view)
{
    struct policy_search *search = context;
    struct policy_answer answer = policy_make_answer(view);
    if (!policy_may_see(search->request, view))
        return;
    search->is_found = true;
    answer.has_status = true;
    api_begin(search->request);
    as_rows_write(&search->request->json, policy_rows, &answer);
    api_end(search->request);
}

void api_answer_policy(struct api_request *request)
{
    const struct as_view *view = &request->view;
    const struct as_policy_reader reader = policies_get_reader(request);
    struct policy_search search = {.request = request};
    AS_CLEANUP(as_free_p) char *id = api_decode_rest(request);
    const struct as_scaling_policy *policy =
        id && view->policies ? as_policy_set_find(view->policies, id) : NULL;
    if (!id || !strchr(id, '/')) {
        as_reply_error(request->exchange, 400, NULL,
                       "expected NAMESPACE/NAME of a policy, such as shop/checkout");
        return;
    }
    if (policy)
        as_policy_reports_show(view->policy_reports, policy, view, &reader, answer_with_policy,
                               &search);
    if (!search.is_found)
        as_reply_error(request->exchange, 404, NULL, "no such policy: %s", id);
}
