/*
 * Any decision input: refused with a line of text, or decided within the promises. A decoded input
 * survives encoding and gets the same decision.
 */
#include <errno.h>
#include <string.h>

#include <alertscaler/decide/decision.h>

#include "fuzz.h"

static void encode_answer(struct as_decide_document *document, struct as_decision *decision,
                          struct as_buf *out)
{
    as_decide_document_decide(document, decision);
    as_decision_encode_output(&document->input, document->results, decision, out);
    FUZZ_CHECK(as_buf_check(out) == 0);
}

/* A scale-up never lowers and a scale-down never raises; neither goes beyond the bound ahead. */
static void check_size(const struct as_decide_input *input, const struct as_decision *decision)
{
    int32_t size = decision->has_would ? decision->would : decision->desired;

    FUZZ_CHECK(decision->replicas == input->replicas);
    FUZZ_CHECK(!decision->has_would || decision->desired == input->replicas);
    FUZZ_CHECK((decision->direction == AS_DIRECTION_UP) == (size > input->replicas));
    FUZZ_CHECK((decision->direction == AS_DIRECTION_DOWN) == (size < input->replicas));
    if (size > input->replicas)
        FUZZ_CHECK(size <= input->config.max);
    if (size < input->replicas)
        FUZZ_CHECK(size >= input->config.min);
    if (input->dry_run || input->flags.paused || input->flags.in_progress)
        FUZZ_CHECK(decision->desired == input->replicas);
}

static bool same_answer(const struct as_decide_document *document, int64_t at,
                        const struct as_decision *expected)
{
    struct as_decide_input input = document->input;
    struct as_decision decision;

    input.now.us = at;
    as_decide(&input, document->results, &decision);
    return decision.desired == expected->desired && decision.reason == expected->reason &&
           decision.has_would == expected->has_would && decision.would == expected->would;
}

/* The answer changes then, and has not changed just before. Pods that grow older don't count. */
static void check_next(const struct as_decide_document *document,
                       const struct as_decision *decision)
{
    int64_t next = decision->next_evaluation.at.us;

    if (!decision->next_evaluation.set)
        return;
    FUZZ_CHECK(next > document->input.now.us);
    if (document->input.has_pods)
        return;
    FUZZ_CHECK(!same_answer(document, next, decision));
    FUZZ_CHECK(same_answer(document, next - 1, decision));
}

static void check_round_trip(const struct as_decide_document *first, const struct as_buf *answer)
{
    struct as_buf once = AS_BUF_INIT((size_t)1 << 26), twice = AS_BUF_INIT((size_t)1 << 26),
                  again = AS_BUF_INIT((size_t)1 << 26);
    struct as_decide_document *second = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct as_decision decision;

    as_decision_encode_input(&first->input, &once);
    FUZZ_CHECK(as_buf_check(&once) == 0);
    FUZZ_CHECK(as_decision_decode_input(once.data, once.size, &second, &error) == 0);
    as_decision_encode_input(&second->input, &twice);
    FUZZ_CHECK(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
    encode_answer(second, &decision, &again);
    FUZZ_CHECK(answer->size == again.size && memcmp(answer->data, again.data, again.size) == 0);
    as_decide_document_free(second);
    as_buf_deinit(&once);
    as_buf_deinit(&twice);
    as_buf_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_buf answer = AS_BUF_INIT((size_t)1 << 26);
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct as_decision decision;
    int r = as_decision_decode_input((const char *)data, size, &document, &error);

    if (r < 0) {
        FUZZ_CHECK(r == -EBADMSG && !document && *error.text);
        return 0;
    }
    encode_answer(document, &decision, &answer);
    check_size(&document->input, &decision);
    check_next(document, &decision);
    check_round_trip(document, &answer);
    as_buf_deinit(&answer);
    as_decide_document_free(document);
    return 0;
}
