/*
 * Whether the credentials' patterns match anything.
 */
#ifndef ALERTSCALER_SRC_RULES_ACCESS_PATTERNS_H
#define ALERTSCALER_SRC_RULES_ACCESS_PATTERNS_H

#include <alertscaler/decide/ruleset.h>

#include <alertscaler/doc/schema.h>

/* Warns of patterns that match nothing. The loader's tree is a configuration without errors, with
 * which the rule set was loaded. */
void check_access_patterns(struct loader *loader, const struct as_ruleset *ruleset);

#endif
