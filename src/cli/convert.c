/*
 * `alertscaler convert`: objects of other autoscalers as rule files and their tests
 * (docs/convert.md).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/rule_tests.h>
#include <alertscaler/tools/convert.h>

#include "cli.h"
#include "cluster_read.h"
#include "test_run.h"

#define CONVERT_LIST "not-carried-over.txt"

/* --- the folder of the result --- */

/*
 * All or nothing: the files are written into a hidden folder beside the one that is wanted, checked
 * there by what `check` and `test` use, and the folder is renamed at the end.
 */

static const char *const rooms[] = {"rules", "policies", "tests"};

static int convert_fail_errno(struct as_error *error, const char *what)
{
    const int status = -errno;
    as_error_set_errno(error, status, "%s", what);
    return status;
}

/* --- before --- */

/* The mode of the folder that is to be made, or of the empty one that is there. */
static int convert_check_place(const char *path, mode_t *mode_out, struct as_error *error)
{
    struct stat found;
    const mode_t mask = umask(0);
    umask(mask);
    *mode_out = 0777 & ~mask;
    if (stat(path, &found) != 0)
        return errno == ENOENT ? 0 : convert_fail_errno(error, path);
    if (!S_ISDIR(found.st_mode)) {
        as_error_set(error, "%s is no folder: name a new folder, or an empty one", path);
        return -ENOTDIR;
    }
    DIR *folder = opendir(path);
    if (!folder)
        return convert_fail_errno(error, path);
    size_t count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    *mode_out = found.st_mode & 07777;
    if (count <= 2) /* `.` and `..` */
        return 0;
    as_error_set(error, "%s is not empty: name a new folder, or an empty one", path);
    return -ENOTEMPTY;
}

/* "a/b/" and "a/b": "a/.b.XXXXXX"; "b": "./.b.XXXXXX". */
static char *convert_make_template(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    AS_CLEANUP(as_free_p) char *whole = as_xstrndup(path, size);
    const char *slash = strrchr(whole, '/');
    const char *name = slash ? slash + 1 : whole;
    return slash ? as_xasprintf("%.*s/.%s.XXXXXX", (int)(slash - whole), whole, name)
                 : as_xasprintf("./.%s.XXXXXX", name);
}

/* --- writing --- */

static int convert_write_text(int folder, const char *name, const char *text, size_t size,
                              struct as_error *error)
{
    const int status = as_file_write_new(folder, name, 0666, text, size);
    if (status)
        as_error_set_errno(error, status, "%s", name);
    return status;
}

/* Whether a file is in this folder. */
static bool has_room(const struct as_conversion *conversion, const char *room)
{
    for (size_t i = 0; i < conversion->file_count; i++) {
        if (as_str_starts_with(conversion->files[i].name, room))
            return true;
    }
    return false;
}

static int write_files(int folder, const struct as_conversion *conversion, const char *list,
                       struct as_error *error)
{
    int status = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rooms); i++) {
        if (has_room(conversion, rooms[i]) && mkdirat(folder, rooms[i], 0777) != 0)
            return convert_fail_errno(error, rooms[i]);
    }
    for (size_t i = 0; status == 0 && i < conversion->file_count; i++) {
        const struct as_converted_file *file = &conversion->files[i];
        status = convert_write_text(folder, file->name, file->text, file->size, error);
    }
    if (status == 0 && *list)
        status = convert_write_text(folder, CONVERT_LIST, list, strlen(list), error);
    if (status == 0 && syncfs(folder) != 0) /* a full disk may be reported only now */
        status = convert_fail_errno(error, "syncfs");
    return status;
}

/* --- checking --- */

/* Only if this program is wrong about what it writes. */
static int fail_check(const struct as_diagnostics *diagnostics, struct as_error *error)
{
    const struct as_diagnostic *first = diagnostics->count ? &diagnostics->items[0] : NULL;
    as_error_set(error,
                 "the rules that were made are wrong, which is an error of this program; please "
                 "report it: %s:%u: %s",
                 first ? first->file : "", first ? first->line : 0, first ? first->message : "");
    return -EPROTO;
}

static int check_rules(char *const *paths, size_t count, struct as_error *error)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    int status = as_config_load_rules((const char *const *)paths, count, &config, &diagnostics) ==
                         AS_CONFIG_OK
                     ? 0
                     : fail_check(&diagnostics, error);
    as_diagnostics_deinit(&diagnostics);
    return status;
}

