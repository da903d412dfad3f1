/* Any bytes as what follows `rule_files` in a file of rule tests. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <alertscaler/rules/rule_tests.h>

#include "fuzz.h"

#define TESTS_FD 200
#define RULES_FD 201

static const char rules[] =
    "targets:\n"
    "  web: {kubernetes: {kind: Deployment, namespace: a, name: web}, max: 9}\n"
    "  any:\n"
    "    kubernetes: {kind: Deployment, namespace: a, name: '{{.Labels.b}}'}\n"
    "    allow: {names: ['*']}\n"
    "    max: 9\n"
    "rules:\n"
    "  - {name: slow, match: [a=b], target: web, scale_up: {by: 1}}\n";

static void write_file(int fd, const char *start, const uint8_t *data, size_t size)
{
    int made = memfd_create("tests", MFD_CLOEXEC);
    FUZZ_CHECK(made >= 0 && dup2(made, fd) == fd);
    close(made);
    FUZZ_CHECK(write(fd, start, strlen(start)) == (ssize_t)strlen(start));
    FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
}

static int get_class(const struct as_rule_test_event *event)
{
    return event->kind <= AS_RULE_TEST_QUERY     ? 0
           : event->kind <= AS_RULE_TEST_RESOLVE ? 1
           : event->kind <= AS_RULE_TEST_DENY    ? 2
                                                 : 3;
}

static void check_event(const struct as_rule_test_event *event)
{
    const bool is_alert = event->kind == AS_RULE_TEST_FIRE || event->kind == AS_RULE_TEST_RESOLVE;
    FUZZ_CHECK(event->at_us >= 0 && event->at_us <= AS_RULE_TEST_TIME_MAX && event->line > 0);
    FUZZ_CHECK(is_alert == (event->alert.annotations != NULL));
    FUZZ_CHECK((is_alert || event->kind == AS_RULE_TEST_EXPECT_ALERT) ==
               (event->alert.labels != NULL));
    FUZZ_CHECK(!is_alert || event->alert.receiver);
    FUZZ_CHECK(event->kind != AS_RULE_TEST_SIZE || event->replicas >= 0);
    FUZZ_CHECK((event->kind != AS_RULE_TEST_APPROVE && event->kind != AS_RULE_TEST_DENY) ||
               event->target);
    FUZZ_CHECK((event->kind == AS_RULE_TEST_QUERY) == (event->query != NULL));
}

/* Every event is whole, and they stand in the order in which they happen. */
static void check_tests(const struct as_rule_tests *tests)
{
    for (size_t i = 0; i < tests->test_count; i++) {
        const struct as_rule_test *test = &tests->tests[i];
        FUZZ_CHECK(*test->name && test->event_count > 0);
        for (size_t j = 0; j < test->event_count; j++) {
            const struct as_rule_test_event *event = &test->events[j];
            check_event(event);
            if (j == 0)
                continue;
            FUZZ_CHECK(event[-1].at_us <= event->at_us);
            FUZZ_CHECK(event[-1].at_us < event->at_us || get_class(&event[-1]) <= get_class(event));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_rule_tests *tests = NULL;
    char path[64];
    if (memmem(data, size, "_file", 5)) /* of the machine */
        return 0;
    write_file(TESTS_FD, "rule_files: ['201']\n", data, size);
    write_file(RULES_FD, rules, data, 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", TESTS_FD);
    const int r = as_rule_tests_load(path, &tests, &diagnostics);
    FUZZ_CHECK((r == AS_CONFIG_OK) == !diagnostics.has_error);
    FUZZ_CHECK((r == AS_CONFIG_OK) == (tests != NULL));
    if (tests)
        check_tests(tests);
    as_rule_tests_free(tests);
    as_diagnostics_deinit(&diagnostics);
    close(TESTS_FD);
    close(RULES_FD);
    return 0;
}
