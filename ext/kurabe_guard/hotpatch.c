/* Changes to the server's own code, where nothing else can close a gap: a
   function becomes a jump to one of ours, or a single call in it is made to
   come to us. Both are done before the server serves anybody. What is not found
   exactly as it must be is left alone, and the caller hears of it. */

#include "kurabe_guard.h"
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

static int patch(unsigned char *at, const void *code, size_t length)
{
  size_t page= (size_t) sysconf(_SC_PAGESIZE);
  char *first= (char *) ((size_t) at & ~(page - 1));
  size_t bytes= (size_t) ((char *) at + length - first);
  if (mprotect(first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC))
    return -1;
  memcpy(at, code, length);
  __builtin___clear_cache((char *) at, (char *) at + length);
  return mprotect(first, bytes, PROT_READ | PROT_EXEC);
}

int guard_write_jump(void *at, void *to)
{
  unsigned char jump[GUARD_JUMP_BYTES];
  size_t length;
#if defined(__x86_64__)
  /* mov rax, to; jmp rax */
  jump[0]= 0x48; jump[1]= 0xB8;
  memcpy(jump + 2, &to, 8);
  jump[10]= 0xFF; jump[11]= 0xE0;
  length= 12;
#elif defined(__aarch64__)
  static const unsigned int code[2]= {0x58000050, 0xD61F0200};
  /* ldr x16, [pc, 8]; br x16 */
  memcpy(jump, code, 8);
  memcpy(jump + 8, &to, 8);
  length= 16;
#else
  (void) at; (void) to; (void) jump; (void) length;
  errno= ENOTSUP;
  return -1;
#endif
  return patch(at, jump, length);
}

/* The length of an exported function, 0 when the server does not say it. */
size_t guard_function_bytes(void *function)
{
  Dl_info info;
  ElfW(Sym) *symbol= NULL;
  if (!function ||
      !dladdr1(function, &info, (void **) &symbol, RTLD_DL_SYMENT) || !symbol ||
      info.dli_saddr != function)
    return 0;
  return (size_t) symbol->st_size;
}

/* The instruction that calls, or how far it is from here to there. Distances
   are written into the instruction, so there is a bound to them. */
#if defined(__x86_64__)
#define CALL_BYTES 5
#define CALL_STEP 1

static int calls(const unsigned char *at, const void *callee)
{
  int distance;
  if (at[0] != 0xE8)
    return 0;
  memcpy(&distance, at + 1, 4);
  return at + CALL_BYTES + distance == (const unsigned char *) callee;
}

static int write_call(unsigned char *at, const void *callee)
{
  unsigned char code[CALL_BYTES]= {0xE8};
  long long distance= (const char *) callee - (const char *) (at + CALL_BYTES);
  int narrow= (int) distance;
  if (narrow != distance)
  {
    errno= ERANGE;
    return -1;
  }
  memcpy(code + 1, &narrow, 4);
  return patch(at, code, sizeof(code));
}

#elif defined(__aarch64__)
#define CALL_BYTES 4
#define CALL_STEP 4
#define BL 0x94000000U
#define BL_MASK 0xFC000000U
#define REACH (1LL << 27)

static int calls(const unsigned char *at, const void *callee)
{
  unsigned int code;
  long long distance;
  memcpy(&code, at, 4);
  if ((code & BL_MASK) != BL)
    return 0;
  distance= (long long) (code & ~BL_MASK) * 4;
  if (distance >= REACH)
    distance-= 2 * REACH;
  return at + distance == (const unsigned char *) callee;
}

static int write_call(unsigned char *at, const void *callee)
{
  long long distance= (const char *) callee - (const char *) at;
  unsigned int code;
  if (distance < -REACH || distance >= REACH)
  {
    errno= ERANGE;
    return -1;
  }
  code= BL | ((unsigned int) (distance / 4) & ~BL_MASK);
  return patch(at, &code, sizeof(code));
}

#else
#define CALL_BYTES 1
#define CALL_STEP 1
static int calls(const unsigned char *at, const void *callee)
{
  (void) at; (void) callee;
  return 0;
}
static int write_call(unsigned char *at, const void *callee)
{
  (void) at; (void) callee;
  errno= ENOTSUP;
  return -1;
}
#endif

/* A byte of an instruction can look like a call, but hardly one of exactly this
   function; were it so, there would be two, and nothing is done. */
int guard_redirect(void *function, void *callee, void *spare, void *to)
{
  unsigned char *first= function, *found= NULL;
  size_t i, length= guard_function_bytes(function);
  if (!length || !callee || !spare)
  {
    errno= ESRCH;
    return -1;
  }
  for (i= 0; i + CALL_BYTES <= length; i+= CALL_STEP)
  {
    if (!calls(first + i, callee))
      continue;
    if (found)
    {
      errno= EEXIST;
      return -1;
    }
    found= first + i;
  }
  if (!found)
  {
    errno= ENOENT;
    return -1;
  }
  return guard_write_jump(spare, to) || write_call(found, spare) ? -1 : 0;
}
