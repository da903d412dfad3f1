/*
 * Decides what a document says, a pool's plan first: see the header.
 */
#include <alertscaler/decide/decision.h>

#include <alertscaler/cluster/node_pack.h>

static const struct as_pool_config without_pool = {
    .cpu.max = AS_POOL_NO_CAP,
    .memory.max = AS_POOL_NO_CAP,
    .at_once_empty = 10,
    .at_once_drain = 1,
};

static struct as_pool_plan_terms get_terms(const struct as_decide_input *input)
{
    struct as_pool_plan_terms terms = {
        .now = input->now, .min = input->config.min, .max = input->config.max};

    if (input->plan_terms)
        return *input->plan_terms;
    for (size_t i = 0; i < input->proposal_count; i++) {
        terms.with_fit |= input->proposals[i].action.is_fit;
        terms.with_take |= input->proposals[i].action.is_take;
    }
    return terms;
}

static void make_plan(struct as_decide_document *document)
{
    const struct as_decide_input *input = &document->input;
    struct as_pool_plan_request *request = as_arena_alloc(&document->arena, 1, sizeof(*request));
    struct as_pool_plan *plan = as_arena_alloc(&document->arena, 1, sizeof(*plan));

    *request = (struct as_pool_plan_request){
        .version = input->version,
        .survey = input->survey,
        .config = input->pool ? input->pool : &without_pool,
        .terms = get_terms(input),
    };
    struct as_pool_work *work = as_pool_begin(request, &document->arena);
    while (!as_pool_step(work, AS_PACK_FITS_MAX, plan))
        ;
    document->input.plan = plan;
}

void as_decide_document_decide(struct as_decide_document *document,
                               struct as_decision *decision_out)
{
    if (document->input.survey && !document->input.survey->error && !document->input.plan)
        make_plan(document);
    as_decide(&document->input, document->results, decision_out);
}
