package clients;

import java.util.List;
import java.util.Set;

/** Runs the parts that the words name, or all; the SDK makes what the others connect to. */
public final class Main {
  private Main() {}

  public static void main(String[] words) throws Exception {
    Set<String> parts = Set.of(words.length > 0 ? words : new String[] {"sdk", "flyway", "cluster", "instance"});
    Check check = new Check();
    try (Service service = new Service()) {
      for (String engine : List.of("postgres", "mariadb")) {
        if (parts.contains("sdk") || parts.contains("flyway")) {
          Database db = Database.small(engine, "java-" + engine);
          check.that(engine + ": create, wait and describe", () -> Sdk.create(service, db));
          if (parts.contains("sdk")) {
            new Sdk(service, db).run(check);
          }
          if (parts.contains("flyway")) {
            new Migrations(service, db).run(check);
          }
          check.that(engine + ": delete", () -> Sdk.delete(service, db.name()));
        }
      }
      if (parts.contains("cluster")) {
        new Wrapper(service).cluster(check);
      }
      if (parts.contains("instance")) {
        new Wrapper(service).instance(check);
      }
    }
    System.exit(check.finish());
  }
}
