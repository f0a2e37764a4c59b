package harness

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
)

// Member is one server of an instance that may have several. What is here needs no test
// to run in, and of the service its data folder only: a benchmark uses it, too.
type Member struct {
	Service *Service
	ID      string
}

// Members are the servers of an instance that have a folder, by number.
func (s *Service) Members(id string) []Member {
	var list []Member
	for _, home := range s.Homes() {
		if string(kurabe.InstanceID(home).Owner()) == id {
			list = append(list, Member{s, home})
		}
	}
	slices.SortFunc(list, func(a, b Member) int { return a.Number() - b.Number() })
	return list
}

// Owners are the instances that ids of servers belong to, each once.
func Owners(ids []string) []string {
	var list []string
	for _, id := range ids {
		list = append(list, string(kurabe.InstanceID(id).Owner()))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Number is that of the server in its instance, from 1 on.
func (m Member) Number() int { return kurabe.InstanceID(m.ID).Number() }

// Home is its folder.
func (m Member) Home() string { return filepath.Join(m.Service.Data, "instances", m.ID) }

// DataDir is its data folder.
func (m Member) DataDir() string { return filepath.Join(m.Home(), "data") }

// mariaDBSettings is there as soon as a MariaDB has a settings file.
func (m Member) mariaDBSettings() string { return filepath.Join(m.Home(), "conf", "my.cnf") }

// IsMariaDB says which engine it is of.
func (m Member) IsMariaDB() bool { return there(m.mariaDBSettings()) }

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Follows says whether its data folder is one of a server that follows another.
func (m Member) Follows() bool {
	if m.IsMariaDB() {
		return there(filepath.Join(m.DataDir(), "kurabe-follower.json"))
	}
	return there(filepath.Join(m.DataDir(), "standby.signal"))
}

// Names of what a writer has for a follower: a slot, an account.
const (
	memberSlot    = "kurabe_member_"
	memberAccount = "rdsmember_"
)

// Admits are the numbers of the servers that may follow this one. Those of MariaDB are
// known by accounts, which a follower has too. Read replicas are not among them: their
// accounts end with another instance's sum.
func (m Member) Admits() ([]int, error) {
	var list []string
	if m.IsMariaDB() {
		sum := fnv.New32a()
		fmt.Fprint(sum, kurabe.InstanceID(m.ID).Owner())
		text, err := m.Ask(context.Background(), "SELECT COALESCE(GROUP_CONCAT(SUBSTRING_INDEX(SUBSTR(User, "+strconv.Itoa(len(memberAccount)+1)+"), '_', 1)), '')"+
			" FROM mysql.global_priv WHERE User LIKE '"+strings.ReplaceAll(memberAccount, "_", `\_`)+fmt.Sprintf(`%%\_%08x'`, sum.Sum32()))
		if err != nil {
			return nil, err
		}
		list = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	} else {
		for _, name := range names(filepath.Join(m.DataDir(), "pg_replslot"), "") {
			if number, ours := strings.CutPrefix(name, memberSlot); ours {
				list = append(list, number)
			}
		}
	}
	return numbers(list)
}

// WaitsFor are the numbers of the servers whose answer each commit of this one waits for,
// and which are there to give it.
func (m Member) WaitsFor(ctx context.Context) ([]int, error) {
	question := "SELECT coalesce(string_agg(substr(application_name, " + strconv.Itoa(len(memberSlot)+1) + "), ' '), '') FROM pg_stat_replication" +
		" WHERE application_name LIKE '" + memberSlot + "%' AND sync_state = 'sync'"
	if m.IsMariaDB() {
		// It counts those who answer, and members alone do (TestGroupCountsMembersOnly).
		question = "SELECT IF(@@GLOBAL.rpl_semi_sync_master_enabled AND COUNT(*) = 2, @@GLOBAL.kurabe_guard_waits_for, '') FROM information_schema.GLOBAL_STATUS" +
			" WHERE (VARIABLE_NAME, VARIABLE_VALUE) IN (('RPL_SEMI_SYNC_MASTER_STATUS', 'ON'), ('RPL_SEMI_SYNC_MASTER_CLIENTS', '1'))"
	}
	text, err := m.Ask(ctx, question)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(text)
	for n, w := range words {
		words[n], _, _ = strings.Cut(w, ":") // MariaDB also notes by which number the server answers
	}
	return numbers(words)
}

func numbers(words []string) ([]int, error) {
	var list []int
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return list, nil
}

// Server is the pid of its first process.
func (m Member) Server() (int, error) {
	servers := m.Service.Servers(m.ID)
	if len(servers) != 1 {
		return 0, fmt.Errorf("%s has the servers %v, want one", m.ID, servers)
	}
	return servers[0], nil
}

// listensLine is a setting of MariaDB's file.
var listensLine = regexp.MustCompile(`(?m)^(bind_address|port) = "([^"]*)"$`)

// Listens is where it listens itself, as the server has noted it, or was told. The lines of
// postmaster.pid are pid, data folder, start, port, folder of the socket, first address.
func (m Member) Listens() (netip.AddrPort, error) {
	if m.IsMariaDB() {
		text, err := os.ReadFile(m.mariaDBSettings())
		if err != nil {
			return netip.AddrPort{}, err
		}
		have := map[string]string{}
		for _, line := range listensLine.FindAllStringSubmatch(string(text), -1) {
			have[line[1]] = line[2]
		}
		return netip.ParseAddrPort(net.JoinHostPort(have["bind_address"], have["port"]))
	}
	raw, err := os.ReadFile(filepath.Join(m.DataDir(), "postmaster.pid"))
	if err != nil {
		return netip.AddrPort{}, err
	}
	lines := strings.Split(string(raw), "\n")
	if len(lines) < 7 { // the sixth line is whole
		return netip.AddrPort{}, fmt.Errorf("%s listens nowhere yet", m.ID)
	}
	return netip.ParseAddrPort(net.JoinHostPort(strings.TrimSpace(lines[5]), strings.TrimSpace(lines[3])))
}

// askTime bounds a question to a server, doTime what it is to do, a checkpoint for example.
const (
	askTime = 5 * time.Second
	doTime  = time.Minute
)

// Ask asks this very server, as the service does: whether it writes or follows, and by no
// endpoint. The answer is text.
func (m Member) Ask(ctx context.Context, statement string) (answer string, err error) {
	if m.IsMariaDB() {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		return askGuard(ctx, filepath.Join(m.Home(), "run"), statement)
	}
	err = m.with(ctx, askTime, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, statement).Scan(&answer) })
	return answer, err
}

