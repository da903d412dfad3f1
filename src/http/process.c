/*
 * Child processes on libevent, behind port/process.h. A child runs in its own process group, with
 * /dev/null as its input, default signals, and none of our descriptors (all of them are
 * close-on-exec).
 *
 * A child has ended when both of its outputs are closed and its exit is collected. The result is
 * reported once. After a kill, the rest is collected without a caller waiting for it.
 */
#include <alertscaler/http/loop.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bsd/sys/queue.h>
#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/time.h>

#define ERROR_OUTPUT_MAX ((size_t)1024)
#define READ_SIZE        ((size_t)4096)
#define REAP_INTERVAL_US 10000

struct output {
    struct as_process *owner;
    int fd; /* -1: ended */
    struct event *event;
    struct as_buf bytes;
    bool drops_rest; /* drops what does not fit; else it ends the process */
};

struct as_process {
    LIST_ENTRY(as_process) entry;
    struct as_event_processes *owner;
    pid_t pid; /* 0: not started, or already collected */
    struct output out, err;
    struct event *deadline;
    struct event *reaper;     /* also reports that a child could not be started */
    as_process_done_fn *done; /* NULL: called, or cancelled */
    void *context;
    int spawn_error;
};

struct as_event_processes {
    struct as_process_runner port;
    struct event_base *base;
    LIST_HEAD(, as_process) all;
};

extern char **environ;

static struct event *new_event(struct as_process *process, int fd, short what, event_callback_fn fn,
                               void *context)
{
    struct event *event = event_new(process->owner->base, fd, what, fn, context);
    if (!event)
        abort(); /* out of memory */
    return event;
}

static void set_timer(struct event *event, int64_t delay_us)
{
    struct timeval delay = {.tv_sec = delay_us / AS_US_PER_S, .tv_usec = delay_us % AS_US_PER_S};
    event_add(event, &delay);
}

static void close_output(struct output *output)
{
    if (output->fd < 0)
        return;
    event_free(output->event);
    close(output->fd);
    output->fd = -1;
}

static void free_process(struct as_process *process)
{
    LIST_REMOVE(process, entry);
    close_output(&process->out);
    close_output(&process->err);
    event_free(process->deadline);
    event_free(process->reaper);
    as_buf_wipe(&process->out.bytes); /* usually holds a credential */
    as_buf_deinit(&process->err.bytes);
    free(process);
}

static void report(struct as_process *process, enum as_process_outcome outcome, int status)
{
    struct as_process_result result = {
        .outcome = outcome,
        .status = status,
        .output = process->out.bytes.data ? process->out.bytes.data : "",
        .output_size = process->out.bytes.size,
        .error_output = process->err.bytes.data ? process->err.bytes.data : "",
    };
    as_process_done_fn *done = process->done;
    process->done = NULL;
    if (done)
        done(process->context, &result);
}

/* The whole group, so that the child's own children end too. */
static void kill_group(struct as_process *process)
{
    close_output(&process->out);
    close_output(&process->err);
    event_del(process->deadline);
    if (process->pid > 0) {
        kill(-process->pid, SIGKILL);
        set_timer(process->reaper, 0);
    }
}

static void give_up(struct as_process *process, enum as_process_outcome outcome)
{
    kill_group(process);
    report(process, outcome, 0);
}

static void reap(evutil_socket_t fd, short what, void *context)
{
    struct as_process *process = context;
    int status = 0;
    if (process->spawn_error) {
        report(process, AS_PROCESS_NOT_STARTED, process->spawn_error);
        free_process(process);
        return;
    }
    pid_t got = waitpid(process->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) {
        set_timer(process->reaper, REAP_INTERVAL_US);
        return;
    }
    process->pid = 0;
    if (got > 0 && WIFEXITED(status))
        report(process, AS_PROCESS_EXITED, WEXITSTATUS(status));
    else
        report(process, AS_PROCESS_KILLED, got > 0 ? WTERMSIG(status) : 0);
    free_process(process);
}

static void expire(evutil_socket_t fd, short what, void *context)
{
    give_up(context, AS_PROCESS_TIMEOUT);
}

static void take_bytes(struct output *output, const char *bytes, size_t size)
{
    size_t room = output->bytes.max - output->bytes.size;
    if (size > room && !output->drops_rest)
        give_up(output->owner, AS_PROCESS_TOO_LARGE);
    else
        as_buf_append(&output->bytes, bytes, size < room ? size : room);
}

