/*
 * A gap of numbers is certain; its times are those of the records around it. Who led meanwhile is
 * from the members `leaders` of `start` records, which are written after a gap. Clocks of replicas
 * differ, and a leader that died wrote records after its last renewal that others saw. So times are
 * compared with some tolerance.
 */
#include <alertscaler/log/log_absences.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>

#define TOLERANCE_US AS_US_PER_MIN
#define STARTS_MAX   1000 /* records that are read */
#define TERMS_MAX    2000
#define LINE_MAX     ((size_t)64 << 10) /* of a `start` record */
#define TREE_MAX     ((size_t)1 << 20)

struct absence_search {
    const struct as_log_absences_query *query;
    struct as_log_index *index;
    struct as_log_absences *absences;
    struct as_log_gap *gaps; /* that overlap the wanted time, the newest first */
    size_t gap_count, gap_capacity;
    struct as_leader_term *terms; /* of other replicas */
    size_t term_count, term_capacity, starts;
};

/*
 * Terms of other replicas.
 */

static bool absence_read_time(const struct tree_value *object, const char *name, as_wall_time *out)
{
    const char *text = tree_find_text(object, name);
    return text && as_wall_time_parse(text, strlen(text), out) == 0;
}

static bool absence_is_same_term(const struct as_leader_term *a, const struct as_leader_term *b)
{
    return strcmp(a->replica, b->replica) == 0 && a->since.set && b->since.set &&
           a->since.at.us == b->since.at.us;
}

/* Names of pods are visible ASCII; others may be in a log that somebody wrote. */
static void absence_copy_name(const char *name, char name_out[AS_LEADER_REPLICA_SIZE])
{
    size_t size = 0;
    for (; name[size] && size + 1 < AS_LEADER_REPLICA_SIZE; size++)
        name_out[size] = name[size] > ' ' && name[size] < 0x7f ? name[size] : '?';
    name_out[size] = '\0';
}

/* Several processes may have seen one term. */
static void absence_add_term(struct absence_search *search, const struct as_leader_term *term)
{
    for (size_t i = 0; i < search->term_count; i++) {
        struct as_leader_term *known = &search->terms[i];
        if (!absence_is_same_term(known, term))
            continue;
        if (term->until.us > known->until.us)
            known->until = term->until;
        return;
    }
    if (search->term_count == TERMS_MAX)
        return;
    search->terms =
        as_xgrow(search->terms, search->term_count, &search->term_capacity, sizeof(*search->terms));
    search->terms[search->term_count++] = *term;
}

static void absence_read_leaders(struct absence_search *search, const struct tree_value *record)
{
    const struct tree_value *leader = tree_get_first(tree_find(record, "leaders"));
    for (; leader; leader = leader->next) {
        const char *replica = tree_find_text(leader, "replica");
        struct as_leader_term term = {.replica = ""};
        if (as_str_is_empty(replica) || as_str_equal(replica, search->query->instance) ||
            !absence_read_time(leader, "until", &term.until))
            continue;
        term.since.set = absence_read_time(leader, "since", &term.since.at);
        absence_copy_name(replica, term.replica);
        absence_add_term(search, &term);
    }
}

static bool absence_on_start(void *context, const struct as_log_row *row)
{
    struct absence_search *search = context;
    AS_CLEANUP(as_buf_deinit) struct as_buf line = AS_BUF_INIT_OPEN(LINE_MAX);
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_MAX);
    struct as_error error;
    if (row->size <= LINE_MAX && as_log_index_read_row(search->index, row, &line, &error) == 0 &&
        tree_load_object(&tree, line.data, line.size, &error) == 0)
        absence_read_leaders(search, tree.root);
    return ++search->starts < STARTS_MAX;
}

/*
 * Gaps.
 */

static bool absence_wants(const struct as_log_absences_query *query, as_maybe_time from,
                          as_wall_time to)
{
    return (!query->since.set || to.us >= query->since.at.us) &&
           (!query->until.set || !from.set || from.at.us <= query->until.at.us);
}

