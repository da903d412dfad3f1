/*
 * Any bytes as a stored incident, target, intent or notice: refused with a text, or written and
 * read back as the same, in this boot of the machine and in another.
 */
#include <errno.h>
#include <string.h>

#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/engine/state.h>
#include <alertscaler/notify/notice.h>

#include "fuzz.h"

#define TEXT_MAX ((size_t)1 << 26)

struct again {
    struct as_buf *text;
    const char *boot;
};

static int use_incident(void *context, const struct as_incident_state *state)
{
    struct again *again = context;
    for (size_t i = 0; i < state->receiver_count; i++)
        FUZZ_CHECK(state->receivers[i]);
    for (size_t i = 0; i < state->progress_count; i++)
        FUZZ_CHECK(state->progress[i].rule && state->progress[i].origin >= -1);
    as_state_encode_incident(state, again->boot, again->text);
    return 7;
}

static int use_target(void *context, const struct as_target_state *state)
{
    struct again *again = context;
    FUZZ_CHECK(*state->id && (state->ref || state->ending_count == 0));
    FUZZ_CHECK(!state->template_ || strlen(state->template_) <= AS_NODE_TEMPLATE_TEXT_MAX);
    for (size_t i = 0; i < state->ending_count; i++)
        FUZZ_CHECK(state->endings[i].rule && state->endings[i].guard);
    as_state_encode_target(state, again->boot, again->text);
    return 7;
}

static int use_intent(void *context, const struct as_intent_state *state)
{
    struct again *again = context;
    FUZZ_CHECK(state->ref && *state->ref->id && state->from >= 0 && state->to >= 0);
    FUZZ_CHECK(strlen(state->version) < AS_VERSION_SIZE);
    as_state_encode_intent(state, again->boot, again->text);
    return 7;
}

enum kind { INCIDENT, TARGET, INTENT, KINDS };

static int decode(enum kind kind, const char *json, size_t size, const struct as_state_clock *clock,
                  struct again *again, struct as_error *error)
{
    switch (kind) {
    case INCIDENT: return as_state_decode_incident(json, size, clock, use_incident, again, error);
    case TARGET: return as_state_decode_target(json, size, clock, use_target, again, error);
    case INTENT: return as_state_decode_intent(json, size, clock, use_intent, again, error);
    case KINDS: break;
    }
    abort();
}

static void check(enum kind kind, const char *json, size_t size, const struct as_state_clock *clock)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_buf once = AS_BUF_INIT(TEXT_MAX), twice = AS_BUF_INIT(TEXT_MAX);
    const int r = decode(kind, json, size, clock, &(struct again){&once, clock->boot}, &error);

    FUZZ_CHECK(r == 7 || (r == -EBADMSG && *error.text));
    if (r == 7) {
        FUZZ_CHECK(as_buf_check(&once) == 0);
        FUZZ_CHECK(decode(kind, once.data, once.size, clock, &(struct again){&twice, clock->boot},
                          &error) == 7);
        FUZZ_CHECK(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
    }
    as_buf_deinit(&once);
    as_buf_deinit(&twice);
}

/* Whatever it says, it can be sent. */
static void check_notice(const char *json, size_t size)
{
    static const struct as_notice_sender sender = {"here", "http://here"};
    struct as_error error = AS_ERROR_INIT;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf texts[4] = {AS_BUF_INIT(TEXT_MAX), AS_BUF_INIT(TEXT_MAX), AS_BUF_INIT(TEXT_MAX),
                              AS_BUF_INIT(TEXT_MAX)};
    struct as_notice notice, again;
    size_t at_hash;
    const int r = as_notice_decode(json, size, &arena, &notice, &error);
    FUZZ_CHECK(r == 0 || (r == -EBADMSG && *error.text));
    if (r == 0) {
        as_notice_encode(&notice, &texts[0], &at_hash);
        FUZZ_CHECK(as_buf_check(&texts[0]) == 0);
        FUZZ_CHECK(as_notice_decode(texts[0].data, texts[0].size, &arena, &again, &error) == 0);
        as_notice_encode(&again, &texts[1], &at_hash);
        FUZZ_CHECK(texts[0].size == texts[1].size &&
                   memcmp(texts[0].data, texts[1].data, texts[0].size) == 0);
        as_notice_encode_event(&notice, &sender, &texts[2]);
        as_notice_encode_alerts(&notice, 1, &sender, notice.at, &texts[3]);
        FUZZ_CHECK(as_buf_check(&texts[2]) == 0 && as_buf_check(&texts[3]) == 0);
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        as_buf_deinit(&texts[i]);
    as_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct as_state_clock same = {"b1", {1000 * AS_US_PER_S}, {50000 * AS_US_PER_S}};
    static const struct as_state_clock other = {"b2", {10 * AS_US_PER_S}, {60000 * AS_US_PER_S}};

    for (enum kind kind = INCIDENT; kind < KINDS; kind++) {
        check(kind, (const char *)data, size, &same);
        check(kind, (const char *)data, size, &other);
    }
    check_notice((const char *)data, size);
    return 0;
}
