/* What the two halves of kurabe_guard share. */

#ifndef KURABE_GUARD_H
#define KURABE_GUARD_H

#ifndef MYSQL_DYNAMIC_PLUGIN
#define MYSQL_DYNAMIC_PLUGIN 1
#endif
#include <my_global.h>
#include <mysql/plugin_audit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Options of the server (kurabe_guard.c). */
extern char *guard_socket_path;
extern int guard_peer_uid;

/* Set in the threads that run the service's statements (session.c). */
extern __thread int guard_is_service;

/* Begins to listen as soon as the server has started; 0 when it will. */
int guard_open(void);
/* Ends all sessions, each after its statement. */
void guard_close(void);
/* Writes an error with the text of errno to the server's log. */
void guard_complain(const char *what, const char *name);

#endif
