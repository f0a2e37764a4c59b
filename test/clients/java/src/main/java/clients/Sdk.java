package clients;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import software.amazon.awssdk.services.rds.model.DBInstance;
import software.amazon.awssdk.services.rds.model.DbInstanceAlreadyExistsException;
import software.amazon.awssdk.services.rds.model.DbInstanceNotFoundException;
import software.amazon.awssdk.services.rds.model.DbParameterGroupNotFoundException;
import software.amazon.awssdk.services.rds.model.DbSnapshotNotFoundException;
import software.amazon.awssdk.services.rds.model.Parameter;
import software.amazon.awssdk.services.rds.model.RdsException;
import software.amazon.awssdk.services.rds.model.Tag;

/** The AWS SDK for Java v2: what an instance goes through, by calls, waiters and typed errors. */
final class Sdk {
  private static final Tag MADE_BY = Tag.builder().key("made-by").value("java").build();

  private final Service service;
  private final Database db;

  Sdk(Service service, Database db) {
    this.service = service;
    this.db = db;
  }

  void run(Check check) {
    String engine = db.engine();
    check.that(engine + ": errors are typed", this::errors);
    check.that(engine + ": modify", this::modify);
    check.that(engine + ": tags", this::tags);
    check.that(engine + ": pages", this::pages);
    check.that(engine + ": snapshot, restore and delete", this::snapshot);
  }

  static void create(Service service, Database db) {
    create(service, db, false);
  }

  static void create(Service service, Database db, boolean multiAz) {
    DBInstance made = service.rds.createDBInstance(r -> r.dbInstanceIdentifier(db.name()).engine(db.engine())
        .dbInstanceClass(Database.CLASS).allocatedStorage(20).masterUsername(db.user()).masterUserPassword(db.password())
        .dbName(db.database()).backupRetentionPeriod(0).multiAZ(multiAz).tags(MADE_BY)).dbInstance();
    Check.equal(made.dbInstanceStatus(), "creating", "status");
    service.waiter.waitUntilDBInstanceAvailable(r -> r.dbInstanceIdentifier(db.name()));
    DBInstance now = service.describe(db.name());
    Check.equal(now.engine(), db.engine(), "engine");
    Check.isTrue(now.instanceCreateTime() != null, "a time of creation");
    Check.isTrue(now.endpoint().address().matches(db.name() + "\\.[a-z0-9]+\\.us-east-1" + Service.SUFFIX.replace(".", "\\.")),
        now.endpoint().address());
  }

  static void delete(Service service, String name) {
    service.rds.deleteDBInstance(r -> r.dbInstanceIdentifier(name).skipFinalSnapshot(true).deleteAutomatedBackups(true));
    service.waiter.waitUntilDBInstanceDeleted(r -> r.dbInstanceIdentifier(name));
  }

  private void errors() {
    RdsException gone = Check.refused(DbInstanceNotFoundException.class,
        () -> service.rds.describeDBInstances(r -> r.dbInstanceIdentifier("never-made")));
    Check.equal(gone.statusCode(), 404, "HTTP status");
    Check.equal(gone.awsErrorDetails().errorCode(), "DBInstanceNotFound", "code");
    Check.isTrue(gone.requestId() != null, "a request id");
    Check.refused(DbInstanceAlreadyExistsException.class, () -> create(service, db));
    Check.refused(DbSnapshotNotFoundException.class,
        () -> service.rds.restoreDBInstanceFromDBSnapshot(r -> r.dbInstanceIdentifier("x").dbSnapshotIdentifier("never-made")));
    Check.refused(DbParameterGroupNotFoundException.class,
        () -> service.rds.modifyDBInstance(r -> r.dbInstanceIdentifier(db.name()).dbParameterGroupName("never-made")));
  }

  private void modify() throws Exception {
    service.rds.modifyDBInstance(r -> r.dbInstanceIdentifier(db.name()).backupRetentionPeriod(1).copyTagsToSnapshot(true)
        .applyImmediately(true));
    Check.until("the retention period", Duration.ofMinutes(1), () -> service.describe(db.name()).backupRetentionPeriod() == 1);
    service.waiter.waitUntilDBInstanceAvailable(r -> r.dbInstanceIdentifier(db.name()));
    Check.equal(service.describe(db.name()).copyTagsToSnapshot(), true, "tags go to snapshots");
  }

  private void tags() {
    String arn = service.describe(db.name()).dbInstanceArn();
    Tag odd = Tag.builder().key("a").value("ü & <1>").build();
    Check.equal(listTags(arn), Set.of(MADE_BY), "tags");
    service.rds.addTagsToResource(r -> r.resourceName(arn).tags(odd));
    Check.equal(listTags(arn), Set.of(MADE_BY, odd), "tags");
    service.rds.removeTagsFromResource(r -> r.resourceName(arn).tagKeys("a"));
    Check.equal(listTags(arn), Set.of(MADE_BY), "tags");
  }

  private Set<Tag> listTags(String arn) {
    return new HashSet<>(service.rds.listTagsForResource(r -> r.resourceName(arn)).tagList());
  }

  private void pages() {
    String group = service.describe(db.name()).dbParameterGroups().get(0).dbParameterGroupName();
    List<String> names = service.rds.describeDBParametersPaginator(r -> r.dbParameterGroupName(group).maxRecords(100))
        .parameters().stream().map(Parameter::parameterName).collect(Collectors.toList());
    Check.isTrue(names.size() > 100, names.size() + " parameters are more than a page");
    Check.equal(new HashSet<>(names).size(), names.size(), "each parameter once");
  }

  private void snapshot() {
    String copy = db.name() + "-copy";
    String taken = db.name() + "-taken";
    service.rds.createDBSnapshot(r -> r.dbInstanceIdentifier(db.name()).dbSnapshotIdentifier(taken));
    service.waiter.waitUntilDBSnapshotAvailable(r -> r.dbSnapshotIdentifier(taken));
    Check.equal(service.rds.describeDBSnapshots(r -> r.dbSnapshotIdentifier(taken)).dbSnapshots().get(0).tagList(),
        List.of(MADE_BY), "tags of the snapshot");
    service.rds.restoreDBInstanceFromDBSnapshot(r -> r.dbInstanceIdentifier(copy).dbSnapshotIdentifier(taken)
        .dbInstanceClass(Database.CLASS));
    service.waiter.waitUntilDBInstanceAvailable(r -> r.dbInstanceIdentifier(copy));
    Check.equal(service.describe(copy).masterUsername(), db.user(), "master user of what was restored");
    delete(service, copy);
    service.rds.deleteDBSnapshot(r -> r.dbSnapshotIdentifier(taken));
    service.waiter.waitUntilDBSnapshotDeleted(r -> r.dbSnapshotIdentifier(taken));
  }
}
