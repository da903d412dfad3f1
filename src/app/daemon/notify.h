/*
 * Tells systemd how far the daemon is: the protocol of sd_notify(3), one datagram a message.
 */
#ifndef ALERTSCALER_SRC_APP_DAEMON_NOTIFY_H
#define ALERTSCALER_SRC_APP_DAEMON_NOTIFY_H

/* The socket of $NOTIFY_SOCKET, which is taken out of the environment; -1: nobody wants to know, or
 * it cannot be reached (which is logged). Opened before the sandbox, which allows to send. */
int notify_open(void);

/* "READY=1", "STOPPING=1". Does nothing with -1. */
void notify_send(int fd, const char *state);

#endif