static int run_tests(const char *path, struct as_error *error)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_rule_tests_free_p) struct as_rule_tests *tests = NULL;
    int status = as_rule_tests_load(path, &tests, &diagnostics) == AS_CONFIG_OK
                     ? 0
                     : fail_check(&diagnostics, error);
    as_diagnostics_deinit(&diagnostics);
    for (size_t i = 0; status == 0 && i < tests->test_count; i++) {
        struct test_result result = {.failures = NULL};
        test_run(tests, &tests->tests[i], &result);
        if (result.failure_count > 0) {
            as_error_set(error,
                         "a test that was made fails, which is an error of this program; please "
                         "report it: %s: %s",
                         path, tests->tests[i].name);
            status = -EPROTO;
        }
        test_result_deinit(&result);
    }
    return status;
}

static int check_files(const char *folder, const struct as_conversion *conversion,
                       struct as_error *error)
{
    char **paths = as_xcalloc(conversion->file_count + 1, sizeof(char *));
    size_t count = 0;
    int status = 0;
    for (size_t i = 0; i < conversion->file_count; i++) {
        if (!as_str_starts_with(conversion->files[i].name, "tests/"))
            paths[count++] = as_xasprintf("%s/%s", folder, conversion->files[i].name);
    }
    if (count > 0)
        status = check_rules(paths, count, error);
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    for (size_t i = 0; status == 0 && i < conversion->file_count; i++) {
        if (!as_str_starts_with(conversion->files[i].name, "tests/"))
            continue;
        AS_CLEANUP(as_free_p)
        char *path = as_xasprintf("%s/%s", folder, conversion->files[i].name);
        status = run_tests(path, error);
    }
    return status;
}

/* --- the end --- */

/* What cannot be removed stays; the error that led here is reported. */
static void convert_remove_all(int folder, const char *path, const struct as_conversion *conversion)
{
    for (size_t i = 0; i < conversion->file_count; i++)
        (void)unlinkat(folder, conversion->files[i].name, 0);
    (void)unlinkat(folder, CONVERT_LIST, 0);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rooms); i++)
        (void)unlinkat(folder, rooms[i], AT_REMOVEDIR);
    (void)rmdir(path);
}

static int rename_folder(const char *from, const char *to, mode_t mode, struct as_error *error)
{
    if (chmod(from, mode) != 0)
        return convert_fail_errno(error, from);
    if (rename(from, to) == 0)
        return 0;
    const int status = -errno;
    as_error_set_errno(error, status, "%s cannot be made: name a folder that is not there yet", to);
    return status;
}

/*
 * Writes the files into a new folder beside `path`, with `list` as CONVERT_LIST unless it is empty;
 * checks them and runs their tests; then renames the folder to `path`, which must not exist, or be
 * an empty folder. 0, or a negative errno with an error: then nothing is left of it.
 */
