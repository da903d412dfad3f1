/*
 * Shared by the drivers of single layers: see the header.
 */
#include "driver.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

static struct event_base *base;
static struct event *input;
static struct evbuffer *lines;
static struct as_http_client *client;
static struct as_event_loop *loop;
static struct as_event_processes *processes;
static struct driver driver;
static void (*carry_out_one)(const json_t *command);
static unsigned under_way;
static bool at_end;

static as_mono_time get_mono(const struct as_clock *self)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (as_mono_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static as_wall_time get_wall(const struct as_clock *self)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static void read_line(const char *line)
{
    json_t *command = json_loads(line, 0, NULL);
    if (!command) {
        fprintf(stderr, "not JSON: %s\n", line);
        exit(2);
    }
    under_way++;
    carry_out_one(command);
    json_decref(command);
}

static void read_input(evutil_socket_t fd, short what, void *context)
{
    char *line;
    int got = evbuffer_read(lines, fd, -1);
    while ((line = evbuffer_readln(lines, NULL, EVBUFFER_EOL_LF)) != NULL) {
        read_line(line);
        free(line);
    }
    if (got == 0) {
        at_end = true;
        event_del(input);
        if (under_way == 0)
            event_base_loopbreak(base);
    }
}

void driver_answer(json_t *answer)
{
    char *text = json_dumps(answer, JSON_COMPACT);
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(answer);
    under_way--;
    if (at_end && under_way == 0)
        event_base_loopbreak(base);
}

struct driver *driver_open(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    base = event_base_new();
    lines = evbuffer_new();
    client = as_http_client_new(base, NULL, NULL);
    loop = as_event_loop_new(base);
    processes = as_event_processes_new(base);
    driver = (struct driver){
        .http = as_http_client_get_port(client),
        .loop = as_event_loop_get_port(loop),
        .runner = as_event_processes_get_port(processes),
        .clock = {get_mono, get_wall},
    };
    return &driver;
}

void driver_run(void (*carry_out)(const json_t *command))
{
    carry_out_one = carry_out;
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, read_input, NULL);
    event_add(input, NULL);
    event_base_dispatch(base);
}

void driver_close(void)
{
    as_event_processes_free(processes);
    as_event_loop_free(loop);
    as_http_client_free(client);
    event_free(input);
    evbuffer_free(lines);
    event_base_free(base);
}

const char *driver_get_option(char **argv, const char *name)
{
    for (char **argument = argv + 1; argument[0] && argument[1]; argument += 2)
        if (strcmp(argument[0], name) == 0)
            return argument[1];
    return NULL;
}

const char *driver_get_text(const json_t *command, const char *key)
{
    const char *text = json_string_value(json_object_get(command, key));
    return text ? text : "";
}
