/*
 * The words for directions that are forbidden, and for who forbids them.
 */
#include <alertscaler/model/forbidden.h>

#include <assert.h>
#include <stddef.h>

#define WAYS_WORD(enumerator, word)         [enumerator] = (word),
#define HOLDER_WORD(enumerator, word, name) [enumerator] = (word),

const char *as_ways_get_word(enum as_ways ways)
{
    static const char *const words[AS_WAYS_BOTH + 1] = {AS_WAYS_WORDS(WAYS_WORD)};

    assert((size_t)ways <= AS_WAYS_BOTH);
    return words[ways];
}

const char *as_holder_get_word(enum as_holder holder)
{
    static const char *const words[AS_HOLDER_COUNT] = {AS_HOLDERS(HOLDER_WORD)};

    assert((size_t)holder < AS_HOLDER_COUNT);
    return words[holder];
}

enum as_reason as_holder_get_reason(enum as_holder holder)
{
    switch (holder) {
    case AS_HOLDER_INEFFECTIVE: return AS_REASON_INEFFECTIVE;
    case AS_HOLDER_DID_NOT_COME: return AS_REASON_DID_NOT_COME;
    case AS_HOLDER_ROLLOUT: return AS_REASON_ROLLOUT_UNDER_WAY;
    case AS_HOLDER_RULE:
    case AS_HOLDER_PAUSE:
    case AS_HOLDER_SCHEDULE:
    case AS_HOLDER_COUNT: break;
    }
    return AS_REASON_HELD;
}

bool as_reason_has_holder(enum as_reason reason)
{
    return reason == AS_REASON_HELD || reason == AS_REASON_INEFFECTIVE ||
           reason == AS_REASON_DID_NOT_COME || reason == AS_REASON_ROLLOUT_UNDER_WAY;
}
