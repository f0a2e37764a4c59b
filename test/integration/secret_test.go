//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// newPassword is set by a modification.
const newPassword = "Second-Passw0rd-0815"

func TestPasswordsAppearNowhere(t *testing.T) {
	s := harness.New(t, harness.Options{})
	s.Start(t, "--log-level", "debug")
	instances := one(t, s)
	for _, i := range instances {
		i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.MasterUserPassword = aws.String(newPassword) })
		i.Password = newPassword
		harness.Wait(t, backTime, "the new password holds", func() string {
			session, err := harness.Open(t.Context(), i.Login(t))
			if err != nil {
				return err.Error()
			}
			session.Close()
			return ""
		})
		i.WaitStatus(t, "available")
	}
	// Requests that fail must not tell either.
	bad := harness.Request("bad--name", "postgres")
	if _, err := s.CreateDBInstance(t.Context(), bad); err == nil || strings.Contains(err.Error(), harness.Password) {
		t.Errorf("a bad name: %v", err)
	}
	creds, err := s.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{harness.Password, newPassword, creds.SecretAccessKey}
	holds := func(where string, text []byte) {
		for n, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("secret %d stands in %s", n, where)
			}
		}
	}
	for _, i := range instances {
		holds("events", []byte(strings.Join(i.Events(t), "\n")))
		for _, pid := range append(s.Processes(i.ID), s.PID()) {
			for _, name := range []string{"cmdline", "environ"} {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)) // it may end meanwhile
				holds(fmt.Sprintf("%s of process %d", name, pid), text)
			}
		}
	}
	s.Terminate(t)
	holds("the service's log", []byte(s.Log.String()))
	files := 0
	err = filepath.WalkDir(s.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == filepath.Join(s.Data, "credentials") {
			return nil // a database removes files of its own
		}
		text, err := os.ReadFile(path)
		if err == nil {
			files++
			holds(path, text)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("only %d files were searched: %v", files, err)
	}
}
