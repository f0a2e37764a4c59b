package kurabe_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A session of the service in a server that users fill, opened in passing, is how a user's
// function comes to run with rights that the user has not. So in the room of MariaDB sessions
// begin in the door, and programs are run by few, each listed with what it runs.
const (
	mariadbRoom = "internal/engine/mariadb"
	mariadbDoor = mariadbRoom + "/door/door.go"
	guardSocket = mariadbRoom + "/guard/session.go" // the guard's socket, whose dialling is of the door too
)

// mariadbClients are the rooms outside that come in as a user, with a user's password.
var mariadbClients = map[string]string{
	"internal/pulse": "a drill's client: it has the login that a user gave it",
	"lab":            "studies of a database that a user names",
	"test":           "tests and benchmarks",
}

// mariadbPrograms are the files of the room that run programs.
var mariadbPrograms = map[string]string{
	"backup_tool.go":   "mariadb-backup, in a session of an account without rights of its own; its --prepare has none",
	"check.go":         "innochecksum, which connects to nothing",
	"discover.go":      "mariadbd --version",
	"replay_server.go": "the private server, which lets in what the door opens",
	"init_data.go":     "mariadbd --bootstrap, on what it makes: no user was there",
}

func TestTidyMariaDBDoor(t *testing.T) {
	ran := map[string]bool{}
	for _, s := range sources(t) {
		path := filepath.ToSlash(s.path)
		inside := s.room() == mariadbRoom || strings.HasPrefix(s.room(), mariadbRoom+"/")
		if s.test || !inside && clientOfMariaDB(path) {
			continue
		}
		for _, spec := range importsOf(s) {
			if !inside && spec == "github.com/go-sql-driver/mysql" {
				t.Errorf("%s speaks to MariaDB: %s does, and the clients that are listed", path, mariadbRoom)
			}
		}
		eachCall(s, func(call string, n ast.Node) {
			at := s.fset.Position(n.Pos())
			switch {
			case strings.HasPrefix(call, "mysql.New") || strings.HasPrefix(call, "mysql.Parse") || inside && strings.HasPrefix(call, "sql.Open"):
				if path != mariadbDoor {
					t.Errorf("%s opens a session with %s: OpenPool of %s does", at, call, mariadbDoor)
				}
			case inside && (call == "proc.Tool" || call == "proc.Start" || call == "proc.Spec"):
				name := strings.TrimPrefix(path, mariadbRoom+"/")
				ran[name] = true
				if mariadbPrograms[name] == "" {
					t.Errorf("%s runs a program, which may open a session or run as root: list it with what it runs", at)
				}
			}
		})
		if text, err := os.ReadFile(s.path); err != nil {
			t.Error(err)
		} else if inside && path != guardSocket && strings.Contains(string(text), "SocketName)") {
			t.Errorf("%s dials the guard's socket: Open of %s does", path, guardSocket)
		}
	}
	for name := range mariadbPrograms {
		if !ran[name] {
			t.Errorf("%s/%s is listed as running programs, and runs none", mariadbRoom, name)
		}
	}
}

func clientOfMariaDB(path string) bool {
	for room := range mariadbClients {
		if strings.HasPrefix(path, room+"/") {
			return true
		}
	}
	return false
}

// Of the plugin, only its sessions of the service's have all rights: each such thread says so
// before it opens one, so that the guard's vetoes hold for it (door.c).
func TestTidyGuardSessions(t *testing.T) {
	files, err := filepath.Glob("ext/kurabe_guard/*.c")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		opens := strings.Count(text, "mysql_real_connect_local(") // one for each kind of thread
		if opens > 0 && filepath.Base(path) != "session.c" {
			t.Errorf("%s opens a session with all rights: session.c does", path)
		}
		if marks := strings.Count(text, "guard_is_service= 1;"); opens > marks {
			t.Errorf("%s opens %d sessions with all rights, and %d threads say that they are the service's", path, opens, marks)
		}
	}
}
