/* What accounts may ask of the service: the procedures of schema mysql.

   No account has the rights to end another one's session or to have InnoDB dump
   its buffer pool, because the same rights change settings. The procedures run
   as their definer, who has no such right either; each sets a variable of this
   plugin, and the plugin runs the statement in a session of the service. Who
   may ask is who may execute the procedure: nothing but a procedure's definer
   is heard, and a value is a number or one of three words. */

#include "kurabe_guard.h"
#include <mysqld_error.h>

/* The definer of the procedures. An account that is renamed to it wins what
   every holder of EXECUTE on them has. */
#define DEFINER_USER "mariadb.sys"
#define DEFINER_HOST "localhost"

/* The service's own logins over the endpoint (probe.go). */
#define PROBE_PREFIX "rdsprobe_"

#define STATEMENT_BYTES_MAX 160
#define MESSAGE_BYTES_MAX 512 /* the server's own limit of a message */

/* The server's own, exported for plugins but not declared in their headers. */
extern const char *thd_priv_user(MYSQL_THD thd, size_t *length);
extern const char *thd_priv_host(MYSQL_THD thd, size_t *length);
/* my_printf_error(), which the headers offer through a library only */
extern void raise_error(unsigned int number, const char *format,
                        unsigned long flags, ...)
  __asm__("my_printf_error");

struct call
{
  const char *verb;          /* of KILL, or of innodb_buffer_pool_... */
  unsigned long long thread; /* 0 for none */
  unsigned int error;        /* 0 when it was done */
  char message[MESSAGE_BYTES_MAX];
};

static void refuse(struct call *c, unsigned int error, const char *message)
{
  c->error= error;
  snprintf(c->message, sizeof(c->message), "%s", message);
}

static int run(struct call *c, MYSQL *session, const char *statement)
{
  if (!mysql_real_query(session, statement, (unsigned long) strlen(statement)))
    return 0;
  refuse(c, mysql_errno(session), mysql_error(session));
  return -1;
}

static int is(const char *value, const char *wanted)
{
  return value && !strcmp(value, wanted);
}

/* A login that is not through may be one of the service's; the server itself
   ends it when it takes too long. The event scheduler is a setting. Without a
   member's sessions commits would wait. */
static int is_private(MYSQL_ROW row)
{
  return !row[0] || is(row[0], "system user") ||
         is(row[0], "unauthenticated user") || is(row[1], "Daemon") ||
         !strncmp(row[0], PROBE_PREFIX, sizeof(PROBE_PREFIX) - 1) ||
         !strncmp(row[0], LOOK_PREFIX, sizeof(LOOK_PREFIX) - 1) ||
         guard_is_member(row[0]);
}

/* The service's statements run in sessions that are in no list, so no number is
   theirs. A number is not given twice, so who had it still has it. */
static int may_end(struct call *c, MYSQL *session)
{
  char statement[STATEMENT_BYTES_MAX];
  MYSQL_RES *rows;
  MYSQL_ROW row;
  snprintf(statement, sizeof(statement),
           "SELECT USER, COMMAND FROM information_schema.PROCESSLIST "
           "WHERE ID = %llu", c->thread);
  if (run(c, session, statement))
    return 0;
  rows= mysql_store_result(session);
  if (!rows)
  {
    refuse(c, mysql_errno(session), mysql_error(session));
    return 0;
  }
  row= mysql_fetch_row(rows);
  if (!row)
  {
    c->error= ER_NO_SUCH_THREAD;
    snprintf(c->message, sizeof(c->message), "Unknown thread id: %llu",
             c->thread);
  }
  else if (is_private(row))
  {
    c->error= ER_KILL_DENIED_ERROR;
    snprintf(c->message, sizeof(c->message),
             "Thread %llu is the server's own", c->thread);
  }
  mysql_free_result(rows);
  return !c->error;
}

static void end_thread(MYSQL *session, void *arg)
{
  struct call *c= arg;
  char statement[STATEMENT_BYTES_MAX];
  if (!may_end(c, session))
    return;
  snprintf(statement, sizeof(statement), "KILL %s %llu", c->verb, c->thread);
  run(c, session, statement);
}

static void order_pool(MYSQL *session, void *arg)
{
  struct call *c= arg;
  char statement[STATEMENT_BYTES_MAX];
  snprintf(statement, sizeof(statement),
           "SET GLOBAL innodb_buffer_pool_%s = 1", c->verb);
  run(c, session, statement);
}

static int is_definer(MYSQL_THD thd)
{
  size_t length;
  return is(thd_priv_user(thd, &length), DEFINER_USER) &&
         is(thd_priv_host(thd, &length), DEFINER_HOST);
}

/* Does what a procedure asks for; 0 when it is done, else the error is the
   statement's. */
static int perform(MYSQL_THD thd, struct call *c,
                   void (*work)(MYSQL *session, void *arg))
{
  if (!is_definer(thd))
    refuse(c, ER_SPECIFIC_ACCESS_DENIED_ERROR,
           "Access denied; this is done by the procedures mysql.rds_... only");
  else if (guard_execute(work, c))
    refuse(c, ER_OUT_OF_RESOURCES, "The server has no resources for it now");
  if (!c->error)
    return 0;
  raise_error(c->error, "%s", 0, c->message);
  return 1;
}

static int kill_as(MYSQL_THD thd, const char *verb, void *save,
                   struct st_mysql_value *value)
{
  struct call c= {verb, 0, 0, ""};
  long long number= 0;
  int null= value->val_int(value, &number);
  if (!null && (number > 0 || value->is_unsigned(value)))
    c.thread= (unsigned long long) number;
  *(unsigned long long *) save= 0; /* the variable itself holds nothing */
  return perform(thd, &c, end_thread);
}

int guard_check_kill(MYSQL_THD thd, struct st_mysql_sys_var *var, void *save,
                     struct st_mysql_value *value)
{
  (void) var;
  return kill_as(thd, "CONNECTION", save, value);
}

int guard_check_kill_query(MYSQL_THD thd, struct st_mysql_sys_var *var,
                           void *save, struct st_mysql_value *value)
{
  (void) var;
  return kill_as(thd, "QUERY", save, value);
}

int guard_check_pool(MYSQL_THD thd, struct st_mysql_sys_var *var, void *save,
                     struct st_mysql_value *value)
{
  static const char *const verbs[]= {"dump_now", "load_now", "load_abort"};
  struct call c= {NULL, 0, 0, ""};
  char buffer[16];
  int length= sizeof(buffer);
  size_t i;
  const char *word= value->val_str(value, buffer, &length);
  (void) var;
  *(const char **) save= NULL;
  for (i= 0; word && i < sizeof(verbs) / sizeof(*verbs); i++)
    if ((size_t) length == strlen(verbs[i]) &&
        !memcmp(word, verbs[i], (size_t) length))
      c.verb= verbs[i];
  return c.verb ? perform(thd, &c, order_pool) : 1; /* the server says why */
}
