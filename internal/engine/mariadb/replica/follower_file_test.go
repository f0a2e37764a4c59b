package replica

import (
	"os"
	"path/filepath"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
)

func TestFollowerFile(t *testing.T) {
	d, h := &Roles{}, engine.Home{Dir: t.TempDir()}
	if d.IsFollower(h) {
		t.Error("no data is a follower's")
	}
	if err := os.Mkdir(h.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if d.IsFollower(h) || d.giveUp(h, "a reason") != nil || conf.Exists(filepath.Join(h.DataDir(), FollowFile)) {
		t.Error("the data of a writer became a follower's")
	}
	if err := WriteFollowing(h.DataDir(), Following{Position: "0-1-5"}); err != nil || !d.IsFollower(h) {
		t.Errorf("it is no follower: %v", err)
	}
	lock := d.roleLock(h)
	lock.Lock()
	if err := d.giveUp(h, "in the midst of a promotion"); err != nil || !d.IsFollower(h) {
		t.Errorf("it was given up while its role changed: %v", err)
	}
	lock.Unlock()
	if err := d.giveUp(h, "a reason"); err != nil || d.IsFollower(h) {
		t.Errorf("it was not given up: %v", err)
	}
	if state, err := ReadFollowing(h); err != nil || state.Position != "0-1-5" {
		t.Errorf("%+v, %v", state, err)
	}
	if err := RemoveFollowing(h.DataDir()); err != nil || d.IsFollower(h) {
		t.Errorf("it follows still: %v", err)
	}
	if err := os.WriteFile(filepath.Join(h.DataDir(), FollowFile), []byte("{"), 0o600); err != nil || !d.IsFollower(h) {
		t.Errorf("half a file makes a writer: %v", err)
	}
}
