/* Answers of followers (DESIGN.md of engine/mariadb, section 11).

   - A writer counts those of whom its commits wait for, and nobody else's. The
     server itself would end a commit's wait at the first answer, whosever it is.
   - A follower answers for what it has on its disk (relay.c).
   - It answers again where an answer may have been lost.  */

#include "kurabe_guard.h"
#include <pthread.h>
#include <stdint.h>

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
extern WEAK int read_packet(void *slave, unsigned char *packet,
                            unsigned long bytes, int *asked,
                            const unsigned char **event,
                            unsigned long *event_bytes)
  __asm__("_ZN20Repl_semi_sync_slave22slave_read_sync_headerEPKhmPiPS1_Pm");

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

int guard_waits_for_id(uint32_t server_id)
{
  int i, found= 0;
  pthread_mutex_lock(&counted_lock);
  for (i= 0; i < counted_number; i++)
    found|= counted[i] == server_id;
  pthread_mutex_unlock(&counted_lock);
  return found;
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

/* ---- what a follower answers ---- */

/* Stands for the answer. Without one the commit goes on waiting. */
static int answer_when_synced(void *slave, void *master_info)
{
  if (!guard_sync_received())
    return send_answer(slave, master_info);
  guard_complain("cannot open", "what was received");
  return 1;
}

/* ---- an answer that was lost ---- */

/* A follower that dies when it has a commit and has not answered for it yet, or
   whose answer ends with the connection, asks for what comes after that commit
   when it comes again. It would not be asked for an answer then, and the commit
   would wait until a later one is answered for, which there may never be. So two
   kinds of packets ask for an answer, whatever their source says: the list that
   it makes up where the follower's log ends, which tells the follower its place,
   and the one that says that there is nothing to send. */
#define HEADER_BYTES 2 /* of the packet: a magic number and flags, then the event */
#define ASKS 1
#define EVENT_TYPE_AT 4
#define EVENT_FLAGS_AT 17
#define EVENT_BYTES_MIN 19
#define GTID_LIST 163
#define MADE_UP 0x20
#define HEARTBEAT 27

static int tells_place(const unsigned char *event, unsigned long bytes)
{
  return bytes >= EVENT_BYTES_MIN &&
         (event[EVENT_TYPE_AT] == HEARTBEAT ||
          (event[EVENT_TYPE_AT] == GTID_LIST &&
           event[EVENT_FLAGS_AT] & MADE_UP));
}

/* Stands for the reading of a packet. Without a header nobody answers at all. */
static int read_and_ask(void *slave, unsigned char *packet, unsigned long bytes,
                        int *asked, const unsigned char **event,
                        unsigned long *event_bytes)
{
  int failed= read_packet(slave, packet, bytes, asked, event, event_bytes);
  if (failed || *event != packet + HEADER_BYTES ||
      !tells_place(*event, *event_bytes))
    return failed;
  packet[1]|= ASKS;
  return read_packet(slave, packet, bytes, asked, event, event_bytes);
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
   "cannot choose", "who has what is waited for"},
  {receive_log, (void *) read_packet, (void *) read_and_ask,
   "cannot give again", "an answer that was lost"}
};
#define TELLS_APART 3 /* as many of them are needed for that */

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
      break;
    }
  guard_counts= i >= TELLS_APART;
  return i > 0;
}
