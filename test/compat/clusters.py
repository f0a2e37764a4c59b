"""DB clusters as the tests make and watch them."""

import engines
import instances
from harness import wait_for


def request(engine, name=None, **over):
    """The parameters of a small cluster."""
    wish = {
        "DBClusterIdentifier": name or instances.new_name("cluster"), "Engine": engine.name, "DBClusterInstanceClass": instances.CLASS,
        "AllocatedStorage": 20, "MasterUsername": "boss", "MasterUserPassword": engines.new_password(), "DatabaseName": "app",
    }  # fmt: skip
    wish.update(over)
    return {k: v for k, v in wish.items() if v is not None}


class Cluster:
    """A created cluster and the password that opens it."""

    def __init__(self, server, engine, wish):
        self.server, self.engine, self.wish = server, engine, wish
        self.name, self.user, self.password = wish["DBClusterIdentifier"].lower(), wish["MasterUsername"], wish["MasterUserPassword"]

    def describe(self):
        (only,) = self.server.rds.describe_db_clusters(DBClusterIdentifier=self.name)["DBClusters"]
        return only

    def servers(self):
        """The DB instances of the cluster by name."""
        of = [{"Name": "db-cluster-id", "Values": [self.name]}]
        return {i["DBInstanceIdentifier"]: i for i in self.server.rds.describe_db_instances(Filters=of)["DBInstances"]}

    def wait(self, timeout=120):
        bad = {"failed", "incompatible-restore", "incompatible-parameters", "deleting"}

        def reached():
            now = self.describe()
            assert now["Status"] not in bad, now
            return now if now["Status"] == "available" else None

        return wait_for(f"{self.name} available", reached, timeout)

    def whole(self, timeout=120):
        """Waits until the cluster and all three servers are available."""

        def reached():
            now, servers = self.wait(timeout), self.servers()
            return now if [i["DBInstanceStatus"] for i in servers.values()] == ["available"] * 3 else None

        return wait_for(f"three servers of {self.name}", reached, timeout)

    def writer(self):
        return next((m["DBInstanceIdentifier"] for m in self.describe()["DBClusterMembers"] if m["IsClusterWriter"]), None)

    def readers(self):
        return sorted(m["DBInstanceIdentifier"] for m in self.describe()["DBClusterMembers"] if not m["IsClusterWriter"])

    def connect(self, reader=False, database="app", **how):
        now = self.describe()
        at = {"Address": now["ReaderEndpoint" if reader else "Endpoint"], "Port": now["Port"]}
        return self.engine.connect(at, self.user, self.password, database, **how)

    def delete(self):
        self.server.rds.delete_db_cluster(DBClusterIdentifier=self.name, SkipFinalSnapshot=True)
        wait_for(f"{self.name} gone", lambda: not exists(self.server, self.name), 60)


def exists(server, name):
    try:
        server.rds.describe_db_clusters(DBClusterIdentifier=name)
    except server.rds.exceptions.DBClusterNotFoundFault:
        return False
    return True


def restored(server, of, name):
    """A cluster that was made of another one's data."""
    made = Cluster(server, of.engine, {**of.wish, "DBClusterIdentifier": name})
    made.password = of.password
    return made
