/* The service's own sessions: its statements come over a Unix socket from one
   user id only, and run through the server's SQL service.

   Frame: four bytes of length, big-endian, then the body. A request's body is
   one statement. An answer's first byte says what follows:
     'O'  rows affected, 8 bytes
     'R'  number of columns, 4 bytes; then all values: length, 4 bytes
          (0xFFFFFFFF for NULL), and bytes
     'E'  error number, 4 bytes; message */

#include "kurabe_guard.h"
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The server's own, exported for plugins but not declared in their headers. */
extern int mysqld_server_started;
extern my_bool my_thread_init(void);
extern void my_thread_end(void);

/* The server puts the service here when it loads us. Until then the pointer is
   the version that we know (include/service_versions.h, which the package does
   not have); a server whose service is another refuses to load us. */
#define SQL_SERVICE_VERSION 0x0102
struct sql_service_st *sql_service= (void *) SQL_SERVICE_VERSION;

#define REQUEST_BYTES_MAX (1U << 20)
#define ANSWER_BYTES_MAX (16U << 20)
/* Of a server whose commits wait for a follower some can hang, and what ends the
   waiting must still come in. */
#define SESSIONS_MAX 32
/* A client that says nothing for so long has gone without a word. */
#define IDLE_SECONDS_MAX 30
#define STARTED_POLL_MS 2
#define LOCAL_ERROR 1 /* errors of the guard itself; the server's are > 1000 */

static int listen_fd= -1;
static int stop_pipe[2]= {-1, -1};
static pthread_t acceptor;

/* Guards stopping and sessions; idle tells that a session has ended. */
static pthread_mutex_t lock= PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle= PTHREAD_COND_INITIALIZER;
static int stopping;
static int sessions[SESSIONS_MAX]; /* sockets, -1 when free */

__thread int guard_is_service;

/* ---- answers ---- */

struct answer
{
  unsigned char *data;
  size_t used, room;
  int failed;
};

static void put(struct answer *a, const void *from, size_t length)
{
  if (a->failed)
    return;
  if (a->used + length > ANSWER_BYTES_MAX)
  {
    a->failed= 1;
    return;
  }
  if (a->used + length > a->room)
  {
    size_t room= (a->used + length) * 2;
    unsigned char *data= realloc(a->data, room);
    if (!data)
    {
      a->failed= 1;
      return;
    }
    a->data= data;
    a->room= room;
  }
  memcpy(a->data + a->used, from, length);
  a->used+= length;
}

static void put_number(struct answer *a, unsigned long long value, int bytes)
{
  unsigned char raw[8];
  int i;
  for (i= 0; i < bytes; i++)
    raw[i]= (unsigned char) (value >> (8 * (bytes - 1 - i)));
  put(a, raw, (size_t) bytes);
}

/* Begins an answer anew, with room for the length of the frame. */
static void begin(struct answer *a, char kind)
{
  a->used= 0;
  a->failed= 0;
  put_number(a, 0, 4);
  put(a, &kind, 1);
}

static void put_error(struct answer *a, unsigned int number, const char *text)
{
  begin(a, 'E');
  put_number(a, number, 4);
  put(a, text, strlen(text));
}

static void put_rows(struct answer *a, MYSQL_RES *rows)
{
  unsigned int i, columns= mysql_num_fields(rows);
  MYSQL_ROW row;
  begin(a, 'R');
  put_number(a, columns, 4);
  while ((row= mysql_fetch_row(rows)))
  {
    unsigned long *lengths= mysql_fetch_lengths(rows);
    for (i= 0; i < columns; i++)
    {
      put_number(a, row[i] ? lengths[i] : 0xFFFFFFFFUL, 4);
      if (row[i])
        put(a, row[i], lengths[i]);
    }
  }
  if (a->failed)
    put_error(a, LOCAL_ERROR, "the result is too long");
}

static void execute(struct answer *a, MYSQL *session, const char *statement,
                    unsigned long length)
{
  MYSQL_RES *rows;
  if (mysql_real_query(session, statement, length))
  {
    put_error(a, mysql_errno(session), mysql_error(session));
    return;
  }
  rows= mysql_store_result(session);
  if (rows)
  {
    put_rows(a, rows);
    mysql_free_result(rows);
  }
  else if (mysql_errno(session))
    put_error(a, mysql_errno(session), mysql_error(session));
  else
  {
    begin(a, 'O');
    put_number(a, mysql_affected_rows(session), 8);
  }
}

