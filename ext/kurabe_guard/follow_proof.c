/* When a follower was asked last whether it follows (DESIGN.md of engine/mariadb,
   section 11).

   A writer that the service does not hear may serve for a moment longer by its
   follower's answer to that. Who takes its place waits until that moment is over,
   and counts from when it was asked last itself. So the writer's host asks three
   questions in one go (lookQuery): this one, whether the server follows, and whether
   what it has is on its disk. The first is noted before the second is answered, so no
   answer is of later than the note of a server that follows no more. A host of an
   earlier service does not ask the first, and gives itself away by the third. */

#include "kurabe_guard.h"
#include <pthread.h>
#include <time.h>

/* Far more than an answer is worth (kurabe.VouchTime). */
#define UNTOLD_NS 60000000000LL

static pthread_mutex_t asked_lock= PTHREAD_MUTEX_INITIALIZER;
static long long asked_at, untold_at; /* of CLOCK_BOOTTIME, in ns; 0: never */

/* The session of this thread that asked the first question. Where a thread serves
   several it may be another one's; then nothing is known for a while. */
static __thread unsigned long asks;

static long long now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* The third question, by whomever. */
void guard_note_look(MYSQL_THD thd)
{
  if (!guard_looks_on(thd) || asks == thd_get_thread_id(thd))
    return;
  pthread_mutex_lock(&asked_lock);
  untold_at= now_ns();
  pthread_mutex_unlock(&asked_lock);
}

/* The first question: by whoever looks it is noted, by the service it is read. 0: it is
   not known. */
int guard_show_asked(MYSQL_THD thd, struct st_mysql_show_var *var, void *to,
                     struct system_status_var *unused,
                     enum enum_var_type scope)
{
  (void) unused; (void) scope;
  pthread_mutex_lock(&asked_lock);
  if (guard_looks_on(thd))
  {
    asked_at= now_ns();
    asks= thd_get_thread_id(thd);
  }
  *(long long *) to=
      untold_at && asked_at - untold_at < UNTOLD_NS ? 0 : asked_at;
  pthread_mutex_unlock(&asked_lock);
  var->type= SHOW_LONGLONG;
  var->value= to;
  return 0;
}
