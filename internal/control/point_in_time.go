package control

import (
	"context"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// PointRequest says whose log is to be followed, and to which moment. One of the
// first three is given; At is zero for the latest moment.
type PointRequest struct {
	Instance   string // name or ARN
	ResourceID string
	BackupARN  string
	At         time.Time
	Latest     bool
	License    string // "" for the engine's own
}

// RestorePoint stores the wish for a new instance with the data that another had at a
// moment. What cannot be restored is refused here, before anything is made.
func (c *Control) RestorePoint(ctx context.Context, p PointRequest, n NewInstance) (Instance, error) {
	if p.Latest == !p.At.IsZero() {
		at := "RestoreTime"
		if c.Cluster {
			at = "RestoreToTime"
		}
		return Instance{}, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Exactly one of %s and UseLatestRestorableTime must be specified.", at)
	}
	b, err := c.pointSource(p)
	if err != nil {
		return Instance{}, err
	}
	if own := b.Source.Engine.LicenseModel(); p.License != "" && p.License != own {
		return Instance{}, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "LicenseModel %s is not valid for engine %s; it is %s", p.License, b.Source.Engine, own)
	}
	from, at, err := c.findBase(b, p.At)
	if err != nil {
		return Instance{}, err
	}
	if n.StorageGiB == nil {
		n.StorageGiB = &b.Source.Settings.StorageGiB // the source may have grown since
	}
	if n.RetentionDays == nil {
		n.RetentionDays = &b.Source.Settings.RetentionDays
	}
	if n.Class == "" {
		n.Class = b.Source.Settings.Class
	}
	spec, version, err := c.restoredSpec(from, n)
	if err != nil {
		return Instance{}, err
	}
	spec.Origin.Point = &kurabe.RestorePoint{Instance: b.Source.Instance, Name: b.Source.Name, At: at}
	return c.storeRestored(ctx, from, spec, version, n)
}

// pointSource finds the automated backups that a request names.
func (c *Control) pointSource(p PointRequest) (AutomatedBackup, error) {
	given := 0
	for _, s := range []string{p.Instance, p.ResourceID, p.BackupARN} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		names := "SourceDBInstanceIdentifier, SourceDbiResourceId and SourceDBInstanceAutomatedBackupsArn"
		if c.Cluster {
			names = "SourceDBClusterIdentifier and SourceDbClusterResourceId"
		}
		return AutomatedBackup{}, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Exactly one of %s must be specified.", names)
	}
	if p.Instance == "" {
		return c.AutomatedBackup(p.ResourceID + p.BackupARN)
	}
	i, err := c.find(p.Instance)
	if err != nil {
		return AutomatedBackup{}, err
	}
	b, err := c.AutomatedBackup(resourceID(i.Spec, nil))
	if kurabe.CodeOf(err) == kurabe.CodeBackupNotFound {
		err = kurabe.Errorf(kurabe.CodePointInTimeNotEnabled, "Automated backups are not enabled for %s %s. To enable them, set its backup retention period to a non-zero value.", c.Words().Noun, i.Name())
	}
	return b, err
}

// findBase finds the automated snapshot from which a moment can be restored: the
// newest that is before it, as that leaves the least log to replay. One in which damage
// was found is taken when no other reaches the moment.
func (c *Control) findBase(b AutomatedBackup, at time.Time) (*store.Snapshot, time.Time, error) {
	bad := func(format string, args ...any) (*store.Snapshot, time.Time, error) {
		return nil, at, kurabe.Errorf(kurabe.CodeInvalidParameterValue, format, args...)
	}
	if b.Window.Latest.IsZero() {
		return nil, at, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "No moment of %s %s can be restored yet: its first automated snapshot and the log from there on are not complete.", c.Words().Noun, b.Source.Name)
	}
	if at.IsZero() {
		at = b.Window.Latest
	}
	at = at.UTC()
	const form = "2006-01-02T15:04:05.999Z07:00" // the API has milliseconds
	// What is reached is asked first: where a clock went back, moments after the latest
	// one have been, and of those that have been twice the newer ones are meant.
	log, _ := c.View.LogOf(b.Source.Instance)
	list := c.automated(b.Source.Instance)
	var untrusted *store.Snapshot
	for _, s := range slices.Backward(list) {
		from, to, ok := reach(s, log)
		switch {
		case !ok || at.Before(from) || at.After(to):
		case damageFound(s.Status) == nil:
			return s, at, nil
		case untrusted == nil:
			untrusted = s
		}
	}
	if untrusted != nil {
		return untrusted, at, nil
	}
	switch {
	case at.After(b.Window.Latest):
		return bad("The specified instance cannot be restored to a time later than %s: RestoreTime is %s.", b.Window.Latest.Format(form), at.Format(form))
	case at.Before(b.Window.Earliest):
		return bad("The specified instance cannot be restored to a time earlier than %s: RestoreTime is %s.", b.Window.Earliest.Format(form), at.Format(form))
	}
	return bad("The specified instance cannot be restored to %s: its log has a gap there%s.", at.Format(form), gapAround(log, at))
}

// gapAround says what is known of the gap of a log around a moment.
func gapAround(log kurabe.InstanceLog, at time.Time) string {
	for n := len(log.Runs) - 1; n >= 0; n-- {
		if r := log.Runs[n]; !r.Last.At.After(at) {
			return ", after " + r.Last.At.UTC().Format(time.RFC3339) + because(r.Ended)
		}
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
