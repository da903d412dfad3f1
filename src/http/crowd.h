/*
 * Which connection must go when there are too many (crowd.c). Drops are counted, and logged in
 * sums.
 */
#ifndef ALERTSCALER_SRC_HTTP_CROWD_H
#define ALERTSCALER_SRC_HTTP_CROWD_H

#include <stdbool.h>

struct as_connection;
struct as_http_server;

enum as_http_drop { AS_HTTP_DROP_HANDSHAKE, AS_HTTP_DROP_LIMIT };

void as_http_server_init_losses(struct as_http_server *server);
void as_http_server_deinit_losses(struct as_http_server *server); /* logs what is not yet logged */
void as_connection_drop(struct as_connection *connection, enum as_http_drop kind,
                        const char *error);
bool as_http_server_make_room(struct as_http_server *server);    /* for one new connection */
void as_connection_count_body(struct as_connection *connection); /* its body's memory has changed */
bool as_http_server_fits_body(struct as_http_server *server, struct as_connection *newest);
void as_connection_count_unsent(struct as_connection *connection);

#endif
