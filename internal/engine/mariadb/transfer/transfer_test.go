package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/volume"
)

const feedPosition = "0-1-42"

// feedFiles is a copy that is to be sent.
func feedFiles(t *testing.T) (dir string, files []volume.File, content map[string]string) {
	t.Helper()
	dir, content = t.TempDir(), map[string]string{
		"ibdata1": strings.Repeat("large", feedDataMax), "shop/t.ibd": "rows", "shop/empty.frm": "",
	}
	for name, text := range content {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		files = append(files, volume.File{Path: name, Size: int64(len(text))})
	}
	return dir, files, content
}

// recorded is a connection whose writes are kept and whose reads are given.
type recorded struct {
	net.Conn // nil
	out      bytes.Buffer
	in       io.Reader
}

func (r *recorded) Write(p []byte) (int, error)        { return r.out.Write(p) }
func (r *recorded) Read(p []byte) (int, error)         { return r.in.Read(p) }
func (r *recorded) SetReadDeadline(time.Time) error    { return nil }
func (r *recorded) SetWriteDeadline(t time.Time) error { return nil }

// feedText is all that a source says of a copy.
func feedText(t *testing.T) (text []byte, content map[string]string) {
	t.Helper()
	dir, files, content := feedFiles(t)
	r := &recorded{}
	p := &feedPeer{conn: r}
	size := feedSize{Files: len(files), Position: feedPosition}
	for _, f := range files {
		size.Bytes += f.Size
	}
	err := errors.Join(p.sendJSON(feedHello, feedSize{Bytes: 1}), p.send(feedStill, nil), p.sendJSON(feedCopy, size))
	sum, sendErr := sendFiles(t.Context(), engine.FeedRequest{Dir: dir}, files, p)
	if err := errors.Join(err, sendErr, p.sendJSON(feedEnd, feedSum{sum})); err != nil {
		t.Fatal(err)
	}
	return r.out.Bytes(), content
}

// takeText is what a follower makes of it.
func takeText(ctx context.Context, text []byte, dir string) (position string, said []byte, err error) {
	r := &recorded{in: bytes.NewReader(text)}
	take := &taking{ctx: ctx, peer: &feedPeer{conn: r}, dir: dir, buffer: make([]byte, feedDataMax), sum: sha256.New()}
	position, err = take.take()
	return position, r.out.Bytes(), err
}

func TestFeed(t *testing.T) {
	text, content := feedText(t)
	dir := filepath.Join(t.TempDir(), "fresh")
	position, said, err := takeText(t.Context(), text, dir)
	if err != nil || position != feedPosition || !bytes.Equal(said, []byte{feedGo, 0, 0, 0, 0}) {
		t.Fatalf("%q, %q, %v", position, said, err)
	}
	found := map[string]string{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(text)
		return errors.Join(err, relErr)
	})
	if err != nil || !reflect.DeepEqual(found, content) {
		t.Errorf("%d files, %v", len(found), err)
	}
}

