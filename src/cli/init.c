/*
 * `alertscaler init`: a first folder with example files, for this machine or for a cluster. It
 * never overwrites anything.
 */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/json_schema.h>

#include "cli.h"

#define TOKEN_BYTES 32

/* Creates the folder, or accepts an existing empty one. */
static int make_folder(const char *path, struct as_error *error)
{
    if (mkdir(path, 0777) == 0)
        return 0;
    if (errno != EEXIST) {
        const int status = -errno;
        as_error_set_errno(error, status, "%s", path);
        return status;
    }
    DIR *folder = opendir(path);
    if (!folder) {
        const int status = -errno;
        as_error_set_errno(error, status, "%s", path);
        return status;
    }
    const struct dirent *entry;
    int status = 0;
    while (status == 0 && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        as_error_set(error, "%s is not empty: name a new folder, or an empty one", path);
        status = -ENOTEMPTY;
    }
    closedir(folder);
    return status;
}

static int write_file(const char *folder, const char *name, mode_t mode, const char *text,
                      struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", folder, name);
    const char *slash = strchr(name, '/');
    if (slash) {
        AS_CLEANUP(as_free_p)
        char *below = as_xasprintf("%s/%.*s", folder, (int)(slash - name), name);
        if (mkdir(below, 0777) != 0 && errno != EEXIST) {
            const int status = -errno;
            as_error_set_errno(error, status, "%s", below);
            return status;
        }
    }
    const int status = as_file_write_new(AT_FDCWD, path, mode, text, strlen(text));
    if (status)
        as_error_set_errno(error, status, "%s", path);
    return status;
}

static int write_token(const char *folder, struct as_error *error)
{
    unsigned char bytes[TOKEN_BYTES];
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4 * TOKEN_BYTES);
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        as_error_set(error, "no random numbers for a token");
        return -EIO;
    }
    as_encode_base64url(&text, bytes, sizeof(bytes));
    as_buf_append_char(&text, '\n');
    return write_file(folder, "token", 0600, text.data, error);
}

/* For editors: the first line of each file names its schema. */
static int write_schemas(const char *folder, struct as_error *error)
{
    int status = 0;
    for (size_t kind = 0; status == 0 && as_json_schema_words[kind]; kind++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_JSON_SCHEMA_MAX);
        AS_CLEANUP(as_free_p)
        char *name = as_xasprintf("schema/%s.json", as_json_schema_words[kind]);
        as_json_schema_append(kind, &text);
        as_buf_append_char(&text, '\n');
        status = write_file(folder, name, 0666, text.data, error);
    }
    return status;
}

static void print_next(const char *folder)
{
    printf("%s: alertscaler.yaml, rules/checkout.yaml and their tests, alertmanager.yml, a token,\n"
           "practice.py, something to scale until the rules name your own targets, and schema/ for "
           "editors.\n"
           "Next:\n\n"
           "    cd %s\n"
           "    alertscaler check\n"
           "    alertscaler test tests/*.yaml\n"
           "    python3 practice.py &\n"
           "    alertscaler serve &\n"
           "    export ALERTSCALER_TOKEN_FILE=$PWD/token\n"
           "    alertscaler fire alertname=CheckoutLatencyHigh --wait\n",
           folder, folder);
}

static void print_next_kubernetes(const char *folder)
{
    printf("%s: alertscaler.yaml, rules.yaml and its tests, kustomization.yaml, manifests.yaml, "
           "role.yaml,\n"
           "policy.yaml (the same rule as a scaling policy), a token, and schema/ for editors.\n"
           "Put your Deployment in place of `web`, and its namespace in place of `shop`; put the "
           "address\n"
           "of your Prometheus into alertscaler.yaml. Next:\n\n"
           "    cd %s\n"
           "    alertscaler check\n"
           "    alertscaler test tests/*.yaml\n"
           "    kubectl apply -k .\n"
           "    kubectl -n alertscaler exec deploy/alertscaler -- alertscaler status\n",
           folder, folder);
}

static int init_run(const struct as_args *args)
{
    const char *folder = args->operands[0];
    const bool is_kubernetes = as_args_has(args, "kubernetes");
    const struct init_file *file = is_kubernetes ? init_kubernetes_files : init_files;
    struct as_error error = AS_ERROR_INIT;
    int status = make_folder(folder, &error);
    for (; status == 0 && file->name; file++)
        status = write_file(folder, file->name, 0666, file->text, &error);
    if (status == 0)
        status = write_schemas(folder, &error);
    if (status == 0)
        status = write_token(folder, &error);
    if (status)
        return as_cli_fail(args, "%s", error.text);
    if (is_kubernetes)
        print_next_kubernetes(folder);
    else
        print_next(folder);
    return AS_EXIT_OK;
}

static const struct as_option options[] = {
    {.name = "kubernetes",
     .help = "a folder for a cluster: a rule for one Deployment, by CPU, and manifests"},
    {0},
};

const struct as_command as_command_init = {
    .name = "init",
    .operands = "DIR",
    .summary = "Writes a first folder: configuration, a rule, its tests, a route for Alertmanager.",
    .help =
        "DIR is a new folder, or an empty one. `check`, `test` and `serve` accept its files "
        "unchanged.\n"
        "alertmanager.yml is what Alertmanager's own configuration needs; people are still paged.\n"
        "practice.py is a target to practice on, without a cluster: it needs Python 3.\n"
        "With --kubernetes the folder is for a cluster: the size of one Deployment follows its "
        "CPU, "
        "without an alert.\n"
        "`kubectl apply -k DIR` installs alertscaler with these files, as a dry run.",
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
    .run = init_run,
};
