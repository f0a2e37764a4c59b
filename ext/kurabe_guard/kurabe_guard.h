/* What the parts of kurabe_guard share. */

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
/* Runs work in a session of the service, on a thread of its own, and waits for
   it; -1 when there is no such thread or session. */
int guard_execute(void (*work)(MYSQL *session, void *arg), void *arg);
/* Variables that only the procedures of schema mysql can set (call.c). */
int guard_check_kill(MYSQL_THD thd, struct st_mysql_sys_var *var, void *save,
                     struct st_mysql_value *value);
int guard_check_kill_query(MYSQL_THD thd, struct st_mysql_sys_var *var,
                           void *save, struct st_mysql_value *value);
int guard_check_pool(MYSQL_THD thd, struct st_mysql_sys_var *var, void *save,
                     struct st_mysql_value *value);
/* Writes an error with the text of errno to the server's log. */
void guard_complain(const char *what, const char *name);

#endif
