#!/bin/sh
# The AWS SDK for JavaScript v3 and Node's drivers, against a service of their own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
npm install --no-audit --no-fund --no-package-lock --loglevel=error >&2
exec ../with-service.sh node "$here/main.js"
