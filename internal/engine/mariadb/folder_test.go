package mariadb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/volume"
)

// layData makes what a data folder has that the service looks at while no server runs.
func layData(t *testing.T, dir string) {
	t.Helper()
	files := map[string]string{
		"mysql/db.frm": "definition", "ib_buffer_pool": "1,2\n", replica.FollowFile: "{}", "master.info": "33\n", "relay-log.info": "5\n",
		"shop/ledger.ibd": "page", "mysql-error.log": "[Note]\n",
	}
	for name := range guard.TriggerFiles() {
		files[filepath.Join(conf.SystemSchema, name)] = "old trigger"
	}
	if err := os.Mkdir(filepath.Join(dir, privateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// layLogs is layData with two binary logs.
func layLogs(t *testing.T, dir string) {
	t.Helper()
	layData(t, dir)
	for _, number := range []int64{1, 2} {
		text := binlog.Magic + strings.Repeat("\x00", 100)
		if err := os.WriteFile(filepath.Join(dir, binlog.FileName(number)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFolderOfATenant does what the service does in a data folder while no server runs.
func TestFolderOfATenant(t *testing.T) {
	user := enginetest.Nobody()
	i := engine.Instance{User: user}
	var triggers []string
	for name := range guard.TriggerFiles() {
		triggers = append(triggers, filepath.Join(conf.SystemSchema, name))
		break // They are written alike.
	}
	private := func(dir string) error {
		s, err := openPrivate(t.Context(), i, dir)
		if err != nil {
			return err
		}
		return errors.Join(s.write(privateSettings, "[mysqld]\n"), s.close())
	}
	enginetest.RunFolderDeeds(t, layData, []enginetest.FolderDeed{
		{
			Name: "adopt", Do: func(dir string) error { return (&Driver{}).Adopt(i, dir) },
			Places: append(triggers, conf.SystemSchema, "ib_buffer_pool", replica.FollowFile, "master.info", conf.TempDir),
		},
		{Name: "guard", Places: append(triggers, conf.SystemSchema), Do: func(dir string) error { return writeTriggers(dir, user) }},
		{Name: "private server", Places: append(triggers, conf.SystemSchema, privateDir, conf.TempDir, filepath.Join(privateDir, privateSettings)), Do: private},
		{Name: "begin the log", Places: []string{binlog.BaseName + ".state", binlog.FileName(6)}, Do: func(dir string) error { return beginLog(dir, "0-1-5", 7, user) }},
		{Name: "follow", Places: []string{replica.FollowFile}, Do: func(dir string) error {
			return errors.Join(replica.WriteFollowing(dir, replica.Following{}), replica.RemoveFollowing(dir))
		}},
		{Name: "rotate", Places: []string{"mysql-error.log", "mysql-error.log.1"}, Do: func(dir string) error {
			return rename(filepath.Join(dir, "mysql-error.log"), filepath.Join(dir, "mysql-error.log.1"))
		}},
		{Name: "give", Places: []string{"shop", "shop/ledger.ibd"}, Do: func(dir string) error { return engine.GiveTree(dir, user) }},
		{Name: "claim", Places: []string{"shop", "shop/ledger.ibd"}, Do: func(dir string) error { _, err := volume.Claim(dir); return err }},
		{Name: "hand over", Places: []string{"shop/ledger.ibd", relayFile(0), relayName + ".index"}, Do: func(dir string) error {
			s := &privateServer{i: i, Server: scratch.Server{Folder: scratch.Folder{Dir: dir, User: user}}}
			return s.hand(binlog.ReplayPlan{Files: []binlog.ReplayFile{{Dir: filepath.Join(dir, "shop"), Name: "ledger.ibd", Cut: 2}}})
		}},
	})
	enginetest.RunFolderDeeds(t, layLogs, []enginetest.FolderDeed{
		{Name: "mark the log", Places: []string{binlog.FileName(2)}, Do: binlog.MarkInUse},
		{Name: "drop the log", Places: []string{binlog.FileName(1), binlog.FileName(2), binlog.BaseName + ".index"}, Do: func(dir string) error {
			names, err := binlog.List(dir)
			return errors.Join(err, dropFiles(dir, names))
		}},
		{Name: "forget a place", Places: []string{binlog.FileName(1), binlog.FileName(2)}, Do: binlog.ForgetPlace},
	})
}

// TestNothingOfOthersIsRead: what links lead to is not what an answer says.
func TestNothingOfOthersIsRead(t *testing.T) {
	secret, dir := filepath.Join(t.TempDir(), "secret"), t.TempDir()
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &privateServer{Server: scratch.Server{Folder: scratch.Folder{Dir: dir}}}
	if err := os.Mkdir(filepath.Join(dir, privateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.path(privateErrors), filepath.Join(dir, replica.FollowFile), filepath.Join(dir, "answer")} {
		if err := os.Symlink(secret, path); err != nil {
			t.Fatal(err)
		}
	}
	if text := s.log(); strings.Contains(text, "hunter2") {
		t.Errorf("log: %q", text)
	}
	if text, err := conf.ReadSmall(dir, replica.FollowFile); err == nil || strings.Contains(text, "hunter2") {
		t.Errorf("small: %q, %v", text, err)
	}
	w := &initializer{Folder: scratch.Folder{Dir: dir}}
	if rows, err := w.answer(t.Context(), "%s", func(_ context.Context, _ string) error { return nil }); err == nil {
		t.Errorf("answer: %q, %v", rows, err)
	}
}
