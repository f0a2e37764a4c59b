// The few words in which the checks are written, and their count.

import assert from "node:assert/strict";

const count = { passed: 0, failed: 0, skipped: 0 };

/** Runs one check; the ones that follow run whether it fails or not. */
export async function check(name, body) {
  const began = Date.now();
  try {
    await body();
    count.passed++;
    console.log(`ok   ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (e) {
    count.failed++;
    console.log(`FAIL ${name}: ${e.stack ?? e}`);
  }
}

/** Prints the totals and gives the exit status. */
export function finish() {
  console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  return count.failed === 0 && count.passed > 0 ? 0 : 1;
}

/** Fails unless the promise is refused, with an error that the test accepts. */
export async function refused(promise, accepts) {
  let error;
  try {
    await promise;
  } catch (e) {
    error = e;
  }
  assert.ok(error, "it was not refused");
  assert.ok(accepts(error), `refused with something else: ${error.name} ${error.code}: ${error.message}`);
}

/** Asks until the answer is true; the deadline is that of the whole wait. */
export async function until(what, seconds, ask) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    assert.ok(Date.now() < end, `${what}: not within ${seconds} s`);
    await new Promise((r) => setTimeout(r, 500));
  }
}
