/* Who is a member of a group (DESIGN.md of engine/mariadb, section 11).

   A user who may make accounts can make one with a member's name, or take over
   a member's own. What nobody else has is the key of a member's certificate. So
   a session is a member's when it has shown a certificate of the service's
   authority, and the server id that it may use is the one of the instance that
   the certificate is of: serverID of render.go is a sum of its name.

   - A server id that a member has used, or whose answers count, is taken from
     that member alone. With somebody else it would end the member's session
     (the server ends one that sends the log when another one comes with its id),
     or have the service look for the member elsewhere.
   - Only a member answers for a commit (group.c).

   The ids are no secret: they are in every event of the binary log, in every
   GTID, and in @@server_id. */

#include "kurabe_guard.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

#define WEAK __attribute__((weak))
extern WEAK void server_main(void) __asm__("_Z11mysqld_mainiPPc");
extern WEAK void reload_ssl(void) __asm__("_Z10reinit_sslv");
struct acceptor { void *context; };
extern WEAK struct acceptor *make_acceptor(
    const char *key, const char *certificate, const char *authority,
    const char *authorities, const char *cipher, int *error, const char *crl,
    const char *crls, unsigned long long versions)
  __asm__("new_VioSSLAcceptorFd");
extern WEAK struct acceptor *acceptor __asm__("ssl_acceptor_fd");
extern WEAK MYSQL_THD this_thread(void) __asm__("_current_thd");
extern WEAK void dispatch(void)
  __asm__("_Z16dispatch_command19enum_server_commandP3THDPcjb");
extern WEAK char end_senders(MYSQL_THD thd, uint32_t server_id)
  __asm__("_Z24kill_zombie_dump_threadsP3THDj");
extern WEAK void send_log(MYSQL_THD thd, char *file, unsigned long long at,
                          unsigned short flags)
  __asm__("_Z17mysql_binlog_sendP3THDPcyt");
extern WEAK int register_follower(MYSQL_THD thd, unsigned char *packet,
                                  size_t bytes)
  __asm__("_ZN3THD14register_slaveEPhm");
extern const char *thd_priv_user(MYSQL_THD thd, size_t *length);
extern void print_error(unsigned int number, const char *format,
                        unsigned long flags, ...) __asm__("my_printf_error");

/* One with which a follower tries again. */
#define TAKEN 1227 /* ER_SPECIFIC_ACCESS_DENIED_ERROR */

char guard_members;

/* ---- OpenSSL, as the server has loaded it ---- */

#define HANDSHAKE_DONE 0x20 /* SSL_CB_HANDSHAKE_DONE */
#define VERIFIED 0          /* X509_V_OK */

static void (*set_info_callback)(void *context,
                                 void (*callback)(const void *, int, int));
static void *(*peer_certificate)(const void *ssl);
static long (*verify_result)(const void *ssl);
static void *(*subject_of)(const void *certificate);
static char *(*oneline)(const void *name, char *to, int bytes);
static void (*free_certificate)(void *certificate);

static int find_openssl(void)
{
  *(void **) &set_info_callback=
      dlsym(RTLD_DEFAULT, "SSL_CTX_set_info_callback");
  *(void **) &peer_certificate=
      dlsym(RTLD_DEFAULT, "SSL_get1_peer_certificate");
  if (!peer_certificate) /* its name before 3.0 */
    *(void **) &peer_certificate=
        dlsym(RTLD_DEFAULT, "SSL_get_peer_certificate");
  *(void **) &verify_result= dlsym(RTLD_DEFAULT, "SSL_get_verify_result");
  *(void **) &subject_of= dlsym(RTLD_DEFAULT, "X509_get_subject_name");
  *(void **) &oneline= dlsym(RTLD_DEFAULT, "X509_NAME_oneline");
  *(void **) &free_certificate= dlsym(RTLD_DEFAULT, "X509_free");
  return set_info_callback && peer_certificate && verify_result &&
         subject_of && oneline && free_certificate;
}

/* ---- what sessions have shown ---- */

/* More than a server has followers and looks at them. The oldest goes. */
#define SHOWN_MOST 256

static pthread_mutex_t shown_lock= PTHREAD_MUTEX_INITIALIZER;
static struct
{
  unsigned long session; /* a number is not given twice */
  uint32_t server_id;
} shown[SHOWN_MOST];
static unsigned int shown_next;

/* 0: none. */
static uint32_t shown_by(MYSQL_THD thd)
{
  unsigned long session= thd_get_thread_id(thd);
  uint32_t id= 0;
  int i;
  pthread_mutex_lock(&shown_lock);
  for (i= 0; i < SHOWN_MOST; i++)
    if (shown[i].server_id && shown[i].session == session)
      id= shown[i].server_id;
  pthread_mutex_unlock(&shown_lock);
  return id;
}

/* FNV-1a, of a subject that is a common name and nothing else. */
static uint32_t id_of_subject(const char *subject)
{
  static const char prefix[]= "/CN=";
  uint32_t sum= 2166136261U;
  const unsigned char *c;
  if (strncmp(subject, prefix, sizeof(prefix) - 1) ||
      strchr(subject + 1, '/'))
    return 0;
  for (c= (const unsigned char *) subject + sizeof(prefix) - 1; *c; c++)
    sum= (sum ^ *c) * 16777619U;
  return sum ? sum : 1;
}