static int convert_folder_write(const char *path, const struct as_conversion *conversion,
                                const char *list, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *beside = convert_make_template(path);
    mode_t mode = 0;
    int status = convert_check_place(path, &mode, error);
    if (status < 0)
        return status;
    if (!mkdtemp(beside)) {
        status = -errno;
        as_error_set_errno(error, status, "%s: no folder can be made beside it", path);
        return status;
    }
    const int folder = open(beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    status = folder < 0 ? convert_fail_errno(error, beside) : 0;
    if (status == 0)
        status = write_files(folder, conversion, list, error);
    if (status == 0)
        status = check_files(beside, conversion, error);
    if (status == 0)
        status = rename_folder(beside, path, mode, error);
    if (status < 0)
        convert_remove_all(folder, beside, conversion);
    if (folder >= 0)
        close(folder);
    return status;
}

/* --- the command --- */

#define LIST_MAX ((size_t)64 * 1024 * 1024)

static void append_item(struct as_buf *out, const struct as_conversion_item *item)
{
    as_buf_printf(out, "%s:%u:%u: %s: %s%s%s\n", item->file, item->line, item->column,
                  item->is_carried ? "hint" : "not carried over", item->object,
                  *item->object ? ": " : "", item->text);
}

static void append_items(struct as_buf *out, const struct as_conversion *conversion,
                         bool is_carried)
{
    for (size_t i = 0; i < conversion->item_count; i++) {
        if (conversion->items[i].is_carried == is_carried)
            append_item(out, &conversion->items[i]);
    }
}

/* The file's name is not ours. */
static void print_items(const struct as_conversion *conversion)
{
    for (size_t i = 0; i < conversion->item_count; i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf line = AS_BUF_INIT(LIST_MAX);
        append_item(&line, &conversion->items[i]);
        line.data[--line.size] = '\0';
        as_safe_text_put(stdout, line.data);
        putchar('\n');
    }
}

static void print_count(size_t count, const char *what)
{
    printf("%zu %s%s", count, what, count == 1 ? "" : "s");
}

static void convert_print_summary(const struct as_conversion *conversion, const char *folder)
{
    print_items(conversion);
    print_count(conversion->target_count, "target");
    fputs(" and ", stdout);
    print_count(conversion->rule_count, "rule");
    fputs(" in ", stdout);
    as_safe_text_put(stdout, folder);
    if (conversion->target_count > 0)
        fputs(has_room(conversion, "policies") ? ": policies/, tests/" : ": rules/, tests/",
              stdout);
    if (conversion->lost_count > 0) {
        fputs("; ", stdout);
        print_count(conversion->lost_count, "thing");
        fputs(" not carried over: " CONVERT_LIST, stdout);
    }
    putchar('\n');
    if (conversion->skipped_count > 0) {
        print_count(conversion->skipped_count, "object");
        puts(" of other kinds skipped");
    }
}

static int write_result(const struct as_args *args, const struct as_conversion *conversion,
                        const char *where)
{
    const char *folder = as_args_get(args, "out");
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_buf_deinit) struct as_buf list = AS_BUF_INIT(LIST_MAX);
    if (conversion->target_count == 0 && conversion->lost_count == 0)
        return as_cli_fail(args, "there is nothing to convert %s", where);
    if (conversion->lost_count > 0)
        append_items(&list, conversion, false);
    if (as_buf_check(&list) < 0)
        return as_cli_fail(args, "the list of what is not carried over is too long");
    if (convert_folder_write(folder, conversion, list.size ? list.data : "", &error) < 0)
        return as_cli_fail(args, "%s", error.text);
    convert_print_summary(conversion, folder);
    return conversion->lost_count > 0 ? AS_EXIT_NO : AS_EXIT_OK;
}

static int convert_run_from(const struct as_args *args, enum as_convert_from from,
                            const struct as_convert_input *inputs, size_t count, const char *where)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_conversion_free_p) struct as_conversion *conversion = NULL;
    const char *space = as_args_get(args, "namespace");
    if (!as_args_has(args, "out"))
        return as_cli_fail(args, "--out is missing: the folder to write to");
    if (!as_convert_is_namespace(space))
        return as_cli_fail(args, "--namespace: not the name of a namespace");
    const int status = as_convert(from, inputs, count, space, &diagnostics, &conversion);
    as_diagnostics_sort(&diagnostics);
    as_diagnostics_print(&diagnostics, stderr);
    as_diagnostics_deinit(&diagnostics);
    if (status != AS_CONVERT_OK)
        return as_cli_fail(args, "nothing was written");
    return write_result(args, conversion, where);
}

static int convert_run_names(const struct as_args *args, enum as_convert_from from,
                             const char *const *names, size_t count)
{
    AS_CLEANUP(as_free_p)
    struct as_convert_input *inputs = as_xcalloc(count + 1, sizeof(*inputs));
    for (size_t i = 0; i < count; i++)
        inputs[i].name = names[i];
    return convert_run_from(args, from, inputs, count, "in these files");
}

/* --- objects of a cluster --- */

/*
 * Each object is an input with the text that `kubectl get -o json` prints, so that lines agree:
 * without `managedFields`, and with the keys in the order of their names.
 */

#define CONVERT_JSON_FORM (JSON_INDENT(4) | JSON_SORT_KEYS)

/* If KEDA is not installed, there are no ScaledObjects. Its logins are only for hints. */
enum convert_need { CONVERT_REQUIRED, CONVERT_IF_PRESENT, CONVERT_FOR_HINTS };

static const struct convert_source {
    struct cluster_resource resource;
    enum convert_need need;
} convert_sources[] = {
    {{"autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"}, CONVERT_REQUIRED},
    {{"keda.sh/v1alpha1", "scaledobjects", "ScaledObject"}, CONVERT_IF_PRESENT},
    {{"keda.sh/v1alpha1", "triggerauthentications", "TriggerAuthentication"}, CONVERT_FOR_HINTS},
};

