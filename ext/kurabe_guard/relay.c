/* What a follower has received, and what of it is on its disk (DESIGN.md of
   engine/mariadb, section 11). */

#include "kurabe_guard.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

/* The server syncs what it has received after so many events, of which a
   transaction has five; synced after each, a follower is slower than its writer.
   So it does not sync at all, and here it does, before it answers. */
#define RELAY_PREFIX "mysql-relay." /* binlog.RelayLogName */

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

/* The kernel tells of a failure once, and takes what it could not write for
   written: the next sync would succeed, and the answer be wrong. A server that
   ends here reads its files again when it starts, and applies what they have. */
static void sync_or_end(int fd)
{
  if (!fdatasync(fd))
    return;
  guard_complain("ends at once: cannot sync", "what was received");
  kill(getpid(), SIGKILL);
}

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
    sync_or_end(relay->fd); /* the server has done so when it went on */
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
  if (errno != ENOENT) /* there is one, of which nothing is known */
    return -1;
  sync_or_end(relay->fd);
  return 0;
}

int guard_sync_received(void) { return sync_relay(&received); }

/* A follower is not asked for an answer where another one was faster. Who wants
   to know what it has for certain reads how far it is, and then this: ON when
   all that is on its disk. */
int guard_show_synced(MYSQL_THD thd, struct st_mysql_show_var *var, void *to,
                      struct system_status_var *unused,
                      enum enum_var_type scope)
{
  (void) unused; (void) scope;
  guard_note_look(thd);
  pthread_mutex_lock(&look_lock);
  *(char *) to= !sync_relay(&looked_at) || errno == ENOENT;
  pthread_mutex_unlock(&look_lock);
  var->type= SHOW_BOOL;
  var->value= to;
  return 0;
}
