package secret

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/must"
	"kurabe/internal/store"
)

// masterForm is that of the passwords that the service makes: both engines take them, and they need
// no quotes in URLs, shells and configuration files.
var masterForm = PasswordForm{Length: 32, Exclude: "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}"}

// MasterPassword makes a password for a master user.
func MasterPassword() logkey.Secret {
	password, err := RandomPassword(masterForm)
	must.True(err == nil, "the form of master passwords has passwords")
	return password
}

// Login is a master user and its password, and the number of the password in the instance's spec.
type Login struct {
	User     string
	Password logkey.Secret
	Seq      int64
}

// value is a login as RDS keeps it.
func (l Login) value() (Value, error) {
	text, err := json.Marshal(struct {
		User     string `json:"username"`
		Password string `json:"password"`
	}{l.User, l.Password.Reveal()})
	return Value{Secret: logkey.Secret(text)}, err
}

// AddMaster makes the secret of an instance in the change that gives the instance the password.
func (s Secrets) AddMaster(change *store.Change, of kurabe.InstanceSpec, key *string, l Login) error {
	if err := checkKey(key); err != nil {
		return err
	}
	kind := "db"
	if of.Cluster {
		kind = "cluster"
	}
	secret := s.fresh(managedPrefix+kind+"-"+kurabe.NewUUID(), "Secret associated with primary RDS DB "+map[bool]string{false: "instance", true: "cluster"}[of.Cluster]+": "+s.ownerARN(of), nil)
	secret.Master = &kurabe.MasterSecret{Instance: of.ID, Days: kurabe.MasterRotationDays, NextAt: s.Now().AddDate(0, 0, kurabe.MasterRotationDays)}
	return s.addLogin(change, secret, 0, l, kurabe.StageCurrent)
}

// Rotate gives the secret of an instance a pending version, in the change that gives the instance
// the password.
func (s Secrets) Rotate(change *store.Change, r store.Record[kurabe.Secret], l Login) error {
	return s.addLogin(change, r.Value, r.ModRevision, l, kurabe.StagePending)
}

func (s Secrets) addLogin(change *store.Change, secret kurabe.Secret, mod int64, l Login, stage string) error {
	v, err := l.value()
	if err != nil {
		return err
	}
	id := kurabe.SecretVersionID(kurabe.NewUUID())
	if secret, err = s.seal(change, secret, id, v); err != nil {
		return err
	}
	master := *secret.Master
	master.Seq = l.Seq
	secret.Master = &master
	_, err = put(change, dropDeprecated(change, secret.MoveStage(stage, id)), mod)
	return err
}

// InForce makes the newest login the current one: the database has its password.
func (s Secrets) InForce(change *store.Change, r store.Record[kurabe.Secret]) error {
	secret, master := r.Value, *r.Value.Master
	if pending, has := secret.Staged(kurabe.StagePending); has {
		secret = secret.MoveStage(kurabe.StageCurrent, pending.ID).MoveStage(kurabe.StagePending, "")
	}
	master.RotatedAt, secret.ChangedAt = s.Now(), s.Now()
	master.NextAt = s.Now().AddDate(0, 0, master.Days)
	secret.Master = &master
	_, err := put(change, dropDeprecated(change, secret), r.ModRevision)
	return err
}

// dropDeprecated removes the versions of a login that have no stage: no one asks for them.
func dropDeprecated(change *store.Change, secret kurabe.Secret) kurabe.Secret {
	secret.Versions = slices.DeleteFunc(slices.Clone(secret.Versions), func(v kurabe.SecretVersion) bool {
		if len(v.Stages) == 0 {
			change.DeleteSecretValue(secret.ID, v.ID)
		}
		return len(v.Stages) == 0
	})
	return secret
}

// Tags are the user's tags of a secret, and those of a database's: whose it is.
func (s Secrets) Tags(secret kurabe.Secret) []kurabe.Tag {
	m := secret.Master
	if m == nil {
		return secret.Tags
	}
	tags := append(slices.Clone(secret.Tags), kurabe.Tag{Key: "aws:secretsmanager:owningService", Value: OwningService(secret)})
	if i, ok := s.View.Instance(m.Instance); ok {
		kind := map[bool]string{false: "Instance", true: "Cluster"}[i.Spec.Cluster]
		tags = append(tags, kurabe.Tag{Key: "aws:rds:primaryDB" + kind + "Arn", Value: s.ownerARN(*i.Spec)})
	}
	return tags
}

// ownerARN is that of a DB instance or cluster.
func (s Secrets) ownerARN(of kurabe.InstanceSpec) string {
	in := s.Of(of.Cluster)
	return in.ARN(in.Words().DB, of.Name)
}

// Due returns the secrets whose recovery window has ended.
func (s Secrets) Due(now time.Time) (due []store.Record[kurabe.Secret]) {
	for _, r := range s.View.Secrets() {
		if !r.Value.DeletedAt.IsZero() && now.After(r.Value.DeleteAfter) {
			due = append(due, r)
		}
	}
	return due
}

// RotationDaysMax is Secrets Manager's.
const RotationDaysMax = 1000

// SetRotation changes after how many days the login of a database is rotated.
func (s Secrets) SetRotation(ctx context.Context, id string, days int) error {
	return s.Update(ctx, func() (*store.Change, error) {
		r, err := s.live(id)
		if err != nil {
			return nil, err
		}
		master := *r.Value.Master
		from := master.RotatedAt
		if from.IsZero() {
			from = r.Value.CreatedAt
		}
		master.Days, master.NextAt = days, from.AddDate(0, 0, days)
		r.Value.Master = &master
		return put(store.NewChange(), r.Value, r.ModRevision)
	})
}