static void on_handshake(const void *ssl, int where, int result)
{
  char subject[256];
  void *certificate;
  uint32_t id;
  MYSQL_THD thd= this_thread();
  (void) result;
  if (!(where & HANDSHAKE_DONE) || !thd)
    return;
  certificate= peer_certificate(ssl);
  if (!certificate)
    return;
  id= verify_result(ssl) == VERIFIED &&
              oneline(subject_of(certificate), subject, sizeof(subject))
          ? id_of_subject(subject)
          : 0;
  free_certificate(certificate);
  if (!id)
    return;
  pthread_mutex_lock(&shown_lock);
  shown[shown_next].session= thd_get_thread_id(thd);
  shown[shown_next].server_id= id;
  shown_next= (shown_next + 1) % SHOWN_MOST;
  pthread_mutex_unlock(&shown_lock);
}

/* Stands for the making of what TLS begins with, at the start and by FLUSH SSL. */
static struct acceptor *make_listening(
    const char *key, const char *certificate, const char *authority,
    const char *authorities, const char *cipher, int *error, const char *crl,
    const char *crls, unsigned long long versions)
{
  struct acceptor *made= make_acceptor(key, certificate, authority, authorities,
                                       cipher, error, crl, crls, versions);
  if (made)
    set_info_callback(made->context, on_handshake);
  return made;
}

/* ---- the ids ---- */

/* A group has a few members, and an instance some replicas. */
#define TAKEN_MOST 64

static pthread_mutex_t taken_lock= PTHREAD_MUTEX_INITIALIZER;
static uint32_t taken[TAKEN_MOST];
static unsigned int taken_next;

static int is_taken(uint32_t id)
{
  int i;
  for (i= 0; i < TAKEN_MOST; i++)
    if (taken[i] == id)
      return 1;
  return 0;
}

/* Says whether a session may use an id, which is its own from then on if it is
   a member's. */
static int may_use(MYSQL_THD thd, uint32_t id)
{
  int may, own= id && shown_by(thd) == id;
  if (!guard_members)
    return 1;
  pthread_mutex_lock(&taken_lock);
  may= own || !id || !is_taken(id);
  if (own && !is_taken(id))
  {
    taken[taken_next]= id;
    taken_next= (taken_next + 1) % TAKEN_MOST;
  }
  pthread_mutex_unlock(&taken_lock);
  return may && (own || !guard_waits_for_id(id));
}

int guard_is_verified(MYSQL_THD thd)
{
  size_t length;
  return guard_members ? shown_by(thd) != 0
                       : guard_is_member(thd_priv_user(thd, &length));
}

static void refuse(uint32_t id)
{
  print_error(TAKEN, "Access denied; the server id %u is that of a member",
              0, (unsigned int) id);
}

static __thread uint32_t refused;

/* Stands for the end of whoever sends the log to the same id, and for the news
   that one has not ended. */
static char end_own_senders(MYSQL_THD thd, uint32_t id)
{
  refused= may_use(thd, id) ? 0 : id;
  return refused ? 0 : end_senders(thd, id);
}

/* Stands for the sending that follows it. */
static void send_unless_refused(MYSQL_THD thd, char *file,
                                unsigned long long at, unsigned short flags)
{
  uint32_t id= refused;
  refused= 0;
  if (id)
    refuse(id);
  else
    send_log(thd, file, at, flags);
}

/* Stands for the note of who follows. */
static int register_own(MYSQL_THD thd, unsigned char *packet, size_t bytes)
{
  uint32_t id= bytes < 4 ? 0
                         : packet[0] | packet[1] << 8 | packet[2] << 16 |
                               (uint32_t) packet[3] << 24;
  if (may_use(thd, id))
    return register_follower(thd, packet, bytes);
  refuse(id);
  return 1;
}

/* ---- the changes ---- */

static const struct
{
  void (*function)(void);
  void *callee, *ours;
} changes[]=
{
  {server_main, (void *) make_acceptor, (void *) make_listening},
  {reload_ssl, (void *) make_acceptor, (void *) make_listening},
  {dispatch, (void *) register_follower, (void *) register_own},
  {dispatch, (void *) end_senders, (void *) end_own_senders},
  {dispatch, (void *) send_log, (void *) send_unless_refused}
};
#define CHANGES (sizeof(changes) / sizeof(*changes))

/* Before the server listens. Without all of it, members are known by the names of
   their accounts. */
void guard_know_members(void)
{
  char *spare= guard_spare(CHANGES * GUARD_JUMP_BYTES);
  size_t i;
  if (!spare || !find_openssl() || !this_thread)
  {
    errno= ENOTSUP;
    guard_complain("cannot know members by", "their certificates");
    return;
  }
  for (i= 0; i < CHANGES; i++)
    if (guard_redirect((void *) changes[i].function, changes[i].callee,
                       spare + i * GUARD_JUMP_BYTES, changes[i].ours))
    {
      guard_complain("cannot know members by", "their certificates");
      return;
    }
  if (&acceptor && acceptor)
    set_info_callback(acceptor->context, on_handshake);
  guard_members= 1;
}
