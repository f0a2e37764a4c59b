/* What a session of the service's does not do, whoever asks it to (door/door.go of
   engine/mariadb, which opens them, says what follows from it).

   Such a session has all rights, and the thread that runs it passes the guard's
   own vetoes. So it touches tables of the service's and of the server's own only,
   and executes no routine and no trigger, whosever they are. A view of a user's
   leads to a table or to a function, and so to one of the two. */

#include "kurabe_guard.h"
#include <sys/mman.h>

extern void print_error(unsigned int number, const char *format,
                        unsigned long flags, ...) __asm__("my_printf_error");

/* sp_head::execute(THD *, bool), in which every routine, trigger and event is
   executed, and its callers. Weak: a server without them is told of. */
#define WEAK __attribute__((weak))
extern WEAK char execute_body(void *routine, MYSQL_THD thd, char merge)
  __asm__("_ZN7sp_head7executeEP3THDb");
extern WEAK void execute_trigger(void)
  __asm__("_ZN7sp_head15execute_triggerEP3THDPK25st_mysql_const_lex_stringS4_"
          "P13st_grant_info");
extern WEAK void execute_function(void)
  __asm__("_ZN7sp_head16execute_functionEP3THDPP4ItemjP5FieldPP11sp_rcontext"
          "P11Query_arena");
extern WEAK void execute_procedure(void)
  __asm__("_ZN7sp_head17execute_procedureEP3THDP4ListI4ItemE");

#define NOT_THE_SERVICE 1227 /* ER_SPECIFIC_ACCESS_DENIED_ERROR */

char guard_closed;

/* ---- the tables ---- */

#define PROBE_PREFIX "rdsprobe_" /* probe.go: of schemas that it makes */
#define PROBE_DIGITS 32

static int is_probe(const char *name, size_t length)
{
  return length == sizeof(PROBE_PREFIX) - 1 + PROBE_DIGITS &&
         !memcmp(name, PROBE_PREFIX, sizeof(PROBE_PREFIX) - 1) &&
         strspn(name + sizeof(PROBE_PREFIX) - 1, "0123456789abcdef") >=
             PROBE_DIGITS;
}

/* Nobody but the service makes a table in the first three. */
int guard_is_service_schema(const char *name, size_t length)
{
  static const char *const own[]=
    {"mysql", "information_schema", "performance_schema"};
  size_t i;
  for (i= 0; i < sizeof(own) / sizeof(*own); i++)
    if (length == strlen(own[i]) && !memcmp(name, own[i], length))
      return 1;
  return is_probe(name, length);
}

/* ---- the routines ---- */

/* Stands for the execution of a body. */
static char execute_of_users(void *routine, MYSQL_THD thd, char merge)
{
  if (!guard_is_service)
    return execute_body(routine, thd, merge);
  print_error(NOT_THE_SERVICE,
              "A session of the service's executes no routine and no trigger",
              0);
  return 1;
}

/* ---- the changes ---- */

/* Memory for jumps, near enough to the server's code to be called from it. */
#define SPARE_BYTES 4096
#define STEP (1UL << 16)
#if defined(__aarch64__)
#define REACH (1UL << 26) /* half of what a call reaches */
#else
#define REACH (1UL << 30)
#endif

static char *map_at(size_t at)
{
  void *page= mmap((void *) at, SPARE_BYTES, PROT_READ | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (page == MAP_FAILED)
    return NULL;
  if ((size_t) page == at)
    return page;
  munmap(page, SPARE_BYTES); /* a kernel that takes the place for a wish */
  return NULL;
}

char *guard_spare(size_t bytes)
{
  static char *page;
  static size_t used;
  size_t from= (size_t) execute_body & ~(STEP - 1), away;
  char *spare;
  if (!from)
  {
    errno= ESRCH;
    return NULL;
  }
  for (away= STEP; !page && away < REACH; away+= STEP)
    if (!(page= map_at(from - away)))
      page= map_at(from + away);
  if (!page || used + bytes > SPARE_BYTES)
  {
    errno= ENOMEM;
    return NULL;
  }
  spare= page + used;
  used+= bytes;
  return spare;
}

/* A server in which a call is not found goes without that half; the other one
   needs no change of its code. */
void guard_close_door(void)
{
  void *callers[]= {(void *) execute_trigger, (void *) execute_function,
                    (void *) execute_procedure};
  char *spare= guard_spare(GUARD_JUMP_BYTES);
  size_t i;
  for (i= 0; i < sizeof(callers) / sizeof(*callers); i++)
    if (!spare || guard_redirect(callers[i], (void *) execute_body, spare,
                                 (void *) execute_of_users))
    {
      guard_complain("cannot keep the service's sessions from",
                     "routines of users");
      return;
    }
  guard_closed= 1;
}
