// Node's drivers by the names of endpoints, with certificates verified. "mariadb" and
// "mysql2" verify names and never addresses; each must connect by the endpoint's name
// and refuse another name and another authority.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import net from "node:net";
import mariadb from "mariadb";
import mysql from "mysql2/promise";
import pg from "pg";
import { check, refused } from "./check.js";

const ca = readFileSync(process.env.KURABE_CA);

const DRIVERS = {
  postgres: { pg: withPg },
  mariadb: { mariadb: withMariadb, mysql2: withMysql2 },
};

// Each answers SELECT 1 + 1 over TLS and says which version of TLS it was.

async function withPg(db, { host, ssl }) {
  const connection = new pg.Client({ host, port: db.port, user: db.user, password: db.password, database: db.database, ssl });
  await connection.connect();
  try {
    const sum = await connection.query("SELECT 1 + 1 AS sum, (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls");
    return sum.rows[0];
  } finally {
    await connection.end();
  }
}

async function withMariadb(db, { host, ssl }) {
  const connection = await mariadb.createConnection({
    host, port: db.port, user: db.user, password: db.password, database: db.database, ssl, connectTimeout: 10_000,
  });
  try {
    const [sum] = await connection.query("SELECT 1 + 1 AS sum");
    const [status] = await connection.query("SHOW SESSION STATUS LIKE 'Ssl_version'");
    return { sum: Number(sum.sum), tls: status.Value };
  } finally {
    await connection.end();
  }
}

async function withMysql2(db, { host, ssl }) {
  const connection = await mysql.createConnection({
    host, port: db.port, user: db.user, password: db.password, database: db.database, ssl: { verifyIdentity: true, ...ssl },
  });
  try {
    const [[sum]] = await connection.query("SELECT 1 + 1 AS sum");
    const [[status]] = await connection.query("SHOW SESSION STATUS LIKE 'Ssl_version'");
    return { sum: sum.sum, tls: status.Value };
  } finally {
    await connection.end();
  }
}

/** Connects with each driver of the engine: by the name, by a wrong one, with a wrong authority. */
export async function drivers(db) {
  for (const [driver, connect] of Object.entries(DRIVERS[db.engine])) {
    await check(`${driver}: verifies the name`, async () => {
      const got = await connect(db, { host: db.host, ssl: { ca } });
      assert.equal(got.sum, 2);
      assert.match(got.tls, /^TLSv1\.[23]$/);
    });
    await check(`${driver}: refuses a wrong name`, () =>
      forwarded(db, async (impostor) => {
        const got = await connect({ ...db, ...impostor }, { host: "localhost", ssl: { ca, rejectUnauthorized: false, verifyIdentity: false } });
        assert.equal(got.sum, 2, "the way itself must be good");
        await refused(connect({ ...db, ...impostor }, { host: "localhost", ssl: { ca } }), named);
      }));
    await check(`${driver}: refuses an authority that it does not know`, () =>
      refused(connect(db, { host: db.host, ssl: {} }), (e) => /self-signed|unable to|issuer|certificate/i.test(String(e.message))));
  }
}

/** Runs body with a port of "localhost" that leads to the instance, as somebody in between would. */
async function forwarded(db, body) {
  const server = net.createServer((client) => {
    const there = net.connect(db.port, db.host);
    client.pipe(there).pipe(client);
    client.on("error", () => there.destroy());
    there.on("error", () => client.destroy());
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  try {
    await body({ port: server.address().port });
  } finally {
    server.close();
  }
}

function named(e) {
  return [e.code, e.cause?.code].includes("ERR_TLS_CERT_ALTNAME_INVALID") || /altnames|Hostname\/IP does not match/i.test(String(e.message));
}
