package probe

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kurabe/lab/dial"
)

const socketsHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func (p proc) socket(pid, name, inode string) {
	p.t.Helper()
	p.write(pid+"/comm", name+"\n")
	dir := filepath.Join(p.root, pid, "fd")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Symlink("socket:["+inode+"]", filepath.Join(dir, "5"))); err != nil {
		p.t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	cases := map[string]struct {
		socket, name string
		want         string // of the error, "" for found
	}{
		"at the address":       {socket: "0100427F:1538 00000000:0000 0A", name: "postgres"},
		"at all addresses":     {socket: "00000000:1538 00000000:0000 0A", name: "mariadbd"},
		"at another address":   {socket: "0200427F:1538 00000000:0000 0A", name: "postgres", want: "nothing listens"},
		"at another port":      {socket: "0100427F:1539 00000000:0000 0A", name: "postgres", want: "nothing listens"},
		"a connection":         {socket: "0100427F:1538 0100007F:9999 01", name: "postgres", want: "nothing listens"},
		"before a container":   {socket: "00000000:1538 00000000:0000 0A", name: "docker-proxy", want: "listens docker-proxy"},
		"a line like no other": {socket: "zz:1538 x 0A", name: "postgres", want: "nothing listens"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProc(t)
			p.write("net/tcp", socketsHead+"   0: "+c.socket+" 00000000:00000000 00:00000000 00000000     0        0 4711 1\n")
			p.socket("17", c.name, "4711")
			p.socket("18", "sshd", "4712")
			pids, err := find(p.root, []netip.Addr{netip.MustParseAddr("127.66.0.1")}, 5432)
			if c.want == "" && (err != nil || !slices.Equal(pids, []int{17})) {
				t.Errorf("%v, %v", pids, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestSocketAddress(t *testing.T) {
	cases := map[string]string{
		"0100007F:1538":                         "127.0.0.1:5432",
		"0000000000000000FFFF00000100007F:0CEA": "127.0.0.1:3306",
		"00000000000000000000000001000000:0CEA": "[::1]:3306",
	}
	for text, want := range cases {
		if got, ok := socketAddress(text); !ok || got.String() != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestFindTellsWhoListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Find(dial.Server{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port})
	if err == nil || !strings.Contains(err.Error(), "not the database server itself") {
		t.Errorf("error %v", err)
	}
	if _, err := Find(dial.Server{Host: "192.0.2.1", Port: 5432}); !errors.Is(err, ErrRemote) {
		t.Errorf("error %v", err)
	}
}