/* ---- sessions ---- */

static int read_all(int fd, void *to, size_t length)
{
  char *at= to;
  while (length)
  {
    ssize_t n= read(fd, at, length);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    at+= n;
    length-= (size_t) n;
  }
  return 0;
}

static int send_all(int fd, const unsigned char *from, size_t length)
{
  while (length)
  {
    ssize_t n= send(fd, from, length, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    from+= n;
    length-= (size_t) n;
  }
  return 0;
}

static int send_answer(int fd, struct answer *a)
{
  unsigned long body;
  int i;
  if (a->failed)
    return -1;
  body= (unsigned long) (a->used - 4);
  for (i= 0; i < 4; i++)
    a->data[i]= (unsigned char) (body >> (8 * (3 - i)));
  return send_all(fd, a->data, a->used);
}

/* Reads one statement; NULL when there is no more. */
static char *read_request(int fd, unsigned long *length)
{
  unsigned char raw[4];
  char *statement;
  if (read_all(fd, raw, sizeof(raw)))
    return NULL;
  *length= ((unsigned long) raw[0] << 24) | ((unsigned long) raw[1] << 16) |
           ((unsigned long) raw[2] << 8) | raw[3];
  if (*length == 0 || *length > REQUEST_BYTES_MAX)
    return NULL;
  statement= malloc(*length + 1);
  if (!statement)
    return NULL;
  if (read_all(fd, statement, *length))
  {
    free(statement);
    return NULL;
  }
  statement[*length]= 0;
  return statement;
}

static void serve(int fd)
{
  struct answer a= {NULL, 0, 0, 0};
  char *statement;
  unsigned long length;
  MYSQL *session= mysql_init(NULL);
  if (!session)
    return;
  if (mysql_real_connect_local(session))
  {
    while ((statement= read_request(fd, &length)))
    {
      int failed;
      execute(&a, session, statement, length);
      /* It may hold a verifier, which has no business in a core file. */
      explicit_bzero(statement, length);
      free(statement);
      failed= send_answer(fd, &a);
      if (failed)
        break;
    }
  }
  mysql_close(session);
  free(a.data);
}

static void *session_thread(void *arg)
{
  int *slot= arg;
  int fd= *slot;
  guard_is_service= 1;
  if (!my_thread_init())
  {
    serve(fd);
    my_thread_end();
  }
  pthread_mutex_lock(&lock);
  *slot= -1;
  close(fd);
  pthread_cond_broadcast(&idle);
  pthread_mutex_unlock(&lock);
  return NULL;
}

#define SESSION_STACK_BYTES (1 << 20) /* the SQL layer wants 300 kB */

struct errand
{
  void (*work)(MYSQL *session, void *arg);
  void *arg;
  int failed;
};

static void *errand_thread(void *from)
{
  /* No log, as in the sessions of the service (guard/session.go). */
  static const char preamble[]=
    "SET SESSION sql_log_off = 1, slow_query_log = 0, sql_log_bin = 0";
  struct errand *e= from;
  MYSQL *session;
  guard_is_service= 1;
  if (my_thread_init())
    return NULL;
  session= mysql_init(NULL);
  if (session)
  {
    if (mysql_real_connect_local(session) &&
        !mysql_real_query(session, preamble, sizeof(preamble) - 1))
    {
      e->work(session, e->arg);
      e->failed= 0;
    }
    mysql_close(session);
  }
  my_thread_end();
  return NULL;
}

/* A local session that is opened in a client's thread has the client's rights,
   so the errand has a thread of its own. One at a time: whoever may call the
   procedures cannot have more of them by calling more often. None of them waits
   for a lock that a client can hold. */
int guard_execute(void (*work)(MYSQL *session, void *arg), void *arg)
{
  static pthread_mutex_t turn= PTHREAD_MUTEX_INITIALIZER;
  struct errand e= {work, arg, 1};
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, SESSION_STACK_BYTES);
  pthread_mutex_lock(&turn);
  if (!pthread_create(&thread, &attr, errand_thread, &e))
    pthread_join(thread, NULL);
  pthread_mutex_unlock(&turn);
  pthread_attr_destroy(&attr);
  return e.failed ? -1 : 0;
}

