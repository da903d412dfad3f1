/*
 * `alertscaler backtest`: runs past alerts from Prometheus through a rehearsal of the engine, and
 * compares with past sizes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "backtest_private.h"
#include "cli.h"
#include "rules_option.h"

#define STEP_MIN_US AS_US_PER_MS
#define STEPS_MAX   INT64_C(100000000)
#define BAR_WIDTH   40

static int read_times(struct backtest *backtest, struct as_error *error)
{
    const struct as_args *args = backtest->args;
    const as_wall_time now = moment_get_now();
    as_wall_time from = {0}, to = {0};

    if (!as_args_has(args, "from")) {
        as_error_set(error, "--from=TIME is needed");
        return -EINVAL;
    }
    int status = moment_parse("from", as_args_get(args, "from"), now, &from, error);
    if (!status)
        status = moment_parse("to", as_args_get(args, "to"), now, &to, error);
    if (!status) {
        status = as_duration_parse(as_args_get(args, "step"), &backtest->step, error);
        if (status)
            as_error_wrap(error, "--step");
    }
    if (status)
        return status;
    if (backtest->step < STEP_MIN_US || backtest->step % STEP_MIN_US != 0) {
        as_error_set(error, "--step: at least 1ms is needed");
        return -EINVAL;
    }
    backtest->from = from.us / STEP_MIN_US * STEP_MIN_US; /* Prometheus has milliseconds */
    backtest->to = to.us;
    if (backtest->to <= backtest->from) {
        as_error_set(error, "--to is not after --from");
        return -EINVAL;
    }
    if ((backtest->to - backtest->from) / backtest->step > STEPS_MAX) {
        as_error_set(error, "--step: too short for that time");
        return -ERANGE;
    }
    return 0;
}

static int check_labels(const struct as_args *args, struct as_error *error)
{
    const char *text;
    size_t at = 0, other_at, count = 0;

    while ((text = as_args_find_next(args, "label", &at))) {
        const size_t size = strcspn(text, "=");
        const char *other;
        unsigned same = 0;
        for (other_at = 0; (other = as_args_find_next(args, "label", &other_at));)
            same += strncmp(text, other, size + 1) == 0;
        if (size == 0 || !text[size] || same > 1 || ++count > 100) {
            as_error_set(error, "--label: \"%s\" is not NAME=VALUE, or given twice", text);
            return -EINVAL;
        }
    }
    return 0;
}

/* The history has no annotations, and of nodes it has other numbers. */
static void warn_of_rules(struct backtest *backtest)
{
    const struct as_ruleset *ruleset = backtest->config->ruleset;

    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = &ruleset->rules[i];
        if (!rule->enabled)
            continue;
        if (rule->source.kind == AS_SOURCE_ANNOTATION)
            backtest_warn(backtest,
                          "rule %s: its value is an annotation, which Prometheus does not keep: it "
                          "proposes nothing",
                          rule->name);
        if (rule->source.kind == AS_SOURCE_NODES)
            backtest_warn(backtest,
                          "rule %s: its value is of `nodes`, which Prometheus does not keep as "
                          "they are counted here: it proposes nothing",
                          rule->name);
    }
}

static void warn_of_targets(struct backtest *backtest)
{
    struct history_target *target, *next;

    HASH_ITER (hh, backtest->targets, target, next) {
        if (target->size < 0 && as_rehearsal_get_size(backtest->rehearsal, target->id) < 0)
            backtest_warn(backtest,
                          "target %s (%s): no size in the history (%s): --target=%s=QUERY or "
                          "--replicas=NAME=N gives one",
                          target->name, target->id,
                          target->query ? target->query : "there is no metric for its kind",
                          target->name);
    }
}

static void warn_of_resources(struct backtest *backtest)
{
    struct history_query *query, *next;

    HASH_ITER (hh, backtest->queries, query, next) {
        if (query->is_asked_for && !query->had_data)
            backtest_warn(backtest,
                          "%s: no data: what pods ask for is not known, and utilization proposes "
                          "nothing",
                          query->text);
    }
}

static void print_progress(const struct backtest *backtest, bool is_last)
{
    const int64_t done = backtest->chunk - backtest->from, all = backtest->to - backtest->from;
    const int part = is_last ? BAR_WIDTH : (int)(done * BAR_WIDTH / all);
    char at[AS_RFC3339_SIZE];

    if (!isatty(STDERR_FILENO))
        return;
    as_wall_time_print_short((as_wall_time){is_last ? backtest->to : backtest->chunk}, at);
    fprintf(stderr, "\r[%.*s%*s] %3d %%  %s\033[K%s", part,
            "########################################", BAR_WIDTH - part, "",
            is_last ? 100 : (int)(done * 100 / all), at, is_last ? "\r\033[K" : "");
}

static int play_all(struct backtest *backtest, struct as_error *error)
{
    int status = backtest_bind_plain_targets(backtest, error);

    backtest->steps = BACKTEST_CHUNK_MAX;
    backtest->chunk = backtest->from;
    while (!status && backtest->chunk <= backtest->to) {
        print_progress(backtest, false);
        status = backtest_read_chunk(backtest, error);
        if (!status)
            backtest_play_chunk(backtest);
        backtest->chunk += (int64_t)backtest->count * backtest->step;
        backtest_clear_chunk(backtest);
    }
    print_progress(backtest, true);
    if (!status) {
        if (backtest->to > as_rehearsal_get_now(backtest->rehearsal).us)
            as_rehearsal_advance(backtest->rehearsal, (as_wall_time){backtest->to});
        comparison_end(backtest->comparison, (as_wall_time){backtest->to});
    }
    return status;
}