struct convert_inputs {
    struct as_convert_input *items; /* names and texts of objects are owned */
    size_t count, object_count, capacity;
};

static void convert_inputs_deinit(struct convert_inputs *inputs)
{
    for (size_t i = 0; i < inputs->object_count; i++) {
        free((char *)inputs->items[i].name);
        free((char *)inputs->items[i].text);
    }
    free(inputs->items);
}

static const char *convert_find_meta(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, "metadata"), key));
    return text ? text : "";
}

static void convert_add_object(struct convert_inputs *inputs,
                               const struct cluster_resource *resource, json_t *object)
{
    json_object_del(json_object_get(object, "metadata"), "managedFields");
    char *text = json_dumps(object, CONVERT_JSON_FORM);
    if (!text)
        abort(); /* only without memory */
    inputs->items =
        as_xgrow(inputs->items, inputs->count, &inputs->capacity, sizeof(*inputs->items));
    inputs->items[inputs->count++] = (struct as_convert_input){
        .name = as_xasprintf("%s/%s/%s", resource->plural, convert_find_meta(object, "namespace"),
                             convert_find_meta(object, "name")),
        .text = text,
        .size = strlen(text),
    };
    inputs->object_count = inputs->count;
}

/* Of an API server that does not have the resource. */
static int convert_note_missing(const struct as_args *args, const struct convert_source *source,
                                const struct as_error *error)
{
    switch (source->need) {
    case CONVERT_REQUIRED:
        return as_cli_fail(args,
                           "the API server has no autoscaling/v2, which needs Kubernetes 1.23: "
                           "give the file of `kubectl get hpa -o yaml` instead (%s)",
                           error->text);
    case CONVERT_IF_PRESENT:
        fputs("this cluster has no ScaledObjects: KEDA is not installed\n", stderr);
        return AS_EXIT_OK;
    case CONVERT_FOR_HINTS: return AS_EXIT_OK;
    }
    abort(); /* no other values */
}

static int convert_read_source(const struct as_args *args, struct cluster_read *read,
                               const struct convert_source *source, struct convert_inputs *inputs)
{
    struct as_error error = AS_ERROR_INIT;
    json_t *items, *item;
    size_t i;
    const int status = cluster_read_list(read, &source->resource, &items, &error);
    if (status == CLUSTER_READ_MISSING)
        return convert_note_missing(args, source, &error);
    if (status == CLUSTER_READ_FORBIDDEN && source->need == CONVERT_FOR_HINTS) {
        fputs("the logins of ScaledObjects are not shown: ", stderr);
        as_safe_text_put(stderr, error.text);
        fputc('\n', stderr);
        return AS_EXIT_OK;
    }
    if (status != CLUSTER_READ_OK)
        return as_cli_fail(args, "%s", error.text);
    json_array_foreach(items, i, item)
    {
        convert_add_object(inputs, &source->resource, item);
    }
    json_decref(items);
    return AS_EXIT_OK;
}

