// The AWS SDK for JavaScript v3: what an instance goes through, by its commands, its
// waiters and its typed errors.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import * as rds from "@aws-sdk/client-rds";
import { check, refused, until } from "./check.js";

const client = new rds.RDSClient({});
const waiting = { client, maxWaitTime: 180, minDelay: 1, maxDelay: 3 };

async function describe(name) {
  const { DBInstances } = await client.send(new rds.DescribeDBInstancesCommand({ DBInstanceIdentifier: name }));
  return DBInstances[0];
}

/** Makes an instance and takes it through its life; returns how to connect to it. */
export async function sdk(engine) {
  const name = `node-${engine}`;
  const db = { engine, name, user: "boss", password: randomBytes(12).toString("hex"), database: "app" };
  await check(`${engine}: create, wait and describe`, () => create(db));
  if (!db.host) return null;
  await check(`${engine}: errors are typed`, () => errors(db));
  await check(`${engine}: modify`, () => modify(db));
  await check(`${engine}: tags`, () => tags(db));
  await check(`${engine}: pages`, () => pages(db));
  await check(`${engine}: snapshot, restore and delete`, () => snapshot(db));
  return db;
}

async function create(db) {
  const made = await client.send(
    new rds.CreateDBInstanceCommand({
      DBInstanceIdentifier: db.name, Engine: db.engine, DBInstanceClass: "db.local.micro", AllocatedStorage: 20,
      MasterUsername: db.user, MasterUserPassword: db.password, DBName: db.database, BackupRetentionPeriod: 0,
      Tags: [{ Key: "made-by", Value: "node" }],
    }),
  );
  assert.equal(made.DBInstance.DBInstanceStatus, "creating");
  const { state } = await rds.waitUntilDBInstanceAvailable(waiting, { DBInstanceIdentifier: db.name });
  assert.equal(state, "SUCCESS");
  const now = await describe(db.name);
  assert.equal(now.Engine, db.engine);
  assert.ok(now.InstanceCreateTime instanceof Date);
  assert.match(now.Endpoint.Address, new RegExp(`^${db.name}\\.[a-z0-9]+\\.us-east-1\\.rds\\.clients\\.example$`));
  Object.assign(db, { arn: now.DBInstanceArn, host: now.Endpoint.Address, port: now.Endpoint.Port });
}

async function errors(db) {
  const gone = new rds.DescribeDBInstancesCommand({ DBInstanceIdentifier: "never-made" });
  await refused(client.send(gone), (e) => e instanceof rds.DBInstanceNotFoundFault && e.$metadata.httpStatusCode === 404);
  const again = new rds.CreateDBInstanceCommand({
    DBInstanceIdentifier: db.name, Engine: db.engine, DBInstanceClass: "db.local.micro", AllocatedStorage: 20,
    MasterUsername: db.user, MasterUserPassword: db.password,
  });
  await refused(client.send(again), (e) => e instanceof rds.DBInstanceAlreadyExistsFault);
  const snapshot = new rds.RestoreDBInstanceFromDBSnapshotCommand({ DBInstanceIdentifier: "x", DBSnapshotIdentifier: "never-made" });
  await refused(client.send(snapshot), (e) => e instanceof rds.DBSnapshotNotFoundFault);
  const group = new rds.ModifyDBInstanceCommand({ DBInstanceIdentifier: db.name, DBParameterGroupName: "never-made" });
  await refused(client.send(group), (e) => e instanceof rds.DBParameterGroupNotFoundFault);
}

async function modify(db) {
  const wish = { DBInstanceIdentifier: db.name, BackupRetentionPeriod: 1, CopyTagsToSnapshot: true, ApplyImmediately: true };
  await client.send(new rds.ModifyDBInstanceCommand(wish));
  await until("the retention period", 60, async () => (await describe(db.name)).BackupRetentionPeriod === 1);
  await rds.waitUntilDBInstanceAvailable(waiting, { DBInstanceIdentifier: db.name });
  assert.equal((await describe(db.name)).CopyTagsToSnapshot, true);
}

async function tags(db) {
  const list = async () =>
    (await client.send(new rds.ListTagsForResourceCommand({ ResourceName: db.arn }))).TagList.map((t) => `${t.Key}=${t.Value}`).sort();
  assert.deepEqual(await list(), ["made-by=node"]);
  await client.send(new rds.AddTagsToResourceCommand({ ResourceName: db.arn, Tags: [{ Key: "a", Value: "ü & <1>" }] }));
  assert.deepEqual(await list(), ["a=ü & <1>", "made-by=node"]);
  await client.send(new rds.RemoveTagsFromResourceCommand({ ResourceName: db.arn, TagKeys: ["a"] }));
  assert.deepEqual(await list(), ["made-by=node"]);
}

async function pages(db) {
  const found = [];
  for await (const page of rds.paginateDescribeDBParameters({ client, pageSize: 100 }, { DBParameterGroupName: await group(db) })) {
    assert.ok(page.Parameters.length <= 100);
    found.push(...page.Parameters.map((p) => p.ParameterName));
  }
  assert.ok(found.length > 100, `${found.length} parameters`);
  assert.equal(new Set(found).size, found.length);
}

async function group(db) {
  return (await describe(db.name)).DBParameterGroups[0].DBParameterGroupName;
}

async function snapshot(db) {
  const copy = { DBInstanceIdentifier: `${db.name}-copy` }, taken = { DBSnapshotIdentifier: `${db.name}-taken` };
  await client.send(new rds.CreateDBSnapshotCommand({ DBInstanceIdentifier: db.name, ...taken }));
  await rds.waitUntilDBSnapshotAvailable(waiting, taken);
  const { DBSnapshots } = await client.send(new rds.DescribeDBSnapshotsCommand(taken));
  assert.deepEqual(DBSnapshots[0].TagList, [{ Key: "made-by", Value: "node" }]);
  await client.send(new rds.RestoreDBInstanceFromDBSnapshotCommand({ ...copy, ...taken, DBInstanceClass: "db.local.micro" }));
  await rds.waitUntilDBInstanceAvailable(waiting, copy);
  assert.equal((await describe(copy.DBInstanceIdentifier)).MasterUsername, db.user);
  await client.send(new rds.DeleteDBInstanceCommand({ ...copy, SkipFinalSnapshot: true }));
  await rds.waitUntilDBInstanceDeleted(waiting, copy);
  await client.send(new rds.DeleteDBSnapshotCommand(taken));
  await rds.waitUntilDBSnapshotDeleted(waiting, taken);
}

/** Deletes the instance that sdk made. */
export async function remove(db) {
  await check(`${db.engine}: delete`, async () => {
    await client.send(new rds.DeleteDBInstanceCommand({ DBInstanceIdentifier: db.name, SkipFinalSnapshot: true, DeleteAutomatedBackups: true }));
    await rds.waitUntilDBInstanceDeleted(waiting, { DBInstanceIdentifier: db.name });
  });
}