static int report(struct backtest *backtest, const char *rules, struct as_error *error)
{
    warn_of_targets(backtest);
    warn_of_resources(backtest);
    const struct comparison_report report = {
        .args = backtest->args,
        .rules = rules,
        .from = {backtest->from},
        .to = {backtest->to},
        .notifications = backtest->notifications,
        .warnings = backtest->warnings,
        .approvals = as_args_get(backtest->args, "approvals"),
    };
    return comparison_print(backtest->comparison, &report, error);
}

static int test(struct backtest *backtest, const char *rules, struct as_error *error)
{
    backtest_begin(backtest);
    int status =
        rules_set_replicas(backtest->args, backtest->config->ruleset, backtest->rehearsal, error);
    if (!status)
        status = backtest_check_target_options(backtest, error);
    if (status)
        return status;
    warn_of_rules(backtest);
    status = play_all(backtest, error);
    return status ? status : report(backtest, rules, error);
}

static int open_prometheus(struct backtest *backtest, const struct as_config *config,
                           struct as_error *error)
{
    const struct as_prometheus_settings *settings = &config->settings.prometheus;
    const char *given = as_args_get(backtest->args, "prometheus");
    const char *url = given ? given : settings->url;

    if (!url) {
        as_error_set(error, "--prometheus=URL is needed: the configuration names none");
        return -EINVAL;
    }
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        as_error_set(error, "--prometheus: \"%s\" is not an address as http://prometheus:9090",
                     url);
        return -EINVAL;
    }
    backtest->session = http_session_open(backtest->args->adapters, url, &settings->http);
    return 0;
}

/* Access to Prometheus may be configured in a separate file. */
static int load(struct backtest *backtest, const char *rules, struct as_config **other_out)
{
    const char *http = as_args_get(backtest->args, "http.config.file");
    int status = rules_load(backtest->args, rules, &backtest->config);

    if (!status && http)
        status = rules_load_http(backtest->args, http, other_out);
    return status;
}

static int run(const struct as_args *args)
{
    struct backtest backtest = {.args = args};
    AS_CLEANUP(as_config_free_p) struct as_config *other = NULL;
    const char *given = as_args_get(args, "rules");
    const char *rules = given ? given : config_option_tell(args);
    struct as_error error = AS_ERROR_INIT;

    if (as_args_has(args, "http.config.file") && !as_args_has(args, "prometheus"))
        return as_cli_fail(args, "--http.config.file needs --prometheus");
    if (read_times(&backtest, &error) || check_labels(args, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = load(&backtest, rules, &other);
    if (status) {
        as_config_free(backtest.config);
        return status;
    }
    backtest.index = as_rule_index_new(backtest.config->ruleset);
    backtest.comparison = comparison_new(backtest.config->ruleset, as_args_has(args, "svg"));
    backtest.warnings = json_array();
    if (as_labels_new(NULL, 0, &backtest.nothing) != 0)
        abort(); /* nothing is not too much */
    status = open_prometheus(&backtest, other ? other : backtest.config, &error);
    if (!status)
        status = test(&backtest, rules, &error);
    backtest_clear(&backtest);
    http_session_close(backtest.session);
    json_decref(backtest.warnings);
    as_labels_free(backtest.nothing);
    as_rehearsal_free(backtest.rehearsal);
    comparison_free(backtest.comparison);
    as_rule_index_free(backtest.index);
    as_config_free(backtest.config);
    return status ? as_cli_fail(args, "%s", error.text) : AS_EXIT_OK;
}

static const struct as_option options[] = {
    {.name = "prometheus", .value = "URL", .help = "Prometheus' address: http://prometheus:9090"},
    {.name = "from",
     .value = "TIME",
     .help = "The beginning: 2026-11-20T14:03Z, or 7d for seven days ago"},
    {.name = "to", .value = "TIME", .fallback = "now", .help = "The end, as --from"},
    {.name = "step", .value = "DURATION", .fallback = "15s", .help = "Resolution of the history"},
    {.name = "rules",
     .value = "PATH",
     .help = "The rules to try: a folder, a file, or a configuration"},
    {.name = "target",
     .value = "NAME=QUERY",
     .repeats = true,
     .help = "PromQL for a target's size in the past; may hold templates of the alert's labels"},
    AS_OPTION_REPLICAS,
    {.name = "label",
     .value = "NAME=VALUE",
     .repeats = true,
     .help = "A label to add to all alerts, as Prometheus' external_labels does"},
    {.name = "receiver",
     .value = "NAME",
     .fallback = "alertscaler",
     .help = "The alerts' receiver in Alertmanager"},
    {.name = "approvals",
     .value = "WORD",
     .fallback = "given",
     .choices = (const char *const[]){"given", "none", NULL},
     .help = "Changes that wait for a person are approved at once (given), or never (none)"},
    {.name = "svg", .value = "DIR", .help = "Draws a chart of each target into this folder"},
    AS_OPTION_CONFIG_FILE(
        "Gives the access to Prometheus (`prometheus`); without --rules, also the rules"),
    {.name = "http.config.file",
     .value = "FILE",
     .help = "http_config for Prometheus: credentials and TLS"},
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_backtest = {
    .name = "backtest",
    .operands = "",
    .summary = "Tries rules on past alerts from Prometheus.",
    .help =
        "Shows what the alerts of the past would have caused under these rules, compared with the\n"
        "sizes of the past, as a table and as charts.",
    .options = options,
    .run = run,
};
