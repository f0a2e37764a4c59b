#!/bin/sh
# The AWS SDK for Java v2, AWS's JDBC wrapper and Flyway, against a service of their own.
# Words after it choose parts: sdk, flyway, cluster, instance.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../../.." && pwd)/.cache/clients/java
mvn -q -B -f "$here/pom.xml" package >&2
exec "$here/../with-service.sh" java "-Djava.util.logging.config.file=$here/logging.properties" -cp "$out/classes:$out/lib/*" clients.Main "$@"
