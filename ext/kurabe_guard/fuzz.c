/* Attacks the parts of the guard that read what others send, outside of a server: its
   socket and the note of whose answers count. Built with the compiler's sanitizers
   (make fuzz); run as: fuzz SECONDS SEED FOLDER. It ends with 0 when nothing was found. */

#include "session.c"
#include <assert.h>
#include <time.h>

/* ---- what the server would be ---- */

int mysqld_server_started= 1;
volatile char abort_loop;
char *guard_socket_path;
int guard_peer_uid= -1;
char guard_group= 1;
my_bool my_thread_init(void) { return 0; }
void my_thread_end(void) {}
void guard_complain(const char *what, const char *name)
{
  fprintf(stderr, "fuzz: %s %s\n", what, name);
}
int guard_redirect(void *function, void *callee, void *spare, void *to)
{
  (void) function; (void) callee; (void) spare; (void) to;
  return -1;
}
int guard_sync_received(void) { return 0; }

static __thread unsigned int seed;
static unsigned int chance(unsigned int below)
{
  return (unsigned int) rand_r(&seed) % below;
}

/* A session whose answers are as odd as a statement's first bytes say. */
#define COLUMNS_MOST 40
struct fake
{
  unsigned char way, columns, rows_left;
  unsigned long lengths[COLUMNS_MOST];
  char *row[COLUMNS_MOST];
  char value[256];
};

static MYSQL *STDCALL fake_init(MYSQL *mysql)
{
  assert(!mysql);
  return (MYSQL *) calloc(1, sizeof(struct fake));
}
static MYSQL *fake_connect(MYSQL *mysql) { return chance(50) ? mysql : NULL; }
static void STDCALL fake_close(MYSQL *mysql) { free(mysql); }
static unsigned int STDCALL fake_errno(MYSQL *mysql)
{
  return ((struct fake *) mysql)->way == 'E' ? 1064 : 0;
}
static const char *STDCALL fake_error(MYSQL *mysql)
{
  return ((struct fake *) mysql)->value;
}
static int STDCALL fake_query(MYSQL *mysql, const char *text, unsigned long length)
{
  struct fake *f= (struct fake *) mysql;
  unsigned long i, sum= 0;
  for (i= 0; i <= length; i++) /* the byte behind it is the guard's too */
    sum+= (unsigned char) text[i];
  assert(length && text[length] == 0);
  f->way= (unsigned char) "ERO"[sum % 3];
  f->columns= (unsigned char) (sum % COLUMNS_MOST);
  f->rows_left= (unsigned char) text[0];
  memset(f->value, 'v', sizeof(f->value));
  f->value[sum % sizeof(f->value)]= 0;
  f->value[sizeof(f->value) - 1]= 0;
  return f->way == 'E';
}
static my_ulonglong STDCALL fake_affected(MYSQL *mysql)
{
  (void) mysql;
  return ~0ULL;
}
static MYSQL_RES *STDCALL fake_store(MYSQL *mysql)
{
  return ((struct fake *) mysql)->way == 'R' ? (MYSQL_RES *) mysql : NULL;
}
static void STDCALL fake_free(MYSQL_RES *result) { (void) result; }
static unsigned int STDCALL fake_fields(MYSQL_RES *result)
{
  return ((struct fake *) result)->columns;
}
static MYSQL_ROW STDCALL fake_row(MYSQL_RES *result)
{
  struct fake *f= (struct fake *) result;
  int i;
  if (!f->rows_left--)
    return NULL;
  for (i= 0; i < f->columns; i++)
  {
    f->row[i]= chance(4) ? f->value : NULL;
    f->lengths[i]= f->row[i] ? chance(sizeof(f->value)) : 0;
  }
  return f->row;
}
static unsigned long *STDCALL fake_lengths(MYSQL_RES *result)
{
  return ((struct fake *) result)->lengths;
}

static struct sql_service_st fake_service= {
  .mysql_init_func= fake_init, .mysql_real_connect_local_func= fake_connect,
  .mysql_close_func= fake_close, .mysql_errno_func= fake_errno,
  .mysql_error_func= fake_error, .mysql_real_query_func= fake_query,
  .mysql_affected_rows_func= fake_affected, .mysql_store_result_func= fake_store,
  .mysql_free_result_func= fake_free, .mysql_num_fields_func= fake_fields,
  .mysql_fetch_row_func= fake_row, .mysql_fetch_lengths_func= fake_lengths};

/* ---- hostile clients ---- */

static void send_some(int fd, const void *from, size_t length)
{
  const char *at= from;
  while (length)
  {
    size_t part= chance(8) ? length : 1 + chance((unsigned int) length);
    ssize_t n= send(fd, at, part, MSG_NOSIGNAL);
    if (n <= 0)
      return;
    at+= n;
    length-= (size_t) n;
  }
}

