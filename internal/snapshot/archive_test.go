package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
	"kurabe/internal/volume"
)

const testPackBytes = 64 << 10

// tree is a data folder with everything that one may hold, and some more.
func tree(t *testing.T, dir string) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	long := strings.Repeat("long-name/", 15) + "end"
	for name, size := range map[string]int{
		"PG_VERSION": 3, "empty": 0, "base/1/1259": 8192, "base/1/large": 3*testPackBytes + 7, "#sql@0024.ibd": 100,
		long: 11, "base/5/a": 30 << 10, "base/5/b": 30 << 10, "base/5/c": 30 << 10, "base/5/d": 30 << 10,
	} {
		content := make([]byte, size)
		random.Read(content)
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	sparse := filepath.Join(dir, "sparse")
	if err := errors.Join(
		os.WriteFile(sparse, []byte("begin"), 0o640), os.Truncate(sparse, 4<<20), os.Chmod(filepath.Join(dir, "empty"), 0o440),
		os.MkdirAll(filepath.Join(dir, "pg_notify"), 0o750), os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700), os.Chmod(filepath.Join(dir, "base/5"), 0o500),
	); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "base/5"), 0o700) })
}

// sealedSnapshot is a store with one sealed snapshot of a tree.
func sealedSnapshot(t *testing.T) (Store, Record) {
	t.Helper()
	src := filepath.Join(t.TempDir(), "src")
	tree(t, src)
	s, id := Store{Dir: filepath.Join(t.TempDir(), "snapshots")}, kurabe.NewSnapshotID()
	if err := s.Begin(id); err != nil {
		t.Fatal(err)
	}
	files, _, err := volume.Transfer(t.Context(), src, s.Data(id), volume.TransferOptions{})
	if err == nil {
		files, err = s.Sum(t.Context(), id, files, 0)
	}
	if err == nil {
		_, err = s.Finish(Record{Snapshot: id, Name: "n", Engine: kurabe.Postgres, Family: "postgres15", Source: kurabe.SnapshotSource{Name: "shop", Engine: kurabe.Postgres}}, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(s.Data(id), "base/5"), 0o700) })
	r, err := s.Open(id)
	if err != nil || !r.Sealed {
		t.Fatalf("%+v, %v", r, err)
	}
	return s, r
}

func archiveIn(s Store, store blob.Store) *Archive {
	a := NewArchive(s, func() (blob.Store, error) { return store, nil })
	a.PackBytes = testPackBytes
	return a
}

// look describes a tree: paths with modes and content.
func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		content := []byte{}
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		if rel != "." {
			out[rel] = info.Mode().String() + " " + string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantSame(t *testing.T, have, want string) {
	t.Helper()
	a, b := look(t, have), look(t, want)
	if maps.Equal(a, b) {
		return
	}
	for name := range b {
		if a[name] != b[name] {
			t.Errorf("%s is %.60q, want %.60q", name, a[name], b[name])
		}
	}
	for name := range a {
		if _, ok := b[name]; !ok {
			t.Errorf("%s is too many", name)
		}
	}
}

func objects(t *testing.T, store blob.Store) []string {
	t.Helper()
	var names []string
	for info, err := range store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return names
}

// fetch fetches into a fresh folder, whose modes let the test remove it.
func fetch(t *testing.T, a *Archive, id kurabe.SnapshotID, opts volume.TransferOptions) (string, error) {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "dst")
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dst, "base/5"), 0o700) })
	_, _, err := a.Fetch(t.Context(), id, dst, opts)
	return dst, err
}

func fakeS3(t *testing.T) string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(gofakes3.New(backend).Server())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	return "s3://bucket/some/prefix?endpoint=" + url.QueryEscape(server.URL)
}

// TestArchive is one suite for every kind of repository.
func TestArchive(t *testing.T) {
	for _, kind := range []string{"Memory", "Folder", "S3"} {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, encrypted %v", kind, encrypted), func(t *testing.T) {
				var o blob.Options
				if encrypted {
					o.Key = blobtest.Key(t)
				}
				var repo *blob.Repository
				var err error
				switch kind {
				case "Memory":
					repo, err = blob.InitAt(t.Context(), blobtest.NewMemory(), o)
				case "Folder":
					repo, err = blob.Init(t.Context(), filepath.Join(t.TempDir(), "repo"), o)
				case "S3":
					repo, err = blob.Init(t.Context(), fakeS3(t), o)
				}
				if err != nil {
					t.Fatal(err)
				}
				roundTrip(t, repo)
			})
		}
	}
}

