"""psycopg 3 through the proxy: threads that share one connection of its pool."""
import os
import threading

import psycopg

failures = []


def check(got, want):
    if got != want:
        failures.append(f"{got!r} instead of {want!r}")


def client(n):
    try:
        with psycopg.connect(os.environ["URL"], autocommit=True, prepare_threshold=1) as c:
            for i in range(20):
                check(c.execute("SELECT %s::int + 1", (n * i,)).fetchone(), (n * i + 1,))
                with c.transaction():
                    check(c.execute("SELECT %s::text", (f"t{n}",)).fetchone(), (f"t{n}",))
                    with c.transaction(force_rollback=True):
                        c.execute("CREATE TABLE never (n int)")
                try:
                    c.execute("SELECT 1 / %s::int", (0,))
                    failures.append("no error")
                except psycopg.errors.DivisionByZero:
                    pass
                with c.pipeline():
                    a = c.execute("SELECT %s::int", (i,))
                    b = c.execute("SELECT %s::int", (i + 1,))
                    check((a.fetchone(), b.fetchone()), ((i,), (i + 1,)))
                with c.cursor() as cur, cur.copy("COPY (SELECT generate_series(1, 100)) TO STDOUT") as copy:
                    check(len(list(copy.rows())), 100)
            # Statements beyond the client's own bound are deallocated by it.
            for i in range(120):
                check(c.execute(f"SELECT {i} + %s::int", (1,)).fetchone(), (i + 1,))
            with c.transaction(), c.cursor(name="server") as cur:
                cur.execute("SELECT generate_series(1, 1000)")
                check(sum(1 for _ in cur), 1000)
    except Exception as e:  # the test prints it
        failures.append(f"client {n}: {type(e).__name__}: {e}")


threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("\n".join(failures) or "ok")
