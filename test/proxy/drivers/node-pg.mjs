// node-pg through the proxy: clients that share one connection of its pool.
import { createRequire } from 'node:module';

const pg = createRequire(process.env.NODE_FROM)('pg');
const failures = [];

async function client(n) {
  const c = new pg.Client({ connectionString: process.env.URL });
  try {
    await c.connect();
    for (let i = 0; i < 20; i++) {
      const named = await c.query({ name: 'sum', text: 'SELECT $1::int + 1 AS sum', values: [n * i] });
      if (named.rows[0].sum !== n * i + 1) failures.push('wrong sum');
      await c.query('BEGIN');
      await c.query('SELECT $1::text', ['x']);
      await c.query('COMMIT');
      await c.query('SELECT 1 / $1::int', [0]).then(() => failures.push('no error'), (e) => e.code === '22012' || failures.push(String(e)));
    }
    await c.end();
  } catch (e) {
    failures.push(`client ${n}: ${e}`);
  }
}

await Promise.all(Array.from({ length: 8 }, (_, n) => client(n)));
console.log(failures.join('\n') || 'ok');
