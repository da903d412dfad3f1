/*
 * `alertscaler check`: reads configurations and rule files as the daemon would, and reports all
 * problems. It also warns of parts that cannot work together, including the files of Alertmanager
 * and Prometheus.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/daemon/web_tls.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/external_url.h>
#include <alertscaler/rules/web_config.h>
#include <alertscaler/tools/lint.h>

#include "check_cluster.h"
#include "check_files.h"
#include "cli.h"

#define JSON_MAX ((size_t)64 * 1024 * 1024)

struct check {
    struct as_diagnostics diagnostics;
    struct as_web_config *web; /* NULL: not given, or has errors */
    struct as_lint *lint;      /* NULL: its files have errors */
    size_t target_count, rule_count, file_count;
    char route_prefix[AS_EXTERNAL_URL_SIZE];
    bool is_unreadable;
    bool is_web_alone;                  /* nothing else is checked */
    const struct as_adapters *clusters; /* that ask them; NULL: they are not asked */
    bool is_syntax_only;                /* files named in a configuration are ignored */
};

static void add_result(struct check *check, int status, const struct as_config *config)
{
    if (status < 0)
        check->is_unreadable = true;
    if (!config)
        return;
    check->target_count += config->ruleset->target_count;
    check->rule_count += config->ruleset->rule_count;
    check->file_count += config->rule_file_count;
    if (check->lint)
        as_lint_check(check->lint, config, &check->diagnostics);
}

static void check_settings(struct check *check, const char *path)
{
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    int status = as_config_load(path, &config, &check->diagnostics);
    if (config && !check->is_syntax_only)
        check_files(config, &check->diagnostics);
    if (config && check->clusters && !check->diagnostics.has_error)
        check_cluster(config, check->clusters, &check->diagnostics);
    add_result(check, status, config);
}

static void check_rules(struct check *check, const char *const *paths, size_t count)
{
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    int status = as_config_load_rules(paths, count, &config, &check->diagnostics);
    add_result(check, status, config);
}

/* Rule files among the operands are checked together: they may refer to each other. */
static void check_operands(struct check *check, const struct as_args *args)
{
    const char **rules = as_xcalloc(args->operand_count, sizeof(*rules));
    size_t rule_count = 0;
    for (size_t i = 0; i < args->operand_count; i++) {
        const char *path = args->operands[i];
        if (as_config_find_kind(path) == AS_CONFIG_RULES)
            rules[rule_count++] = path;
        else
            check_settings(check, path);
    }
    if (rule_count > 0)
        check_rules(check, rules, rule_count);
    as_free_p(&rules);
}

static void open_lint(struct check *check, const struct as_args *args)
{
    const char **patterns = as_xcalloc(args->given_count + 1, sizeof(*patterns));
    struct as_lint_sources sources = {
        .alertmanager = as_args_get(args, "alertmanager"),
        .prometheus_rules = patterns,
        .route_prefix = check->route_prefix,
        .web_config_file = as_args_get(args, "web.config.file"),
        .web = check->web ? as_web_config_get(check->web) : NULL,
    };
    const char *pattern = NULL;
    size_t at = 0;
    while ((pattern = as_args_find_next(args, "prometheus-rules", &at)))
        patterns[sources.prometheus_rule_count++] = pattern;
    if (as_lint_new(&sources, &check->diagnostics, &check->lint) < 0)
        check->is_unreadable = true;
    as_free_p(&patterns);
}

static void print_json(const struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(JSON_MAX);
    struct as_json_writer json;
    as_json_init(&json, &text, AS_JSON_ANY_ORDER);
    as_json_begin_array(&json);
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct as_diagnostic *item = &diagnostics->items[i];
        as_json_begin_object(&json);
        as_json_write_member(&json, "file", item->file);
        as_json_write_member_i64(&json, "line", item->line);
        as_json_write_member_i64(&json, "column", item->column);
        as_json_write_member_i64(&json, "end_column", item->end_column);
        as_json_write_member(&json, "severity", as_severity_get_word(item->severity));
        as_json_write_member(&json, "message", item->message);
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    as_buf_append_char(&text, '\n');
    as_safe_json_put(stdout, text.data, text.size);
}

static void print_summary(const struct check *check, const struct as_args *args)
{
    if (as_args_has(args, "web.config.file"))
        printf("%s: ok\n", as_args_get(args, "web.config.file"));
    if (!check->is_web_alone)
        printf("%zu rule file%s, %zu target%s, %zu rule%s: ok\n", check->file_count,
               check->file_count == 1 ? "" : "s", check->target_count,
               check->target_count == 1 ? "" : "s", check->rule_count,
               check->rule_count == 1 ? "" : "s");
}

/* Also checks the files it names: without them the daemon would not start. */
static void check_web(struct check *check, const char *path)
{
    const int status = as_web_config_load(path, &check->web, &check->diagnostics);
    if (status != 0)
        check->is_unreadable = check->is_unreadable || status != -EINVAL;
    if (status != 0 || check->is_syntax_only)
        return;
    AS_CLEANUP(as_tls_server_free_p) struct as_tls_server *tls = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (as_web_tls_new(&as_web_config_get(check->web)->tls, &tls, &error) != 0)
        as_diagnostics_add(&check->diagnostics,
                           &(struct as_diagnostic){.file = path, .message = error.text});
}

static void note(struct check *check, const char *option, int status, const struct as_error *error)
{
    if (status != 0)
        as_diagnostics_add(&check->diagnostics,
                           &(struct as_diagnostic){.file = option, .message = error->text});
}

