//go:build integration

package postgres

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe"
)

// Clients that fill a server keep out the sampler and not the service, which needs two places.
func TestSamplerLeavesPlaces(t *testing.T) {
	b := running(t)
	config, err := clientConfig(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	d := b.Driver.(*Driver)
	var clients []*pgx.Conn
	for {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			if !turnedAway(err) {
				t.Fatal(err)
			}
			break
		}
		clients = append(clients, conn)
		defer closeConn(t.Context(), conn)
	}
	watch, err := b.Lifecycle.OpenWatch(t.Context(), b.Want)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if s, err := b.Lifecycle.OpenSampler(t.Context(), b.Want); err == nil {
		s.Close()
		t.Error("a sampler took a place that is needed")
	}
	for range placesLeft {
		conn, err := d.adminConn(t.Context(), instanceOf(b))
		if err != nil {
			t.Fatal(err)
		}
		defer closeConn(t.Context(), conn)
	}
	for _, conn := range clients[:3] {
		closeConn(t.Context(), conn)
	}
	s, err := b.Lifecycle.OpenSampler(t.Context(), b.Want)
	for n := 0; err != nil && n < 600; n++ { // until the ends of the clients are seen
		s, err = b.Lifecycle.OpenSampler(t.Context(), b.Want)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// Of a statement that runs often all executions are counted, under the number that its session
// shows, in every database; what reads them is where clients make nothing.
func TestStatementsAreCounted(t *testing.T) {
	b := running(t)
	// These are none that the service would call.
	b.MustQuery(t, "CREATE SCHEMA service")
	b.MustQuery(t, "CREATE FUNCTION service.pg_stat_statements(boolean) RETURNS SETOF record LANGUAGE sql AS 'SELECT 1/0'")
	s, err := b.Lifecycle.OpenSampler(t.Context(), b.Want)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if list, elapsed, err := s.Statements(t.Context()); err != nil || len(list) != 0 || elapsed != 0 {
		t.Fatalf("at first: %v, %v, %v", list, elapsed, err)
	}
	client := masterIn(t, b, "postgres")
	const times = 25
	var number string
	for range times {
		if err := client.QueryRow(t.Context(), "SELECT query_id::text FROM pg_stat_activity WHERE pid = pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&number); err != nil {
			t.Fatal(err)
		}
	}
	list, elapsed, err := s.Statements(t.Context())
	if err != nil || elapsed <= 0 {
		t.Fatal(elapsed, err)
	}
	n := slices.IndexFunc(list, func(c kurabe.StatementCounts) bool { return c.NativeID == number })
	if n < 0 || list[n].Counts[kurabe.StatementCalls] != times || list[n].Counts[kurabe.StatementRows] != times || list[n].Counts[kurabe.StatementMicroseconds] == 0 {
		t.Fatalf("statement %s in %+v", number, list)
	}
	if list, _, err := s.Statements(t.Context()); err != nil || slices.ContainsFunc(list, func(c kurabe.StatementCounts) bool { return c.NativeID == number }) {
		t.Errorf("it did not run again: %+v, %v", list, err)
	}
	if got := b.MustQuery(t, "SELECT count(*) FROM pg_extension WHERE extname = 'pg_stat_statements'"); got != "0" {
		t.Error("a database of clients has got the extension")
	}
	// A server without the module says that nothing is counted.
	b.Set(map[string]string{"shared_preload_libraries": ""})
	b.Crash(t)
	b.Satisfy(t)
	without, err := b.Lifecycle.OpenSampler(t.Context(), b.Want)
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	for range 2 {
		if list, elapsed, err := without.Statements(t.Context()); err != nil || len(list) != 0 || elapsed != 0 {
			t.Errorf("without the module: %v, %v, %v", list, elapsed, err)
		}
	}
}
