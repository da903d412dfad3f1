/*
 * The table of the concerns of a target. It is alone in its object file, so that a test links
 * another table.
 */
#include "engine_concerns.h"

#define ROW(ID, name) [CONCERN_##ID] = &concern_##name,
const struct concern *const engine_concerns[] = {ENGINE_CONCERNS(ROW)[CONCERN_COUNT] = NULL};
