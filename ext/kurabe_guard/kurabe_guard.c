/* kurabe_guard: how Kurabe administers a MariaDB server in which no account
   has administrative rights.

   A server plugin that
   - keeps the tables that say who may do what for the statements that are made
     for it. It makes the folder of the system schema read-only, refuses to let
     the server start unless each guarded table has its triggers, and ends any
     other statement that locks one of them to write (DESIGN.md of
     engine/mariadb says what each of the three closes),
   - keeps the binary log from RESET MASTER, and a server that died with one from
     starting without it,
   - keeps what a group of servers promises (group.c), and
   - executes the service's statements, which come over a Unix socket from one
     user id only, through the server's SQL service. Such a session belongs to
     no account, so none can be renamed, unlocked or impersonated to get it.

   It is an audit plugin because that interface is the same in all server
   versions and tells of table locks before they are used. */

#include "kurabe_guard.h"
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/stat.h>

extern char server_version[];
/* THD::set_killed(killed_state, int, const char *) */
extern void thd_set_killed(MYSQL_THD thd, int state, int error,
                           const char *message)
  __asm__("_ZN3THD10set_killedE12killed_stateiPKc");

/* MDL_context::is_lock_owner(namespace, const char *, const char *, type) */
extern unsigned char mdl_is_lock_owner(void *context, int namespace,
                                       const char *db, const char *name,
                                       int type)
  __asm__("_ZN11MDL_context13is_lock_ownerEN7MDL_key18enum_mdl_namespaceEPKcS3_"
          "13enum_mdl_type");
/* thd_mdl_context(), which the headers offer through a library only */
extern void *mdl_context(MYSQL_THD thd) __asm__("thd_mdl_context");

/* enum_mdl_namespace and enum_mdl_type of mdl.h */
#define MDL_SCHEMA 1
#define MDL_TABLE 2
#define MDL_INTENTION_EXCLUSIVE 0
#define MDL_SHARED_UPGRADABLE 5

#define KILL_QUERY 4 /* enum killed_state of sql_class.h */
#define DENIED 1105  /* ER_UNKNOWN_ERROR: the one without a text of its own */

/* The commands of sql_command.h, which the packages do not have. Their numbers
   are those of one series; guard_init refuses any other. */
#define SERIES "10.11."
enum command
{
  ALTER_TABLE= 3, TRUNCATE= 8, SET_OPTION= 31, LOCK_TABLES= 32, GRANT= 34,
  DROP_DB= 37, REPAIR= 39, DROP_FUNCTION= 43, REVOKE= 44, OPTIMIZE= 45,
  CREATE_USER= 81, DROP_USER= 82, RENAME_USER= 83, REVOKE_ALL= 84,
  CREATE_PROCEDURE= 86, CREATE_FUNCTION= 87, DROP_PROCEDURE= 89,
  CREATE_ROLE= 138, DROP_ROLE= 139, GRANT_ROLE= 140, REVOKE_ROLE= 141,
  ALTER_USER= 144, CREATE_PACKAGE= 150, DROP_PACKAGE= 151,
  CREATE_PACKAGE_BODY= 152, DROP_PACKAGE_BODY= 153
};

/* Each of them can make a right or load a library when written to by hand, or
   holds code. All have a trigger file in the template. */
enum writers
{
  NOBODY,
  ACCOUNTS, /* statements that are made for it */
  DROPPED,  /* DROP FUNCTION, which looks there first for a name without a schema;
               a row that it could take away is one that nobody could make */
  ANYBODY   /* the triggers alone */
};
static const struct
{
  const char *name;
  enum writers writers;
} guarded[]=
{
  {"global_priv", ACCOUNTS},
  {"db", ACCOUNTS},
  {"tables_priv", ACCOUNTS},
  {"columns_priv", ACCOUNTS},
  {"procs_priv", ACCOUNTS},
  {"proxies_priv", ACCOUNTS},
  {"roles_mapping", ACCOUNTS},
  {"func", DROPPED},
  {"plugin", NOBODY},
  {"servers", NOBODY},
  /* Their code runs with the rights of an account, and none has any worth
     taking; the scheduler writes to them without a statement. */
  {"proc", ANYBODY},
  {"event", ANYBODY},
  {NULL, NOBODY}
};

