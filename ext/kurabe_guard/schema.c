/* The guard's triggers are in no list. The server could show none of them: it
   finds a trigger by a file that is left out on purpose (DESIGN.md of
   engine/mariadb), and a dump of all databases would end at the first one that is
   listed and cannot be shown. */

#include "kurabe_guard.h"

/* The server's own, exported for plugins but not declared in their headers. Weak:
   a server without it lists them. */
struct schema_table /* struct st_schema_table, as far as it matters here */
{
  const char *name;
  void *fields, *reset, *fill, *old_format;
  int (*process)(MYSQL_THD thd, void *tables, void *table, char failed,
                 const MYSQL_CONST_LEX_STRING *db,
                 const MYSQL_CONST_LEX_STRING *name); /* failed is a bool */
};
extern __attribute__((weak)) struct schema_table *schema_table(int number)
  __asm__("_Z16get_schema_table18enum_schema_tables");

#define TABLES_MOST 100

static int (*list)(MYSQL_THD, void *, void *, char,
                   const MYSQL_CONST_LEX_STRING *,
                   const MYSQL_CONST_LEX_STRING *);

static int list_triggers(MYSQL_THD thd, void *tables, void *table, char failed,
                         const MYSQL_CONST_LEX_STRING *db,
                         const MYSQL_CONST_LEX_STRING *name)
{
  if (!failed && db->length == sizeof(SYSTEM_SCHEMA) - 1 &&
      !memcmp(db->str, SYSTEM_SCHEMA, sizeof(SYSTEM_SCHEMA) - 1))
    return 0; /* nobody but the guard has triggers there */
  return list(thd, tables, table, failed, db, name);
}

void guard_hide_triggers(void)
{
  int i;
  for (i= 0; schema_table && i < TABLES_MOST; i++)
  {
    struct schema_table *t= schema_table(i);
    if (!t->name)
      break;
    if (strcmp(t->name, "TRIGGERS"))
      continue;
    list= t->process;
    t->process= list_triggers;
    return;
  }
  errno= ENOENT;
  guard_complain("cannot hide", "the triggers of the system schema");
}
