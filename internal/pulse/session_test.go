package pulse

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A client of several hosts goes through all of them within one login, and stays only
// where it can write.
func TestLoginHosts(t *testing.T) {
	l := Login{Engine: "postgres", User: "u", Password: "p/:@", Database: "d", Address: "127.0.0.9", Port: 9}
	one, err := pgx.ParseConfig(l.url())
	if err != nil {
		t.Fatal(err)
	}
	if one.Host != l.Address || len(one.Fallbacks) != 0 || one.ValidateConnect != nil {
		t.Errorf("one address: %s, %d more, checked %t", one.Host, len(one.Fallbacks), one.ValidateConnect != nil)
	}
	l.Hosts = []string{"127.0.0.1:15432", "127.0.0.2:15433"}
	c, err := pgx.ParseConfig(l.url())
	if err != nil {
		t.Fatal(err)
	}
	hosts, ports := []string{c.Host}, []uint16{c.Port}
	for _, f := range c.Fallbacks {
		hosts, ports = append(hosts, f.Host), append(ports, f.Port)
	}
	if !slices.Equal(hosts, []string{"127.0.0.1", "127.0.0.2"}) || !slices.Equal(ports, []uint16{15432, 15433}) {
		t.Errorf("hosts %v with the ports %v", hosts, ports)
	}
	if c.ValidateConnect == nil || c.Password != l.Password || c.Database != l.Database {
		t.Errorf("checked %t, password %q, database %q", c.ValidateConnect != nil, c.Password, c.Database)
	}
	if whole := c.ConnectTimeout * time.Duration(len(l.Hosts)); whole != 4*time.Second || whole >= LoginTime {
		t.Errorf("%v for all hosts, of %v", whole, LoginTime)
	}
}