char *guard_socket_path;
int guard_peer_uid;

void guard_complain(const char *what, const char *name)
{
  fprintf(stderr, "[ERROR] kurabe_guard: %s %s: %s\n", what, name,
          strerror(errno));
  fflush(stderr);
}

/* ---- locks ---- */

static int is_for_accounts(int command)
{
  switch (command)
  {
  case CREATE_USER: case ALTER_USER: case DROP_USER: case RENAME_USER:
  case GRANT: case REVOKE: case REVOKE_ALL: case CREATE_ROLE: case DROP_ROLE:
  case GRANT_ROLE: case REVOKE_ROLE:
    return 1;
  /* SET PASSWORD and SET DEFAULT ROLE; the triggers see to functions in a SET
     that write. */
  case SET_OPTION:
    return 1;
  /* Rights go to who makes a routine, and go with it. */
  case CREATE_PROCEDURE: case CREATE_FUNCTION: case DROP_PROCEDURE:
  case DROP_FUNCTION: case CREATE_PACKAGE: case CREATE_PACKAGE_BODY:
  case DROP_PACKAGE: case DROP_PACKAGE_BODY: case DROP_DB:
    return 1;
  default:
    return 0;
  }
}

/* Statements that would fail in the closed folder and leave the table crashed
   or unknown to InnoDB; discarding a file would even succeed. TRUNCATE comes
   here for InnoDB's tables, others are emptied without a lock. It does not lock
   what LOCK TABLES has.

   ALTER TABLE of a user's own table writes to the system's statistics. What
   tells a table that is the statement's object is its lock: more than a
   writer's. */
static int maintains(MYSQL_THD thd, const char *table)
{
  switch (thd_sql_command(thd))
  {
  case REPAIR: case OPTIMIZE:
    return 1;
  case TRUNCATE: case ALTER_TABLE: case LOCK_TABLES:
    return mdl_is_lock_owner(mdl_context(thd), MDL_TABLE, SYSTEM_SCHEMA, table,
                             MDL_SHARED_UPGRADABLE);
  default:
    return 0;
  }
}

/* Whoever makes, changes or drops a routine has locked its schema when the
   table of routines is locked. Those of the system schema are the service's. */
static int is_in_system_schema(MYSQL_THD thd)
{
  return mdl_is_lock_owner(mdl_context(thd), MDL_SCHEMA, SYSTEM_SCHEMA, "",
                           MDL_INTENTION_EXCLUSIVE);
}

/* A table is locked, in memory, but not used yet. The server looks whether the
   statement was killed when it has all its locks (mysql_lock_tables), gives
   them back then and reports the error.

   What a follower applies has passed the veto of its source, and no user can put
   anything else into the log. Its thread also writes to mysql.gtid_slave_pos in
   the name of whatever statement it has just applied. */
static void on_table_event(MYSQL_THD thd, const void *data)
{
  const struct mysql_event_table *event= data;
  int command, i;
  if (event->event_subclass == MYSQL_AUDIT_TABLE_LOCK && guard_is_service &&
      !guard_is_service_schema(event->database.str, event->database.length))
    thd_set_killed(thd, KILL_QUERY, DENIED,
                   "A session of the service's touches no table of users");
  if (event->event_subclass != MYSQL_AUDIT_TABLE_LOCK || event->read_only ||
      event->database.length != sizeof(SYSTEM_SCHEMA) - 1 ||
      memcmp(event->database.str, SYSTEM_SCHEMA, sizeof(SYSTEM_SCHEMA) - 1) ||
      guard_is_service || guard_applies_log(thd))
    return;
  command= thd_sql_command(thd);
  if (maintains(thd, event->table.str))
  {
    thd_set_killed(thd, KILL_QUERY, DENIED,
                   "The tables of schema mysql are maintained by the service");
    return;
  }
  if (!strcmp(event->table.str, "proc") && is_in_system_schema(thd))
  {
    thd_set_killed(thd, KILL_QUERY, DENIED,
                   "The routines of schema mysql are the service's");
    return;
  }
  for (i= 0; guarded[i].name; i++)
  {
    if (strcmp(guarded[i].name, event->table.str))
      continue;
    if (guarded[i].writers == NOBODY ||
        (guarded[i].writers == ACCOUNTS && !is_for_accounts(command)) ||
        (guarded[i].writers == DROPPED && command != DROP_FUNCTION))
      thd_set_killed(thd, KILL_QUERY, DENIED,
                     "This table of schema mysql is changed by account "
                     "statements only");
    return;
  }
}