/* Only the user that the service runs as, whatever the mode of the folder. */
static int welcome(int fd)
{
  struct ucred peer;
  socklen_t length= sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
    return 0;
  return peer.uid == (uid_t) (guard_peer_uid < 0 ? (int) geteuid() : guard_peer_uid);
}

static void start_session(int fd)
{
  struct timeval patience= {IDLE_SECONDS_MAX, 0};
  pthread_attr_t attr;
  pthread_t thread;
  int i;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, SESSION_STACK_BYTES);
  pthread_mutex_lock(&lock);
  for (i= 0; i < SESSIONS_MAX && sessions[i] >= 0; i++)
    ;
  if (stopping || abort_loop || i == SESSIONS_MAX)
    close(fd);
  else
  {
    sessions[i]= fd;
    if (pthread_create(&thread, &attr, session_thread, &sessions[i]))
    {
      sessions[i]= -1;
      close(fd);
    }
  }
  pthread_mutex_unlock(&lock);
  pthread_attr_destroy(&attr);
}

static int open_socket(void)
{
  struct sockaddr_un address;
  int fd;
  memset(&address, 0, sizeof(address));
  address.sun_family= AF_UNIX;
  if (strlen(guard_socket_path) >= sizeof(address.sun_path))
  {
    errno= ENAMETOOLONG;
    return -1;
  }
  strcpy(address.sun_path, guard_socket_path);
  fd= socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  unlink(guard_socket_path); /* an earlier server's; the lock file allows one only */
  if (bind(fd, (struct sockaddr *) &address, sizeof(address)) ||
      chmod(guard_socket_path, 0600) || listen(fd, SESSIONS_MAX))
  {
    close(fd);
    return -1;
  }
  return fd;
}

/* Waits for something to accept; 0 when the server is going down. */
static int wait_for(int fd, int timeout_ms)
{
  struct pollfd polled[2];
  polled[0].fd= stop_pipe[0];
  polled[0].events= POLLIN;
  polled[1].fd= fd;
  polled[1].events= POLLIN;
  if (poll(polled, fd < 0 ? 1 : 2, timeout_ms) < 0)
    return 1;
  return polled[0].revents == 0;
}

static void *acceptor_thread(void *arg)
{
  (void) arg;
  /* Before that the grant tables are not loaded; no event announces it. */
  while (!*(volatile int *) &mysqld_server_started)
    if (!wait_for(-1, STARTED_POLL_MS))
      return NULL;
  listen_fd= open_socket();
  if (listen_fd < 0)
  {
    /* The service sees a server that never gets ready, and says so. */
    guard_complain("cannot open", guard_socket_path);
    return NULL;
  }
  while (wait_for(listen_fd, -1))
  {
    int fd= accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
      continue;
    if (welcome(fd))
      start_session(fd);
    else
      close(fd);
  }
  return NULL;
}

/* ---- beginning and end ---- */

int guard_open(void)
{
  int i;
  for (i= 0; i < SESSIONS_MAX; i++)
    sessions[i]= -1;
  stopping= 0;
  if (pipe2(stop_pipe, O_CLOEXEC))
  {
    guard_complain("cannot make", "a pipe");
    return -1;
  }
  if (pthread_create(&acceptor, NULL, acceptor_thread, NULL))
  {
    guard_complain("cannot start", "a thread");
    return -1;
  }
  return 0;
}

void guard_close(void)
{
  int i;
  if (stop_pipe[1] < 0)
    return;
  pthread_mutex_lock(&lock);
  stopping= 1;
  pthread_mutex_unlock(&lock);
  close(stop_pipe[1]); /* poll sees the hang-up */
  pthread_join(acceptor, NULL);
  if (listen_fd >= 0)
  {
    close(listen_fd);
    unlink(guard_socket_path);
  }
  /* The server waits for its sessions before it unloads plugins, but not for
     ours: they end with their statement. */
  pthread_mutex_lock(&lock);
  for (i= 0; i < SESSIONS_MAX; i++)
    if (sessions[i] >= 0)
      shutdown(sessions[i], SHUT_RDWR);
  for (i= 0; i < SESSIONS_MAX; i++)
    while (sessions[i] >= 0)
      pthread_cond_wait(&idle, &lock);
  pthread_mutex_unlock(&lock);
  close(stop_pipe[0]);
}
