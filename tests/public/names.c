/*
 * Prints the public names that tables of the program hold, for public.py: group, tab, name. Members
 * of documents come from recorder.c, keys of files from `alertscaler schema`.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/cluster/pool_choice.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/notice.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/log/log_chain.h>
#include <alertscaler/rules/provider_kind.h>

#include "cli/cli.h"
#include "runtime/metrics_private.h"

/* For its table, which is static. */
#include "ui/route.c"

static void print(const char *group, const char *name)
{
    printf("%s\t%s\n", group, name);
}

static void print_metrics(void)
{
    static const char *const types[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric_family *family = &metric_families[i];
        printf("metric\t%s{", family->name);
        for (const char *const *label = family->labels; *label; label++)
            printf("%s%s", label == family->labels ? "" : ",", *label);
        printf("} %s", types[family->type]);
        for (size_t j = 0; j < family->bucket_count; j++)
            printf("%s%g", j == 0 ? " " : ",", family->buckets[j]);
        printf("\n");
    }
}

static void print_commands(void)
{
    const struct as_command *const *commands;
    const size_t count = as_command_get_all(&commands);
    for (size_t i = 0; i < count; i++) {
        const struct as_command *command = commands[i];
        printf("command\t%s%s%s\n", command->name, *command->operands ? " " : "",
               command->operands);
        for (const struct as_option *option = command->options; option->name; option++) {
            printf("option\t%s --%s", command->name, option->name);
            if (option->value)
                printf("=%s", option->value);
            if (option->letter)
                printf(" -%c", option->letter);
            if (option->fallback)
                printf(" default %s", option->fallback);
            for (const char *const *choice = option->choices; choice && *choice; choice++)
                printf(" %s", *choice);
            printf("\n");
        }
    }
}

static void print_routes(void)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        const char *const *methods = table[i].methods->names;
        for (size_t j = 0; table[i].methods->allow && j < AS_ARRAY_SIZE(table[i].methods->names);
             j++) {
            if (methods[j])
                printf("path\t%s %s\n", table[i].path, methods[j]);
        }
        print("handler", table[i].handler);
    }
}

static void print_kind(const struct as_target_kind *kind)
{
    print("target kind", kind->word);
    for (const struct as_address_key *key = kind->keys; key->is_valid; key++)
        printf("target kind\t%s %s\n", kind->word, key->key);
}

static void print_words(void)
{
#define WORDS(group, count, get_word)                                                              \
    for (int i = 0; i < (int)(count); i++)                                                         \
    print(group, get_word)
    WORDS("reason", AS_REASON_COUNT, as_reason_get_word((enum as_reason)i));
    WORDS("log kind", AS_RECORD_KIND_COUNT, as_record_kind_get_word((enum as_record_kind)i));
    WORDS("log event others", AS_OTHERS_EVENT_COUNT,
          as_others_event_get_word((enum as_others_event)i));
    WORDS("log event incident", AS_INCIDENT_UNSILENCED + 1,
          as_incident_event_get_word((enum as_incident_event)i));
    WORDS("log event approval", AS_APPROVAL_EVENT_COUNT,
          as_approval_event_get_word((enum as_approval_event)i));
    WORDS("log effect", AS_EVALUATION_UNKNOWN + 1, as_effect_end_get_word((enum as_effect_end)i));
    WORDS("notice", AS_NOTICE_KIND_COUNT, as_notice_kind_get_row((enum as_notice_kind)i)->word);
    WORDS("alert to Alertmanager", AS_NOTICE_KIND_COUNT,
          as_notice_kind_get_row((enum as_notice_kind)i)->alertname);
    WORDS("notice phase", AS_NOTICE_PHASE_COUNT, as_notice_phase_get_word((enum as_notice_phase)i));
    WORDS("notice loss", AS_NOTICE_LOSS_COUNT, as_notice_loss_get_word((enum as_notice_loss)i));
    WORDS("approval answer", AS_APPROVAL_ANSWER_COUNT,
          as_approval_answer_get_word((enum as_approval_answer)i));
    WORDS("command outcome", AS_OPERATOR_COMMAND_OUTCOME_COUNT,
          as_operator_command_outcome_get_word((enum as_operator_command_outcome)i));
    WORDS("pool filter", AS_POOL_FILTER_COUNT, as_pool_filter_get_word((enum as_pool_filter)i));
#undef WORDS
}

/* What the chain adds to each record. */
static void print_chain(void)
{
    static const char text[] = "{\"kind\":\"x\",\"time\":\"y\"}";
    const size_t at_time = strlen("{\"kind\":\"x\",");
    const struct as_audit_record record = {
        .json = text, .size = strlen(text), .at_hash = 1, .at_prev = at_time, .at_seq = at_time};
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    struct as_buf line = AS_BUF_INIT((size_t)1 << 12);
    struct as_chain *chain = as_chain_new();
    as_chain_seal(chain, &record, &head, &line);
    as_chain_free(chain);
    printf("chain\t%s", line.data);
    as_buf_deinit(&line);
}

int main(void)
{
    print_words();
    print_metrics();
    print_commands();
    print_routes();
    for (size_t i = 0; as_target_kinds[i]; i++)
        print_kind(as_target_kinds[i]);
    for (size_t i = 0; as_provider_kinds[i]; i++)
        print("provider", as_provider_kinds[i]->type);
    print_chain();
    printf(
        "exit status\t%d done\nexit status\t%d no\nexit status\t%d usage\nexit status\t%d lint\n",
        AS_EXIT_OK, AS_EXIT_NO, AS_EXIT_USAGE, AS_EXIT_LINT);
    return 0;
}