/* Frames that are good, empty, too long, cut off, or no frames at all. */
static void send_frame(int fd)
{
  static const unsigned int odd[]= {0, 1, REQUEST_BYTES_MAX, REQUEST_BYTES_MAX + 1,
                                    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  unsigned int said= 1 + chance(64), sent, i;
  unsigned char raw[4], *body;
  if (!chance(8))
    said= odd[chance(sizeof(odd) / sizeof(*odd))];
  sent= chance(10) ? said : chance(1000);
  if (sent > REQUEST_BYTES_MAX + 1)
    sent= REQUEST_BYTES_MAX + 1;
  for (i= 0; i < 4; i++)
    raw[i]= (unsigned char) (said >> (8 * (3 - i)));
  body= malloc(sent + 1);
  if (!body)
    abort();
  for (i= 0; i < sent && i < 4096; i++)
    body[i]= (unsigned char) chance(256);
  for (; i < sent; i++)
    body[i]= 'x';
  send_some(fd, raw, sizeof(raw));
  send_some(fd, body, sent);
  free(body);
}

static void *reader(void *arg)
{
  int fd= *(int *) arg;
  unsigned char raw[4];
  char kind, drain[4096];
  while (!read_all(fd, raw, 4))
  {
    unsigned long left= ((unsigned long) raw[0] << 24) | ((unsigned long) raw[1] << 16) |
                        ((unsigned long) raw[2] << 8) | raw[3];
    assert(left >= 1 && left <= ANSWER_BYTES_MAX);
    if (read_all(fd, &kind, 1))
      break;
    assert(kind == 'O' || kind == 'R' || kind == 'E');
    for (left--; left;)
    {
      size_t part= left < sizeof(drain) ? left : sizeof(drain);
      if (read_all(fd, drain, part))
        return NULL;
      left-= part;
    }
  }
  return NULL;
}

static void *server(void *arg)
{
  int fd= *(int *) arg;
  seed= (unsigned int) fd;
  serve(fd);
  close(fd);
  return NULL;
}

static void attack_session(void)
{
  int pair[2], reads= chance(4) != 0;
  pthread_t serves, drains;
  unsigned int i, frames= chance(12);
  struct timeval patience= {0, 100000}; /* as start_session has it, and shorter */
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
    abort();
  for (i= 0; i < 2; i++)
  {
    setsockopt(pair[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(pair[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  }
  if (pthread_create(&serves, NULL, server, &pair[1]) ||
      (reads && pthread_create(&drains, NULL, reader, &pair[0])))
    abort();
  for (i= 0; i < frames; i++)
    send_frame(pair[0]);
  shutdown(pair[0], reads ? SHUT_WR : SHUT_RDWR);
  if (reads)
    pthread_join(drains, NULL);
  pthread_join(serves, NULL);
  close(pair[0]);
}

/* The note is the service's, and a master user sees to it that it cannot write it; a
   note that was cut off must not make anybody's answer count. */
static void attack_note(void)
{
  static const char letters[]= "0123456789:::    -+x\t.";
  char note[600];
  unsigned int i, length= chance(sizeof(note));
  if (chance(2))
  {
    unsigned int followers= chance(40); /* of whom few can count */
    for (i= 0, length= 0; i < followers; i++)
      length+= (unsigned int) sprintf(note + length, "%u:%u ", i, chance(1000));
    if (length && !chance(4))
      note[chance(length)]= letters[chance(sizeof(letters) - 1)];
  }
  else
    for (i= 0; i < length; i++)
      note[i]= letters[chance(sizeof(letters) - 1)];
  note[length]= 0;
  guard_count_answers(chance(100) ? note : NULL);
}

/* ---- the door ---- */

static int come(void)
{
  struct sockaddr_un address;
  int fd= socket(AF_UNIX, SOCK_STREAM, 0), tries;
  struct timeval patience= {10, 0};
  memset(&address, 0, sizeof(address));
  address.sun_family= AF_UNIX;
  strcpy(address.sun_path, guard_socket_path);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  for (tries= 0; connect(fd, (struct sockaddr *) &address, sizeof(address)); tries++)
  {
    struct timespec pause= {0, 1000000};
    if (tries > 5000)
      abort();
    nanosleep(&pause, NULL);
  }
  return fd;
}

/* Whether it is answered: 'q' is a statement of one byte. */
static int answered(int fd)
{
  unsigned char raw[5]= {0, 0, 0, 1, 'q'}, head[5];
  send_some(fd, raw, sizeof(raw));
  return !read_all(fd, head, sizeof(head));
}

static void attack_door(void)
{
  int fds[SESSIONS_MAX + 8], i, in= 0;
  guard_peer_uid= (int) geteuid() + 1;
  if (guard_open())
    abort();
  for (i= 0; i < 20; i++)
  {
    int fd= come();
    assert(!answered(fd)); /* not the service's user */
    close(fd);
  }
  guard_close();
  guard_peer_uid= -1;
  if (guard_open())
    abort();
  for (i= 0; i < SESSIONS_MAX + 8; i++)
    fds[i]= come();
  for (i= 0; i < SESSIONS_MAX + 8; i++)
    in+= answered(fds[i]);
  assert(in > 0 && in <= SESSIONS_MAX);
  guard_close(); /* ends, though clients hold their sessions */
  for (i= 0; i < SESSIONS_MAX + 8; i++)
    close(fds[i]);
}

int main(int argc, char **argv)
{
  static char path[200];
  time_t end;
  unsigned long rounds= 0, notes;
  if (argc != 4 || strlen(argv[3]) > 80 || chdir(argv[3]))
    return 2;
  snprintf(path, sizeof(path), "%s/guard", argv[3]);
  guard_socket_path= path;
  sql_service= &fake_service;
  seed= (unsigned int) strtoul(argv[2], NULL, 10);
  attack_door();
  for (end= time(NULL) + atoi(argv[1]); time(NULL) < end; rounds++)
  {
    attack_session();
    for (notes= 0; notes < 100; notes++)
      attack_note();
  }
  printf("fuzz: %lu rounds\n", rounds);
  return 0;
}
