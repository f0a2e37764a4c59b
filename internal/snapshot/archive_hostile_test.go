package snapshot

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
	"kurabe/internal/volume"
)

// hostileCase is a small layout and its files; a test spoils one of its tars.
func hostileCase() (layout, []volume.File, map[string]string) {
	content := map[string]string{"a": "one", "sub/b": "two"}
	var files []volume.File
	for _, name := range []string{"a", "sub/b"} {
		files = append(files, volume.File{Path: name, Size: 3, Summed: true, Sum: crc32.Checksum([]byte(content[name]), castagnoli)})
	}
	return layout{Format: 1, ListSum: strings.Repeat("a", 64), Packs: []pack{{
		{Path: "sub", Mode: 0o700, Dir: true}, {Path: "a", Mode: 0o600, Size: 3}, {Path: "sub/b", Mode: 0o600, Size: 3},
	}}}, files, content
}

type tarMember struct {
	tar.Header
	content string
}

func members() []tarMember {
	l, _, content := hostileCase()
	var all []tarMember
	for _, m := range l.Packs[0] {
		all = append(all, tarMember{*m.header(), content[m.Path]})
	}
	return all
}

func tarOf(t testing.TB, all []tarMember) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range all {
		if err := w.WriteHeader(&m.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// unpackInto unpacks a tar as Fetch does, and tells what lies beside its folder.
func unpackInto(t testing.TB, raw []byte) (dst string, err error) {
	t.Helper()
	l, files, _ := hostileCase()
	memory := blobtest.NewMemory()
	if err := memory.Put(t.Context(), objectOf("snap-x", packName(0)), bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	above, err := os.MkdirTemp("", "kb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(above) })
	dst = filepath.Join(above, "dst")
	f := &fetching{store: memory, id: "snap-x", sums: sums(files), pace: volume.NewPace(0)}
	err = f.run(t.Context(), dst, l)
	if entries, _ := os.ReadDir(above); len(entries) != 1 {
		t.Errorf("written outside: %v", entries)
	}
	return dst, err
}

func TestHostileTar(t *testing.T) {
	if _, err := unpackInto(t, tarOf(t, members())); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	change := func(n int, do func(*tarMember)) []byte {
		all := members()
		do(&all[n])
		return tarOf(t, all)
	}
	good := tarOf(t, members())
	for name, raw := range map[string][]byte{
		"a symbolic link":     change(1, func(m *tarMember) { m.Typeflag, m.Linkname, m.Size, m.content = tar.TypeSymlink, "../out", 0, "" }),
		"a hard link":         change(1, func(m *tarMember) { m.Typeflag, m.Linkname, m.Size, m.content = tar.TypeLink, "/etc/passwd", 0, "" }),
		"a device":            change(1, func(m *tarMember) { m.Typeflag, m.Size, m.content = tar.TypeChar, 0, "" }),
		"a pipe":              change(1, func(m *tarMember) { m.Typeflag, m.Size, m.content = tar.TypeFifo, 0, "" }),
		"a path above":        change(1, func(m *tarMember) { m.Name = "../a" }),
		"an absolute path":    change(1, func(m *tarMember) { m.Name = "/a" }),
		"another path":        change(1, func(m *tarMember) { m.Name = "c" }),
		"the same path twice": change(2, func(m *tarMember) { m.Name = "a" }),
		"a longer file":       change(1, func(m *tarMember) { m.Size, m.content = 4, "four" }),
		"a shorter file":      change(1, func(m *tarMember) { m.Size, m.content = 2, "on" }),
		"another content":     change(1, func(m *tarMember) { m.content = "ine" }),
		"set-uid":             change(1, func(m *tarMember) { m.Mode = 0o4755 }),
		"a file for a folder": change(0, func(m *tarMember) { m.Typeflag, m.Name = tar.TypeReg, "sub" }),
		"one member less":     tarOf(t, members()[:2]),
		"one member more":     tarOf(t, append(members(), members()[1])),
		"no member":           tarOf(t, nil),
		"nothing":             nil,
		"something behind":    append(bytes.Clone(good), 'x'),
		"cut off in a member": good[:1600],
	} {
		t.Run(name, func(t *testing.T) {
			if dst, err := unpackInto(t, raw); err == nil {
				t.Errorf("accepted: %v", look(t, dst))
			}
		})
	}
}

func TestHostileLayout(t *testing.T) {
	for name, spoil := range map[string]func(*layout){
		"a later format":        func(l *layout) { l.Format = 2 },
		"another list":          func(l *layout) { l.ListSum = strings.Repeat("b", 64) },
		"a path above":          func(l *layout) { l.Packs[0][0].Path = "../sub" },
		"an absolute path":      func(l *layout) { l.Packs[0][0].Path = "/sub" },
		"a path of two":         func(l *layout) { l.Packs[0][0].Path = "sub/../sub" },
		"the folder itself":     func(l *layout) { l.Packs[0][0].Path = "." },
		"an endless path":       func(l *layout) { l.Packs[0][0].Path = strings.Repeat("x", pathBytesMax+1) },
		"a folder in between":   func(l *layout) { l.Packs[0][0].Path = "x/sub" },
		"a folder too late":     func(l *layout) { l.Packs[0][0], l.Packs[0][2] = l.Packs[0][2], l.Packs[0][0] },
		"a folder in pack two":  func(l *layout) { l.Packs = append(l.Packs, pack{{Path: "x", Dir: true}}) },
		"a folder twice":        func(l *layout) { l.Packs[0] = append(l.Packs[0], l.Packs[0][0]) },
		"a folder with a size":  func(l *layout) { l.Packs[0][0].Size = 1 },
		"a folder like a file":  func(l *layout) { l.Packs[0][0].Path = "a" },
		"a file twice":          func(l *layout) { l.Packs = append(l.Packs, pack{l.Packs[0][1]}) },
		"a file below a file":   func(l *layout) { l.Packs[0][2].Path = "a/b" },
		"a file not listed":     func(l *layout) { l.Packs[0][1].Path = "c" },
		"a file missing":        func(l *layout) { l.Packs[0] = l.Packs[0][:2] },
		"another size":          func(l *layout) { l.Packs[0][1].Size = 1 << 62 },
		"a negative size":       func(l *layout) { l.Packs[0][1].Size = -3 },
		"set-uid":               func(l *layout) { l.Packs[0][1].Mode = 0o4700 },
		"no packs":              func(l *layout) { l.Packs = nil },
		"a backslash in a name": func(l *layout) { l.Packs[0][0].Path = `su\b` },
	} {
		l, files, _ := hostileCase()
		spoil(&l)
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseLayout(raw, strings.Repeat("a", 64), files); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	l, files, _ := hostileCase()
	if err := l.check(files); err != nil {
		t.Errorf("the good one: %v", err)
	}
	files[1] = files[0]
	if err := l.check(files); err == nil {
		t.Error("a list that names a file twice is accepted")
	}
}

// A byte that changed in the repository is told, whichever object it is in, with the
// layer that checks what is stored and without it.
func TestDamagedObjects(t *testing.T) {
	s, r := sealedSnapshot(t)
	for _, sealed := range []bool{true, false} {
		memory := blobtest.NewMemory()
		var store blob.Store = memory
		if sealed {
			store = blob.NewSealed(memory, nil)
		}
		a := archiveIn(s, store)
		if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range objects(t, memory) {
			info, err := memory.Stat(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range []blobtest.Fault{{Flip: info.SizeBytes / 2}, {Flip: info.SizeBytes - 1}, {Flip: 9}, {Truncate: info.SizeBytes - 20}} {
				memory.Faults = func(op, asked string) blobtest.Fault {
					if op == "get" && asked == name {
						return fault
					}
					return blobtest.Fault{}
				}
				dst, err := fetch(t, a, r.Snapshot, volume.TransferOptions{})
				if sealed && err == nil {
					t.Errorf("%s with %+v was accepted", name, fault)
				}
				if sealed && fault.Flip > 0 && err != nil && !errors.Is(err, blob.ErrDamaged) {
					t.Errorf("%s with %+v: %v", name, fault, err)
				}
				if err == nil {
					wantSame(t, dst, s.Data(r.Snapshot)) // a byte of a tar's padding
				}
				memory.Faults = nil
			}
		}
	}
}

// Records that are no records do not hide the others.
func TestListShowsBadRecords(t *testing.T) {
	s, r := sealedSnapshot(t)
	memory := blobtest.NewMemory()
	a := archiveIn(s, memory)
	if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
		t.Fatal(err)
	}
	good, _ := json.Marshal(r)
	for id, text := range map[string]string{
		"snap-0torn": `{"format":1,`, "snap-0later": `{"format":2}`, "snap-0other": string(good),
		"snap-0path": `{"format":1,"snapshot":"snap-0path","sealed":true,"listSum":"../../x"}`,
		"snap-0open": `{"format":1,"snapshot":"snap-0open","listSum":"` + r.ListSum + `"}`,
		"snap-0much": strings.Repeat(" ", recordBytesMax) + "{}",
	} {
		if err := memory.Put(t.Context(), archivePrefix+id+"/"+recordName, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"snapshots/other/snapshot.json", "snapshots/snap-a/deeper/snapshot.json", "logs/x/1"} {
		if err := memory.Put(t.Context(), name, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	all, err := each(t, a)
	if err != nil || len(all) != 7 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, x := range all {
		if (x.Err == nil) != (x.ID == r.Snapshot) {
			t.Errorf("%s: %v", x.ID, x.Err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, members()))
	f.Add(tarOf(f, members()[1:]))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dst, err := unpackInto(t, raw)
		if err != nil {
			return
		}
		for name, want := range map[string]string{"a": "one", "sub/b": "two"} {
			if have, err := os.ReadFile(filepath.Join(dst, name)); err != nil || string(have) != want {
				t.Errorf("%s is %q, %v", name, have, err)
			}
		}
	})
}

func FuzzLayout(f *testing.F) {
	l, _, _ := hostileCase()
	raw, _ := json.Marshal(l)
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, files, _ := hostileCase()
		l, err := parseLayout(raw, strings.Repeat("a", 64), files)
		if err != nil {
			return
		}
		count := 0
		for _, p := range l.Packs {
			for _, m := range p {
				if !filepath.IsLocal(m.Path) || m.Mode > 0o777 {
					t.Errorf("%+v", m)
				}
				if !m.Dir {
					count++
				}
			}
		}
		if count != len(files) {
			t.Errorf("%d files", count)
		}
	})
}
