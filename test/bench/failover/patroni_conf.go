package failover

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// The ports of a peer's programs, each on an address of its own. They are none of those
// that the kernel gives to clients: a server could not come back to such a one.
const (
	peerPort     = 15432
	peerRestPort = 18008
	etcdPort     = 12379
	etcdPeerPort = 12380
)

// patroniPace is how eagerly Patroni watches; zero leaves what it does by itself.
type patroniPace struct {
	form, title                 string
	ttl, loopWait, retryTimeout int    // seconds
	silence                     string // after which either end of a stream gives the other up
}

// Patroni's own settings; and the least that its documentation allows, with the silence
// that Kurabe's streams have: without that, a frozen standby is waited for until its lease
// ends.
var (
	patroniDefault = patroniPace{form: "default", title: "default settings"}
	patroniFastest = patroniPace{form: "fastest", title: "fastest settings", ttl: 20, loopWait: 1, retryTimeout: 3, silence: "3s"}
)

func (p patroniPace) note() string {
	if p == patroniDefault {
		return "synchronous_mode, all else Patroni's own (ttl 30, loop_wait 10, retry_timeout 10)"
	}
	return fmt.Sprintf("synchronous_mode, ttl %d, loop_wait %d, retry_timeout %d, wal_sender_timeout and wal_receiver_timeout %s", p.ttl, p.loopWait, p.retryTimeout, p.silence)
}

// patroniConf is what one Patroni is told.
type patroniConf struct {
	scope, name, address, etcd string // address of its server, and of the store
	dir, binDir                string // its folder, and PostgreSQL's programs
	password                   string
	pace                       patroniPace
}

// render is the file. Strings are quoted as JSON, which YAML understands. The mode that is
// "strict" stays off: with it nothing would be acknowledged without a standby, and Kurabe
// goes on without one, too.
func (c patroniConf) render() string {
	var b strings.Builder
	put := func(format string, args ...any) {
		for n, a := range args {
			if s, ok := a.(string); ok {
				quoted, _ := json.Marshal(s) // a string always can be
				args[n] = string(quoted)
			}
		}
		fmt.Fprintf(&b, format+"\n", args...)
	}
	at := func(port int) string { return net.JoinHostPort(c.address, strconv.Itoa(port)) }
	put("scope: %s\nname: %s", c.scope, c.name)
	put("restapi:\n  listen: %s\n  connect_address: %s", at(peerRestPort), at(peerRestPort))
	put("etcd3:\n  host: %s", net.JoinHostPort(c.etcd, strconv.Itoa(etcdPort)))
	put("bootstrap:\n  dcs:")
	if p := c.pace; p.ttl > 0 {
		put("    ttl: %d\n    loop_wait: %d\n    retry_timeout: %d", p.ttl, p.loopWait, p.retryTimeout)
	}
	put("    synchronous_mode: true\n    synchronous_mode_strict: false")
	put("    postgresql:\n      use_pg_rewind: true")
	if c.pace.silence != "" {
		put("      parameters:\n        wal_sender_timeout: %s\n        wal_receiver_timeout: %s", c.pace.silence, c.pace.silence)
	}
	put("  initdb:\n  - encoding: UTF8\n  - locale: C.UTF-8\n  - data-checksums")
	put("postgresql:\n  listen: %s\n  connect_address: %s", at(peerPort), at(peerPort))
	put("  data_dir: %s\n  bin_dir: %s\n  pgpass: %s", filepath.Join(c.dir, "data"), c.binDir, filepath.Join(c.dir, "pgpass"))
	// A folder that cannot be rewound is made anew; else a person would have to do it.
	put("  remove_data_directory_on_rewind_failure: true\n  remove_data_directory_on_diverged_timelines: true")
	put("  authentication:")
	put("    superuser:\n      username: postgres\n      password: %s", c.password)
	put("    replication:\n      username: replicator\n      password: %s", c.password)
	put("    rewind:\n      username: rewinder\n      password: %s", c.password)
	put("  pg_hba:\n  - host all all 127.0.0.0/8 scram-sha-256\n  - host replication replicator 127.0.0.0/8 scram-sha-256")
	put("  parameters:\n    unix_socket_directories: ''\n    password_encryption: scram-sha-256")
	return b.String()
}

// etcdArguments start the store of all peers.
func etcdArguments(address, dir string) []string {
	url := func(port int) string { return "http://" + net.JoinHostPort(address, strconv.Itoa(port)) }
	return []string{"--name", "peers", "--data-dir", dir,
		"--listen-client-urls", url(etcdPort), "--advertise-client-urls", url(etcdPort),
		"--listen-peer-urls", url(etcdPeerPort), "--initial-advertise-peer-urls", url(etcdPeerPort),
		"--initial-cluster", "peers=" + url(etcdPeerPort)}
}

// patroniRoles reads what GET /cluster says: who runs, by name, and as what.
func patroniRoles(body []byte) (map[string]string, error) {
	var cluster struct {
		Members []struct {
			Name, Role, State string
		}
	}
	if err := json.Unmarshal(body, &cluster); err != nil {
		return nil, err
	}
	roles := map[string]string{}
	for _, m := range cluster.Members {
		if m.State == "running" || m.State == "streaming" {
			roles[m.Name] = m.Role
		}
	}
	return roles, nil
}

// patroniVersion is the number in what --version says: "patroni 3.0.2", with the name of
// the file where Python starts it as a module.
func patroniVersion(text string) string {
	fields := strings.Fields(text)
	if len(fields) != 2 || fields[1][0] < '0' || fields[1][0] > '9' {
		return ""
	}
	return fields[1]
}
