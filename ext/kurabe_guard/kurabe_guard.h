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

#define SYSTEM_SCHEMA "mysql"

/* The beginnings of the names of accounts by which members of a group come in:
   to follow, and to look (package role). */
#define MEMBER_PREFIX "rdsmember_"
#define LOOK_PREFIX "rdslook_"
/* And of those that copies are made with (backup_account.go). */
#define COPIER_PREFIX "rdsbackup_"

/* Options of the server (kurabe_guard.c). */
extern char *guard_socket_path;
extern int guard_peer_uid;
extern char guard_group;       /* this server is one of a group */
extern char guard_hold;        /* nobody but members comes in */
extern char guard_waits;       /* what waits for a follower waits (group.c) */
extern char *guard_waits_for;  /* whose answers count, as the service notes it */
extern char guard_counts;      /* whose they are is looked at (answer.c) */

/* The server's own: it is going down. A bool. */
extern volatile char abort_loop;

/* Set in the threads that run the service's statements (session.c). */
extern __thread int guard_is_service;

/* Begins to listen as soon as the server has started; 0 when it will. */
int guard_open(void);
/* Ends all sessions, each after its statement. */
void guard_close(void);
/* Runs work in a session of the service, on a thread of its own, and waits for
   it; -1 when there is no such thread or session. */
int guard_execute(void (*work)(MYSQL *session, void *arg), void *arg);
/* Variables that only the procedures of schema mysql can set (procedures.c). */
int guard_check_kill(MYSQL_THD thd, struct st_mysql_sys_var *var, void *save,
                     struct st_mysql_value *value);
int guard_check_kill_query(MYSQL_THD thd, struct st_mysql_sys_var *var,
                           void *save, struct st_mysql_value *value);
int guard_check_pool(MYSQL_THD thd, struct st_mysql_sys_var *var, void *save,
                     struct st_mysql_value *value);
/* Writes an error with the text of errno to the server's log. */
void guard_complain(const char *what, const char *name);

/* Changes to the server's code (hotpatch.c): errno says why one cannot be made. */
#define GUARD_JUMP_BYTES 16
size_t guard_function_bytes(void *function);
int guard_write_jump(void *at, void *to);
/* Has the one call of callee in function come to `to`, by way of a jump that is
   written at spare. */
int guard_redirect(void *function, void *callee, void *spare, void *to);

/* Groups (group.c). */
#define GUARD_GROUP_CHANGES 4
void guard_prepare_group(char *spare, size_t bytes);
void guard_on_connection(MYSQL_THD thd, const void *event);
void guard_set_group(char on);
/* Says whether a thread applies what another server has logged. */
int guard_applies_log(MYSQL_THD thd);
int guard_is_member(const char *user);
/* Says whether a session is that of a host that looks at its writer's followers. */
int guard_looks_on(MYSQL_THD thd);
int guard_watch_stop(void);
void guard_unwatch_stop(void);

/* What the service's sessions do not do (door.c). */
extern char guard_closed; /* they execute no routine */
void guard_close_door(void);
int guard_is_service_schema(const char *name, size_t length);
/* Memory for jumps that the server's code can reach; NULL when there is none. */
char *guard_spare(size_t bytes);

/* Who is a member (member.c). */
extern char guard_members; /* known by their certificates */
void guard_know_members(void);
int guard_is_verified(MYSQL_THD thd);
/* Sessions of the service that come in as clients do (place.c). */
void guard_prepare_door(char *spare, size_t bytes);
void guard_count_session(const void *event);

/* Lists of the system schema (schema.c). */
void guard_hide_triggers(void);

/* Answers of followers (answer.c). */
int guard_waits_for_id(unsigned int server_id);
#define GUARD_ANSWER_CHANGES 4
int guard_prepare_answers(char *spare);
void guard_count_answers(const char *note);

/* The log that a follower receives (relay.c). What was received when it is called is
   on disk when it returns 0; errno says why it is not known what was. */
int guard_sync_received(void);
int guard_show_synced(MYSQL_THD thd, struct st_mysql_show_var *var, void *to,
                      struct system_status_var *unused,
                      enum enum_var_type scope);

/* When this follower was asked last whether it follows (follow_proof.c). */
void guard_note_look(MYSQL_THD thd);
int guard_show_asked(MYSQL_THD thd, struct st_mysql_show_var *var, void *to,
                     struct system_status_var *unused,
                     enum enum_var_type scope);

#endif
