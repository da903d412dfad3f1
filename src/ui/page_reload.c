/*
 * The page that says what a reload would change: the rules and targets of the files, compared with
 * those in force. The files are read when a browser loads the page, at most once a second; nothing
 * is put in force.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/rules/config.h>

#include "api_private.h"
#include "page.h"

#define CHANGES_SHOWN    200
#define PREVIEW_EVERY_US AS_US_PER_S

enum entry_kind { ENTRY_RULE, ENTRY_TARGET };

static const char *const entry_words[] = {[ENTRY_RULE] = "rule", [ENTRY_TARGET] = "target"};

struct entry { /* all borrowed */
    enum entry_kind kind;
    const char *name, *file, *text; /* file and text NULL: not known */
    uint32_t line;
};

struct entries {
    struct entry *items; /* by kind and name */
    size_t count;
};

static int entry_compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    return a->kind != b->kind ? (a->kind > b->kind) - (a->kind < b->kind)
                              : strcmp(a->name, b->name);
}

/* Without those of policies, which are objects of Kubernetes. */
static struct entries entries_new(const struct as_ruleset *ruleset)
{
    struct entries entries = {
        as_xcalloc(ruleset->rule_count + ruleset->target_count + 1, sizeof(*entries.items)), 0};
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        if (!rule->target->policy)
            entries.items[entries.count++] =
                (struct entry){ENTRY_RULE, rule->name, rule->file, rule->text, rule->line};
    }
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *target = ruleset->targets[i];
        if (!target->policy)
            entries.items[entries.count++] = (struct entry){
                ENTRY_TARGET, target->name, target->file, target->text, target->line};
    }
    qsort(entries.items, entries.count, sizeof(*entries.items), entry_compare);
    return entries;
}

struct changes {
    struct api_request *request;
    struct html_table table;
    size_t count;
};

static void print_entry_text(struct as_buf *out, const char *title, const struct entry *entry)
{
    if (!entry)
        return;
    html_element(out, "p", "dim", title);
    if (entry->text)
        html_element(out, "pre", NULL, entry->text);
    else
        html_element(out, "p", "dim", "The text is too long to be shown.");
}

/* `before` or `after` NULL: there is none. */
static void print_entry_change(struct changes *changes, const struct entry *before,
                               const struct entry *after)
{
    static const struct html_column columns[] = {
        {.title = "Entry"}, {.title = "Change"}, {.title = "File"}, {.title = "Text"}};
    const struct entry *entry = after ? after : before;
    struct as_buf *out = page_get_out(changes->request);
    assert(entry);
    struct html_table *table = &changes->table;
    if (changes->count++ >= CHANGES_SHOWN)
        return;
    if (changes->count == 1)
        html_table_begin(table, out, "Changes", columns, AS_ARRAY_SIZE(columns));
    html_row_begin(table);
    html_cell(table);
    as_buf_printf(out, "%s ", entry_words[entry->kind]);
    if (before && before->kind == ENTRY_RULE)
        page_link_rule(changes->request, out, entry->name);
    else
        html_text(out, entry->name);
    html_cell(table);
    page_print_pill(out,
                    !before  ? "good"
                    : !after ? "bad"
                             : "warn",
                    !before  ? "added"
                    : !after ? "removed"
                             : "changed");
    html_cell(table);
    if (entry->file) {
        html_text(out, entry->file);
        as_buf_printf(out, ", line %" PRIu32, entry->line);
    }
    html_cell(table);
    as_buf_append_str(out, "<details><summary>YAML</summary>");
    print_entry_text(out, "In force:", before);
    print_entry_text(out, "In the file:", after);
    as_buf_append_str(out, "</details>");
    html_row_end(table);
}

static void print_entry_changes(struct changes *changes, const struct entries *before,
                                const struct entries *after)
{
    size_t i = 0, k = 0;
    while (i < before->count || k < after->count) {
        const struct entry *old = i < before->count ? &before->items[i] : NULL;
        const struct entry *new = k < after->count ? &after->items[k] : NULL;
        const int order = !old ? 1 : !new ? -1 : entry_compare(old, new);
        if (order < 0)
            print_entry_change(changes, old, NULL);
        else if (order > 0)
            print_entry_change(changes, NULL, new);
        else if (!as_str_equal(old->text, new->text))
            print_entry_change(changes, old, new);
        i += order <= 0;
        k += order >= 0;
    }
}

static void print_preview(struct api_request *request, const struct as_config *config)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    struct changes changes = {.request = request};
    const struct entries before = entries_new(view->ruleset), after = entries_new(config->ruleset);
    if (!as_str_equal(view->config_digest, config->digest))
        as_buf_append_str(out, "<p class=\"note warn\">The configuration file has changed too. Its "
                               "<code>defaults</code> belong to all targets. <code>alertscaler diff"
                               "</code> lists the keys.</p>\n");
    print_entry_changes(&changes, &before, &after);
    if (changes.count > 0)
        html_table_end(&changes.table);
    else
        html_element(out, "p", NULL, "All rules and targets of the files are in force.");
    if (changes.count > CHANGES_SHOWN)
        as_buf_printf(out, "<p class=\"dim\">and %zu more</p>\n", changes.count - CHANGES_SHOWN);
    free(before.items);
    free(after.items);
}

bool page_answer_unchanged_reload(struct api_request *request)
{
    if (!api_parameter_find(request, PAGE_SINCE))
        return false;
    api_reply_body(request, 304, NULL, AS_REPLY_NO_STORE);
    return true;
}

void page_answer_reload(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_api *api = request->api;
    struct as_error error = AS_ERROR_INIT;
    if (!as_scope_is_whole(view->scopes, view->scope_count, request->who)) {
        page_refuse(request, 403, "Not for this credential",
                    "The files have rules and targets of others: a credential with `targets` or "
                    "`rules` cannot compare them.");
        return;
    }
    if (!api->config.preview || view->mono.us < api->next_preview.us) {
        page_refuse(request, 503, "Try again",
                    "The files are read at most once a second: load the page again.");
        return;
    }
    api->next_preview.us = view->mono.us + PREVIEW_EVERY_US;
    AS_CLEANUP(as_config_free_p)
    struct as_config *config = api->config.preview(api->config.context, &error);
    page_begin(request, &(struct page_head){.title = "What a reload would change",
                                            .place = PAGE_RULES,
                                            .document = "page.md#before-a-reload",
                                            .stays = true});
    if (config) {
        print_preview(request, config);
    } else {
        as_buf_append_str(page_get_out(request),
                          "<p class=\"note bad\">A reload would fail, and change nothing: ");
        html_text(page_get_out(request), error.text);
        as_buf_append_str(page_get_out(request), "</p>\n");
    }
    page_end(request, 200);
}
