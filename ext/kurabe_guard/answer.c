/* Answers of followers (DESIGN.md of engine/mariadb, section 11).

   - A writer counts those of whom its commits wait for, and nobody else's. The
     server itself would end a commit's wait at the first answer, whosever it is.
   - A follower answers for what it has on its disk, and says what it has there
     when it is looked at.  */

#include "kurabe_guard.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>

#define WEAK __attribute__((weak))
extern WEAK int report_reply(void *master, uint32_t server_id, const char *file,
                             unsigned long long at)
  __asm__("_ZN21Repl_semi_sync_master19report_reply_binlogEjPKcy");
extern WEAK void take_answer(void)
  __asm__("_ZN21Repl_semi_sync_master19report_reply_packetEjPKhm");
extern WEAK void begin_to_send(void)
  __asm__("_ZN21Repl_semi_sync_master10dump_startEP3THDPKcy");
extern WEAK void receive_log(void) __asm__("handle_slave_io");
extern WEAK int send_answer(void *slave, void *master_info)
  __asm__("_ZN20Repl_semi_sync_slave11slave_replyEP11Master_info");

char guard_counts;

/* ---- whose answer counts ---- */

/* A group has a few members; what follows from elsewhere is never waited for. */
#define COUNTED_MOST 16

static pthread_mutex_t counted_lock= PTHREAD_MUTEX_INITIALIZER;
static uint32_t counted[COUNTED_MOST];
static int counted_number, anybody_counts;

/* The service's note: "NUMBER:SERVER_ID …". A note of numbers alone is an
   earlier service's, which waits for an only follower. One that cannot be read
   lets nobody's answer count. */
static int read_counted(const char *note, uint32_t *ids, int *anybody)
{
  int number= 0;
  *anybody= 0;
  for (;;)
  {
    char *end;
    unsigned long long id;
    while (*note == ' ')
      note++;
    if (!*note)
      return number;
    strtoul(note, &end, 10);
    if (end == note || number == COUNTED_MOST)
      return *anybody= 0;
    if (*end == ' ' || !*end)
    {
      *anybody= 1;
      note= end;
      continue;
    }
    if (*end != ':')
      return *anybody= 0;
    note= end + 1;
    errno= 0;
    id= strtoull(note, &end, 10);
    if (end == note || (*end && *end != ' ') || errno || id > UINT32_MAX)
      return *anybody= 0;
    ids[number++]= (uint32_t) id;
    note= end;
  }
}

/* The newest answers of each, counted or not: whoever has answered for a commit is not
   asked again. */
static struct
{
  uint32_t server_id;
  char file[FN_REFLEN];
  unsigned long long at;
} kept[COUNTED_MOST];
static void *kept_for; /* the server's own, to which they were told */

static void keep(void *master, uint32_t server_id, const char *file,
                 unsigned long long at)
{
  int i= 0;
  while (i < COUNTED_MOST && kept[i].server_id &&
         kept[i].server_id != server_id)
    i++;
  if (i == COUNTED_MOST || strlen(file) >= sizeof(kept[i].file))
    return;
  kept_for= master;
  kept[i].server_id= server_id;
  strcpy(kept[i].file, file);
  kept[i].at= at;
}

static int counts(uint32_t server_id)
{
  int i;
  for (i= 0; i < counted_number; i++)
    if (counted[i] == server_id)
      return 1;
  return !guard_group || anybody_counts;
}

/* When this returns, nobody is counted any more who is not in the note, and what
   the others have answered before they were counted is. */
void guard_count_answers(const char *note)
{
  int i;
  pthread_mutex_lock(&counted_lock);
  counted_number= read_counted(note ? note : "", counted, &anybody_counts);
  for (i= 0; i < COUNTED_MOST && kept[i].server_id; i++)
    if (counts(kept[i].server_id))
      report_reply(kept_for, kept[i].server_id, kept[i].file, kept[i].at);
  pthread_mutex_unlock(&counted_lock);
}

/* Stands for the news of an answer, or of a follower that comes and has all
   before the place from which it asks. The lock is held meanwhile, so that none
   is under way when guard_count_answers returns. */
static int report_counted(void *master, uint32_t server_id, const char *file,
                          unsigned long long at)
{
  int result= 0;
  pthread_mutex_lock(&counted_lock);
  keep(master, server_id, file, at);
  if (counts(server_id))
    result= report_reply(master, server_id, file, at);
  pthread_mutex_unlock(&counted_lock);
  return result;
}