// TestFeedIsWholeOrNothing: a copy that ends early, at whatever place, or has another bit,
// is none.
func TestFeedIsWholeOrNothing(t *testing.T) {
	text, _ := feedText(t)
	parent := t.TempDir()
	attempt := func(what string, text []byte) {
		t.Helper()
		dir := filepath.Join(parent, "fresh")
		if position, _, err := takeText(t.Context(), text, dir); err == nil || position != "" {
			t.Errorf("%s: it is taken", what)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for end := 0; end < len(text); end += 1 + end/4 {
		attempt("cut", text[:end])
	}
	attempt("cut before its last byte", text[:len(text)-1])
	for at := len(text) - 1; at > 0; at -= 1 + (len(text)-at)/2 {
		changed := bytes.Clone(text)
		changed[at] ^= 4
		attempt("changed", changed)
	}
}

func TestFeedRefusesWhatIsNotAnnounced(t *testing.T) {
	frames := func(size feedSize, stream string) []byte {
		r := &recorded{}
		p := &feedPeer{conn: r}
		sum := sha256.Sum256([]byte(stream))
		err := errors.Join(p.sendJSON(feedHello, feedSize{}), p.sendJSON(feedCopy, size), p.send(feedData, []byte(stream)), p.sendJSON(feedEnd, feedSum{sum[:]}))
		if err != nil {
			t.Fatal(err)
		}
		return r.out.Bytes()
	}
	file := part("a.ibd", 0, "four") + last("a.ibd")
	for name, c := range map[string]struct {
		text []byte
		says string
	}{
		"as announced":      {frames(feedSize{Bytes: 4, Files: 1, Position: feedPosition}, file), ""},
		"more bytes":        {frames(feedSize{Bytes: 3, Files: 1, Position: feedPosition}, file), "more bytes"},
		"fewer bytes":       {frames(feedSize{Bytes: 5, Files: 1, Position: feedPosition}, file), "missing"},
		"more files":        {frames(feedSize{Bytes: 4, Files: 0, Position: feedPosition}, file), "more files"},
		"fewer files":       {frames(feedSize{Bytes: 4, Files: 2, Position: feedPosition}, file), "missing"},
		"no position":       {frames(feedSize{Bytes: 4, Files: 1}, file), "position"},
		"less than nothing": {frames(feedSize{Bytes: -1, Files: 1, Position: feedPosition}, file), "-1 bytes"},
		"out of the folder": {frames(feedSize{Bytes: 4, Files: 1, Position: feedPosition}, part("../a", 0, "four")+last("../a")), "path"},
		"twice the same":    {frames(feedSize{Bytes: 8, Files: 2, Position: feedPosition}, file+file), "exists"},
		"no room":           {frames(feedSize{Bytes: 1 << 60, Files: 1, Position: feedPosition}, file), "needs more"},
		"a refusal":         {append([]byte{feedRefused, 5, 0, 0, 0}, "sorry"...), "the other end says: sorry"},
		"another kind":      {[]byte{'Z', 0, 0, 0, 0}, "of the kind"},
		"too long":          {[]byte{feedHello, 0, 0, 0, 1}, "of the kind"},
	} {
		_, _, err := takeText(t.Context(), c.text, filepath.Join(t.TempDir(), "fresh"))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A follower that says more than a source expects must not fill what there is not.
func TestFeedBoundsItsBuffer(t *testing.T) {
	text := append([]byte{feedData, 0, 0, 2, 0}, make([]byte, 2<<16)...)
	if _, _, err := readFrame(bytes.NewReader(text), make([]byte, feedTextMax)); !errors.Is(err, errFeed) {
		t.Error(err)
	}
}

func TestFeedEndsWithTheOtherEnd(t *testing.T) {
	here, there := net.Pipe()
	ctx, p := openFeed(t.Context(), here)
	defer p.close()
	answers := p.answers()
	go func() {
		_, _ = there.Write([]byte{feedGo, 0, 0, 0, 0})
		there.Close()
	}()
	if err := answers.await(ctx, feedGo); err != nil {
		t.Fatal(err)
	}
	if err := answers.await(ctx, feedTaken); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it has gone: %v", err)
	}
}

// TestFeedKeepsItsRate: so much a second and no more, however fast the network is.
func TestFeedKeepsItsRate(t *testing.T) {
	dir, files, content := feedFiles(t)
	synctest.Test(t, func(t *testing.T) {
		const rate = 256 << 10
		began := time.Now()
		if _, err := sendFiles(t.Context(), engine.FeedRequest{Dir: dir, BytesPerSecondMax: rate}, files, &feedPeer{conn: &recorded{}}); err != nil {
			t.Fatal(err)
		}
		least := time.Duration(len(content["ibdata1"])/rate-1) * time.Second
		if took := time.Since(began); took < least || took > 2*least {
			t.Errorf("it took %v; it wants %v and a little", took, least)
		}
	})
}

func TestAsks(t *testing.T) {
	const owner = kurabe.InstanceID("db-AAAAAAAAAAAAAAAAAAAAAAAAAA")
	i := engine.Instance{Assignment: kurabe.Assignment{Instance: owner, Address: "10.0.0.33", Role: &kurabe.Role{Duty: kurabe.DutyWrite}}}
	standby, at := owner.Member(2), netip.MustParseAddrPort("10.0.0.65:3306")
	for name, c := range map[string]struct {
		user, text string
		want       []engine.Ask
	}{
		"a member":             {role.MemberName(standby), askSQL(at), []engine.Ask{{ID: standby, At: at}}},
		"IPv6":                 {role.MemberName(standby), askSQL(netip.MustParseAddrPort("[fd00::1]:3306")), []engine.Ask{{ID: standby, At: netip.MustParseAddrPort("[fd00::1]:3306")}}},
		"a user":               {"app", askSQL(at), nil},
		"another statement":    {role.MemberName(standby), "SELECT 1", nil},
		"nothing":              {role.MemberName(standby), "", nil},
		"no address":           {role.MemberName(standby), "DO 'kurabe: copy to 10.0.0:1', SLEEP(2)", nil},
		"this machine's own":   {role.MemberName(standby), askSQL(netip.MustParseAddrPort("127.0.0.1:2379")), nil},
		"nowhere":              {role.MemberName(standby), askSQL(netip.MustParseAddrPort("[::ffff:0.0.0.0]:22")), nil},
		"one of another group": {role.MemberName(kurabe.InstanceID("db-BBBBBBBBBBBBBBBBBBBBBBBBBB")), askSQL(at), nil},
	} {
		if got := Asks(i, []guard.Thread{{ID: "1", User: c.user, Command: "Query", Text: c.text}}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if text := askSQL(netip.MustParseAddrPort("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535")); len(text) > 100 {
		t.Errorf("SHOW PROCESSLIST cuts %q", text)
	}
}

// FuzzFeed: whatever comes, it ends, and nothing is outside the folder.
func FuzzFeed(f *testing.F) {
	stream := part("a.ibd", 0, "four") + last("a.ibd")
	r := &recorded{}
	p := &feedPeer{conn: r}
	sum := sha256.Sum256([]byte(stream))
	_ = errors.Join(p.sendJSON(feedHello, feedSize{}), p.sendJSON(feedCopy, feedSize{Bytes: 4, Files: 1, Position: feedPosition}),
		p.send(feedData, []byte(stream)), p.sendJSON(feedEnd, feedSum{sum[:]}))
	f.Add(r.out.Bytes())
	f.Add([]byte{feedRefused, 1, 0, 0, 0, 0xff})
	f.Fuzz(func(t *testing.T, text []byte) {
		parent := t.TempDir()
		_, _, err := takeText(t.Context(), text, filepath.Join(parent, "fresh"))
		entries, readErr := os.ReadDir(parent)
		if readErr != nil || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != "fresh" || err == nil && len(entries) == 0 {
			t.Errorf("%v, %v, %v", entries, readErr, err)
		}
	})
}
