package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/owner"
	"kurabe/lab/study"
)

// urlTarget is a server that is there already. It works in databases of its own:
//
//	kurabe_lab_ID          the trial's, made anew for each
//	kurabe_lab_ID_golden   PostgreSQL's template of it
//	kurabe_lab_ID_note     whose they are, and what of the server has to be put back
type urlTarget struct {
	options   Options
	admin     dial.Server // the database that the URL names, or the one to log in to
	named     string      // by the URL, "" for none
	id        string
	owner     owner.Owner
	about     About
	super     bool // may change what is the whole server's
	all       bool // may do everything
	have      map[string]setting
	changes   map[string]applied // what each variant's parameters take, by variant
	others    map[string]bool    // databases that are not the study's, in lower case
	available map[string]bool    // extensions
	fill      Fill
	noted     bool // the note exists
	ready     bool // prepared
	leased    bool
}

// URL is the server that a URL names: postgres, mysql or mariadb.
func URL(ctx context.Context, address string, o Options) (Target, error) {
	server, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if err := findPassword(&server, o.PasswordFile); err != nil {
		return nil, err
	}
	return newURL(ctx, server, o)
}

// Ask says what a server is, of which the URL may say otherwise: mysql:// of a MariaDB.
func Ask(ctx context.Context, address string, o Options) (About, error) {
	server, err := parseAddress(address)
	if err != nil {
		return About{}, err
	}
	if err := findPassword(&server, o.PasswordFile); err != nil {
		return About{}, err
	}
	t, err := newURL(ctx, server, o)
	if err != nil {
		return About{}, err
	}
	return t.about, nil
}

func newURL(ctx context.Context, server dial.Server, o Options) (*urlTarget, error) {
	me, err := owner.This()
	if err != nil {
		return nil, err
	}
	t := &urlTarget{options: o, admin: server, named: server.Database, id: newID(), owner: me, changes: map[string]applied{}}
	if server.Engine == study.Postgres && server.Database == "" {
		t.admin.Database = "postgres"
	}
	return t, t.greet(ctx)
}

// inPlace says that the study runs in the user's own database.
func (t *urlTarget) inPlace() bool { return t.options.WritesAllowed && t.named != "" }

func (t *urlTarget) own() string {
	if t.inPlace() {
		return t.named
	}
	return t.mark()
}
func (t *urlTarget) goldenName() string { return databasePrefix + t.id + goldenSuffix }
func (t *urlTarget) noteName() string   { return databasePrefix + t.id + noteSuffix }

const (
	goldenSuffix = "_golden"
	noteSuffix   = "_note"
)

// in is the server with another database.
func (t *urlTarget) in(name string) dial.Server {
	s := t.admin
	s.Database = name
	return s
}

// greet asks the server what it is. MySQL's protocol is MariaDB's too: what the URL
// called it does not count.
func (t *urlTarget) greet(ctx context.Context) error {
	session, err := dial.Open(ctx, t.admin)
	if err != nil {
		return fmt.Errorf("reach the target: %w; check host, port, user, database and password", err)
	}
	defer session.Close()
	question := "SELECT VERSION()"
	if t.admin.Engine == study.Postgres {
		question = "SELECT version()"
	}
	rows, err := session.Rows(ctx, question)
	if err != nil {
		return fmt.Errorf("ask the target what it is: %w", err)
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return fmt.Errorf("ask the target what it is: it answers %v", rows)
	}
	full := rows[0][0]
	if t.admin.Engine != study.Postgres {
		t.admin.Engine = study.MySQL
		if strings.Contains(full, "MariaDB") {
			t.admin.Engine = study.MariaDB
		}
	}
	t.about = About{Engine: t.admin.Engine, Version: shortVersion(full), VersionFull: full, Kind: KindURL}
	t.about.Notes = []string{"the server is not restarted between trials, so its cache stays warm and its files keep their age"}
	return t.rights(ctx, session)
}

