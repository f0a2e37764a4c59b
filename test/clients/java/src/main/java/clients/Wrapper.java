package clients;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.services.rds.model.DBCluster;
import software.amazon.awssdk.services.rds.model.DBClusterMember;
import software.amazon.awssdk.services.rds.model.DBInstance;
import software.amazon.awssdk.services.rds.model.Endpoint;
import software.amazon.jdbc.plugin.failover.FailoverFailedSQLException;
import software.amazon.jdbc.plugin.failover.FailoverSuccessSQLException;
import software.amazon.jdbc.util.RdsUtils;

/**
 * AWS's JDBC wrapper with failover2: an application writes while the writer is killed, and
 * goes on with the connection that the wrapper found for it.
 */
final class Wrapper {
  private static final int TIMES = 3;
  private static final Duration MOST = Duration.ofMinutes(2);

  private final Service service;

  Wrapper(Service service) {
    this.service = service;
  }

  static {
    RdsUtils.setPrepareHostFunc(h -> h.replace(Service.SUFFIX, ".rds.amazonaws.com"));
  }

  void cluster(Check check) {
    Database ring = Database.small("postgres", "java-ring");
    check.that("wrapper: a DB cluster", () -> createCluster(ring));
    for (int time = 1; time <= TIMES; time++) {
      check.that("wrapper: the cluster's writer is killed, " + time, () -> {
        DBCluster now = cluster(ring);
        String before = writer(ring);
        follow(ring, now.endpoint(), now.port());
        Check.isTrue(!before.equals(writer(ring)), "the writer is still " + before);
      });
    }
    check.that("wrapper: the cluster is deleted", () -> {
      service.rds.deleteDBCluster(r -> r.dbClusterIdentifier(ring.name()).skipFinalSnapshot(true));
      service.waiter.waitUntilDBClusterDeleted(r -> r.dbClusterIdentifier(ring.name()));
    });
  }

  void instance(Check check) {
    Database pair = Database.small("postgres", "java-pair");
    check.that("wrapper: a Multi-AZ instance", () -> createPair(pair));
    for (int time = 1; time <= TIMES; time++) {
      check.that("wrapper: the instance's writer is killed, " + time, () -> {
        Endpoint at = service.describe(pair.name()).endpoint();
        follow(pair, at.address(), at.port());
      });
    }
    check.that("wrapper: the instance is deleted", () -> Sdk.delete(service, pair.name()));
  }

  private void createCluster(Database db) throws Exception {
    service.rds.createDBCluster(r -> r.dbClusterIdentifier(db.name()).engine(db.engine()).dbClusterInstanceClass(Database.CLASS)
        .allocatedStorage(20).masterUsername(db.user()).masterUserPassword(db.password()).databaseName(db.database()));
    service.waiter.waitUntilDBClusterAvailable(r -> r.dbClusterIdentifier(db.name()));
    Check.until("three servers", MOST, () -> servers(db).stream().filter(i -> i.dbInstanceStatus().equals("available")).count() == 3);
    prepare(db, cluster(db).endpoint(), cluster(db).port());
  }

  private void createPair(Database db) throws Exception {
    Sdk.create(service, db, true);
    Check.until("a standby", MOST, () -> service.describe(db.name()).secondaryAvailabilityZone() != null);
    Endpoint at = service.describe(db.name()).endpoint();
    prepare(db, at.address(), at.port());
  }

  /** What the guide tells to do once in each database. */
  private static void prepare(Database db, String host, int port) throws SQLException {
    try (Connection c = DriverManager.getConnection(Service.url("jdbc:postgresql:", host, port, db), Service.login(db));
        Statement s = c.createStatement()) {
      s.execute("CREATE EXTENSION rds_tools");
      s.execute("CREATE TABLE kept (n bigint PRIMARY KEY)");
    }
  }

  private DBCluster cluster(Database db) {
    return service.rds.describeDBClusters(r -> r.dbClusterIdentifier(db.name())).dbClusters().get(0);
  }

  private List<DBInstance> servers(Database db) {
    return service.rds.describeDBInstances(r -> r.filters(f -> f.name("db-cluster-id").values(db.name()))).dbInstances();
  }

  private String writer(Database db) {
    return cluster(db).dbClusterMembers().stream().filter(DBClusterMember::isClusterWriter)
        .map(DBClusterMember::dbInstanceIdentifier).findFirst().orElse("nobody");
  }