static void read_output(evutil_socket_t fd, short what, void *context)
{
    struct output *output = context;
    char bytes[READ_SIZE];
    ssize_t got = read(fd, bytes, sizeof(bytes));
    if (got > 0) {
        take_bytes(output, bytes, (size_t)got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        struct as_process *process = output->owner;
        close_output(output);
        if (process->out.fd < 0 && process->err.fd < 0)
            set_timer(process->reaper, 0);
    }
    explicit_bzero(bytes, sizeof(bytes));
}

/* A pipe; our end does not block. */
static int open_output(struct as_process *process, struct output *output, size_t max,
                       int *child_end_out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    output->owner = process;
    output->fd = ends[0];
    output->bytes = AS_BUF_INIT(max);
    output->event = new_event(process, ends[0], EV_READ | EV_PERSIST, read_output, output);
    event_add(output->event, NULL);
    *child_end_out = ends[1];
    return 0;
}

/* Our environment and `more`; if a name is in both, `more` counts. */
static char **merge_environment(const char *const *more)
{
    size_t count = 0, kept = 0, added = 0;
    while (environ && environ[count])
        count++;
    while (more && more[added])
        added++;
    char **merged = as_xcalloc(count + added + 1, sizeof(*merged));
    for (size_t i = 0; i < count; i++) {
        size_t name = strcspn(environ[i], "=") + 1;
        bool is_replaced = false;
        for (size_t k = 0; k < added; k++)
            is_replaced = is_replaced || strncmp(environ[i], more[k], name) == 0;
        if (!is_replaced)
            merged[kept++] = environ[i];
    }
    for (size_t k = 0; k < added; k++)
        merged[kept++] = (char *)more[k];
    return merged;
}

/* 0 or an errno value. */
static int spawn(struct as_process *process, const struct as_process_request *request, int out,
                 int err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    char **environment = merge_environment(request->env);
    int code = posix_spawnp(&process->pid, request->argv[0], &actions, &attributes,
                            (char *const *)request->argv, environment);
    free(environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (code)
        process->pid = 0;
    return code;
}

static struct as_process *start(struct as_process_runner *self,
                                const struct as_process_request *request, as_process_done_fn *done,
                                void *context)
{
    struct as_event_processes *processes = (struct as_event_processes *)self;
    struct as_process *process = as_xcalloc(1, sizeof(*process));
    int out = -1, err = -1;
    process->owner = processes;
    process->done = done;
    process->context = context;
    process->out.fd = process->err.fd = -1;
    process->err.drops_rest = true;
    process->deadline = new_event(process, -1, 0, expire, process);
    process->reaper = new_event(process, -1, 0, reap, process);
    LIST_INSERT_HEAD(&processes->all, process, entry);

    int status = open_output(process, &process->out, request->max_output, &out);
    if (!status)
        status = open_output(process, &process->err, ERROR_OUTPUT_MAX, &err);
    if (!status)
        status = spawn(process, request, out, err);
    if (out >= 0)
        close(out);
    if (err >= 0)
        close(err);
    if (status) {
        process->spawn_error = status;
        close_output(&process->out);
        close_output(&process->err);
        set_timer(process->reaper, 0);
    } else {
        set_timer(process->deadline, request->timeout_us);
    }
    return process;
}

static void cancel(struct as_process_runner *self, struct as_process *process)
{
    process->done = NULL;
    kill_group(process);
}

struct as_event_processes *as_event_processes_new(struct event_base *base)
{
    struct as_event_processes *processes = as_xcalloc(1, sizeof(*processes));
    processes->port = (struct as_process_runner){start, cancel};
    processes->base = base;
    LIST_INIT(&processes->all);
    return processes;
}

struct as_event_processes *as_event_processes_free(struct as_event_processes *processes)
{
    struct as_process *process;
    if (!processes)
        return NULL;
    while ((process = LIST_FIRST(&processes->all)) != NULL) {
        process->done = NULL;
        kill_group(process);
        while (process->pid > 0 && waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        free_process(process);
    }
    free(processes);
    return NULL;
}

struct as_process_runner *as_event_processes_get_port(struct as_event_processes *processes)
{
    return &processes->port;
}
