/*
 * Tells systemd the daemon's status by the protocol of sd_notify(3): one datagram per message.
 */
#ifndef ALERTSCALER_NOTIFY_NOTIFY_H
#define ALERTSCALER_NOTIFY_NOTIFY_H

/* The socket of $NOTIFY_SOCKET, which is removed from the environment; -1: not wanted, or not
 * reachable (logged). Open it before the sandbox, which allows sending. */
int notify_open(void);

/* "READY=1", "STOPPING=1". Does nothing with -1. */
void notify_send(int fd, const char *state);

#endif
