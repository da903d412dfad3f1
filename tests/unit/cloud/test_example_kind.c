/*
 * All that a new kind of target needs whose size is one integer: an adapter, a row, and (not here)
 * a page. The first half of this file is what would be added to the program; the tables are its
 * own, in place of those of src/decide/kind_table.c and src/cloud/target_adapters.c. The second
 * half shows that nothing else is needed: rule files, ids, check, the engine, its state, the
 * registry and backtest know the kind.
 */
#include <alertscaler/cloud/target_registry.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/config.h>

#include "../engine/engine_harness.h"
#include "../kube/support.h"

/* --- What is added: the row, of src/decide/kinds.c. --- */

static bool is_plain_name(const char *value)
{
    return *value && !strpbrk(value, "/ ");
}

/* An old name of the kind's is still understood. */
static bool append_key(const char *rest, struct as_buf *out)
{
    const char *name = strrchr(rest, '/');
    if (!name)
        return false;
    as_buf_append(out, rest, (size_t)(name + 1 - rest));
    as_buf_append_str(out, strncmp(name, "/old-", 5) == 0 ? name + 5 : name + 1);
    return true;
}

static bool append_size_query(const struct as_target_ref *ref, struct as_buf *out)
{
    as_buf_printf(out, "example_size{name=\"%s\"}", as_target_ref_get(ref, "name"));
    return true;
}

static const struct as_target_kind example = {
    .word = "example",
    .title = "an example",
    .unit = "things",
    .owner = "cluster",
    .keys = {{.key = "cluster",
              .fallback = "default",
              .is_valid = is_plain_name,
              .expected = "a cluster's name"},
             {.key = "name",
              .is_required = true,
              .is_valid = is_plain_name,
              .expected = "a name without slashes and spaces"}},
    .allow = {[AS_ALLOW_NAMES] = "name"},
    .append_key = append_key,
    .append_size_query = append_size_query,
};

/* --- a line in src/decide/kind_table.c --- */

const struct as_target_kind *const as_target_kinds[] = {
    &as_target_kind_kubernetes,
    &as_target_kind_node_group,
    &example,
    NULL,
};

/* --- The adapter, a file of src/kube: a size in memory, one call at a time. --- */

struct example {
    struct as_target_port port;
    struct as_kube_access *access;
    const struct as_access_env *env;
    struct as_timer *timer;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    uint64_t call_id;
    int32_t size;
};

static void tell(void *context)
{
    struct example *self = context;
    self->timer = NULL;
    if (self->observed)
        self->observed(self->context, self->call_id,
                       &(struct as_observation){.outcome = AS_REASON_APPLIED,
                                                .replicas = self->size,
                                                .status_replicas = self->size,
                                                .min = -1,
                                                .max = -1});
    else
        self->scaled(self->context, self->call_id,
                     &(struct as_scale_result){.outcome = AS_REASON_APPLIED, .attempts = 1});
}

static void start(struct example *self, uint64_t call_id, as_target_observed_fn *observed,
                  as_target_scaled_fn *scaled, void *context)
{
    self->call_id = call_id;
    self->observed = observed;
    self->scaled = scaled;
    self->context = context;
    self->timer = self->env->loop->start_timer(self->env->loop, 0, tell, self);
}

static void observe_example(struct as_target_port *port, uint64_t call_id,
                            const struct as_target_ref *ref,
                            const struct as_observe_request *request, as_target_observed_fn *done,
                            void *context)
{
    start((struct example *)port, call_id, done, NULL, context);
}

static void scale_example(struct as_target_port *port, uint64_t call_id,
                          const struct as_target_ref *ref, const struct as_scale_request *request,
                          as_target_scaled_fn *done, void *context)
{
    ((struct example *)port)->size = request->to;
    start((struct example *)port, call_id, NULL, done, context);
}

static bool is_example_idle(const struct as_target_port *port)
{
    return !((const struct example *)port)->timer;
}

static void close_example(struct as_target_port *port)
{
    struct example *self = (struct example *)port;
    self->env->loop->cancel_timer(self->env->loop, self->timer);
    as_kube_access_free(self->access);
    free(self);
}

static struct as_target_port *example_new(struct as_kube_access *access,
                                          const struct as_access_env *with)
{
    struct example *self = as_xcalloc(1, sizeof(*self));
    self->port = (struct as_target_port){observe_example, scale_example, is_example_idle,
                                         close_example,   NULL,          NULL};
    self->access = access;
    self->env = with;
    self->size = 4;
    return &self->port;
}

/* --- a line in src/cloud/target_adapters.c --- */

const struct as_target_adapter as_target_adapters[] = {
    {&example, example_new},
    {0},
};

/* --- what works without more --- */

static char folder[] = "/tmp/as-kind-XXXXXX", rules[64], cluster[64];
static struct as_diagnostics diagnostics;
static struct as_config *config;

static void setup(void)
{
    setup_world();
    cr_assert_not_null(mkdtemp(folder));
    snprintf(rules, sizeof(rules), "%s/rules.yaml", folder);
    snprintf(cluster, sizeof(cluster), "%s/cluster", folder);
}

static void teardown(void)
{
    config = as_config_free(config);
    as_diagnostics_deinit(&diagnostics);
    unlink(rules);
    unlink(cluster);
    rmdir(folder);
    teardown_world();
}