func roundTrip(t *testing.T, repo blob.Store) {
	s, r := sealedSnapshot(t)
	a := archiveIn(s, repo)
	if _, there, err := a.Known(r.Snapshot); err != nil || there {
		t.Fatalf("before: %v, %v", there, err)
	}
	var last atomic.Int64
	progress := func(done, total int64) { last.Store(max(last.Load(), done*1000/total)) }
	for range 2 { // the second finds everything done
		if err := a.Push(t.Context(), r.Snapshot, progress); err != nil {
			t.Fatal(err)
		}
	}
	if last.Load() != 1000 {
		t.Errorf("progress ended at %d of 1000", last.Load())
	}
	if names := objects(t, repo); len(names) < 6 || !slices.Contains(names, objectOf(r.Snapshot, "pack-00003.tar")) {
		t.Errorf("objects %q", names)
	}
	if there, ok, err := a.Known(r.Snapshot); err != nil || !ok || !reflect.DeepEqual(there, r) {
		t.Errorf("known: %+v, %v, %v; want %+v", there, ok, err, r)
	}
	all, err := each(t, archiveIn(Store{Dir: "/nowhere"}, repo))
	if err != nil || len(all) != 1 || all[0].Err != nil || !reflect.DeepEqual(all[0].Record, r) {
		t.Errorf("list: %+v, %v", all, err)
	}
	dst, err := fetch(t, archiveIn(Store{Dir: "/nowhere"}, repo), r.Snapshot, volume.TransferOptions{Owner: &volume.Owner{UID: os.Getuid(), GID: os.Getgid()}})
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, dst, s.Data(r.Snapshot))
	if used, err := volume.UsedBytes(filepath.Join(dst, "sparse")); err != nil || used > 1<<20 {
		t.Errorf("the file with holes occupies %d bytes, %v", used, err)
	}
	if _, _, err := a.Fetch(t.Context(), r.Snapshot, dst, volume.TransferOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over something else: %v", err)
	}
	for range 2 {
		if err := a.Remove(t.Context(), r.Snapshot); err != nil {
			t.Fatal(err)
		}
	}
	if names := objects(t, repo); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
	if _, err := fetch(t, a, r.Snapshot, volume.TransferOptions{}); !errors.Is(err, ErrNotArchived) {
		t.Errorf("fetched after its removal: %v", err)
	}
	if _, there, err := a.Known(r.Snapshot); err != nil || there {
		t.Errorf("known after its removal: %v, %v", there, err)
	}
}

// puts counts and breaks the puts of a Memory.
type puts struct {
	mu    sync.Mutex
	names []string
	cutAt int // the put that fails, from 1
	fault blobtest.Fault
	op    string
}

func (p *puts) fault_(op, name string) blobtest.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if op != p.op {
		return blobtest.Fault{}
	}
	p.names = append(p.names, name)
	if len(p.names) == p.cutAt {
		return p.fault
	}
	return blobtest.Fault{}
}

// A Push that is cut off at any put goes on with what is missing.
func TestPushIsCutOff(t *testing.T) {
	s, r := sealedSnapshot(t)
	for _, fault := range []blobtest.Fault{{Err: errors.New("cut off")}, {LoseWord: true}} {
		for cut := 1; ; cut++ {
			memory := blobtest.NewMemory()
			first := &puts{cutAt: cut, fault: fault, op: "put"}
			memory.Faults = first.fault_
			a := archiveIn(s, memory)
			err := a.Push(t.Context(), r.Snapshot, nil)
			if err == nil {
				if cut < 8 {
					t.Fatalf("only %d puts", cut)
				}
				break
			}
			memory.Faults = nil
			if _, state, err := a.Find(t.Context(), r.Snapshot); err != nil || (state == Complete) != slices.Contains(objects(t, memory), objectOf(r.Snapshot, recordName)) {
				t.Fatalf("cut at %d: %s, %v", cut, state, err)
			}
			had := objects(t, memory)
			second := &puts{op: "put"}
			memory.Faults = second.fault_
			// Another process goes on.
			a = archiveIn(s, memory)
			if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
				t.Fatalf("cut at %d, repeated: %v", cut, err)
			}
			for _, name := range second.names {
				if strings.Contains(name, "/pack-") && slices.Contains(had, name) {
					t.Errorf("cut at %d: %s is put again", cut, name)
				}
			}
			dst, err := fetch(t, a, r.Snapshot, volume.TransferOptions{})
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			wantSame(t, dst, s.Data(r.Snapshot))
		}
	}
}

