package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kurabe"
	"kurabe/internal/control/secret"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// ManagedPassword is the wish that the service keeps the password of a master user in a secret.
type ManagedPassword struct {
	On     *bool // nil: as it is
	Key    *string
	Rotate bool
}

func (m ManagedPassword) on() bool { return m.On != nil && *m.On }

func combination(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, format, args...)
}

// managePassword makes the password of a request whose password the service is to keep.
func (n *NewInstance) managePassword() error {
	switch {
	case n.Managed.Key != nil && !n.Managed.on():
		return combination("MasterUserSecretKmsKeyId can be specified only with ManageMasterUserPassword.")
	case !n.Managed.on():
		return nil
	case n.MasterPassword != "":
		return combination("You can't specify MasterUserPassword for an instance with ManageMasterUserPassword enabled.")
	}
	n.MasterPassword = secret.MasterPassword()
	return nil
}

// addMasterSecret makes the secret of a new instance, if it is to have one.
func (c *Control) addMasterSecret(change *store.Change, spec kurabe.InstanceSpec, n NewInstance) error {
	if !n.Managed.on() {
		return nil
	}
	return c.Secrets.AddMaster(change, spec, n.Managed.Key, secret.Login{User: spec.MasterUsername, Password: n.MasterPassword, Seq: spec.Password.Seq})
}

// nextPassword is the record of a new password of an instance.
func (c *Control) nextPassword(s kurabe.InstanceSpec, password logkey.Secret) (kurabe.Password, error) {
	if err := kurabe.CheckMasterPassword(s.Engine, password.Reveal()); err != nil {
		return s.Password, err
	}
	make, ok := c.Verifiers[s.Engine]
	if !ok {
		return s.Password, fmt.Errorf("no verifier for engine %s", s.Engine)
	}
	verifier, err := make(password)
	if err != nil {
		return s.Password, fmt.Errorf("make the verifier of the master password: %w", err)
	}
	return kurabe.Password{Seq: s.Password.Seq + 1, Verifier: verifier}, nil
}

// modifyPassword changes the master password: the user's, or that of the instance's secret in the
// same transaction. So the database has either the current or the pending login of the secret,
// wherever one of us dies.
func (c *Control) modifyPassword(s *kurabe.InstanceSpec, m InstanceChange, change *store.Change) (err error) {
	r, managed := c.View.MasterSecret(s.ID)
	if err := checkManaged(s, m, r, managed); err != nil {
		return err
	}
	switch on := m.Managed.On; {
	case m.MasterPassword != nil:
		if managed {
			change.DeleteSecret(r.Value, r.ModRevision)
		}
		s.Password, err = c.nextPassword(*s, *m.MasterPassword)
		return err
	case on != nil && *on && !managed, m.Managed.Rotate:
	default:
		return nil
	}
	password := secret.MasterPassword()
	if s.Password, err = c.nextPassword(*s, password); err != nil {
		return err
	}
	l := secret.Login{User: s.MasterUsername, Password: password, Seq: s.Password.Seq}
	if managed {
		faultpoint.Reach("before", "rotate-secret")
		return c.Secrets.Rotate(change, r, l)
	}
	return c.Secrets.AddMaster(change, *s, m.Managed.Key, l)
}

// checkManaged says why the management of a password cannot be changed so.
func checkManaged(s *kurabe.InstanceSpec, m InstanceChange, r store.Record[kurabe.Secret], managed bool) error {
	on := m.Managed.On
	off := on != nil && !*on
	switch {
	case m.Managed.on() && m.MasterPassword != nil:
		return combination("You can't specify MasterUserPassword for an instance with ManageMasterUserPassword enabled.")
	case off && managed && m.MasterPassword == nil:
		return combination("You must specify MasterUserPassword when you turn off ManageMasterUserPassword.")
	case managed && m.MasterPassword != nil && !off:
		return combination("You can't modify MasterUserPassword for an instance with ManageMasterUserPassword enabled: rotate it with RotateMasterUserPassword, or turn off ManageMasterUserPassword.")
	case m.Managed.Key != nil && !m.Managed.on() && !m.Managed.Rotate:
		return combination("MasterUserSecretKmsKeyId can be specified only with ManageMasterUserPassword or RotateMasterUserPassword.")
	case !m.Managed.Rotate:
		return nil
	case !managed || off:
		return combination("You can't rotate the master user password: it isn't managed in Secrets Manager. Turn on ManageMasterUserPassword first.")
	case !m.ApplyImmediately:
		return combination("You must apply the change immediately when rotating the master user password.")
	}
	if _, pending := r.Value.Staged(kurabe.StagePending); pending && s.Password.Seq == r.Value.Master.Seq {
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "The secret %s is being rotated already.", r.Value.Name)
	}
	return nil
}

