package clients;

import java.security.SecureRandom;
import java.util.HexFormat;

/** What a test knows of an instance or a cluster before it is there. */
record Database(String engine, String name, String user, String password, String database) {
  static final String CLASS = "db.local.micro";

  static Database small(String engine, String name) {
    byte[] secret = new byte[12];
    new SecureRandom().nextBytes(secret);
    return new Database(engine, name, "boss", HexFormat.of().formatHex(secret), "app");
  }
}
