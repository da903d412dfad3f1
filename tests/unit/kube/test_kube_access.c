/*
 * kube_access.h: how a cluster is found without configuration, the use of a pod's service account,
 * and runs of credential plugins: once for all requests, again when due, and with a pause after a
 * failure.
 */
#include <alertscaler/kube/kube_access.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/http/access_limits.h>

#include "access_env.h"
#include "files.h"

static char directory[] = "/tmp/as-access-XXXXXX", kubeconfig[64], token[64];
static struct as_kube_access *access_;
static struct as_kube_connection connection;
static struct as_error error;

static void setup(void)
{
    setup_world();
    cr_assert_not_null(mkdtemp(directory));
    snprintf(kubeconfig, sizeof(kubeconfig), "%s/config", directory);
    snprintf(token, sizeof(token), "%s/token", directory);
    env.service_account_dir = directory;
}

static void teardown(void)
{
    as_kube_access_free(access_);
    unlink(kubeconfig);
    unlink(token);
    rmdir(directory);
    teardown_world();
}

TestSuite(kube_access, .init = setup, .fini = teardown);

static void set_variable(size_t index, const char *name, const char *value)
{
    variables[index][0] = name;
    variables[index][1] = value;
}

static int open_access(const char *path, const char *context)
{
    struct as_kube_access_config config = {path, context};
    return as_kube_access_new(&config, &env, &access_, &error);
}

static void must_open(const char *path)
{
    cr_assert_eq(open_access(path, NULL), 0, "%s", error.text);
}

#define CONFIG(user)                                                                               \
    "current-context: c\n"                                                                         \
    "clusters: [{name: c, cluster: {server: 'https://k', tls-server-name: n}}]\n"                  \
    "contexts: [{name: c, context: {cluster: c, user: u}}]\n"                                      \
    "users: [{name: u, user: " user "}]\n"

/* Where */

Test(kube_access, a_pod_uses_its_service_account)
{
    set_variable(0, "KUBERNETES_SERVICE_HOST", "10.0.0.1");
    set_variable(1, "KUBERNETES_SERVICE_PORT", "443");
    set_variable(2, "KUBECONFIG", "/nonexistent");
    write_file(token, "t\n");
    must_open(NULL);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.server, "https://10.0.0.1:443");
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer t");
    char ca[80];
    snprintf(ca, sizeof(ca), "%s/ca.crt", directory);
    cr_expect_str_eq(connection.tls.ca_file, ca);
    cr_expect_not(connection.tls.insecure_skip_verify);
}

Test(kube_access, a_pod_in_an_ipv6_cluster)
{
    set_variable(0, "KUBERNETES_SERVICE_HOST", "fd00::1");
    set_variable(1, "KUBERNETES_SERVICE_PORT", "6443");
    write_file(token, "t");
    must_open(NULL);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.server, "https://[fd00::1]:6443");
}

Test(kube_access, elsewhere_the_files_of_kubeconfig_count)
{
    write_file(kubeconfig, CONFIG("{token: a}"));
    set_variable(0, "KUBECONFIG", kubeconfig);
    set_variable(1, "HOME", "/nonexistent");
    must_open(NULL);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer a");
    cr_expect_str_eq(connection.tls.server_name, "n");
}

Test(kube_access, else_the_one_at_home)
{
    char home[80], path[96];
    snprintf(home, sizeof(home), "%s/.kube", directory);
    snprintf(path, sizeof(path), "%s/config", home);
    mkdir(home, 0700);
    write_file(path, CONFIG("{token: a}"));
    set_variable(0, "KUBECONFIG", "");
    set_variable(1, "HOME", directory);
    must_open(NULL);
    unlink(path);
    rmdir(home);
}

