//go:build fault

package fault

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/harness"
)

// TestKillWhileASecretRotates kills the service on every line of a rotation: one of the current and
// the pending login opens the database each time, and the new one becomes the current one.
func TestKillWhileASecretRotates(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			s := harness.Start(t, harness.Options{Fault: true})
			s.NeedEngine(t, engine, s.Engines(t))
			in := harness.Request("one", engine)
			in.MasterUserPassword, in.ManageMasterUserPassword = nil, aws.Bool(true)
			b := &secretBed{s: s, i: s.MustCreate(t, in)}
			b.secret = aws.ToString(b.i.Describe(t).MasterUserSecret.SecretArn)
			b.settle(t, "")
			b.login = b.i.Login(t)
			for _, point := range []string{"before:rotate-secret", "before:set-password", "after:set-password", "before:secret-in-force", "after:secret-in-force"} {
				b.rotate(t, point)
			}
			b.i.Delete(t)
			noOrphans(t, s)
		})
	}
}

type secretBed struct {
	s      *harness.Service
	i      *harness.Instance
	secret string
	login  harness.Login
}

// password is the password of a stage, "" where there is none.
func (b *secretBed) password(t *testing.T, stage string) (string, error) {
	c := secretsmanager.New(secretsmanager.Options{Region: "us-east-1", BaseEndpoint: aws.String(b.s.URL()), HTTPClient: sdkhttp.Client(), Credentials: b.s.Client.Options().Credentials})
	out, err := c.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &b.secret, VersionStage: &stage})
	var login struct{ Password string }
	if err == nil {
		err = json.Unmarshal([]byte(*out.SecretString), &login)
	}
	return login.Password, err
}

// opens says why a password opens no session.
func (b *secretBed) opens(t *testing.T, password string) error {
	if password == "" {
		return errors.New("no password")
	}
	l := b.login
	l.Password = password
	session, err := harness.Open(t.Context(), l)
	if err == nil {
		session.Close()
	}
	return err
}

// settle waits until the secret is active with another password than before, and returns it.
func (b *secretBed) settle(t *testing.T, before string) (current string) {
	t.Helper()
	harness.Wait(t, settleTime, "an active secret", func() string {
		d := b.i.Describe(t)
		if status := aws.ToString(d.MasterUserSecret.SecretStatus); status != "active" {
			return "it is " + status
		}
		var err error
		if current, err = b.password(t, "AWSCURRENT"); err != nil {
			return err.Error()
		}
		if current == before {
			return "it has the old password"
		}
		return ""
	})
	return current
}

func (b *secretBed) rotate(t *testing.T, point string) {
	before := b.settle(t, "")
	if err := b.opens(t, before); err != nil {
		t.Fatalf("before %s: %v", point, err)
	}
	ask := func() error {
		_, err := b.s.ModifyDBInstance(t.Context(), &rds.ModifyDBInstanceInput{
			DBInstanceIdentifier: aws.String(b.i.Name), RotateMasterUserPassword: aws.Bool(true), ApplyImmediately: aws.Bool(true),
		})
		return err
	}
	b.s.Arm(t, point)
	err := ask()
	if first := point == "before:rotate-secret"; (err == nil) == first {
		t.Fatalf("%s: the request: %v", point, err)
	}
	b.s.WaitEnd(t, settleTime)
	b.s.Start(t)
	current, err := b.password(t, "AWSCURRENT")
	if err != nil {
		t.Fatalf("%s: %v", point, err)
	}
	pending, _ := b.password(t, "AWSPENDING") // there is none before and after
	if one, other := b.opens(t, current), b.opens(t, pending); one != nil && other != nil {
		t.Errorf("%s: neither login opens the database: %v; %v", point, one, other)
	}
	if point == "before:rotate-secret" { // nothing was stored: the user asks again
		if current != before || ask() != nil {
			t.Errorf("%s: the secret was changed, or cannot be rotated", point)
		}
	}
	after := b.settle(t, before)
	if err := b.opens(t, after); err != nil {
		t.Errorf("after %s: %v", point, err)
	}
	if b.opens(t, before) == nil {
		t.Errorf("after %s the old password still opens the database", point)
	}
	t.Logf("%s: done", point)
}