/* FILEs count too, such as prometheus-adapter's configuration. */
static int convert_run_cluster(const struct as_args *args, enum as_convert_from from)
{
    AS_CLEANUP(convert_inputs_deinit) struct convert_inputs inputs = {0};
    AS_CLEANUP(cluster_read_close_p) struct cluster_read *read = NULL;
    struct as_error error = AS_ERROR_INIT;
    char where[128] = "in any namespace";
    if (cluster_read_open(args, &(struct as_kube_access_config){0}, &read, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    for (size_t i = 0; i < AS_ARRAY_SIZE(convert_sources); i++) {
        const size_t before = inputs.count;
        const int status = convert_read_source(args, read, &convert_sources[i], &inputs);
        if (status != AS_EXIT_OK)
            return status;
        if (convert_sources[i].need == CONVERT_IF_PRESENT && inputs.count == before)
            break; /* logins are those of ScaledObjects */
    }
    for (size_t i = 0; i < args->operand_count; i++) {
        inputs.items =
            as_xgrow(inputs.items, inputs.count, &inputs.capacity, sizeof(*inputs.items));
        inputs.items[inputs.count++] = (struct as_convert_input){.name = args->operands[i]};
    }
    if (cluster_read_get_namespace(read))
        (void)snprintf(where, sizeof(where), "in namespace %.63s",
                       cluster_read_get_namespace(read));
    return convert_run_from(args, from, inputs.items, inputs.count, where);
}

/* --- which inputs --- */

static int convert_command_run(const struct as_args *args)
{
    const bool is_policy = as_str_equal(as_args_get(args, "output"), "policies");
    const enum as_convert_from from = is_policy ? AS_CONVERT_TO_POLICIES : AS_CONVERT_OBJECTS;
    const int status = cluster_read_check_options(args);
    if (status != AS_EXIT_OK)
        return status;
    if (as_args_has(args, "from-cluster"))
        return convert_run_cluster(args, from);
    if (args->operand_count == 0)
        return as_cli_fail(args, "name a FILE, or give --from-cluster");
    return convert_run_names(args, from, args->operands, args->operand_count);
}

/* Behind `--` an operand may begin with a dash: then they are flags. The program's name may stand
 * before them. */
static int convert_autoscaler_run(const struct as_args *args)
{
    size_t first = 0;
    while (first < args->operand_count && args->operands[first][0] != '-')
        first++;
    if (first == args->operand_count)
        return convert_run_names(args, AS_CONVERT_AUTOSCALER, args->operands, first);
    if (first > 1 || (first == 1 && !strstr(args->operands[0], "cluster-autoscaler")))
        return as_cli_fail(args, "name files, or flags behind `--`, and not both");
    return convert_run_names(args, AS_CONVERT_FLAGS, args->operands + first,
                             args->operand_count - first);
}

#define CONVERT_OPTIONS(LETTER, NAMESPACE)                                                         \
    {.name = "out", .value = "DIR", .help = "the folder to write: a new one, or an empty one"},    \
    {                                                                                              \
        .name = "namespace", .letter = (LETTER), .value = "NAME", .fallback = "default",           \
        .help = (NAMESPACE)                                                                        \
    }

static const struct as_option convert_options[] = {
    CONVERT_OPTIONS('n', "of objects that name no namespace; with --from-cluster, the namespace "
                         "to read instead of that of the context"),
    CLUSTER_READ_OPTIONS("reads HorizontalPodAutoscalers and ScaledObjects of the cluster that "
                         "kubectl would use"),
    {.name = "output",
     .value = "KIND",
     .fallback = "rules",
     .choices = (const char *const[]){"rules", "policies", NULL},
     .help = "rules: rule files; policies: ScalingPolicy objects for kubectl apply"},
    {0},
};

static const struct as_option convert_autoscaler_options[] = {
    CONVERT_OPTIONS(0, "of objects that name no namespace"), {0}};

const struct as_command as_command_convert = {
    .name = "convert",
    .operands = "[FILE...]",
    .summary = "Writes rules for what other autoscalers did: HPA, KEDA, Escalator.",
    .help = "A FILE has objects of Kubernetes, in one or more documents or a List:\n"
            "HorizontalPodAutoscaler (autoscaling/v1, v2, v2beta2), ScaledObject; or it is\n"
            "prometheus-adapter's configuration, also in its ConfigMap, or Escalator's\n"
            "nodegroups.yaml. DIR gets rules and their tests. No alert is needed (`always`).\n"
            "With --from-cluster, the objects are read from the API server; it needs the right to\n"
            "list them. A FILE may add prometheus-adapter's configuration.\n"
            "What cannot be carried over is listed with its reason. Exit status 0: all is carried\n"
            "over; 1: not all of it; 2: a file is wrong, and nothing is written (docs/convert.md).",
    .options = convert_options,
    .operands_min = 0,
    .operands_max = SIZE_MAX,
    .run = convert_command_run,
};

const struct as_command as_command_convert_cluster_autoscaler = {
    .name = "convert cluster-autoscaler",
    .operands = "FILE...|-- FLAGS",
    .summary = "Writes a pool with its rules for what Cluster Autoscaler did.",
    .help =
        "A FILE has the manifest of the Deployment that runs cluster-autoscaler: its flags are\n"
        "read. Or give the flags behind `--`. DIR gets rules and their tests, as by\n"
        "`alertscaler convert`, with the same exit status (docs/convert.md).",
    .options = convert_autoscaler_options,
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = convert_autoscaler_run,
};