Test(kube_access, without_any_it_says_where_it_looked)
{
    cr_expect_eq(open_access(NULL, NULL), -ENOENT);
    cr_expect_str_eq(error.text,
                     "no cluster: not in a pod, and neither KUBECONFIG nor HOME is set");
    set_variable(0, "HOME", "/nonexistent");
    cr_expect_eq(open_access(NULL, NULL), -ENOENT);
    cr_expect_str_eq(error.text, "no cluster: not in a pod, KUBECONFIG is not set: "
                                 "/nonexistent/.kube/config: No such file or directory");
    cr_expect_eq(open_access("/nonexistent", NULL), -ENOENT);
    cr_expect_eq(open_access(NULL, "prod"), -ENOENT);
}

/* As whom */

Test(kube_access, static_credentials_cannot_be_renewed)
{
    write_file(kubeconfig, CONFIG("{username: admin, password: secret}"));
    must_open(kubeconfig);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Basic YWRtaW46c2VjcmV0");
    cr_expect_not(as_kube_access_renew(access_, connection.generation));
}

Test(kube_access, a_certificate_needs_no_authorization)
{
    write_file(kubeconfig, CONFIG("{client-certificate: a.crt, client-key: /k/a.key}"));
    must_open(kubeconfig);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_null(connection.authorization);
    cr_expect_str_eq(connection.tls.key_file, "/k/a.key");
}

/* The token of a request that was refused may have been replaced by another request's renewal. */
Test(kube_access, who_comes_late_with_a_refusal_gets_what_is_new)
{
    write_file(kubeconfig, CONFIG("{tokenFile: token}"));
    write_file(token, "one");
    must_open(kubeconfig);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    uint64_t old = connection.generation;
    write_file(token, "two");
    cr_expect(as_kube_access_renew(access_, old));
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer two");
    cr_expect_neq(connection.generation, old);
    cr_expect(as_kube_access_renew(access_, old));
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer two");
}

/* Plugins */

#define VERSION "client.authentication.k8s.io/v1"
#define EXEC                                                                                       \
    CONFIG("{exec: {apiVersion: " VERSION ", command: login, args: [-x, 'a b'], "                  \
           "env: [{name: A, value: b}]}}")
#define ANSWER(status)                                                                             \
    "{\"apiVersion\":\"" VERSION "\",\"kind\":\"ExecCredential\",\"status\":{" status "}}"

static unsigned told;

static void ready(void *context)
{
    told++;
}

static struct as_kube_waiter waiters[2] = {{.ready = ready}, {.ready = ready}};

static void end_program(enum as_process_outcome outcome, int status, const char *output)
{
    world_end_program(&world, (struct as_process_result){.outcome = outcome,
                                                         .status = status,
                                                         .output = output,
                                                         .error_output = "log in first"});
}

static void run_plugin(void)
{
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_PENDING);
    as_kube_access_wait(access_, &waiters[0]);
    world_run(&world);
}

Test(kube_access, a_plugin_is_run_once_for_all_who_wait)
{
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    end_program(AS_PROCESS_EXITED, 0, ANSWER("\"token\":\"t\""));
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_PENDING);
    as_kube_access_wait(access_, &waiters[0]);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_PENDING);
    as_kube_access_wait(access_, &waiters[1]);
    cr_expect_eq(told, 0);
    world_run(&world);
    cr_expect_eq(told, 2);
    cr_expect_eq(world.run_count, 1);
    cr_expect_str_eq(world.runs[0].command_line, "login -x a b ");
    cr_expect_str_eq(world.runs[0].env,
                     "A=b\nKUBERNETES_EXEC_INFO={\"apiVersion\":\"" VERSION
                     "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false}}\n");
    world_advance(&world, AS_US_PER_DAY);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer t");
}

Test(kube_access, who_waits_can_leave)
{
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    end_program(AS_PROCESS_EXITED, 0, ANSWER("\"token\":\"t\""));
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_PENDING);
    as_kube_access_wait(access_, &waiters[0]);
    as_kube_access_wait(access_, &waiters[1]);
    as_kube_waiter_cancel(&waiters[0]);
    world_run(&world);
    cr_expect_eq(told, 1);
}

