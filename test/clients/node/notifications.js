// SNS through the SDK: a subscriber that checks every signature as SNS's subscribers do.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import http from "node:http";
import path from "node:path";
import * as sns from "@aws-sdk/client-sns";
import { check, until } from "./check.js";

const endpoint = new URL(process.env.KURABE_ENDPOINT);
const client = new sns.SNSClient({});

/** Subscribes, confirms, publishes with both versions of signatures, and validates all. */
export async function notifications() {
  await check("sns: signatures are valid for sns-validator", () => validated());
}

async function validated() {
  const got = [];
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      got.push(body);
      response.end();
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  try {
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: process.env.KURABE_CA };
    const script = path.join(import.meta.dirname, "validate.cjs");
    const validate = (text) => execFileSync(process.execPath, [script, `^${endpoint.host.replaceAll(".", "\\.")}$`], { input: text, env }).toString().trim();
    const { TopicArn } = await client.send(new sns.CreateTopicCommand({ Name: "validated" }));
    await client.send(new sns.SubscribeCommand({ TopicArn, Protocol: "http", Endpoint: `http://127.0.0.1:${server.address().port}/` }));
    const [question] = await until("the question", 60, async () => got.length > 0 && got);
    assert.equal(validate(question), "valid SubscriptionConfirmation 1");
    await client.send(new sns.ConfirmSubscriptionCommand({ TopicArn, Token: JSON.parse(question).Token }));
    for (const version of ["1", "2"]) {
      const before = got.length;
      await client.send(new sns.SetTopicAttributesCommand({ TopicArn, AttributeName: "SignatureVersion", AttributeValue: version }));
      await client.send(new sns.PublishCommand({ TopicArn, Subject: "About", Message: "<比べる> & more" }));
      const text = await until("the notification", 60, async () => got[before]);
      assert.equal(validate(text), `valid Notification ${version}`);
      assert.equal(validate(text.replace("more", "less")), "The message signature is invalid.");
    }
    await client.send(new sns.DeleteTopicCommand({ TopicArn }));
  } finally {
    server.close();
  }
}
