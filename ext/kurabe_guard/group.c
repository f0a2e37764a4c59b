/* What a server needs that has followers, or is one (DESIGN.md of engine/mariadb,
   section 11).

   - A commit that waits for a follower's answer goes on waiting whatever is
     killed. The server itself would let it go, and all that were written with
     it, and tell their clients that all is well.
   - Only members of the group answer for a commit, not whoever has the right to
     replicate (and only those that it waits for: answer.c).
   - What the log brings in is not vetoed: it was at its source.
   - Events of the scheduler keep their status in a follower.
   - Nobody but members, and copies, comes in while the service says so.
   - A stop waits for the followers, and not for ever. */

#include "kurabe_guard.h"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

/* The server's own, exported for plugins but not declared in their headers. Weak:
   a server without one of them does without what needs it. */
#define WEAK __attribute__((weak))
extern WEAK void commit_trx(void)
  __asm__("_ZN21Repl_semi_sync_master10commit_trxEPKcy");
extern WEAK void server_kill_level(void) __asm__("thd_kill_level");
extern WEAK void server_killed(void) __asm__("thd_killed");
extern WEAK void binlog_send(void)
  __asm__("_Z17mysql_binlog_sendP3THDPcyt");
extern WEAK int user_var_int(const char *name, long long *value,
                             int *null_value) __asm__("get_user_var_int");
extern WEAK void check_parse_data(void)
  __asm__("_ZN16Event_parse_data16check_parse_dataEP3THD");
extern WEAK void check_originator(void *event, MYSQL_THD thd)
  __asm__("_ZN16Event_parse_data19check_originator_idEP3THD");
extern WEAK void kill_at_source(void)
  __asm__("_ZN20Repl_semi_sync_slave15kill_connectionEP11Master_info");
extern WEAK void connect_to(void) __asm__("server_mysql_real_connect");
extern WEAK char applies_log(MYSQL_THD thd) __asm__("thd_is_slave"); /* bool */
extern WEAK MYSQL_THD this_thread(void) __asm__("_current_thd");
extern WEAK char shutdown_wait_for_slaves; /* bool */
extern WEAK volatile uint32_t binlog_dump_thread_count;
extern WEAK volatile unsigned long rpl_semi_sync_master_wait_sessions;
extern const char *thd_priv_user(MYSQL_THD thd, size_t *length);
extern void end_thread_as(MYSQL_THD thd, int state, int error,
                          const char *message)
  __asm__("_ZN3THD10set_killedE12killed_stateiPKc");

#define KILL_CONNECTION 12 /* enum killed_state of sql_class.h */
#define NOT_KILLED 0       /* enum thd_kill_levels */
#define ABORT_ASAP 100
#define HELD_OUT 1105      /* ER_UNKNOWN_ERROR */

char guard_group;
char guard_hold;
char guard_waits;
char *guard_waits_for;

int guard_applies_log(MYSQL_THD thd) { return applies_log && applies_log(thd); }

int guard_is_member(const char *user)
{
  return user && !strncmp(user, MEMBER_PREFIX, sizeof(MEMBER_PREFIX) - 1);
}

static int is_looker(const char *user)
{
  return user && !strncmp(user, LOOK_PREFIX, sizeof(LOOK_PREFIX) - 1);
}

int guard_looks_on(MYSQL_THD thd)
{
  size_t length;
  return !guard_is_service && is_looker(thd_priv_user(thd, &length));
}

static int is_of_group(const char *user)
{
  return guard_is_member(user) || is_looker(user);
}

/* ---- commits that wait ---- */

/* Stands for the question, in the loop of a commit that waits, whether its
   session was killed. Who asks may wait for a whole group of commits, of other
   sessions too. The service's own statements wait for nobody: what ends the
   waiting must get through, and what it writes it writes again in whoever takes
   over. They lead no group: each is a statement that is logged by itself. */
static int kill_level_in_wait(MYSQL_THD thd)
{
  (void) thd;
  return guard_is_service ? ABORT_ASAP : NOT_KILLED;
}

/* Stands for the question whether who asks for the log will answer for it. In a
   group an answer of somebody else would be taken for a follower's. */
static int will_answer(const char *name, long long *value, int *null_value)
{
  int missing= user_var_int(name, value, null_value);
  if (!missing && guard_group && !guard_is_verified(this_thread()))
    *value= 0;
  return missing;
}

/* Stands for the note of which server an event comes from, which also disables
   every event that comes by the log. For a thread of no kind, which this memory
   stands for, it notes this server and leaves the status alone. */
static char no_thread[1 << 16];

static void note_originator(void *event, MYSQL_THD thd)
{
  check_originator(event, guard_applies_log(thd) ? (MYSQL_THD) no_thread : thd);
}

/* ---- the end of the stream ---- */

/* Stands for the connection by which a follower that ceases to receive asks its
   source to end the other half. A source that is dead or hangs costs it a second,
   and so does one whose address somebody else holds by now, while a promotion
   waits. Without it the server shuts its own half, which the source sees. */
static void *connect_never(void) { return NULL; }

/* ---- the changes ---- */

static const struct
{
  void (*function)(void);
  void *callee, *ours;
  const char *what, *name;
} changes[]=
{
  {binlog_send, (void *) user_var_int, (void *) will_answer, "cannot choose",
   "who answers for a commit"},
  {check_parse_data, (void *) check_originator, (void *) note_originator,
   "cannot keep the status of", "events"},
  {kill_at_source, (void *) connect_to, (void *) connect_never,
   "cannot keep a follower from calling", "a source that may be dead"}
};
#define CHANGES (sizeof(changes) / sizeof(*changes))

