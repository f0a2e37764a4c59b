//go:build integration

package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
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
