package harness

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
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

// Follows says whether its data folder is one of a server that follows another.
func (m Member) Follows() bool {
	_, err := os.Lstat(filepath.Join(m.DataDir(), "standby.signal"))
	return err == nil
}

// memberSlot begins the name of the slot that a follower has with its writer.
const memberSlot = "kurabe_member_"

// Slots are the slots for other servers that it has, by name.
func (m Member) Slots() []string {
	var list []string
	for _, name := range names(filepath.Join(m.DataDir(), "pg_replslot"), "") {
		if strings.HasPrefix(name, memberSlot) {
			list = append(list, name)
		}
	}
	return list
}

// Server is the pid of its first process.
func (m Member) Server() (int, error) {
	servers := m.Service.Servers(m.ID)
	if len(servers) != 1 {
		return 0, fmt.Errorf("%s has the servers %v, want one", m.ID, servers)
	}
	return servers[0], nil
}

// Listens is where it listens itself, as its server has noted it: the lines of
// postmaster.pid are pid, data folder, start, port, folder of the socket, first address.
func (m Member) Listens() (netip.AddrPort, error) {
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

// askTime bounds a question to a server.
const askTime = 5 * time.Second

// Ask asks this very server, as the service does: whether it writes or follows, and by no
// endpoint. The answer is text.
func (m Member) Ask(ctx context.Context, statement string) (string, error) {
	at, err := m.Listens()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=rdsadmin dbname=postgres", filepath.Join(m.Home(), "run"), at.Port()))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var answer string
	err = conn.QueryRow(ctx, statement).Scan(&answer)
	return answer, err
}

// WriterOf is the server that a new session by the endpoint comes to. The kernel says so:
// the session's backend works in its data folder.
func (s *Service) WriterOf(ctx context.Context, id string, l Login) (Member, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	session, err := Open(ctx, l)
	if err != nil {
		return Member{}, err
	}
	defer session.Close()
	rows, err := session.Rows(ctx, BackendSQL("postgres"))
	if err != nil {
		return Member{}, err
	}
	for _, m := range s.Members(id) {
		for _, pid := range s.Processes(m.ID) {
			if slices.Equal(rows, []string{strconv.Itoa(pid)}) {
				return m, nil
			}
		}
	}
	return Member{}, fmt.Errorf("backend %v works in no folder of %s", rows, id)
}
