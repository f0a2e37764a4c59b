package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// Prepare implements Target: a parameter group for each variant, and a snapshot of an
// instance with the data.
func (t *rdsTarget) Prepare(ctx context.Context, s *study.Study, fill Fill) error {
	if !t.checked {
		if _, err := t.Check(ctx, s); err != nil {
			return err
		}
	}
	least := 0
	for n, v := range s.Variants {
		if !applies(v.Engines, t.options.Engine) || t.refused[v.Name] != "" {
			continue
		}
		group, err := t.createGroup(ctx, fmt.Sprintf("v%d", n+1))
		if err != nil {
			return err
		}
		t.groups[v.Name] = group
		why, err := t.setParameters(ctx, group, v)
		if err == nil && why != "" {
			err = fmt.Errorf("variant %s: %s", v.Name, why)
		}
		if err != nil {
			return err
		}
		// Storage never shrinks, so the first instance has the least of all.
		if gib := t.shapes[v.Name].gib; least == 0 || gib < least {
			least = gib
		}
	}
	if len(t.groups) == 0 {
		return errors.New("no variant of the study can be had here")
	}
	return t.golden(ctx, s, max(least, 1), fill)
}

// golden makes the snapshot that every trial starts from.
func (t *rdsTarget) golden(ctx context.Context, s *study.Study, gib int, fill Fill) error {
	class, err := t.class(ctx)
	if err != nil {
		return err
	}
	name, snapshot := t.name("golden"), t.name("golden")
	t.options.step("create an instance for the data (" + class + ")")
	_, err = t.client.CreateDBInstance(ctx, &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(name), Engine: t.engine.Engine, EngineVersion: t.engine.EngineVersion, DBInstanceClass: aws.String(class),
		AllocatedStorage: aws.Int32(int32(gib)), MasterUsername: aws.String(masterUser), MasterUserPassword: aws.String(string(t.password)), DBName: aws.String(database),
		BackupRetentionPeriod: aws.Int32(0), AutoMinorVersionUpgrade: aws.Bool(false), Tags: t.tags(),
		DBSubnetGroupName: optional(t.options.SubnetGroup), VpcSecurityGroupIds: t.options.SecurityGroups, PubliclyAccessible: t.public(),
	})
	if err != nil {
		return explain("create an instance for the data", err)
	}
	server, _, err := t.available(ctx, name)
	if err != nil {
		return err
	}
	// How many sessions it takes is a formula of the class, which the server has computed.
	have, err := t.enter(ctx, server, study.Variant{})
	if err != nil {
		return err
	}
	if err := tooManyClients(s, t.options.Engine, have, false, t.refused, "choose a larger class (--class), set the parameter in the variants"); err != nil {
		return err
	}
	if err := t.readable(ctx, s, server); err != nil {
		return err
	}
	t.options.step("make the data")
	if err := fill(ctx, server); err != nil {
		return fmt.Errorf("make the data: %w", err)
	}
	t.options.step("take a snapshot of it")
	_, err = t.client.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(name), DBSnapshotIdentifier: aws.String(snapshot), Tags: t.tags()})
	if err != nil {
		return explain("take a snapshot of the data", err)
	}
	if err := t.snapshotAvailable(ctx, snapshot); err != nil {
		return err
	}
	t.snapshot = snapshot
	if err := t.deleteInstance(ctx, name); err != nil {
		return err
	}
	return t.gone(ctx, name)
}

// readable tries each variant's SQL while there is no data yet, so that a slip of the pen
// is found before hours of measuring. Of what the server says only that counts: a variant
// may need its parameters, or the data.
func (t *rdsTarget) readable(ctx context.Context, s *study.Study, server dial.Server) error {
	for _, v := range s.Variants {
		list := statements(v, t.options.Engine)
		if !applies(v.Engines, t.options.Engine) || t.refused[v.Name] != "" || len(list) == 0 {
			continue
		}
		for _, text := range list {
			refused, err := t.try(ctx, server, databasePrefix+t.id, []string{text})
			if code(err) != "" {
				return nil // a user who may not make a database: the trials will tell
			}
			if err != nil {
				return fmt.Errorf("try the SQL of variant %s: %w", v.Name, err)
			}
			if refused != nil && misspelt(refused) {
				return fmt.Errorf("variant %s: the server cannot read its SQL: %w; correct it, or leave the variant out", v.Name, refused)
			}
		}
	}
	return nil
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return aws.String(text)
}

func (t *rdsTarget) public() *bool {
	if !t.options.Public {
		return nil
	}
	return aws.Bool(true)
}

