package conf

import (
	"os"
	"path/filepath"
	"strings"

	"kurabe/internal/engine"
)

// PasswordFile is the plugin by which accounts of the server have passwords of ed25519. It
// is part of the server's whole package, which a host need not have; without it, such an
// account can be neither made nor used on this host.
const PasswordFile = "auth_ed25519.so"

// passwordPlugin finds the plugin: with the server, in a folder that is named, or beside this
// program, where the build puts it. "" where there is none.
func passwordPlugin(binDir string, dirs ...string) string {
	prefix := filepath.Dir(binDir)
	dirs = append([]string{filepath.Join(prefix, "lib", "mysql", "plugin"), filepath.Join(prefix, "lib", "plugin")}, dirs...)
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, PasswordFile); dir != "" && Exists(path) {
			return path
		}
	}
	return ""
}

// ReadPassword returns the plugin's bytes, none where it cannot be read.
func ReadPassword(i engine.Instance, dirs ...string) string {
	path := passwordPlugin(i.Version.BinDir, dirs...)
	if path == "" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// PasswordOption has a server load the plugin of its plugin folder.
var PasswordOption = Option{"plugin_load_add", strings.TrimSuffix(PasswordFile, ".so")}
