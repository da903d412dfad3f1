/*
 * `alertscaler notify test NAME`: sends a sample to a receiver, as the daemon would, and says what
 * came back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/notify/notice.h>
#include <alertscaler/rules/config.h>

#include "cli.h"
#include "http_call.h"

#define BODY_MAX ((size_t)64 * 1024)

struct test {
    const struct as_notify_settings *receiver;
    size_t waiting, refused;
};

static void on_done(void *context, uint64_t call_id, const char *error)
{
    struct test *test = context;
    test->waiting--;
    test->refused += error != NULL;
    if (error) {
        as_safe_text_put(stdout, error);
        putchar('\n');
    } else {
        printf("receiver %s took the sample", test->receiver->name);
        if (test->receiver->url_count > 1)
            printf(" (URL %zu of %zu)", (size_t)call_id + 1, test->receiver->url_count);
        putchar('\n');
    }
}

/* As unique as the hash of a record. */
static void notify_test_make_id(char hash_out[AS_NOTICE_HASH_SIZE])
{
    unsigned char bytes[(AS_NOTICE_HASH_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        abort();
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(hash_out + 2 * i, 3, "%02x", bytes[i]);
}

static void encode(const struct as_settings *settings, const struct test *test, struct as_buf *out)
{
    char host[AS_INSTANCE_NAME_SIZE], hash[AS_NOTICE_HASH_SIZE];
    const as_wall_time now = session_clock.get_wall(&session_clock);
    const struct as_notice_sender sender = {as_settings_get_instance(settings, host), NULL};
    notify_test_make_id(hash);
    const struct as_notice notice = {
        .kind = AS_NOTICE_TEST,
        .phase = AS_NOTICE_EVENT,
        .target = "test",
        .reason = "test",
        .message = "sent by `alertscaler notify test`",
        .at = now,
        .hash = hash,
    };
    if (test->receiver->is_webhook)
        as_notice_encode_event(&notice, &sender, out);
    else
        as_notice_encode_alerts(&notice, 1, &sender, now, out);
}

static void send_all(const struct as_args *args, const struct as_settings *settings,
                     struct test *test)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(BODY_MAX);
    const struct as_adapters *adapters = args->adapters;
    struct event_base *base = event_base_new();
    if (!base)
        abort();
    struct as_outside *outside =
        adapters->new_outside(base, &session_clock, session_ignore_transfer, NULL);
    struct as_messenger *messenger = adapters->new_messenger(outside, settings);
    encode(settings, test, &body);
    test->waiting = test->receiver->url_count;
    for (size_t i = 0; i < test->receiver->url_count; i++)
        messenger->send(messenger, i,
                        &(struct as_message){(size_t)(test->receiver - settings->notify), i,
                                             body.data, body.size},
                        on_done, test);
    while (test->waiting > 0) {
        if (event_base_loop(base, EVLOOP_ONCE) != 0)
            abort(); /* a message is on its way: there is always an event to wait for */
    }
    messenger->close(messenger);
    adapters->free_outside(outside);
    event_base_free(base);
}

static int fail_unknown(const struct as_args *args, const struct as_settings *settings)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(BODY_MAX);
    struct as_spelling spelling = as_spelling_begin(args->operands[0]);
    for (size_t i = 0; i < settings->notify_count; i++) {
        as_buf_printf(&names, "%s%s", i ? ", " : "", settings->notify[i].name);
        as_spelling_offer(&spelling, settings->notify[i].name);
    }
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    return as_cli_fail(args, "there is no receiver \"%s\" under `notify`; there %s %s%s",
                       args->operands[0], settings->notify_count > 1 ? "are" : "is",
                       names.size > 0 ? names.data : "none", hint);
}

static int notify_test_run(const struct as_args *args)
{
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    int status = as_config_load(config_option_report(args), &config, &diagnostics);
    as_diagnostics_sort(&diagnostics);
    if (diagnostics.has_error)
        as_diagnostics_print(&diagnostics, stderr);
    as_diagnostics_deinit(&diagnostics);
    if (status != 0)
        return AS_EXIT_USAGE;
    struct test test = {as_settings_find_notify(&config->settings, args->operands[0]), 0, 0};
    if (!test.receiver)
        return fail_unknown(args, &config->settings);
    send_all(args, &config->settings, &test);
    return test.refused > 0 ? AS_EXIT_NO : AS_EXIT_OK;
}

static const struct as_option options[] = {AS_OPTION_CONFIG_FILE("the configuration"), {0}};

const struct as_command as_command_notify_test = {
    .name = "notify test",
    .operands = "NAME",
    .summary = "Sends a sample to a receiver of `notify`, and says what came back.",
    .help = "NAME is the receiver's name. Alertmanagers get the alert AlertscalerTest, which ends\n"
            "after 15 minutes, at each URL; webhooks get an event of type io.alertscaler.test.v1.\n"
            "The command sends the sample itself: the daemon need not run.\n"
            "Exit status: 0 if all have taken it, 1 if one has not, 2 on other problems.",
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
    .run = notify_test_run,
};