// Lease implements Target: the snapshot as a new instance. The instance of the trial
// before is deleted meanwhile, and gone before the lease begins, so that no trial runs
// beside a deletion.
func (t *rdsTarget) Lease(ctx context.Context, v study.Variant) (*Lease, error) {
	group := t.groups[v.Name]
	switch {
	case t.snapshot == "":
		return nil, errors.New("lease a server: the data is not prepared")
	case t.current != "":
		return nil, fmt.Errorf("lease a server: %s is still leased", t.current)
	case group == "":
		return nil, fmt.Errorf("lease a server: variant %s was not prepared: %s", v.Name, t.refused[v.Name])
	}
	t.trials++
	name := t.name(fmt.Sprintf("t%d", t.trials))
	t.current = name
	lease, err := t.lease(ctx, v, name, group)
	if err != nil {
		closeCtx, cancel := closing(ctx)
		defer cancel()
		return nil, errors.Join(err, t.release(closeCtx))
	}
	return lease, nil
}

func (t *rdsTarget) lease(ctx context.Context, v study.Variant, name, group string) (*Lease, error) {
	if err := t.restore(ctx, v, name, group); err != nil {
		return nil, err
	}
	direct, instance, err := t.available(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := t.left(ctx); err != nil {
		return nil, err
	}
	if pendingReboot(instance) {
		if _, err := t.client.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(name)}); err != nil {
			return nil, explain("restart "+name+" for its parameters", err)
		}
		if direct, _, err = t.available(ctx, name); err != nil {
			return nil, err
		}
	}
	have, err := t.enter(ctx, direct, v)
	if err != nil {
		return nil, err
	}
	lease := &Lease{Server: direct, Direct: direct, Settings: show(have)}
	end, err := t.way(ctx, lease, v, name)
	if err != nil {
		return nil, err
	}
	lease.Release = func(ctx context.Context) error { return errors.Join(end(ctx), t.release(ctx)) }
	return lease, nil
}

// way puts in between of clients and server whatever a variant has there.
func (t *rdsTarget) way(ctx context.Context, l *Lease, v study.Variant, instance string) (end func(context.Context) error, err error) {
	if v.Endpoint == study.EndpointProxy {
		return t.putProxy(ctx, l, instance)
	}
	return l.put(ctx, v, t.options.Folder)
}

// restore asks for an instance of the snapshot in a variant's shape. A host may have no
// room for two instances: then the one that leaves is waited for.
func (t *rdsTarget) restore(ctx context.Context, v study.Variant, name, group string) error {
	s := t.shapes[v.Name]
	in := &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String(name), DBSnapshotIdentifier: aws.String(t.snapshot), DBInstanceClass: aws.String(s.class),
		DBParameterGroupName: aws.String(group), StorageType: optional(s.storage), AllocatedStorage: aws.Int32(int32(s.gib)),
		BackupRetentionPeriod: aws.Int32(0), AutoMinorVersionUpgrade: aws.Bool(false), Tags: t.tags(),
		DBSubnetGroupName: optional(t.options.SubnetGroup), VpcSecurityGroupIds: t.options.SecurityGroups, PubliclyAccessible: t.public(),
	}
	if s.iops > 0 {
		in.Iops = aws.Int32(int32(s.iops))
	}
	_, err := t.client.RestoreDBInstanceFromDBSnapshot(ctx, in)
	if err != nil && t.leaving != "" && hasCode(err, "InsufficientDBInstanceCapacity", "StorageQuotaExceeded", "InstanceQuotaExceeded") {
		if err := t.left(ctx); err != nil {
			return err
		}
		_, err = t.client.RestoreDBInstanceFromDBSnapshot(ctx, in)
	}
	return explain("restore the snapshot of the data for "+v.Name, err)
}

// left waits until the instance of the trial before is gone.
func (t *rdsTarget) left(ctx context.Context) error {
	if t.leaving == "" {
		return nil
	}
	if err := t.gone(ctx, t.leaving); err != nil {
		return err
	}
	t.leaving = ""
	return nil
}

// release asks for the end of the leased instance and does not wait for it.
func (t *rdsTarget) release(ctx context.Context) error {
	if t.current == "" {
		return nil
	}
	name := t.current
	t.current = ""
	if err := t.deleteInstance(ctx, name); err != nil {
		return err
	}
	t.leaving = name
	return nil
}

// prepareServer runs a variant's SQL and asks the server whether its parameters are true.
func prepareServer(ctx context.Context, server dial.Server, v study.Variant) (map[string]setting, error) {
	session, err := dial.Open(ctx, server)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := session.Exec(ctx, statements(v, server.Engine)...); err != nil {
		return nil, fmt.Errorf("SQL of variant %s: %w", v.Name, err)
	}
	have, err := settings(ctx, session, server.Engine)
	if err != nil {
		return nil, err
	}
	if err := verify(have, v.Parameters); err != nil {
		return nil, fmt.Errorf("variant %s is not in force: %w", v.Name, err)
	}
	return have, nil
}

func pendingReboot(i types.DBInstance) bool {
	for _, g := range i.DBParameterGroups {
		if strings.Contains(aws.ToString(g.ParameterApplyStatus), "pending") {
			return true
		}
	}
	return false
}