/* ---- what a follower has ---- */

/* The server syncs what it has received after so many events, of which a
   transaction has five; synced after each, a follower is slower than its writer.
   So it does not sync at all, and here it does, before it answers. */
#define RELAY_PREFIX "mysql-relay." /* group_render.go */

struct relay
{
  int fd;
  unsigned long number;
};

/* Of the only thread that receives. */
static struct relay received= {-1, 0};

/* Of whoever looks. */
static pthread_mutex_t look_lock= PTHREAD_MUTEX_INITIALIZER;
static struct relay looked_at= {-1, 0};

static int open_relay(struct relay *relay, unsigned long number)
{
  char name[64];
  int fd;
  snprintf(name, sizeof(name), RELAY_PREFIX "%06lu", number);
  fd= open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return -1;
  if (relay->fd >= 0)
  {
    fdatasync(relay->fd); /* the server has done so when it went on */
    close(relay->fd);
  }
  relay->fd= fd;
  relay->number= number;
  return 0;
}

static int open_newest_relay(struct relay *relay)
{
  unsigned long newest= 0;
  struct dirent *entry;
  DIR *dir= opendir(".");
  if (!dir)
    return -1;
  while ((entry= readdir(dir)))
  {
    const char *number= entry->d_name + sizeof(RELAY_PREFIX) - 1;
    if (!strncmp(entry->d_name, RELAY_PREFIX, sizeof(RELAY_PREFIX) - 1) &&
        *number && strspn(number, "0123456789") == strlen(number) &&
        strtoul(number, NULL, 10) > newest)
      newest= strtoul(number, NULL, 10);
  }
  closedir(dir);
  errno= ENOENT;
  return newest ? open_relay(relay, newest) : -1;
}

/* The numbers begin anew when the server forgets whom it followed; the file that
   was open has no name then. */
static int sync_relay(struct relay *relay)
{
  struct stat st;
  if (relay->fd >= 0 && (fstat(relay->fd, &st) || st.st_nlink == 0))
  {
    close(relay->fd);
    relay->fd= -1;
  }
  if (relay->fd < 0 && open_newest_relay(relay))
    return -1;
  while (!open_relay(relay, relay->number + 1))
    ;
  return fdatasync(relay->fd);
}

/* Stands for the answer. Without one the commit goes on waiting. */
static int answer_when_synced(void *slave, void *master_info)
{
  if (!sync_relay(&received))
    return send_answer(slave, master_info);
  guard_complain("cannot sync", RELAY_PREFIX);
  return 1;
}

/* A follower is not asked for an answer where another one was faster. Who wants
   to know what it has for certain reads how far it is, and then this: ON when
   all that is on its disk. */
int guard_show_synced(MYSQL_THD thd, struct st_mysql_show_var *var, void *to,
                      struct system_status_var *unused,
                      enum enum_var_type scope)
{
  (void) thd; (void) unused; (void) scope;
  pthread_mutex_lock(&look_lock);
  *(char *) to= !sync_relay(&looked_at) || errno == ENOENT;
  pthread_mutex_unlock(&look_lock);
  var->type= SHOW_BOOL;
  var->value= to;
  return 0;
}

/* ---- the changes ---- */

static const struct
{
  void (*function)(void);
  void *callee, *ours;
  const char *what, *name;
} changes[GUARD_ANSWER_CHANGES]=
{
  {receive_log, (void *) send_answer, (void *) answer_when_synced,
   "cannot sync", "what is answered for"},
  {take_answer, (void *) report_reply, (void *) report_counted,
   "cannot choose", "whose answer counts"},
  {begin_to_send, (void *) report_reply, (void *) report_counted,
   "cannot choose", "who has what is waited for"}
};
/* Changes the calls, each by way of the next GUARD_JUMP_BYTES of spare; 0 when a
   follower would answer for what it may lose. A server in which the others are not
   found can wait for its only follower, whose every answer counts. */
int guard_prepare_answers(char *spare)
{
  size_t i;
  for (i= 0; i < GUARD_ANSWER_CHANGES; i++, spare+= GUARD_JUMP_BYTES)
    if (guard_redirect((void *) changes[i].function, changes[i].callee, spare,
                       changes[i].ours))
    {
      guard_complain(changes[i].what, changes[i].name);
      return i > 0;
    }
  return guard_counts= 1;
}