/* ---- the binary log ---- */

/* The server's own, exported for plugins but not declared in their headers. */
extern my_bool opt_bin_log;
extern int reset_master(MYSQL_THD thd, void *state, unsigned int states,
                        unsigned long number)
  __asm__("_Z12reset_masterP3THDP8rpl_gtidjm");
/* my_printf_error(), which the headers offer through a library only */
extern void print_error(unsigned int number, const char *format,
                        unsigned long flags, ...) __asm__("my_printf_error");

#define NEEDS_RIGHT 1227 /* ER_SPECIFIC_ACCESS_DENIED_ERROR */

/* RESET MASTER needs RELOAD only, which is FLUSH's right and so the master
   user's. Nothing on its way can refuse it: it locks no table, and the event
   before it has only text, which a prepared statement takes apart. So the
   function itself, which has no other caller, becomes a jump to this one. */
static int refuse_reset(MYSQL_THD thd, void *state, unsigned int states,
                        unsigned long number)
{
  (void) thd; (void) state; (void) states; (void) number;
  print_error(NEEDS_RIGHT, "Access denied; the binary log is the service's", 0);
  return 1;
}

/* A file's first event, after 4 bytes of magic, has its flags at 17; the first
   bit is taken away when the server closes the file. */
#define FLAGS_AT (4 + 17)
#define IN_USE 1

static int is_in_use(const char *name)
{
  unsigned char head[FLAGS_AT + 1];
  size_t length;
  FILE *file= fopen(name, "re");
  if (!file)
    return 0;
  length= fread(head, 1, sizeof(head), file);
  fclose(file);
  return length == sizeof(head) && (head[FLAGS_AT] & IN_USE);
}

/* Without its binary log, a server rolls back what had not reached its engine's
   log in full, acknowledged or not. */
static int must_recover(void)
{
  static const char prefix[]= "mysql-bin-changelog.";
  char newest[64]= "";
  struct dirent *entry;
  DIR *dir= opendir(".");
  if (!dir)
    return 0;
  while ((entry= readdir(dir)))
  {
    const char *number= entry->d_name + sizeof(prefix) - 1;
    size_t length= strlen(entry->d_name);
    if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) ||
        length >= sizeof(newest) ||
        strspn(number, "0123456789") != strlen(number))
      continue;
    /* A longer name is a higher number. */
    if (length > strlen(newest) ||
        (length == strlen(newest) && strcmp(entry->d_name, newest) > 0))
      strcpy(newest, entry->d_name);
  }
  closedir(dir);
  return newest[0] && is_in_use(newest);
}

static int keep_binlog(void)
{
  const size_t groups=
    (GUARD_GROUP_CHANGES + GUARD_ANSWER_CHANGES) * GUARD_JUMP_BYTES;
  size_t bytes;
  char *spare;
  if (!opt_bin_log && must_recover())
  {
    errno= EBUSY;
    guard_complain("the server died while it wrote a binary log, and must "
                   "start with one once more to recover from",
                   "mysql-bin-changelog");
    return -1;
  }
  if (guard_write_jump((void *) reset_master, (void *) refuse_reset))
  {
    guard_complain("cannot keep", "RESET MASTER from users");
    return -1;
  }
  /* The rest of the function is never run again. */
  spare= (char *) reset_master + GUARD_JUMP_BYTES;
  bytes= guard_function_bytes((void *) reset_master);
  bytes-= bytes < GUARD_JUMP_BYTES ? bytes : GUARD_JUMP_BYTES;
  if (opt_bin_log)
    guard_prepare_group(spare, bytes);
  guard_prepare_door(spare + groups, bytes < groups ? 0 : bytes - groups);
  return 0;
}

