// The SDK makes the instances by whose names the drivers then connect.

import { finish } from "./check.js";
import { drivers } from "./drivers.js";
import { metrics } from "./metrics.js";
import { notifications } from "./notifications.js";
import { remove, sdk } from "./sdk.js";

for (const engine of ["postgres", "mariadb"]) {
  const db = await sdk(engine);
  if (db) {
    await drivers(db);
    await metrics(db);
    await remove(db);
  }
}
await notifications();
process.exitCode = finish();
