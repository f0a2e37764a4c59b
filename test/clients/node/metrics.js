// CloudWatch through the SDK: metrics of an instance, and of one's own.

import assert from "node:assert/strict";
import * as cloudwatch from "@aws-sdk/client-cloudwatch";
import { check, refused, until } from "./check.js";

const client = new cloudwatch.CloudWatchClient({});
const minute = 60_000;
const lately = () => ({ StartTime: new Date(Date.now() - 10 * minute), EndTime: new Date(Date.now() + minute) });

/** Asks for the metrics of the instance that sdk made. */
export async function metrics(db) {
  await check(`${db.engine}: metrics of the instance`, () => measured(db));
  await check(`${db.engine}: own metrics`, () => own(db));
  await check(`${db.engine}: errors of metrics are typed`, () => errors());
}

async function measured(db) {
  const Metric = { Namespace: "AWS/RDS", MetricName: "CPUUtilization", Dimensions: [{ Name: "DBInstanceIdentifier", Value: db.name }] };
  const MetricDataQueries = [
    { Id: "m1", MetricStat: { Metric, Period: 1, Stat: "Average" }, ReturnData: false },
    { Id: "e1", Expression: "m1 / m1 + 1", Label: "two" },
  ];
  const results = await until("a measured second", 120, async () => {
    const { MetricDataResults } = await client.send(new cloudwatch.GetMetricDataCommand({ MetricDataQueries, ...lately() }));
    return MetricDataResults[0].Values.length && MetricDataResults;
  });
  assert.equal(results.length, 1);
  assert.equal(results[0].Label, "two");
  assert.ok(results[0].Values.every((v) => v === 2) && results[0].Timestamps.every((t) => t instanceof Date));
  const listed = [];
  for await (const page of cloudwatch.paginateListMetrics({ client }, { Namespace: "AWS/RDS", MetricName: "CPUUtilization" })) {
    listed.push(...page.Metrics);
  }
  assert.ok(listed.some((m) => m.Dimensions[0]?.Name === "DBInstanceIdentifier" && m.Dimensions[0].Value === db.name));
}

async function own(db) {
  const Namespace = `node-${db.engine}`;
  const MetricData = Array.from({ length: 1000 }, (_, n) => ({ MetricName: "m", Value: n, Unit: "Count", Timestamp: new Date() }));
  await client.send(new cloudwatch.PutMetricDataCommand({ Namespace, MetricData }));
  const wish = { Namespace, MetricName: "m", Period: 3600, Statistics: ["Sum", "Maximum"], StartTime: new Date(Date.now() - 120 * minute), EndTime: lately().EndTime };
  const points = await until("the own data", 60, async () => {
    const { Datapoints } = await client.send(new cloudwatch.GetMetricStatisticsCommand(wish));
    return Datapoints.length && Datapoints;
  });
  assert.equal(points.reduce((sum, p) => sum + p.Sum, 0), 499500);
  assert.ok(points.every((p) => p.Unit === "Count"));
}

async function errors() {
  const reserved = new cloudwatch.PutMetricDataCommand({ Namespace: "AWS/x", MetricData: [{ MetricName: "m", Value: 1 }] });
  await refused(client.send(reserved), (e) => e instanceof cloudwatch.InvalidParameterValueException && /Namespace is invalid/.test(e.message));
  const wrong = new cloudwatch.GetMetricDataCommand({ MetricDataQueries: [{ Id: "e1", Expression: "1 +" }], ...lately() });
  await refused(client.send(wrong), (e) => /Error in expression 'e1'/.test(e.message) && e.$metadata.httpStatusCode === 400);
}
