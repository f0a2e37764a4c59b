package systemtables

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
)

// The scripts that mariadb-install-db runs, but for the one that makes root and
// the one that makes a schema for everybody.
var scripts = []string{
	conf.SystemTables, "mysql_performance_tables.sql", "fill_help_tables.sql", "maria_add_gis_sp_bootstrap.sql", "mysql_sys_schema.sql",
}

// SQL makes the system schemas of a server that has no account but
// mariadb.sys, which owns the views of the server's own, has no right beyond
// them and cannot log in.
func SQL(share string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE DATABASE %s;\nUSE %s;\n", conf.SystemSchema, conf.SystemSchema)
	for _, name := range scripts {
		text, err := os.ReadFile(filepath.Join(share, name))
		if err != nil {
			return "", err
		}
		b.Write(text)
		b.WriteString("\n")
	}
	b.WriteString(`DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys';
DELETE FROM mysql.proxies_priv;
DROP DATABASE IF EXISTS test;
`)
	b.WriteString(probeTableSQL + ";\n")
	for _, p := range guard.Procedures {
		b.WriteString(p.SQL() + ";\n")
	}
	b.WriteString(timeZoneSQL(zoneDir))
	// The triggers run with its rights, and a trigger needs one on its table; so
	// do the procedures.
	b.WriteString("FLUSH PRIVILEGES;\n" + guard.OwnerGrant + ";\n")
	return b.String(), nil
}

const (
	ProbeColumns  = " (id INT NOT NULL PRIMARY KEY, word VARCHAR(64) NOT NULL) ENGINE=InnoDB CHARACTER SET ascii"
	probeTableSQL = "CREATE TABLE mysql." + conf.ProbeTable + ProbeColumns + " COMMENT='written to by the service when it looks whether a client can write'"
)