/* Before which path /webhook is: as the daemon with these options has it. */
static void check_address(struct check *check, const struct as_args *args)
{
    struct as_external_url url = {0};
    struct as_error error = AS_ERROR_INIT;
    const char *text = as_args_get(args, "web.external-url");
    const char *prefix = as_args_get(args, "web.route-prefix");
    if (text)
        note(check, "--web.external-url", as_external_url_parse(text, &url, &error), &error);
    (void)snprintf(check->route_prefix, sizeof(check->route_prefix), "%s",
                   as_external_url_get_path(&url));
    if (prefix)
        note(check, "--web.route-prefix",
             as_route_prefix_parse(prefix, check->route_prefix, &error), &error);
}

static bool has_warning(const struct as_diagnostics *diagnostics)
{
    for (size_t i = 0; i < diagnostics->count; i++) {
        if (diagnostics->items[i].severity == AS_SEVERITY_WARNING)
            return true;
    }
    return false;
}

/* Of Prometheus' files that a pattern found, only those with rules count. */
static void print_lint(const struct check *check, const struct as_args *args)
{
    const char *alertmanager = as_args_get(args, "alertmanager");
    size_t files = as_lint_get_file_count(check->lint);
    size_t alerts = as_lint_get_alert_count(check->lint);
    if (alertmanager)
        printf("compared with %s\n", alertmanager);
    if (as_args_has(args, "prometheus-rules"))
        printf("compared with %zu alerting rule%s in %zu file%s of Prometheus\n", alerts,
               alerts == 1 ? "" : "s", files, files == 1 ? "" : "s");
}

static int get_status(const struct check *check, const struct as_args *args)
{
    if (check->is_unreadable)
        return AS_EXIT_USAGE;
    if (check->diagnostics.has_error)
        return AS_EXIT_NO;
    bool is_fatal = as_args_has(args, "lint-fatal") && has_warning(&check->diagnostics);
    return is_fatal ? AS_EXIT_LINT : AS_EXIT_OK;
}

/* The web configuration is checked alone if there is nothing else: the user may have no
 * configuration yet, or work in another folder. */
static bool is_web_alone(const struct as_args *args)
{
    return as_args_has(args, "web.config.file") && !as_args_has(args, "config.file") &&
           !as_args_has(args, "alertmanager") && !as_args_has(args, "prometheus-rules") &&
           args->operand_count == 0 && access(config_option_find(args), F_OK) != 0 &&
           errno == ENOENT;
}

static int run(const struct as_args *args)
{
    struct check check = {.diagnostics = AS_DIAGNOSTICS_INIT,
                          .is_web_alone = is_web_alone(args),
                          .clusters = as_args_has(args, "cluster") ? args->adapters : NULL,
                          .is_syntax_only = as_args_has(args, "syntax-only")};
    bool is_json = as_str_equal(as_args_get(args, "format"), "json");
    if (as_args_has(args, "web.config.file"))
        check_web(&check, as_args_get(args, "web.config.file"));
    check_address(&check, args);
    open_lint(&check, args);
    if (args->operand_count > 0)
        check_operands(&check, args);
    else if (!check.is_web_alone)
        check_settings(&check, config_option_tell(args));

    as_diagnostics_sort(&check.diagnostics);
    if (is_json)
        print_json(&check.diagnostics);
    else
        as_diagnostics_print(&check.diagnostics, stderr);
    if (!check.diagnostics.has_error && !is_json) {
        print_summary(&check, args);
        print_lint(&check, args);
    }
    int status = get_status(&check, args);
    as_lint_free(check.lint);
    as_web_config_free(check.web);
    as_diagnostics_deinit(&check.diagnostics);
    return status;
}

static const struct as_option options[] = {
    AS_OPTION_CONFIG_FILE("the configuration, if no FILE is given"),
    {.name = "web.config.file",
     .value = "FILE",
     .help = "the web configuration (TLS, users) to check too, or alone"},
    {.name = "web.external-url",
     .value = "URL",
     .help = "the daemon's option of this name, to check too"},
    {.name = "web.route-prefix", .value = "PATH", .help = "the same"},
    {.name = "format",
     .value = "FORMAT",
     .fallback = "text",
     .choices = as_output_choices,
     .help = "text for people or json for editors and CI"},
    {.name = "alertmanager",
     .value = "FILE",
     .help = "Alertmanager's configuration, or an AlertmanagerConfig, to compare the rules with"},
    {.name = "prometheus-rules",
     .value = "PATTERN",
     .repeats = true,
     .help = "Prometheus' rule files to compare with; quote a pattern"},
    {.name = "cluster",
     .help = "asks the clusters of a configuration: can its targets be read, who else sizes them"},
    {.name = "syntax-only",
     .help = "ignores the files that a configuration names: certificates, tokens, kubeconfig"},
    {.name = "lint-fatal", .help = "warnings give exit status 3"},
    {0},
};

const struct as_command as_command_check = {
    .name = "check",
    .operands = "[FILE...]",
    .summary = "Checks configurations and rule files.",
    .help =
        "A configuration is checked with the rule files it names. Rule files given as FILE are\n"
        "checked together, without the clusters and providers of a configuration.\n"
        "The file of --web.config.file is checked alone if there is no configuration.\n"
        "The files that a configuration names (tokens, certificates, kubeconfig) are checked too: "
        "an\n"
        "error if the daemon would not start, else a warning; --syntax-only skips them.\n"
        "A path of state or action_log that you cannot write is a warning: the daemon may run as\n"
        "another user, or on another machine.\n"
        "All errors of all files are printed. There are warnings for correct parts that cannot "
        "work\n"
        "together, also with the files of --alertmanager and --prometheus-rules (which are not "
        "checked\n"
        "otherwise: amtool and promtool do that). Exit status 0: no error; 1: errors; 2: a file "
        "cannot\n"
        "be read; 3: warnings only, with --lint-fatal.",
    .options = options,
    .operands_max = SIZE_MAX,
    .run = run,
};
