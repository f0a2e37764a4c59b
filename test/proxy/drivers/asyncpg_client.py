"""asyncpg through the proxy: tasks that share one connection of its pool."""
import asyncio
import os

import asyncpg

failures = []


async def client(n):
    try:
        c = await asyncpg.connect(os.environ["URL"].replace("?sslmode=disable", ""), ssl=False)
        for i in range(20):
            if await c.fetchval("SELECT $1::int + 1", n * i) != n * i + 1:
                failures.append("wrong sum")
            async with c.transaction():
                s = await c.prepare("SELECT generate_series(1, $1::int)")
                if len(await s.fetch(50)) != 50:
                    failures.append("wrong rows")
                async for _ in c.cursor("SELECT generate_series(1, 120)"):
                    pass
            try:
                await c.fetchval("SELECT 1 / $1::int", 0)
                failures.append("no error")
            except asyncpg.DivisionByZeroError:
                pass
            await c.executemany("SELECT $1::int", [(k,) for k in range(20)])
        await c.execute("SET application_name = 'x'; RESET application_name")
        await c.reset()
        await c.close()
    except Exception as e:  # the test prints it
        failures.append(f"client {n}: {type(e).__name__}: {e}")


async def main():
    await asyncio.gather(*(client(n) for n in range(8)))


asyncio.run(main())
print("\n".join(failures) or "ok")
