/*
 * Words of a survey: see the header.
 */
#include <alertscaler/cluster/survey.h>

#include <assert.h>

const char *as_stay_get_word(enum as_stay stay)
{
#define WORD(enumerator, word) [enumerator] = (word),
    static const char *const words[AS_STAY_COUNT] = {AS_STAYS(WORD)};

    assert((size_t)stay < AS_STAY_COUNT);
    return words[stay];
}