// RotateSecret changes after how many days, 0 for as before, the login of a database's secret is
// rotated, and rotates it at once if asked to.
func (c *Control) RotateSecret(ctx context.Context, id string, days int, now bool) (s kurabe.Secret, err error) {
	r, err := c.Secrets.Find(id)
	if err != nil {
		return s, err
	}
	if r.Value.Master == nil {
		return s, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Only a secret that RDS manages can be rotated: there are no functions of Lambda that could rotate %s. Put a new value.", r.Value.Name)
	}
	if days != 0 {
		if err := c.Secrets.SetRotation(ctx, r.Value.ARN, days); err != nil {
			return s, err
		}
	}
	if now {
		if err := c.rotate(ctx, r.Value.Master.Instance); err != nil {
			return s, err
		}
	}
	r, err = c.Secrets.Find(id)
	return r.Value, err
}

// rotate gives an instance a new password, as a user who asks for it does.
func (c *Control) rotate(ctx context.Context, id kurabe.InstanceID) error {
	i, ok := c.View.Instance(id)
	if !ok {
		return kurabe.Errorf(kurabe.CodeInstanceNotFound, "The database of the secret is gone.")
	}
	_, err := c.of(i.Spec.Cluster).ModifyInstance(ctx, i.Name(), InstanceChange{ApplyImmediately: true, Managed: ManagedPassword{Rotate: true}})
	return err
}

const (
	secretsEvery = time.Minute // for what is due by the clock
	secretsPause = time.Second // between two looks, however much happens
)

// KeepSecrets returns the loop that rotates the logins of databases, moves their stages once they
// are in force, and removes what is to be deleted. The elected server runs it; what it writes
// compares what it has read, so a deposed one can do no harm.
func (c *Control) KeepSecrets(log *slog.Logger) func(context.Context, store.Fence) {
	return func(ctx context.Context, fence store.Fence) {
		wake, stop := c.View.SubscribeDeliveries()
		defer stop()
		ticker := time.NewTicker(secretsEvery)
		defer ticker.Stop()
		said := ""
		for {
			err := c.keepSecrets(ctx, fence)
			if ctx.Err() != nil {
				return
			}
			if text := fmt.Sprint(err); err != nil && text != said {
				said = text
				log.Warn("secrets not kept, tried again", logkey.Error, err)
			}
			select {
			case <-time.After(secretsPause):
			case <-ctx.Done():
			}
			select {
			case <-wake:
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}
}

func (c *Control) keepSecrets(ctx context.Context, fence store.Fence) (err error) {
	for _, r := range c.Secrets.Due(c.Now()) {
		err = errors.Join(err, c.Commit(ctx, store.NewChange().RequireElected(fence).DeleteSecret(r.Value, r.ModRevision)))
	}
	for _, r := range c.View.MasterSecrets() {
		if kept := c.keepMaster(ctx, fence, r); kept != nil && !errors.Is(kept, store.ErrConflict) {
			err = errors.Join(err, fmt.Errorf("secret %s: %w", r.Value.Name, kept))
		}
	}
	return err
}

// keepMaster takes the next step of a database's secret.
func (c *Control) keepMaster(ctx context.Context, fence store.Fence, r store.Record[kurabe.Secret]) error {
	master, change := r.Value.Master, store.NewChange().RequireElected(fence)
	i, any := c.View.Any(master.Instance)
	if !any {
		return c.Commit(ctx, change.DeleteSecret(r.Value, r.ModRevision))
	}
	if i.Spec == nil || i.Status == nil {
		return nil
	}
	if source := kurabe.Followed(*i.Spec, i.Status); source != "" {
		return c.moveMaster(ctx, change, r, source)
	}
	_, pending := r.Value.Staged(kurabe.StagePending)
	switch {
	case i.Status.PasswordSeq == master.Seq && (pending || master.RotatedAt.IsZero()):
		if err := c.Secrets.InForce(change, r); err != nil {
			return err
		}
		faultpoint.Reach("before", "secret-in-force")
		err := c.Commit(ctx, change)
		faultpoint.Reach("after", "secret-in-force")
		return err
	case i.Spec.Deleting != nil || i.Status.State != kurabe.StateAvailable:
		return nil
	// A server of an earlier version may have given it a password that the secret lacks.
	case i.Spec.Password.Seq != master.Seq, !pending && c.Now().After(master.NextAt):
		return c.rotate(ctx, i.ID)
	}
	return nil
}

// moveMaster gives a secret to the instance that has taken the place of its own, by a switchover,
// and has the same password.
func (c *Control) moveMaster(ctx context.Context, change *store.Change, r store.Record[kurabe.Secret], to kurabe.InstanceID) error {
	i, ok := c.View.Instance(to)
	if _, has := c.View.MasterSecret(to); !ok || has || kurabe.Followed(*i.Spec, i.Status) != "" {
		return nil
	}
	master := *r.Value.Master
	master.Instance = to
	r.Value.Master = &master
	return c.Commit(ctx, change.PutSecret(r.Value, r.ModRevision))
}
