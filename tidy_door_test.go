package kurabe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A session of the service in a tenant's server, opened in passing, is how a tenant's
// function comes to run with the rights of the superuser. So in the room of PostgreSQL
// sessions begin in one file, and programs are run by few, each listed with what it runs.
const (
	doorRoom = "internal/engine/postgres"
	doorFile = doorRoom + "/door.go"
)

// doorPrograms are the files of the room that run programs.
var doorPrograms = map[string]string{
	"unreplicated.go":  "pg_waldump, which connects to nothing",
	"clone.go":         "pg_basebackup, as conn.go does",
	"reattach.go":      "pg_rewind, as conn.go does",
	"control_file.go":  "pg_controldata, which connects to nothing",
	"discover.go":      "postgres --version, locale -a and pg_config, which connect to nothing",
	"conn.go":          "pg_basebackup and pg_rewind, with the door's settings (toolInfo)",
	"template.go":      "initdb, and postgres --single on what it made: no tenant was there",
	"replay_server.go": "the private server, and tools on its stopped data folder",
}

// clientPrograms open sessions of their own and call what they find by names that are not ours
// to choose. The first two run no statement in a tenant's database.
var clientPrograms = map[string]bool{
	"pg_basebackup": true, "pg_rewind": true,
	"clusterdb": false, "createdb": false, "createuser": false, "dropdb": false, "dropuser": false, "pg_amcheck": false, "pg_dump": false,
	"pg_dumpall": false, "pg_isready": false, "pg_receivewal": false, "pg_recvlogical": false, "pg_restore": false, "pg_upgrade": false,
	"pgbench": false, "psql": false, "reindexdb": false, "vacuumdb": false, "vacuumlo": false,
}

func TestTidyDoor(t *testing.T) {
	ran := map[string]bool{}
	for _, s := range sources(t) {
		path := filepath.ToSlash(s.path)
		if s.test || s.room() != doorRoom {
			continue
		}
		for _, problem := range doorProblems(s, path, ran) {
			t.Error(problem)
		}
	}
	for name := range doorPrograms {
		if !ran[name] {
			t.Errorf("%s/%s is listed as running programs, and runs none", doorRoom, name)
		}
	}
}

// doorProblems are the ways around the door in one file; it notes who runs programs.
func doorProblems(s source, path string, ran map[string]bool) []string {
	var problems []string
	name := strings.TrimPrefix(path, doorRoom+"/")
	eachCall(s, func(call string, n ast.Node) {
		at := s.fset.Position(n.Pos()).String()
		switch {
		case slices.ContainsFunc([]string{"Connect", "ParseConfig", "ParseURI", "ParseDSN", "New"}, func(verb string) bool {
			return strings.HasPrefix(call, "pgconn."+verb) || strings.HasPrefix(call, "pgx."+verb) || strings.HasPrefix(call, "pgxpool.") || strings.HasPrefix(call, "stdlib.")
		}) && path != doorFile:
			problems = append(problems, at+" opens a session with "+call+": enter in "+doorFile+" does, with what keeps a tenant's code out")
		case call == "sql.Open" || call == "sql.OpenDB":
			problems = append(problems, at+" opens sessions with "+call+": enter in "+doorFile+" does")
		case call == "proc.Tool" || call == "proc.Start" || call == "proc.Spec":
			if ran[name] = true; doorPrograms[name] == "" {
				problems = append(problems, at+" runs a program: say in doorPrograms which, and why it opens no session in a tenant's database")
			}
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil {
			if fit, known := clientPrograms[filepath.Base(text)]; known && !fit {
				problems = append(problems, s.fset.Position(lit.Pos()).String()+" names "+text+": a client program in a tenant's database finds what the tenant put there; use databaseConn, on a copy")
			}
		}
		return true
	})
	return problems
}

// TestDoorProblems shows that the ways around are seen.
func TestDoorProblems(t *testing.T) {
	const text = `package postgres
import ("database/sql"; "github.com/jackc/pgx/v5"; "github.com/jackc/pgx/v5/pgconn"; "kurabe/internal/proc")
func a() { pgx.Connect(nil, "") }
func b() { f := pgx.ConnectConfig; _ = f }
func c() { pgconn.ConnectConfig(nil, nil) }
func d() { sql.Open("pgx", "") }
func e() { proc.Run(nil, proc.Tool{Argv: []string{"/usr/bin/psql"}}) }
func f() { pgx.CollectRows[int](nil, nil); _ = "the words of pg_amcheck" }
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "around.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s := source{path: doorRoom + "/around.go", file: file, fset: fset}
	if found := doorProblems(s, doorRoom+"/around.go", map[string]bool{}); len(found) != 6 {
		t.Errorf("found %d of 6: %s", len(found), strings.Join(found, "\n"))
	}
}