  /** An application's connection by the wrapper: the endpoint's name, verified. */
  private static Connection connect(Database db, String host, int port) throws SQLException {
    Properties p = Service.login(db);
    p.setProperty("wrapperPlugins", "failover2");
    p.setProperty("wrapperDialect", "rds-multi-az-pg-cluster");
    p.setProperty("clusterId", db.name()); // else the wrapper takes all databases of a program for one
    p.setProperty("failoverTimeoutMs", "60000");
    String pattern = "?" + host.substring(host.indexOf('.')).replaceFirst("^\\.cluster-", ".");
    p.setProperty("clusterInstanceHostPattern", pattern + ":" + port);
    return DriverManager.getConnection(Service.url("jdbc:aws-wrapper:postgresql:", host, port, db), p);
  }

  /** Writes rows through a drill; each acknowledged one must be there afterwards. */
  private void follow(Database db, String host, int port) throws Exception {
    Application app = new Application(db, host, port);
    Process drill = drill(db);
    try {
      Instant end = Instant.now().plus(MOST);
      while (drill.isAlive()) {
        app.write();
        Check.isTrue(Instant.now().isBefore(end), "the drill has not ended within " + MOST);
      }
      Check.equal(drill.waitFor(), 0, "the drill's exit status");
      app.verify();
    } finally {
      app.connection.close();
      drill.destroy();
      drill.waitFor(10, TimeUnit.SECONDS);
    }
  }

  private static Process drill(Database db) throws Exception {
    ProcessBuilder b = new ProcessBuilder(System.getenv("KURABE"), "drill", db.name(), "--kill", "writer", "--yes", "--json",
        "--endpoint", System.getenv("KURABE_ENDPOINT"), "--data", System.getenv("KURABE_DATA"));
    b.environment().put("KURABE_DRILL_PASSWORD", db.password());
    Path report = Files.createTempFile("drill", ".json");
    report.toFile().deleteOnExit();
    return b.redirectOutput(report.toFile()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }

  /** What an application does: one row after the other, and what the wrapper's errors ask it to do. */
  private static final class Application {
    private final Database db;
    private final String host;
    private final int port;
    private final List<Long> acknowledged = new ArrayList<>();
    private final List<String> met = new ArrayList<>();
    private int followed;
    private int gaveUp;
    private long next;
    private Connection connection;

    Application(Database db, String host, int port) throws SQLException {
      this.db = db;
      this.host = host;
      this.port = port;
      connection = connect(db, host, port);
      next = Long.parseLong(one("SELECT coalesce(max(n), 0) FROM kept"));
    }

    void write() throws Exception {
      long n = ++next; // never used again: nobody may have said whether it is there
      Instant began = Instant.now();
      try (Statement s = connection.createStatement()) {
        s.execute("INSERT INTO kept VALUES (" + n + ")");
        acknowledged.add(n);
        Thread.sleep(5);
      } catch (FailoverSuccessSQLException e) {
        followed++;
        met.add("followed in " + Duration.between(began, Instant.now()).toMillis() + " ms");
      } catch (FailoverFailedSQLException e) {
        gaveUp++;
        met.add("gave up after " + Duration.between(began, Instant.now()).toMillis() + " ms: " + e.getMessage());
        connection.close();
        connection = connect(db, host, port);
      }
    }

    void verify() throws SQLException {
      System.out.printf("     %d rows, followed %d times, gave up %d times: %s%n", acknowledged.size(), followed, gaveUp, met);
      Check.isTrue(followed + gaveUp > 0, "the connection has not met the fault");
      Check.equal(one("SELECT pg_is_in_recovery()"), "f", "in recovery");
      Check.equal(one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), "t", "TLS");
      long first = acknowledged.get(0);
      long there = Long.parseLong(one("SELECT count(*) FROM kept WHERE n >= " + first));
      long unknown = next - first + 1 - acknowledged.size();
      Check.isTrue(there >= acknowledged.size() && there <= acknowledged.size() + unknown,
          there + " rows are there, " + acknowledged.size() + " were acknowledged");
    }

    private String one(String query) throws SQLException {
      try (Statement s = connection.createStatement(); ResultSet r = s.executeQuery(query)) {
        r.next();
        return r.getString(1);
      }
    }
  }
}
