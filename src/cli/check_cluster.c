/*
 * The targets of a configuration in their clusters: see the header.
 */
#include "check_cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>

#include "http_session.h"

#define PATIENCE_US (60 * AS_US_PER_S)

struct asked { /* a target; its index is its ticket */
    struct as_target_ref *ref;
    bool awaits_others;
};

struct look {
    const struct as_config *config;
    struct as_diagnostics *diagnostics;
    struct asked *asked; /* one for each target of the rule files */
    size_t waiting;      /* for sizes and for who else there is */
};

static void warn(struct look *look, const char *format, ...) AS_PRINTF(2, 3);
static void warn(struct look *look, const char *format, ...)
{
    struct as_error text = AS_ERROR_INIT;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text.text, sizeof(text.text), format, arguments);
    va_end(arguments);
    as_diagnostics_add(look->diagnostics, &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING,
                                                                  .file = look->config->path,
                                                                  .message = text.text});
}

static void on_observed(void *context, uint64_t ticket, const struct as_observation *result)
{
    struct look *look = context;
    struct asked *asked = &look->asked[ticket];
    look->waiting--;
    if (result->outcome == AS_REASON_APPLIED)
        return;
    warn(look, "target `%s` cannot be read: %s: %s", look->config->ruleset->targets[ticket].name,
         as_reason_get_word(result->outcome), result->message);
    look->waiting -= asked->awaits_others;
    asked->awaits_others = false;
}

static void on_others_found(void *context, const char *target, const struct as_other *others,
                            size_t count)
{
    struct look *look = context;
    const struct as_ruleset *ruleset = look->config->ruleset;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        struct asked *asked = &look->asked[i];
        if (!asked->awaits_others || strcmp(asked->ref->id, target) != 0)
            continue;
        asked->awaits_others = false;
        look->waiting--;
        for (size_t k = 0; k < count; k++)
            warn(look, "target `%s`: the %s %s sizes it too%s", ruleset->targets[i].name,
                 others[k].kind, others[k].name, others[k].is_paused ? " (paused)" : "");
    }
}

/* Only an address without templates is known before an alert. */
static void ask(struct look *look, struct as_target_port *port, size_t i)
{
    const struct as_target_config *target = &look->config->ruleset->targets[i];
    AS_CLEANUP(as_labels_free_p) struct as_labels *none = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct asked *asked = &look->asked[i];
    if (target->kind != &as_target_kind_kubernetes || target->is_templated ||
        as_labels_new(NULL, 0, &none) != 0 ||
        as_target_ref_new(target, none, none, &asked->ref, &error) != AS_TARGET_OK)
        return;
    struct as_sized sized;
    as_sized_read(asked->ref, &sized);
    asked->awaits_others =
        *as_target_ref_get(asked->ref, "namespace") && sized.what == AS_SIZED_SCALE;
    look->waiting += 1 + asked->awaits_others;
    port->observe(port, i, asked->ref, &(struct as_observe_request){.with_pods = false},
                  on_observed, look);
}

/* A list that never comes is given up with the patience. */
static void await(const struct look *look, struct event_base *base)
{
    const as_mono_time began = session_clock.get_mono(&session_clock);
    while (look->waiting > 0 &&
           session_clock.get_mono(&session_clock).us - began.us < PATIENCE_US) {
        if (event_base_loop(base, EVLOOP_ONCE) != 0)
            break; /* nothing can come any more */
    }
}

void check_cluster(const struct as_config *config, const struct as_adapters *adapters,
                   struct as_diagnostics *diagnostics)
{
    const size_t count = config->ruleset->target_count;
    struct look look = {.config = config, .diagnostics = diagnostics};
    struct as_error error = AS_ERROR_INIT;
    struct as_target_port *port = NULL;
    struct event_base *base = event_base_new();
    if (!base)
        abort();
    look.asked = as_xcalloc(count + 1, sizeof(*look.asked));
    struct as_outside *outside =
        adapters->new_outside(base, &session_clock, session_ignore_transfer, NULL);
    adapters->set_permit(outside, NULL, NULL, NULL, NULL, on_others_found, NULL, &look);
    if (adapters->new_targets(outside, &config->settings, &port, &error) == 0) {
        for (size_t i = 0; i < count; i++)
            ask(&look, port, i);
        await(&look, base);
        port->close(port);
    } else {
        warn(&look, "the clusters cannot be asked: %s", error.text);
    }
    for (size_t i = 0; i < count; i++)
        as_target_ref_free(look.asked[i].ref);
    free(look.asked);
    adapters->free_outside(outside);
    event_base_free(base);
}