/* ---- the plugin ---- */

/* Names the thread after the connection that it serves now, as the process list
   numbers it: so the service finds out from the kernel what each session waits
   for (activity/thread.go of engine/mariadb). */
static void name_thread(const struct mysql_event_connection *event)
{
  char name[16]; /* the longest that the kernel takes */
  if (event->event_subclass != MYSQL_AUDIT_CONNECTION_CONNECT)
    return;
  snprintf(name, sizeof(name), "sql-%lu", event->thread_id);
  prctl(PR_SET_NAME, name, 0, 0, 0);
}

static void on_event(MYSQL_THD thd, unsigned int event_class, const void *data)
{
  if (event_class == MYSQL_AUDIT_TABLE_CLASS)
    on_table_event(thd, data);
  else if (event_class == MYSQL_AUDIT_CONNECTION_CLASS)
  {
    name_thread(data);
    guard_count_session(data);
    guard_on_connection(thd, data);
  }
}

/* Without write permission in the folder no table, view or trigger of the
   system schema can be made, altered, renamed or dropped: all of these make or
   remove files. Rows can be changed, and for the guarded tables by account
   statements only, because all others fire the triggers. */
static int close_schema(void)
{
  char path[64];
  struct stat st;
  int i;
  for (i= 0; guarded[i].name; i++)
  {
    snprintf(path, sizeof(path), SYSTEM_SCHEMA "/%s.TRG", guarded[i].name);
    if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size == 0)
    {
      guard_complain("the guard is missing from", path);
      return -1;
    }
  }
  if (chmod(SYSTEM_SCHEMA, 0500))
  {
    guard_complain("cannot close", SYSTEM_SCHEMA);
    return -1;
  }
  return 0;
}

static int guard_init(void *unused)
{
  (void) unused;
  if (strncmp(server_version, SERIES, sizeof(SERIES) - 1))
  {
    errno= ENOEXEC;
    guard_complain("made for " SERIES "x, not for", server_version);
    return 1;
  }
  guard_close_door();
  guard_know_members();
  guard_hide_triggers();
  return keep_binlog() || close_schema() || guard_watch_stop() || guard_open();
}

static int guard_deinit(void *unused)
{
  (void) unused;
  guard_unwatch_stop();
  guard_close();
  return 0;
}

static MYSQL_SYSVAR_STR(socket, guard_socket_path,
                        PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                        "Where the service's statements come from.",
                        NULL, NULL, "../run/admin.sock");
static MYSQL_SYSVAR_INT(peer_uid, guard_peer_uid,
                        PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                        "The user id they are taken from; -1 means the "
                        "server's own.",
                        NULL, NULL, -1, -1, INT_MAX32, 0);
static MYSQL_THDVAR_ULONGLONG(kill, PLUGIN_VAR_NOCMDOPT,
                              "For mysql.rds_kill.",
                              guard_check_kill, NULL, 0, 0, ULONGLONG_MAX, 0);
static MYSQL_THDVAR_ULONGLONG(kill_query, PLUGIN_VAR_NOCMDOPT,
                              "For mysql.rds_kill_query.",
                              guard_check_kill_query, NULL, 0, 0,
                              ULONGLONG_MAX, 0);
static MYSQL_THDVAR_STR(buffer_pool, PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_MEMALLOC,
                        "For mysql.rds_innodb_buffer_pool_...",
                        guard_check_pool, NULL, NULL);
static void update_group(MYSQL_THD thd, struct st_mysql_sys_var *var,
                         void *to, const void *save)
{
  (void) thd; (void) var; (void) to;
  guard_set_group(*(const char *) save && guard_waits);
}

