/* Sessions of the service that come in by the clients' door: followers, looks at
   them, and copies. No setting that is meant for clients stops one of them.

   - They have places of their own beside max_connections, which is what it was
     for everybody else.
   - They are not counted against max_user_connections.
   - They do not run init_connect, but statements of their own, which give a
     session the settings that the service's other sessions have (guard/session.go).

   None of this is a right of the account, which a user with CREATE USER could
   take over. Whoever does so wins a place beyond max_connections, and no more. */

#include "kurabe_guard.h"
#include <pthread.h>
#include <stdint.h>

/* The server's own, exported for plugins but not declared in their headers. Weak:
   a server without one of them does without what needs it. */
#define WEAK __attribute__((weak))
/* struct scheduler_functions, as far as it matters here */
struct scheduler
{
  unsigned int max_threads;
  volatile uint32_t *connections;
  unsigned long *most;
};
extern WEAK struct scheduler *thread_scheduler;
extern WEAK unsigned long max_connections;
extern WEAK char max_user_connections_checking;
extern WEAK char LOCK_sys_init_connect;
extern WEAK void authenticate(void) __asm__("_Z16acl_authenticateP3THDj");
extern WEAK int check_user_connections(MYSQL_THD thd, void *counted)
  __asm__("_Z30check_for_max_user_connectionsP3THDP9user_conn");
extern WEAK void forget_user_connection(void *counted)
  __asm__("_Z25decrease_user_connectionsP9user_conn");
extern WEAK void prepare_connection(void)
  __asm__("_Z28prepare_new_connection_stateP3THD");
extern WEAK void init_for_queries(MYSQL_THD thd)
  __asm__("_ZN3THD16init_for_queriesEv");
extern WEAK void run_init(MYSQL_THD thd, MYSQL_LEX_STRING *statements, void *lock)
  __asm__("_Z20execute_init_commandP3THDP19st_mysql_lex_stringP15st_mysql_rwlock");
extern void print_error(unsigned int number, unsigned long flags, ...)
  __asm__("my_error");
extern const char *thd_priv_user(MYSQL_THD thd, size_t *length);

#define TOO_MANY_CONNECTIONS 1040 /* ER_CON_COUNT_ERROR */

/* Beside max_connections: 15 followers with three sessions each, a copy with
   five, and those logins of clients that are to be turned away. */
#define PLACES 100

/* What the server compares the number of its connections with. */
static unsigned long most;

/* Guards sessions: the numbers of the service's, 0 where there is none. */
static pthread_mutex_t door_lock= PTHREAD_MUTEX_INITIALIZER;
static unsigned long sessions[PLACES];
static unsigned int sessions_number;

static int is_service(const char *user)
{
  return guard_is_member(user) ||
         (user && (!strncmp(user, LOOK_PREFIX, sizeof(LOOK_PREFIX) - 1) ||
                   !strncmp(user, COPIER_PREFIX, sizeof(COPIER_PREFIX) - 1)));
}

static int is_services(MYSQL_THD thd)
{
  size_t length;
  return is_service(thd_priv_user(thd, &length));
}

/* ---- places ---- */

static void note_session(unsigned long number, int here)
{
  int i, at= -1;
  pthread_mutex_lock(&door_lock);
  for (i= 0; i < PLACES; i++)
    if (sessions[i] == number || (!sessions[i] && at < 0))
      at= i;
  if (at >= 0 && (sessions[at] == number) != here)
  {
    sessions[at]= here ? number : 0;
    if (here)
      sessions_number++;
    else
      sessions_number--;
  }
  pthread_mutex_unlock(&door_lock);
}

void guard_count_session(const void *data)
{
  const struct mysql_event_connection *event= data;
  note_session(event->thread_id,
               event->event_subclass != MYSQL_AUDIT_CONNECTION_DISCONNECT &&
                 !event->status && is_service(event->priv_user));
}

static long clients(void)
{
  long number;
  pthread_mutex_lock(&door_lock);
  number= (long) *thread_scheduler->connections - (long) sessions_number;
  pthread_mutex_unlock(&door_lock);
  return number;
}

/* Stands for the question whether an account has as many sessions as it may, of
   a login that is through. It is asked of every login because the server is told
   to count them. Whoever is refused is not counted any more. */
static int check_login(MYSQL_THD thd, void *counted)
{
  most= max_connections + PLACES; /* it may have been set anew */
  if (is_services(thd))
    return 0;
  if (check_user_connections(thd, counted))
    return 1;
  if (clients() <= (long) max_connections)
    return 0;
  forget_user_connection(counted);
  print_error(TOO_MANY_CONNECTIONS, 0);
  return 1;
}

/* ---- settings ---- */

/* Stands for init_connect. */
static void run_init_connect(MYSQL_THD thd, MYSQL_LEX_STRING *statements,
                             void *lock)
{
  if (!is_services(thd))
    run_init(thd, statements, lock);
}

/* Whatever the parameter group says of new sessions. */
static char settings[]=
  "SET SESSION sql_mode = '', old_mode = '', autocommit = 1, "
  "completion_type = 0, tx_read_only = 0, "
  "sql_select_limit = 18446744073709551615, "
  "max_join_size = 18446744073709551615, sql_big_selects = 1, "
  "max_statement_time = 0, lock_wait_timeout = 86400, "
  "innodb_lock_wait_timeout = 50, wait_timeout = 28800, "
  "interactive_timeout = 28800, net_read_timeout = 60, "
  "net_write_timeout = 60, idle_transaction_timeout = 0, "
  "idle_readonly_transaction_timeout = 0, idle_write_transaction_timeout = 0, "
  "max_session_mem_used = 9223372036854775807";

static void begin_session(MYSQL_THD thd)
{
  MYSQL_LEX_STRING statements= {settings, sizeof(settings) - 1};
  init_for_queries(thd);
  if (!is_services(thd))
    return;
  run_init(thd, &statements, &LOCK_sys_init_connect);
  init_for_queries(thd);
}

/* ---- the changes ---- */

static const struct
{
  void (*function)(void);
  void *callee, *ours;
  const char *name;
} changes[]=
{
  {authenticate, (void *) check_user_connections, (void *) check_login,
   "max_connections"},
  {prepare_connection, (void *) run_init, (void *) run_init_connect,
   "init_connect"},
  {prepare_connection, (void *) init_for_queries, (void *) begin_session,
   "the settings of sessions"}
};
#define CHANGES (sizeof(changes) / sizeof(*changes))

/* spare is code that is never run any more. What cannot be done is told and left:
   the service's sessions are clients' then. */
void guard_prepare_door(char *spare, size_t bytes)
{
  size_t i;
  if (bytes < CHANGES * GUARD_JUMP_BYTES || !&thread_scheduler ||
      !&max_connections || !&max_user_connections_checking ||
      !&LOCK_sys_init_connect || !forget_user_connection ||
      !thread_scheduler || thread_scheduler->most != &max_connections)
  {
    errno= ENOTSUP;
    guard_complain("cannot keep places for", "the service's sessions");
    return;
  }
  for (i= 0; i < CHANGES; i++, spare+= GUARD_JUMP_BYTES)
    if (guard_redirect((void *) changes[i].function, changes[i].callee, spare,
                       changes[i].ours))
    {
      guard_complain("cannot keep the service's sessions from",
                     changes[i].name);
      return;
    }
  most= max_connections + PLACES;
  max_user_connections_checking= 1;
  thread_scheduler->most= &most;
}
