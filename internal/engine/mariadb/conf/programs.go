package conf

import (
	"errors"
	"os"
	"path/filepath"
)

// ServerPath is the server in binDir, by its name of today or its old one.
func ServerPath(binDir string) string {
	path := filepath.Join(binDir, "mariadbd")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if old := filepath.Join(binDir, "mysqld"); Exists(old) {
			return old
		}
	}
	return path
}

// ShareDir is where the messages, character sets and scripts are.
func ShareDir(binDir string) string {
	share := filepath.Join(filepath.Dir(binDir), "share")
	for _, name := range []string{"mysql", "mariadb", "."} {
		if Exists(filepath.Join(share, name, SystemTables)) {
			return filepath.Join(share, name)
		}
	}
	return filepath.Join(share, "mysql")
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// SystemTables is the script that makes the system tables, among the server's messages.
const SystemTables = "mysql_system_tables.sql"
