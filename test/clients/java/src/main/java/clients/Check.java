package clients;

import java.time.Duration;
import java.time.Instant;
import java.util.Objects;

/** The few words in which the checks are written, and their count. */
final class Check {
  private int passed;
  private int failed;

  interface Body {
    void run() throws Exception;
  }

  interface Question<T> {
    T ask() throws Exception;
  }

  /** Runs one check; the ones that follow run whether it fails or not. */
  void that(String name, Body body) {
    Instant began = Instant.now();
    try {
      body.run();
      passed++;
      System.out.printf("ok   %s (%.1f s)%n", name, Duration.between(began, Instant.now()).toMillis() / 1000.0);
    } catch (Exception | AssertionError e) {
      failed++;
      System.out.println("FAIL " + name + ": " + e);
      e.printStackTrace(System.out);
    }
  }

  /** Prints the totals and gives the exit status. */
  int finish() {
    System.out.printf("%d passed, %d failed, %d skipped%n", passed, failed, 0);
    return failed == 0 && passed > 0 ? 0 : 1;
  }

  static void equal(Object got, Object want, String what) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(what + ": " + got + ", not " + want);
    }
  }

  static void isTrue(boolean is, String what) {
    if (!is) {
      throw new AssertionError(what);
    }
  }

  /** Fails unless body is refused by an error of this class, which is returned. */
  static <E extends Exception> E refused(Class<E> by, Body body) {
    try {
      body.run();
    } catch (Exception e) {
      if (by.isInstance(e)) {
        return by.cast(e);
      }
      throw new AssertionError("refused by " + e + ", not by " + by.getSimpleName(), e);
    }
    throw new AssertionError("it was not refused: " + by.getSimpleName());
  }

  /** Asks until the answer is true or the time is up. */
  static void until(String what, Duration most, Question<Boolean> question) throws Exception {
    Instant end = Instant.now().plus(most);
    while (!question.ask()) {
      isTrue(Instant.now().isBefore(end), what + ": not within " + most);
      Thread.sleep(250);
    }
  }
}