Test(kube_access, a_plugin_can_give_a_certificate)
{
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    end_program(AS_PROCESS_EXITED, 0,
                ANSWER("\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\""));
    run_plugin();
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_null(connection.authorization);
    cr_expect_str_eq(connection.tls.cert_pem, "C");
    cr_expect_str_eq(connection.tls.key_pem, "K");
}

Test(kube_access, a_plugin_is_run_again_before_its_credential_ends)
{
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    end_program(AS_PROCESS_EXITED, 0,
                ANSWER("\"token\":\"one\",\"expirationTimestamp\":\"2026-11-21T10:10:00Z\""));
    run_plugin();
    world_advance(&world, 10 * AS_US_PER_MIN - AS_KUBE_EXEC_EARLY_US - 1);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    world_advance(&world, 1);
    end_program(AS_PROCESS_EXITED, 0, ANSWER("\"token\":\"two\""));
    run_plugin();
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer two");
}

/* Its clock is wrong, or ours: the credential is used, and the plugin not run in a circle. */
Test(kube_access, a_credential_that_has_ended_already_is_tried)
{
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    end_program(AS_PROCESS_EXITED, 0,
                ANSWER("\"token\":\"old\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\""));
    run_plugin();
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer old");
}

Test(kube_access, a_refused_credential_is_asked_for_again_but_not_in_a_hurry)
{
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    end_program(AS_PROCESS_EXITED, 0, ANSWER("\"token\":\"one\""));
    run_plugin();
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    uint64_t generation = connection.generation;
    cr_expect(as_kube_access_renew(access_, generation));
    cr_expect_eq(as_kube_access_get(access_, &connection, &error), -EAGAIN);
    cr_expect_str_eq(error.text, "credential plugin login: the server did not accept what it gave");
    world_advance(&world, AS_KUBE_EXEC_RETRY_US);
    end_program(AS_PROCESS_EXITED, 0, ANSWER("\"token\":\"two\""));
    run_plugin();
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
    cr_expect_str_eq(connection.authorization, "Authorization: Bearer two");
    cr_expect(as_kube_access_renew(access_, generation)); /* late: nothing is thrown away */
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_READY);
}

Test(kube_access, a_plugin_that_fails_is_run_again_after_a_while)
{
    static const struct {
        enum as_process_outcome outcome;
        int status;
        const char *output, *error;
    } rows[] = {
        {AS_PROCESS_EXITED, 1, "", "credential plugin login: exit status 1"},
        {AS_PROCESS_KILLED, 9, "", "credential plugin login: killed by signal 9"},
        {AS_PROCESS_NOT_STARTED, ENOENT, "", "credential plugin login: No such file or directory"},
        {AS_PROCESS_TIMEOUT, 0, "", "credential plugin login: no answer in 30 s"},
        {AS_PROCESS_TOO_LARGE, 0, "", "credential plugin login: too much output"},
        {AS_PROCESS_EXITED, 0, "hello", "credential plugin login: not JSON"},
        {AS_PROCESS_EXITED, 0, ANSWER(""), "credential plugin login: status: neither token nor"},
    };
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        end_program(rows[i].outcome, rows[i].status, rows[i].output);
        run_plugin();
        cr_expect_eq(as_kube_access_get(access_, &connection, &error), -EAGAIN);
        cr_expect_eq(strncmp(error.text, rows[i].error, strlen(rows[i].error)), 0, "%s",
                     error.text);
        world_advance(&world, AS_KUBE_EXEC_RETRY_US);
    }
    cr_expect_eq(world.run_count, AS_ARRAY_SIZE(rows));
}

Test(kube_access, a_plugin_that_runs_is_ended_with_the_access)
{
    write_file(kubeconfig, EXEC);
    must_open(kubeconfig);
    cr_assert_eq(as_kube_access_get(access_, &connection, &error), AS_KUBE_ACCESS_PENDING);
    access_ = as_kube_access_free(access_);
    cr_expect(world.runs[0].is_cancelled);
}
