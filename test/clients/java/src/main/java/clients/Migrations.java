package clients;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/** Flyway as the master user: functions, procedures, triggers and views, twice, and clean. */
final class Migrations {
  private final Service service;
  private final Database db;

  Migrations(Service service, Database db) {
    this.service = service;
    this.db = db;
  }

  void run(Check check) {
    String engine = db.engine();
    check.that(engine + ": Flyway migrates", () -> {
      Check.equal(flyway().migrate().migrationsExecuted, 3, "migrations");
      Check.equal(one("SELECT doubled FROM totals WHERE name = 'a'"), "42", "by view, function and trigger");
    });
    check.that(engine + ": Flyway's second run does nothing", () -> {
      Check.equal(flyway().migrate().migrationsExecuted, 0, "migrations");
      Check.equal(flyway().validateWithResult().validationSuccessful, true, "validation");
      Check.equal(flyway().info().current().getVersion().getVersion(), "2", "version");
    });
    check.that(engine + ": Flyway cleans and migrates again", () -> {
      flyway().clean();
      Check.equal(one("SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('app', 'public')"), "0", "tables");
      Check.equal(one("SELECT count(*) FROM information_schema.routines WHERE routine_schema IN ('app', 'public')"), "0", "routines");
      Check.equal(flyway().migrate().migrationsExecuted, 3, "migrations");
      Check.equal(one("SELECT doubled FROM totals WHERE name = 'a'"), "42", "by view, function and trigger");
    });
  }

  private Flyway flyway() {
    // Its own logins have no properties but these, so that the URL is the whole of it.
    Properties login = Service.login(db);
    StringBuilder url = new StringBuilder(service.url(db));
    String before = "?";
    for (String name : login.stringPropertyNames()) {
      if (!name.equals("user") && !name.equals("password")) {
        url.append(before).append(name).append('=').append(login.getProperty(name));
        before = "&";
      }
    }
    FluentConfiguration how = Flyway.configure().dataSource(url.toString(), db.user(), db.password())
        .locations("classpath:migrations/" + db.engine()).cleanDisabled(false);
    return how.load();
  }

  private String one(String query) throws SQLException {
    try (Connection c = DriverManager.getConnection(service.url(db), Service.login(db));
        Statement s = c.createStatement(); ResultSet r = s.executeQuery(query)) {
      r.next();
      return r.getString(1);
    }
  }
}
