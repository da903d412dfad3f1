/*
 * print_ids FILE: for every target in a configuration, or in rule files alone: name, kind, id, key,
 * and the address, for one alert. And which targets could have that id, by the rules and by a
 * scope.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/decide/target.h>
#include <alertscaler/rules/config.h>

static struct as_labels *make_labels(void)
{
    static const struct as_label pairs[] = {{"group", "Blue-1"}, {"service", "web"}};
    struct as_labels *labels = NULL;
    if (as_labels_new(pairs, sizeof(pairs) / sizeof(pairs[0]), &labels) != 0)
        abort();
    return labels;
}

static void print_who_else(const struct as_ruleset *ruleset, const char *id)
{
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *config = ruleset->targets[i];
        const bool may_have = as_target_may_have_id(config, id);
        const bool may_match = as_target_may_match_id(config, id);
        if (may_have || may_match)
            printf("    %s%s%s\n", may_have ? "may have it: " : "may match it: ", config->name,
                   may_have && !may_match ? ", in another spelling" : "");
    }
}

int main(int argc, char **argv)
{
    AS_CLEANUP(as_diagnostics_deinit) struct as_diagnostics diagnostics = {0};
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = make_labels();
    const char *const path = argc > 1 ? argv[1] : "";
    const int r = as_config_find_kind(path) == AS_CONFIG_RULES
                      ? as_config_load_rules(&path, 1, &config, &diagnostics)
                      : as_config_load(path, &config, &diagnostics);
    as_diagnostics_print(&diagnostics, stdout);
    for (size_t i = 0; r == 0 && i < config->ruleset->target_count; i++) {
        const struct as_target_config *target = config->ruleset->targets[i];
        AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
        struct as_error error = AS_ERROR_INIT;
        if (as_target_ref_new(target, labels, labels, &ref, &error) != AS_TARGET_OK) {
            printf("%s: %s\n", target->name, error.text);
            continue;
        }
        printf("%s: %s\n    %s\n    %s\n   ", target->name, ref->kind->word, ref->id, ref->key);
        for (size_t k = 0; k < ref->field_count; k++)
            printf(" %s=%s", ref->fields[k].key, ref->fields[k].value);
        puts("");
        print_who_else(config->ruleset, ref->id);
    }
    return r != 0;
}