/* spare is code that is never run any more. */
void guard_prepare_group(char *spare, size_t bytes)
{
  size_t i;
  _Static_assert(1 + CHANGES == GUARD_GROUP_CHANGES, "its room is counted");
  if (bytes < (GUARD_GROUP_CHANGES + GUARD_ANSWER_CHANGES) * GUARD_JUMP_BYTES ||
      !this_thread || !applies_log || !&shutdown_wait_for_slaves ||
      !&binlog_dump_thread_count || !&rpl_semi_sync_master_wait_sessions)
  {
    errno= ENOTSUP;
    guard_complain("cannot serve", "a group");
    return;
  }
  /* The one that asks is a macro of the other in some builds. */
  if (guard_redirect((void *) commit_trx, (void *) server_kill_level, spare,
                     (void *) kill_level_in_wait) &&
      guard_redirect((void *) commit_trx, (void *) server_killed, spare,
                     (void *) kill_level_in_wait))
  {
    guard_complain("cannot keep from being killed", "commits that wait");
    return;
  }
  for (i= 0; i < CHANGES; i++)
  {
    spare+= GUARD_JUMP_BYTES;
    if (guard_redirect((void *) changes[i].function, changes[i].callee, spare,
                       changes[i].ours))
    {
      guard_complain(changes[i].what, changes[i].name);
      return;
    }
  }
  if (guard_prepare_answers(spare + GUARD_JUMP_BYTES))
    guard_waits= 1;
}

/* ---- who comes in ---- */

/* A follower may have to be copied from a server that lets no clients in until
   it follows. */
static int is_copier(const char *user)
{
  return user && !strncmp(user, COPIER_PREFIX, sizeof(COPIER_PREFIX) - 1);
}

/* The login is through, and no statement was read yet: the server looks whether
   the connection is to end before it does. */
void guard_on_connection(MYSQL_THD thd, const void *data)
{
  const struct mysql_event_connection *event= data;
  if (!guard_hold || event->status ||
      (event->event_subclass != MYSQL_AUDIT_CONNECTION_CONNECT &&
       event->event_subclass != MYSQL_AUDIT_CONNECTION_CHANGE_USER) ||
      is_of_group(event->priv_user) || is_copier(event->priv_user))
    return;
  end_thread_as(thd, KILL_CONNECTION, HELD_OUT,
                "The server lets no clients in now");
}

/* ---- the stop ---- */

/* With this the server's own shutdown lets commits wait for their answer, and
   ends the threads that send the log when they have sent all of it. Without it,
   it kills the sessions whose commits wait, which would be told that they have
   come through. It waits without end; here is the end: a server that followers
   keep from stopping dies as in a crash. Nobody is told anything then, and
   whatever was promised is with them or in this server's log. */
#define STOP_SECONDS_MAX 5
#define STOP_LOOK_MS 250

static pthread_mutex_t stop_lock= PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stop_turn= PTHREAD_COND_INITIALIZER;
static pthread_t stop_watcher;
static int watching, unwatch;

static long long now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec+= ms * 1000000L;
  until.tv_sec+= until.tv_nsec / 1000000000L;
  until.tv_nsec%= 1000000000L;
  pthread_cond_timedwait(&stop_turn, &stop_lock, &until);
}

static int kept_by_followers(void)
{
  return rpl_semi_sync_master_wait_sessions > 0 ||
         binlog_dump_thread_count > 0;
}

static void *stop_thread(void *arg)
{
  long long begun= 0;
  (void) arg;
  pthread_mutex_lock(&stop_lock);
  while (!unwatch)
  {
    if (!guard_group)
      pthread_cond_wait(&stop_turn, &stop_lock);
    else
      pause_ms(STOP_LOOK_MS);
    if (!guard_group || !abort_loop)
      continue;
    if (!begun)
      begun= now_ms();
    if (now_ms() - begun < STOP_SECONDS_MAX * 1000 || !kept_by_followers())
      continue;
    fprintf(stderr, "[ERROR] kurabe_guard: ends at once: it was told to stop, "
                    "and a follower that it waits for does not answer\n");
    fflush(stderr);
    kill(getpid(), SIGKILL);
  }
  pthread_mutex_unlock(&stop_lock);
  return NULL;
}

void guard_set_group(char on)
{
  pthread_mutex_lock(&stop_lock);
  guard_group= on;
  if (&shutdown_wait_for_slaves)
    shutdown_wait_for_slaves= on;
  pthread_cond_signal(&stop_turn);
  pthread_mutex_unlock(&stop_lock);
}

int guard_watch_stop(void)
{
  guard_set_group(guard_group && guard_waits);
  guard_count_answers(guard_waits_for);
  if (!guard_waits)
    return 0;
  if (pthread_create(&stop_watcher, NULL, stop_thread, NULL))
  {
    guard_complain("cannot start", "a thread");
    return -1;
  }
  watching= 1;
  return 0;
}

void guard_unwatch_stop(void)
{
  if (!watching)
    return;
  pthread_mutex_lock(&stop_lock);
  unwatch= 1;
  pthread_cond_signal(&stop_turn);
  pthread_mutex_unlock(&stop_lock);
  pthread_join(stop_watcher, NULL);
  watching= 0;
}
