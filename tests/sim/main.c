/*
 * sim [--seed N | --seeds FROM..TO | --digests FROM..TO] [--steps N] [--verbose] [--trouble]
 * [--stories] [--logs DIR]
 *
 * Runs seeds of the simulator. A seed that fails is run again with its last events printed. With
 * --trouble it prints how often each kind of trouble came, and fails where one never did. With
 * --digests it prints one line for each seed: the seed, the number of steps, a hash of the action
 * log, and a hash of every committed key and value; all other output goes to stderr. With --stories
 * it tells the story of each seed instead (stories.c). With --logs it writes the action log of each
 * seed into the directory, as seed-N.jsonl.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>

#include "sim.h"

static uint64_t current_seed;

struct totals {
    uint64_t seeds, failed, steps, records, repeats, applied;
    int64_t virtual_us;
};

struct options {
    uint64_t from, to, steps;
    bool is_verbose, wants_trouble, wants_digests, tells_stories;
    FILE *out;        /* for all but digests */
    const char *logs; /* directory; NULL: not wanted */
};

/* An assertion or a sanitizer ends the process: says with which seed. */
static void on_abort(int signal_number)
{
    char text[64];
    uint64_t seed = current_seed;
    int at = (int)sizeof(text);
    text[--at] = '\n';
    do
        text[--at] = (char)('0' + seed % 10);
    while (seed /= 10);
    static const char words[] = "sim: aborted in seed ";
    if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0 ||
        write(STDERR_FILENO, text + at, sizeof(text) - (size_t)at) < 0)
        _exit(3);
    (void)signal_number;
}

static void print_tail(FILE *report, uint64_t seed, uint64_t steps)
{
    (void)fprintf(report,
                  "the last events of seed %" PRIu64 " (all of them: --seed %" PRIu64
                  " --steps %" PRIu64 " --verbose):\n",
                  seed, seed, steps);
    (void)fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    FILE *file = tmpfile();
    if (out < 0 || !file || dup2(fileno(file), STDOUT_FILENO) < 0)
        return;
    struct run_result result;
    run_seed(seed, steps, true, NULL, &result);
    (void)fflush(stdout);
    (void)dup2(out, STDOUT_FILENO);
    (void)close(out);
    const long size = ftell(file);
    char tail[8193] = "";
    (void)fseek(file, size > 8192 ? size - 8192 : 0, SEEK_SET);
    tail[fread(tail, 1, 8192, file)] = '\0';
    const char *start = strchr(tail, '\n');
    (void)fprintf(report, "%s\n", start ? start + 1 : tail);
    (void)fclose(file);
}

/* NULL: not wanted. */
static FILE *open_log(uint64_t seed, const struct options *options)
{
    char path[4096];
    if (!options->logs)
        return NULL;
    (void)snprintf(path, sizeof(path), "%s/seed-%" PRIu64 ".jsonl", options->logs, seed);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(2);
    }
    return file;
}

static void run(uint64_t seed, const struct options *options, bool is_alone, struct totals *totals)
{
    struct run_result result;
    current_seed = seed;
    FILE *log = open_log(seed, options);
    run_seed(seed, options->steps, options->is_verbose, log, &result);
    if (log && fclose(log) != 0) {
        perror(options->logs);
        exit(2);
    }
    totals->seeds++;
    totals->steps += result.steps;
    totals->records += result.log.records;
    totals->repeats += result.log.repeats;
    totals->applied += result.log.applied;
    totals->virtual_us += result.virtual_us;
    if (result.is_failed) {
        totals->failed++;
        (void)fprintf(options->out, "FAILED seed %" PRIu64 ": %s\n", seed, result.failure);
        if (!options->is_verbose)
            print_tail(options->out, seed, options->steps);
    } else if (options->wants_digests) {
        printf("%" PRIu64 " %" PRIu64 " %.16s %016" PRIx64 "\n", seed, result.steps,
               result.log.hash, result.store_digest);
    } else if (is_alone) {
        printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " records, %" PRIu64
               " notifications, %" PRIu64 " decisions, %" PRIu64 " applied, log %s\n",
               seed, result.steps, result.log.records, result.log.notifications,
               result.log.decisions, result.log.applied, result.log.hash);
    }
}

static bool parse_u64(const char *text, size_t size, uint64_t *number_out)
{
    int64_t number;
    if (as_number_parse_i64(text, size, &number) != 0 || number < 0)
        return false;
    *number_out = (uint64_t)number;
    return true;
}

static bool parse_range(const char *text, struct options *options)
{
    const char *dots = strstr(text, "..");
    return dots && parse_u64(text, (size_t)(dots - text), &options->from) &&
           parse_u64(dots + 2, strlen(dots + 2), &options->to);
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"seed", required_argument, NULL, 's'},
                                          {"seeds", required_argument, NULL, 'r'},
                                          {"digests", required_argument, NULL, 'd'},
                                          {"steps", required_argument, NULL, 'n'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"trouble", no_argument, NULL, 't'},
                                          {"stories", no_argument, NULL, 'o'},
                                          {"logs", required_argument, NULL, 'l'},
                                          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        bool is_good = true;
        switch (option) {
        case 's':
            is_good = parse_u64(optarg, strlen(optarg), &options->from);
            options->to = options->from;
            break;
        case 'd': is_good = options->wants_digests = parse_range(optarg, options); break;
        case 'r': is_good = parse_range(optarg, options); break;
        case 'n': is_good = parse_u64(optarg, strlen(optarg), &options->steps); break;
        case 'v': options->is_verbose = true; break;
        case 't': options->wants_trouble = true; break;
        case 'o': options->tells_stories = true; break;
        case 'l': options->logs = optarg; break;
        default: is_good = false;
        }
        if (!is_good)
            return false;
    }
    return optind == argc;
}

static int tell_stories(const struct options *options)
{
    int failed = 0;
    for (uint64_t seed = options->from; seed <= options->to; seed++) {
        current_seed = seed;
        failed += stories_run(seed);
    }
    return failed > 0;
}

int main(int argc, char **argv)
{
    struct options options = {.from = 1, .to = 100, .steps = 2000, .out = stdout};
    struct totals totals = {0};
    struct timespec start, end;
    if (!parse(argc, argv, &options)) {
        (void)fprintf(stderr, "usage: sim [--seed N | --seeds FROM..TO | --digests FROM..TO] "
                              "[--steps N] [--verbose] [--trouble] [--stories] [--logs DIR]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    (void)sigaction(SIGABRT, &(struct sigaction){.sa_handler = on_abort}, NULL);
    if (options.wants_digests)
        options.out = stderr;
    if (options.tells_stories)
        return tell_stories(&options);
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t seed = options.from; seed <= options.to; seed++)
        run(seed, &options, options.from == options.to, &totals);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds =
        (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    (void)fprintf(options.out,
                  "%" PRIu64 " seeds, %" PRIu64 " failed; %" PRIu64 " steps, %.0f hours, %" PRIu64
                  " records, %" PRIu64 " actions; %.1f s, %.0f seeds/s\n",
                  totals.seeds, totals.failed, totals.steps,
                  (double)totals.virtual_us / (double)AS_US_PER_H, totals.records, totals.applied,
                  seconds, (double)totals.seeds / seconds);
    int missing = 0;
    if (options.wants_trouble) {
        trouble_print(options.out);
        (void)fprintf(options.out, "%12" PRIu64 "  small records of repeats\n", totals.repeats);
        missing = trouble_count_missing(options.out) + (totals.repeats == 0);
    }
    return totals.failed > 0 || missing > 0;
}
