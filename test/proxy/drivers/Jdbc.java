import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** JDBC through the proxy: threads that share one connection of its pool. */
public class Jdbc {
    static final List<String> failures = new CopyOnWriteArrayList<>();

    static void client(int n) {
        try (Connection c = DriverManager.getConnection(System.getenv("JDBC_URL"), System.getenv("PGUSER"), System.getenv("PGPASSWORD"))) {
            try (PreparedStatement p = c.prepareStatement("SELECT ?::int + 1")) {
                for (int i = 0; i < 30; i++) { // prepared by name from the fifth time on
                    p.setInt(1, n * i);
                    try (ResultSet r = p.executeQuery()) {
                        r.next();
                        if (r.getInt(1) != n * i + 1) failures.add("wrong sum");
                    }
                }
            }
            c.setAutoCommit(false);
            try (PreparedStatement p = c.prepareStatement("SELECT generate_series(1, 500)")) {
                p.setFetchSize(50);
                int rows = 0;
                try (ResultSet r = p.executeQuery()) {
                    while (r.next()) rows++;
                }
                if (rows != 500) failures.add(rows + " rows");
            }
            try (PreparedStatement p = c.prepareStatement("SELECT 1 / ?::int")) {
                p.setInt(1, 0);
                p.executeQuery();
                failures.add("no error");
            } catch (SQLException e) {
                if (!e.getSQLState().equals("22012")) failures.add(e.toString());
            }
            c.rollback();
            c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            c.commit();
            if (c.getTransactionIsolation() != Connection.TRANSACTION_SERIALIZABLE) failures.add("isolation");
            c.setAutoCommit(true);
            try (PreparedStatement p = c.prepareStatement("SELECT ?::text")) {
                for (int i = 0; i < 40; i++) {
                    p.setString(1, "batch");
                    p.addBatch();
                }
                try { p.executeBatch(); } catch (SQLException e) { /* a batch returns no rows */ }
            }
        } catch (SQLException e) {
            failures.add("client " + n + ": " + e);
        }
    }

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 8; n++) {
            int m = n;
            Thread t = new Thread(() -> client(m));
            t.start();
            threads.add(t);
        }
        for (Thread t : threads) t.join();
        System.out.println(failures.isEmpty() ? "ok" : String.join("\n", failures));
    }
}