static bool absence_on_gap(void *context, const struct as_log_gap *gap)
{
    struct absence_search *search = context;
    const struct as_log_absences_query *query = search->query;
    if (!absence_wants(query, gap->from, gap->to) || gap->last <= query->after ||
        (query->last > 0 && gap->first > query->last))
        return true;
    search->gaps =
        as_xgrow(search->gaps, search->gap_count, &search->gap_capacity, sizeof(*search->gaps));
    search->gaps[search->gap_count++] = *gap;
    return search->gap_count <= AS_LOG_ABSENCES_MAX; /* one more shows that there are more */
}

static void absence_add(struct as_log_absences *absences, const struct as_log_absence *absence)
{
    if (absences->count == AS_LOG_ABSENCES_MAX)
        absences->has_more = true;
    else
        absences->items[absences->count++] = *absence;
}

static bool absence_is_known(const struct as_log_absences *absences,
                             const struct as_leader_term *term)
{
    for (size_t i = 0; i < absences->count; i++) {
        const struct as_log_absence *known = &absences->items[i];
        if (strcmp(known->replica, term->replica) == 0 && known->to.us == term->until.us)
            return true;
    }
    return false;
}

static int absence_compare_terms(const void *left, const void *right)
{
    const struct as_leader_term *a = left, *b = right;
    return (a->until.us < b->until.us) - (a->until.us > b->until.us);
}

/* Who led in the gap, in the wanted time. */
static void absence_name(struct absence_search *search, const struct as_log_gap *gap)
{
    bool has_name = false;
    for (size_t i = 0; i < search->term_count; i++) {
        const struct as_leader_term *term = &search->terms[i];
        const as_wall_time latest = {term->until.us + TOLERANCE_US};
        const bool is_in_gap = (!gap->from.set || latest.us >= gap->from.at.us) &&
                               (!term->since.set || term->since.at.us < gap->to.us);
        if (!is_in_gap || !absence_wants(search->query, term->since, latest))
            continue;
        has_name = true;
        if (absence_is_known(search->absences, term))
            continue;
        struct as_log_absence absence = {.from = term->since, .to = term->until};
        memcpy(absence.replica, term->replica, sizeof(absence.replica));
        absence_add(search->absences, &absence);
    }
    /* Rotation has deleted what was before the oldest record. */
    if (!has_name && gap->from.set)
        absence_add(search->absences, &(struct as_log_absence){.from = gap->from, .to = gap->to});
}

void as_log_absences_find(const struct as_log_history_view *view,
                          const struct as_log_absences_query *query,
                          struct as_log_absences *absences_out)
{
    struct absence_search search = {.query = query, .index = view->index, .absences = absences_out};
    const struct as_log_query starts = {
        .kinds = 1U << AS_RECORD_START,
        .since = query->since, /* a term is recorded after it */
        .on_row = absence_on_start,
        .context = &search,
        .deadline = query->deadline,
    };
    struct as_error error;
    *absences_out = (struct as_log_absences){.count = 0};
    const bool has_gaps =
        view->index && view->state.is_current &&
        as_log_index_find_gaps(view->index, absence_on_gap, &search, &error) == 0 &&
        search.gap_count > 0 && as_log_index_find(view->index, &starts, &error) == 0;
    if (search.term_count > 0)
        qsort(search.terms, search.term_count, sizeof(*search.terms), absence_compare_terms);
    for (size_t i = 0; has_gaps && i < search.gap_count; i++)
        absence_name(&search, &search.gaps[i]);
    free(search.gaps);
    free(search.terms);
}

static void absence_print_second(as_wall_time time, struct as_buf *out)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print_short((as_wall_time){time.us - time.us % AS_US_PER_S}, text);
    as_buf_append_str(out, text);
}

void as_log_absence_print(const struct as_log_absence *absence, struct as_buf *out)
{
    const bool is_known = *absence->replica;
    as_buf_append_str(out, is_known ? absence->replica : "records");
    as_buf_append_str(out, is_known ? " led " : " ");
    as_buf_append_str(out, absence->from.set ? "from " : "until ");
    if (absence->from.set) {
        absence_print_second(absence->from.at, out);
        as_buf_append_str(out, " to ");
    }
    absence_print_second(absence->to, out);
    as_buf_append_str(out, is_known ? "; its records are in its own action log"
                                    : " are missing here: another replica led, or a file of the "
                                      "action log was moved away");
}
