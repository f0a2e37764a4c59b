package mariadb

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
)

// series is the one that kurabe_guard is made for.
const series = "10.11"

// Discover implements engine.Driver. A version that cannot be used is listed too,
// with the reason and Ready false.
func (d *Driver) Discover(ctx context.Context) ([]kurabe.EngineVersion, error) {
	var found []kurabe.EngineVersion
	seen := map[string]bool{}
	for _, prefix := range d.prefixes {
		for _, dir := range []string{"sbin", "bin", "libexec"} {
			binDir := filepath.Join(prefix, dir)
			real, err := filepath.EvalSymlinks(conf.ServerPath(binDir))
			if err != nil || seen[real] {
				continue
			}
			seen[real] = true
			v, ok, err := d.discoverOne(ctx, binDir)
			if err != nil {
				return nil, fmt.Errorf("discover %s: %w", real, err)
			}
			// Of two servers of one version the first is as good as the other.
			if ok && !slices.ContainsFunc(found, func(f kurabe.EngineVersion) bool { return f.Version == v.Version }) {
				found = append(found, v)
			}
		}
	}
	slices.SortFunc(found, func(a, b kurabe.EngineVersion) int { return cmp.Compare(a.Version, b.Version) })
	for n := range slices.Backward(found) {
		if found[n].Reason == "" {
			found[n].Default = true
			break
		}
	}
	return found, nil
}

func (d *Driver) discoverOne(ctx context.Context, binDir string) (kurabe.EngineVersion, bool, error) {
	out, err := proc.Run(ctx, proc.Tool{
		Name: "mariadbd --version", Argv: []string{conf.ServerPath(binDir), "--no-defaults", "--version"}, Env: scratch.Env(), Dir: "/",
	})
	if err != nil {
		return kurabe.EngineVersion{}, false, err
	}
	version, ok := parseVersion(string(out))
	if !ok {
		return kurabe.EngineVersion{}, false, nil
	}
	v := kurabe.EngineVersion{
		Engine: kurabe.MariaDB, Version: version, Family: "mariadb" + majorOf(version), BinDir: binDir,
		Locales: []string{conf.DefaultCharset},
	}
	if v.Reason = d.unusable(v); v.Reason != "" {
		return v, true, nil
	}
	if v.Locales, err = readCharsets(ctx, v); err != nil {
		return v, true, fmt.Errorf("read character sets: %w", err)
	}
	return v, true, nil
}

// unusable says why a version cannot be offered, "" when it can.
func (d *Driver) unusable(v kurabe.EngineVersion) string {
	if majorOf(v.Version) != series {
		return fmt.Sprintf("the plugin that guards the accounts is made for MariaDB %s", series)
	}
	if d.guardErr != nil {
		return d.guardErr.Error()
	}
	if _, err := os.Stat(filepath.Join(conf.ShareDir(v.BinDir), conf.SystemTables)); err != nil {
		return "the scripts that make the system tables are missing: " + err.Error()
	}
	return ""
}

// versionForm leaves out MySQL, whose server has the same names.
var versionForm = regexp.MustCompile(`Ver (\d+\.\d+\.\d+)-MariaDB`)

func parseVersion(text string) (string, bool) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// majorOf is the part of the version that names the family.
func majorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