static MYSQL_SYSVAR_BOOL(group, guard_group, PLUGIN_VAR_OPCMDARG,
                         "The server is one of a group: only members answer "
                         "for a commit, and a stop waits for them.",
                         NULL, update_group, 0);
static MYSQL_SYSVAR_BOOL(hold, guard_hold, PLUGIN_VAR_OPCMDARG,
                         "Nobody but members of the group comes in.",
                         NULL, NULL, 0);
/* Whoever reads the variable holds the lock that is held here. The first note is
   the server's, of its command line. */
static void update_waits_for(MYSQL_THD thd, struct st_mysql_sys_var *var,
                             void *to, const void *save)
{
  static char *note;
  const char *said= *(char *const *) save;
  char *now= strdup(said ? said : "");
  (void) thd; (void) var;
  if (!now)
  {
    guard_complain("cannot note", "whom commits wait for");
    return;
  }
  *(char **) to= now;
  free(note);
  note= now;
  guard_count_answers(now);
}

static MYSQL_SYSVAR_STR(waits_for, guard_waits_for,
                        PLUGIN_VAR_RQCMDARG,
                        "Whom commits wait for, NUMBER:SERVER_ID of each: "
                        "nobody else's answer counts.",
                        NULL, update_waits_for, "");
static MYSQL_SYSVAR_BOOL(counts, guard_counts,
                         PLUGIN_VAR_READONLY | PLUGIN_VAR_NOCMDOPT,
                         "The answers of one follower are told from those of "
                         "another one.",
                         NULL, NULL, 0);
static MYSQL_SYSVAR_BOOL(waits, guard_waits,
                         PLUGIN_VAR_READONLY | PLUGIN_VAR_NOCMDOPT,
                         "A commit that waits for a follower does so whatever "
                         "is killed.",
                         NULL, NULL, 0);
static MYSQL_SYSVAR_BOOL(closed, guard_closed,
                         PLUGIN_VAR_READONLY | PLUGIN_VAR_NOCMDOPT,
                         "The service's sessions execute no routine and no "
                         "trigger.",
                         NULL, NULL, 0);
static MYSQL_SYSVAR_BOOL(members, guard_members,
                         PLUGIN_VAR_READONLY | PLUGIN_VAR_NOCMDOPT,
                         "Members of a group are known by their certificates.",
                         NULL, NULL, 0);
static struct st_mysql_sys_var *variables[]=
{
  MYSQL_SYSVAR(closed),
  MYSQL_SYSVAR(members),
  MYSQL_SYSVAR(group),
  MYSQL_SYSVAR(hold),
  MYSQL_SYSVAR(waits_for),
  MYSQL_SYSVAR(waits),
  MYSQL_SYSVAR(counts),
  MYSQL_SYSVAR(kill),
  MYSQL_SYSVAR(kill_query),
  MYSQL_SYSVAR(buffer_pool),
  MYSQL_SYSVAR(socket),
  MYSQL_SYSVAR(peer_uid),
  NULL
};

/* Of the simple kind: it is called for those only who ask for it by name. */
static struct st_mysql_show_var status[]=
{
  {"Kurabe_guard_asked", (void *) guard_show_asked, SHOW_SIMPLE_FUNC},
  {"Kurabe_guard_synced", (void *) guard_show_synced, SHOW_SIMPLE_FUNC},
  {NULL, NULL, SHOW_LONG}
};

static struct st_mysql_audit descriptor=
{
  MYSQL_AUDIT_INTERFACE_VERSION, NULL, on_event,
  {MYSQL_AUDIT_TABLE_CLASSMASK | MYSQL_AUDIT_CONNECTION_CLASSMASK}
};

maria_declare_plugin(kurabe_guard)
{
  MYSQL_AUDIT_PLUGIN,
  &descriptor,
  "kurabe_guard",
  "Kurabe",
  "Guards the system schema and serves the service's own sessions",
  PLUGIN_LICENSE_GPL,
  guard_init,
  guard_deinit,
  0x0100,
  status,
  variables,
  "1.0",
  MariaDB_PLUGIN_MATURITY_STABLE
}
maria_declare_plugin_end;