// Do has this very server do something, one statement after the other.
func (m Member) Do(ctx context.Context, statements ...string) error {
	if m.IsMariaDB() {
		ctx, cancel := context.WithTimeout(ctx, doTime)
		defer cancel()
		for _, s := range statements {
			if _, err := guardAnswer(ctx, filepath.Join(m.Home(), "run"), s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	}
	return m.with(ctx, doTime, func(ctx context.Context, conn *pgx.Conn) error {
		for _, s := range statements {
			if _, err := conn.Exec(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

func (m Member) with(ctx context.Context, limit time.Duration, do func(context.Context, *pgx.Conn) error) error {
	at, err := m.Listens()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=rdsadmin dbname=postgres", filepath.Join(m.Home(), "run"), at.Port()))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(ctx, conn)
}

// WriterOf is the server that a new session by the endpoint comes to. Of PostgreSQL the
// kernel says so: the session's backend works in its data folder. A MariaDB is one process,
// and names a file in its folder.
func (s *Service) WriterOf(ctx context.Context, id string, l Login) (Member, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	session, err := Open(ctx, l)
	if err != nil {
		return Member{}, err
	}
	defer session.Close()
	question := BackendSQL(l.Engine)
	if l.Engine == "mariadb" {
		question = "SELECT @@GLOBAL.pid_file"
	}
	rows, err := session.Rows(ctx, question)
	if err != nil {
		return Member{}, err
	}
	if len(rows) != 1 {
		return Member{}, fmt.Errorf("it says %v of itself", rows)
	}
	for _, m := range s.Members(id) {
		backend := func(pid int) bool { return rows[0] == strconv.Itoa(pid) }
		if filepath.Base(filepath.Dir(filepath.Dir(rows[0]))) == m.ID || slices.ContainsFunc(s.Processes(m.ID), backend) {
			return m, nil
		}
	}
	return Member{}, fmt.Errorf("%s is in no folder of %s", rows[0], id)
}
