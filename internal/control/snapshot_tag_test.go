package control

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// tags makes keys to tags.
func tags(keys ...string) []kurabe.Tag {
	var out []kurabe.Tag
	for _, key := range keys {
		out = append(out, kurabe.Tag{Key: key, Value: "v"})
	}
	return out
}

func manyTags(prefix string) []kurabe.Tag {
	var keys []string
	for n := range 50 {
		keys = append(keys, fmt.Sprintf("%s%d", prefix, n))
	}
	return tags(keys...)
}

// Tags pass from an instance to its snapshot and from there to what is restored, each
// time unless others are given.
func TestTagsPass(t *testing.T) {
	for _, tc := range []struct {
		name                   string
		instance               []kurabe.Tag
		copied                 bool // CopyTagsToSnapshot
		given                  []kurabe.Tag
		wantSnapshot, restored []kurabe.Tag
	}{
		{"not copied to the snapshot", tags("team"), false, nil, nil, tags("team")},
		{"copied", tags("team"), true, nil, tags("team"), tags("team")},
		{"one that is given is there instead", tags("team"), true, tags("why"), tags("why"), tags("why")},
		{"without copies too", tags("team"), false, tags("why"), tags("why"), tags("why")},
		{"none anywhere", nil, true, nil, nil, nil},
		{"the mark of a clone stays behind", tags("team"), true, tags("kurabe:clone"), tags("kurabe:clone"), nil},
		{"other marks too", tags("team", "Kurabe:lab"), true, nil, tags("team", "Kurabe:lab"), tags("team")},
		{"as many as there may be", manyTags("a"), true, manyTags("b"), manyTags("b"), manyTags("b")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newTestWorld(t)
			spec := scopetest.Spec("orders")
			spec.Tags, spec.CopyTagsToSnapshot = tc.instance, tc.copied
			scopetest.AddInstance(t, c.Scope, spec)
			s := mustSnapshot(t, c, "by-hand", "orders", tc.given...)
			if diff := cmp.Diff(tc.wantSnapshot, s.Spec.Tags); diff != "" {
				t.Error("snapshot:", diff)
			}
			// What the instance is called afterwards is not what it was.
			if err := c.AddTags(t.Context(), c.ARN("db", "orders"), tags("team")); err != nil && len(tc.instance) < 50 {
				t.Fatal(err)
			}
			i, err := c.RestoreSnapshot(t.Context(), "by-hand", NewInstance{Name: "restored"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.restored, i.Spec.Tags); diff != "" {
				t.Error("restored:", diff)
			}
			if i, err = c.RestoreSnapshot(t.Context(), "by-hand", NewInstance{Name: "named", Tags: tags("own")}); err != nil || !cmp.Equal(i.Spec.Tags, tags("own")) {
				t.Errorf("given to the restore: %v, %v", i.Spec, err)
			}
		})
	}
}

func TestTagsOfACopy(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	mustSnapshot(t, c, "by-hand", "orders", tags("team", "kurabe:clone")...)
	for n, tc := range []struct {
		given []kurabe.Tag
		copy  bool
		want  []kurabe.Tag
	}{{nil, false, nil}, {nil, true, tags("team")}, {tags("why"), true, tags("why")}} {
		s, err := c.CopySnapshot(t.Context(), "by-hand", fmt.Sprintf("copy-%d", n), tc.given, tc.copy)
		if err != nil || !cmp.Equal(s.Spec.Tags, tc.want) {
			t.Errorf("%+v: %v, %v", tc, s.Spec, err)
		}
	}
}

// What the service knows of a snapshot is in none of its tags, and they may be as many as ever.
func TestTagsAreTheUsers(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	s := mustSnapshot(t, c, "by-hand", "orders", manyTags("a")...)
	status := *s.Status
	status.Facts.Method, status.Facts.OccupiedBytes = kurabe.SnapshotCloned, 4096
	scopetest.Commit(t, c.Scope, store.NewChange().PutSnapshotStatus(status, s.StatusMod))
	shown, err := c.Tags(c.ARN("snapshot", "by-hand"))
	if diff := cmp.Diff(manyTags("a"), shown); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if made, err := c.CopySnapshot(t.Context(), "by-hand", "copied", nil, true); err != nil || !cmp.Equal(made.Spec.Tags, manyTags("a")) {
		t.Errorf("%+v, %v", made, err)
	}
}
