package target

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeHAProxy is for TCP only: it passes on what it is sent and understands none of it, so
// it works for any engine, and with TLS between client and server.
func writeHAProxy(p place) (args []string, about map[string]string, err error) {
	lines := []string{
		"global",
		// It needs two files a client, and goes on with fewer where it may not have them.
		fmt.Sprintf("\tmaxconn %d", betweenClients),
		"\tno strict-limits",
		"defaults",
		"\tmode tcp",
		fmt.Sprintf("\tmaxconn %d", betweenClients),
		"\ttimeout connect 10s",
		// No session of a load is quiet for longer, and none may be cut off.
		"\ttimeout client 24h",
		"\ttimeout server 24h",
		"listen lab",
		fmt.Sprintf("\tbind 127.0.0.1:%d", p.port),
		"\tserver direct " + p.direct.Address(),
	}
	path := filepath.Join(p.dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), privateFile); err != nil {
		return nil, nil, err
	}
	// -db keeps it in the foreground, whatever the configuration says.
	return []string{"-db", "-f", path}, map[string]string{"mode": "tcp"}, nil
}
