/*
 * The words of the reason codes, out of the one table in the header.
 */
#include <alertscaler/model/reason.h>

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <alertscaler/base/attr.h>

#define WORD(enumerator, word, meaning)    [enumerator] = (word),
#define MEANING(enumerator, word, meaning) [enumerator] = (meaning),

static const char *const words[] = {AS_REASONS(WORD)};
static const char *const meanings[] = {AS_REASONS(MEANING)};

static_assert(AS_ARRAY_SIZE(words) == AS_REASON_COUNT, "every reason has a word");

const char *as_reason_get_word(enum as_reason reason)
{
    assert((size_t)reason < AS_REASON_COUNT);
    return words[reason];
}

const char *as_reason_get_meaning(enum as_reason reason)
{
    assert((size_t)reason < AS_REASON_COUNT);
    return meanings[reason];
}

bool as_reason_find(const char *word, enum as_reason *reason_out)
{
    for (size_t i = 0; i < AS_REASON_COUNT; i++) {
        if (strcmp(words[i], word) == 0) {
            *reason_out = (enum as_reason)i;
            return true;
        }
    }
    return false;
}