TestSuite(example_kind, .init = setup, .fini = teardown);

static int load(const char *text)
{
    const char *const paths[] = {rules};
    write_file(rules, text);
    return as_config_load_rules(paths, 1, &config, &diagnostics);
}

static struct as_target_ref *make_example(size_t target)
{
    static const struct as_labels none = {0};
    struct as_target_ref *ref = NULL;
    cr_assert_eq(as_target_ref_new(config->ruleset->targets[target], &none, &none, &ref, NULL), 0);
    return ref;
}

Test(example_kind, rule_files_may_have_it)
{
    cr_assert_eq(load("targets:\n"
                      "  a: {example: {name: web}, max: 5}\n"
                      "  b: {example: {name: old-db, cluster: edge}, max: 5}\n"),
                 AS_CONFIG_OK);
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *a = make_example(0), *b = make_example(1);
    cr_expect_str_eq(a->id, "example/default/web");
    cr_expect_str_eq(b->id, "example/edge/old-db");
    cr_expect_str_eq(b->key, "example/edge/db");
    cr_expect(as_target_is_same("example/edge/old-db", "example/edge/db"));
    cr_expect(as_target_may_have_id(config->ruleset->targets[1], "example/edge/db"));
}

Test(example_kind, check_finds_what_is_wrong)
{
    static const char *const expected[] = {
        "key `name` is missing",
        "unknown key `nam`; did you mean `name`?",
        "unknown key `exampl`; did you mean `example`?",
        "one of `kubernetes`, `node_group` and `example` is needed",
        "expected a name without slashes and spaces, found `a/b`",
        "no alert may select the namespace of an example",
        "`nodes` is for node groups only",
        ("an alert gives `name`: say which values it may give, for example "
         "`allow: {names: [web, 'api-*']}` (['*']: any)"),
        "the same object as target `i` at ",
        "target `a` is an example, which has no pods",
    };
    cr_assert_eq(load("targets:\n"
                      "  b: {example: {nam: web}, max: 5}\n"
                      "  c: {exampl: {name: web}, max: 5}\n"
                      "  d: {example: {name: a/b}, max: 5}\n"
                      "  e: {example: {name: e}, max: 5, allow: {namespaces: [x]}}\n"
                      "  f: {example: {name: f}, max: 5, nodes: {drain: false}}\n"
                      "  g: {example: {name: '{{ .Labels.a }}'}, max: 5}\n"
                      "  i: {example: {name: i}, max: 5}\n"
                      "  j: {example: {name: old-i}, max: 5}\n"
                      "  a: {example: {name: a}, max: 5}\n"
                      "rules:\n"
                      "  - {name: r, match: [a=b], target: a, "
                      "track: {average: 1, query: up, per_pod: true}}\n"),
                 AS_CONFIG_INVALID);
    for (size_t i = 0; i < AS_ARRAY_SIZE(expected); i++) {
        bool is_said = false;
        for (size_t k = 0; k < diagnostics.count; k++)
            is_said = is_said || as_str_starts_with(diagnostics.items[k].message, expected[i]);
        cr_expect(is_said, "%s", expected[i]);
    }
}

Test(example_kind, the_registry_observes_and_sizes_it)
{
    struct as_cluster_settings clusters[] = {{"default", cluster, NULL}};
    struct as_settings settings = {.clusters = clusters, .cluster_count = 1};
    struct as_target_port *port = NULL;
    struct as_error error = AS_ERROR_INIT;
    write_file(cluster, "current-context: c\n"
                        "clusters: [{name: c, cluster: {server: 'https://k'}}]\n"
                        "contexts: [{name: c, context: {cluster: c}}]\n");
    cr_assert_eq(load("targets: {a: {example: {name: web}, max: 5}}\n"), AS_CONFIG_OK);
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = make_example(0);
    cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0, "%s", error.text);
    observe(port, ref);
    cr_expect_eq(observation.replicas, 4);
    scale(port, ref, 4, 6, "");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    observe(port, ref);
    cr_expect_eq(observation.replicas, 6);
    cr_expect(port->is_idle(port));
    port->close(port);
}

Test(example_kind, the_engine_decides_and_remembers_it)
{
    static const struct spec slow = {
        .targets = {{.name = "any",
                     .address = "{{ .Labels.app }}",
                     .allow = "*",
                     .min = 1,
                     .max = 20,
                     .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
    };
    WITH(h, slow);
    h.ruleset->targets[0]->kind = &example;
    fire(&h, "Slow,app=web", 990);
    cr_assert_str_eq(h.targets[0].id, "example/default/web");
    cr_expect_eq(h.targets[0].size, 6);
    (void)said(&h);
    harness_crash(&h, 10);
    cr_said(&h, "restarted; observe web; decided web 6 cooldown (8) by slow");
    cr_assert_eq(h.target_count, 1);
    harness_stop(&h);
}

Test(example_kind, backtest_knows_its_history_and_its_unit)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf query = AS_BUF_INIT(100);
    cr_assert_eq(load("targets: {a: {example: {name: web}, max: 5}}\n"), AS_CONFIG_OK);
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = make_example(0);
    cr_assert(ref->kind->append_size_query(ref, &query));
    cr_expect_str_eq(query.data, "example_size{name=\"web\"}");
    cr_expect_str_eq(as_target_kind_find_of_id(ref->id)->unit, "things");
}