// shortVersion is the first word of digits and dots: of "PostgreSQL 15.18 (Debian …" and
// of "10.11.19-MariaDB-0+deb12u1" alike.
func shortVersion(full string) string {
	for word := range strings.FieldsSeq(full) {
		end := strings.IndexFunc(word, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if end < 0 {
			end = len(word)
		}
		if strings.Trim(word[:end], ".") != "" {
			return strings.Trim(word[:end], ".")
		}
	}
	return full
}

// rights asks whether we may change what is the whole server's.
func (t *urlTarget) rights(ctx context.Context, session *dial.Session) error {
	if t.admin.Engine != study.Postgres {
		t.super = true // each parameter is tried
		grants, err := session.Rows(ctx, "SHOW GRANTS")
		if err != nil {
			return fmt.Errorf("ask for the user's rights: %w", err)
		}
		t.all = slices.ContainsFunc(grants, func(row []string) bool { return strings.HasPrefix(row[0], "GRANT ALL PRIVILEGES ON *.*") })
		return nil
	}
	rows, err := session.Rows(ctx, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
	if err != nil {
		return fmt.Errorf("ask for the user's rights: %w", err)
	}
	t.super = len(rows) == 1 && rows[0][0] == "t"
	t.all = t.super
	return nil
}

// About implements Target.
func (t *urlTarget) About(context.Context) (About, error) { return t.about, nil }

// Check implements Target. Whether the user may make a database is tried by making one.
func (t *urlTarget) Check(ctx context.Context, s *study.Study) (unsupported map[string]string, failure error) {
	session, err := dial.Open(ctx, t.admin)
	if err != nil {
		return nil, fmt.Errorf("reach the target: %w", err)
	}
	defer session.Close()
	if t.inPlace() {
		err = undoable(s, t.named)
	} else {
		err = t.tryDatabase(ctx, session)
	}
	if err != nil {
		return nil, err
	}
	if err := t.learn(ctx, session); err != nil {
		return nil, err
	}
	if err := t.checkDisk(s); err != nil {
		return nil, err
	}
	unsupported = map[string]string{}
	for _, v := range s.Variants {
		if !applies(v.Engines, t.admin.Engine) {
			continue
		}
		why := t.checkVariant(ctx, v)
		if why == "" {
			why = losesPrepared(ctx, s, v)
		}
		if why == "" {
			t.changes[v.Name], why = t.plan(ctx, session, v)
		}
		if why == "" {
			if why, err = t.trySQL(ctx, v); err != nil {
				return nil, err
			}
		}
		if why != "" {
			unsupported[v.Name] = why
		}
	}
	for _, w := range s.Workloads {
		if why := t.checkWorkload(w); why != "" {
			unsupported[w.Name] = why
		}
	}
	return unsupported, tooManyClients(s, t.admin.Engine, t.have, t.all, unsupported, "set it on the server")
}

// learn asks the server what variants are judged by.
func (t *urlTarget) learn(ctx context.Context, session *dial.Session) (err error) {
	if t.have, err = settings(ctx, session, t.admin.Engine); err != nil {
		return err
	}
	if t.available, err = available(ctx, session, t.admin.Engine); err != nil {
		return err
	}
	t.others, err = t.otherDatabases(ctx, session)
	return err
}

func (t *urlTarget) tryDatabase(ctx context.Context, session *dial.Session) error {
	name := dial.Ident(t.admin.Engine, t.own())
	if err := session.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return fmt.Errorf("user %s cannot make a database for the study: %w; let it (CREATEDB, or CREATE ON *.*), or name a database that the study may write in and give --i-know-this-writes", t.admin.User, err)
	}
	closeCtx, cancel := closing(ctx)
	defer cancel()
	return session.Exec(closeCtx, "DROP DATABASE "+name)
}

// checkVariant says why a variant cannot be had, but for its parameters.
func (t *urlTarget) checkVariant(ctx context.Context, v study.Variant) string {
	switch {
	case v.Class != "":
		return "a server behind a URL has no classes: use a target with the RDS API"
	case v.IOPS != 0 || v.StorageType != "" || v.StorageGiB != 0:
		return "the storage of a server behind a URL cannot be chosen: use a target with the RDS API"
	case v.Needs == needActivityStream:
		return "a server behind a URL has no activity streams"
	}
	if why := badEndpoint(v.Endpoint); why != "" {
		return why
	}
	if v.Endpoint == study.EndpointProxy {
		return "a server behind a URL has no proxy of its own: name the address of one as the endpoint"
	}
	if _, ours := betweenKinds[v.Endpoint]; v.Endpoint != "" && !ours {
		if why := t.tryEndpoint(ctx, v.Endpoint); why != "" {
			return why
		}
	}
	if why := lacking(v, t.admin.Engine); why != "" {
		return why
	}
	if why := triggersRefused(v, t.have, t.all); why != "" {
		return why
	}
	if why := t.missingExtension(v); why != "" {
		return why
	}
	if v.Needs == study.NeedSuperuser {
		if !t.all {
			return "it needs a superuser, and " + t.admin.User + " is none"
		}
	} else if v.Needs != "" && packages[v.Needs] == "" && !t.loaded(v.Needs) {
		return fmt.Sprintf("it needs %q, which the server has not loaded", v.Needs)
	}
	return t.beyondVariant(v)
}

// loaded says whether a feature is a library that the server has loaded, as pgaudit.
func (t *urlTarget) loaded(name string) bool {
	for _, item := range items(t.have["shared_preload_libraries"].value) {
		if item == name {
			return true
		}
	}
	return false
}

// checkWorkload says why a workload cannot run here.
func (t *urlTarget) checkWorkload(w study.Workload) string {
	if why := t.beyondWorkload(w); why != "" {
		return why
	}
	if t.inPlace() || w.Script == "" || len(w.Setup[t.admin.Engine])+len(w.Setup[""]) > 0 {
		return ""
	}
	if writes(t.admin.Engine, w.Script) {
		return "its script writes to tables that the study does not make: name their database in the URL and give --i-know-this-writes"
	}
	return ""
}

// tryEndpoint says why no session goes by an endpoint that is there already.
func (t *urlTarget) tryEndpoint(ctx context.Context, endpoint string) string {
	by, err := through(t.admin, endpoint)
	if err != nil {
		return err.Error()
	}
	session, err := dial.Open(ctx, by)
	if err != nil {
		return fmt.Sprintf("no session goes by its endpoint, with the user, password and database that the server takes: %v", err)
	}
	session.Close()
	return ""
}

// through is a server by an endpoint that is there already.
func through(s dial.Server, endpoint string) (dial.Server, error) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return s, errors.New(badEndpoint(endpoint))
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return s, fmt.Errorf("endpoint %s: %w", endpoint, err)
	}
	s.Host, s.Port = host, int(number)
	return s, nil
}

// endpoint sets the way of a variant's clients. That a session by it finds the study's
// own database shows that it leads to the same server.
func (t *urlTarget) endpoint(ctx context.Context, l *Lease, v study.Variant) (end func(context.Context) error, err error) {
	if _, ours := betweenKinds[v.Endpoint]; ours || v.Endpoint == "" {
		return l.put(ctx, v, t.options.Folder)
	}
	if l.Server, err = through(l.Direct, v.Endpoint); err != nil {
		return nil, err
	}
	session, err := dial.Open(ctx, l.Server)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s of variant %s: %w", v.Endpoint, v.Name, err)
	}
	session.Close()
	l.Settings["endpoint"] = v.Endpoint
	return func(context.Context) error { return nil }, nil
}