// A removal that is cut off leaves nothing that counts, and is repeated.
func TestRemovalIsCutOff(t *testing.T) {
	s, r := sealedSnapshot(t)
	for cut := 1; ; cut++ {
		memory := blobtest.NewMemory()
		a := archiveIn(s, memory)
		if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
			t.Fatal(err)
		}
		faults := &puts{cutAt: cut, fault: blobtest.Fault{Err: errors.New("cut off")}, op: "delete"}
		memory.Faults = faults.fault_
		err := a.Remove(t.Context(), r.Snapshot)
		memory.Faults = nil
		if err == nil {
			break
		}
		if _, state, err := a.Find(t.Context(), r.Snapshot); err != nil || (state == Complete) != (cut == 1) {
			t.Fatalf("cut at %d: %s, %v", cut, state, err)
		}
		// It is wanted again: packs without layout, or half of them, do no harm.
		if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
			t.Fatal(err)
		}
		dst, err := fetch(t, a, r.Snapshot, volume.TransferOptions{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		wantSame(t, dst, s.Data(r.Snapshot))
		if err := a.Remove(t.Context(), r.Snapshot); err != nil || len(objects(t, memory)) > 0 {
			t.Errorf("cut at %d: %v, left %q", cut, err, objects(t, memory))
		}
	}
}

// What rotted on this host's disk is never archived.
func TestPushRefusesRot(t *testing.T) {
	s, r := sealedSnapshot(t)
	path := filepath.Join(s.Data(r.Snapshot), "base/1/large")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	memory := blobtest.NewMemory()
	a := archiveIn(s, memory)
	err = a.Push(t.Context(), r.Snapshot, nil)
	if err == nil || !strings.Contains(err.Error(), "base/1/large") || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("push = %v", err)
	}
	if _, state, err := a.Find(t.Context(), r.Snapshot); err != nil || state != Absent {
		t.Errorf("%s, %v", state, err)
	}
	for _, name := range objects(t, memory) {
		in, err := memory.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if have, _ := io.ReadAll(in); bytes.Contains(have, content[len(content)/2-8:len(content)/2+8]) {
			t.Errorf("%s holds the damaged content", name)
		}
	}
}

func TestPushRefuses(t *testing.T) {
	s, r := made(t) // not sealed
	a := archiveIn(s, blobtest.NewMemory())
	if err := a.Push(t.Context(), r.Snapshot, nil); !errors.Is(err, ErrNotSealed) {
		t.Errorf("not sealed: %v", err)
	}
	if err := a.Push(t.Context(), kurabe.NewSnapshotID(), nil); !errors.Is(err, ErrMissing) {
		t.Errorf("not here: %v", err)
	}
	for _, id := range []kurabe.SnapshotID{"", "..", "snap-../x"} {
		if err := a.Push(t.Context(), id, nil); err == nil {
			t.Errorf("%q is pushed", id)
		}
		if err := a.Remove(t.Context(), id); err == nil {
			t.Errorf("%q is removed", id)
		}
		if _, _, err := a.Find(t.Context(), id); err == nil {
			t.Errorf("%q is looked for", id)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	full, r := sealedSnapshot(t)
	if err := archiveIn(full, blobtest.NewMemory()).Push(ended, r.Snapshot, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A backup can be read without Kurabe, as the guide says.
func TestArchiveByHand(t *testing.T) {
	for _, tool := range []string{"zstd", "tar", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	s, r := sealedSnapshot(t)
	dir := filepath.Join(t.TempDir(), "repo")
	repo, err := blob.Init(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := archiveIn(s, repo).Push(t.Context(), r.Snapshot, nil); err != nil {
		t.Fatal(err)
	}
	dst := t.TempDir()
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dst, "base/5"), 0o700) })
	script := `set -e; for pack in "$1"/pack-*.tar; do zstd -dc <"$pack" | tar -xpf - -C "$2" --delay-directory-restore; done`
	if os.Getuid() != 0 {
		// The engines' own folders are their owner's; that one is not.
		script += `; chmod 500 "$2"/base/5`
	}
	if out, err := exec.Command("sh", "-c", script, "sh", filepath.Join(dir, archivePrefix, string(r.Snapshot)), dst).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantSame(t, dst, s.Data(r.Snapshot))
}
