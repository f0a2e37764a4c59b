package clients;

import java.time.Duration;
import java.util.Properties;
import software.amazon.awssdk.core.waiters.WaiterOverrideConfiguration;
import software.amazon.awssdk.retries.api.BackoffStrategy;
import software.amazon.awssdk.services.rds.RdsClient;
import software.amazon.awssdk.services.rds.model.DBInstance;
import software.amazon.awssdk.services.rds.model.Endpoint;
import software.amazon.awssdk.services.rds.waiters.RdsWaiter;

/** The running service, by the SDK's own ways to find it: the environment. */
final class Service implements AutoCloseable {
  /** What all names of endpoints end with, as the service was started. */
  static final String SUFFIX = ".rds.clients.example";

  final RdsClient rds = RdsClient.create();
  final RdsWaiter waiter = RdsWaiter.builder().client(rds).overrideConfiguration(WaiterOverrideConfiguration.builder()
      .maxAttempts(180).backoffStrategyV2(BackoffStrategy.fixedDelay(Duration.ofSeconds(1))).build()).build();

  DBInstance describe(String name) {
    return rds.describeDBInstances(r -> r.dbInstanceIdentifier(name)).dbInstances().get(0);
  }

  String url(Database db) {
    Endpoint at = describe(db.name()).endpoint();
    return db.engine().equals("postgres")
        ? url("jdbc:postgresql:", at.address(), at.port(), db)
        : url("jdbc:mariadb:", at.address(), at.port(), db);
  }

  static String url(String scheme, String host, int port, Database db) {
    return scheme + "//" + host + ":" + port + "/" + db.database();
  }

  /** The login, with a certificate that is verified against the name in the URL. */
  static Properties login(Database db) {
    Properties p = new Properties();
    p.setProperty("user", db.user());
    p.setProperty("password", db.password());
    if (db.engine().equals("postgres")) {
      p.setProperty("sslmode", "verify-full");
      p.setProperty("sslrootcert", System.getenv("KURABE_CA"));
    } else {
      p.setProperty("sslMode", "verify-full");
      p.setProperty("serverSslCert", System.getenv("KURABE_CA"));
    }
    return p;
  }

  @Override
  public void close() {
    waiter.close();
    rds.close();
  }
}
