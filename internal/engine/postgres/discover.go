package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"kurabe"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
)

// Discover implements engine.Driver. BinDir of each version is in its private
// tree, which is made here when the installed binary is new. A version that
// cannot be used is listed too, with the reason and Ready false.
func (d *Driver) Discover(ctx context.Context) ([]kurabe.EngineVersion, error) {
	entries, err := os.ReadDir(d.libDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list versions: %w", err)
	}
	libc := libcLocales(ctx)
	var found []kurabe.EngineVersion
	for _, entry := range entries {
		major, err := strconv.Atoi(entry.Name())
		if err != nil || major < majorMin || major > majorMax {
			continue
		}
		// A folder without a server is a client package.
		if _, err := os.Stat(filepath.Join(d.libDir, entry.Name(), "bin", "postgres")); err != nil {
			continue
		}
		v, err := d.discoverOne(ctx, major, libc)
		if err != nil {
			return nil, fmt.Errorf("discover PostgreSQL %d: %w", major, err)
		}
		found = append(found, v)
	}
	slices.SortFunc(found, func(a, b kurabe.EngineVersion) int { return cmp.Compare(majorOf(a), majorOf(b)) })
	if len(found) > 0 {
		found[len(found)-1].Default = true
	}
	return found, nil
}

func (d *Driver) discoverOne(ctx context.Context, major int, libc []string) (kurabe.EngineVersion, error) {
	source := source{
		bin:   filepath.Join(d.libDir, strconv.Itoa(major), "bin"),
		lib:   filepath.Join(d.libDir, strconv.Itoa(major), "lib"),
		share: filepath.Join(d.shareDir, strconv.Itoa(major)),
		major: major,
	}
	out, err := proc.Run(ctx, proc.Tool{
		Name: "postgres --version", Argv: []string{filepath.Join(source.bin, "postgres"), "--version"}, Env: scratch.Env(), Dir: "/",
	})
	if err != nil {
		return kurabe.EngineVersion{}, err
	}
	version, _, err := parseVersion(string(out))
	if err != nil {
		return kurabe.EngineVersion{}, err
	}
	extensions, err := source.extensions()
	if err != nil {
		return kurabe.EngineVersion{}, err
	}
	extensions = append(extensions, topologyExtension)
	slices.Sort(extensions)
	bin, err := d.ensureTree(version, source)
	if err != nil {
		return kurabe.EngineVersion{}, fmt.Errorf("make the private tree: %w", err)
	}
	return kurabe.EngineVersion{
		Engine: kurabe.Postgres, Version: version, Family: "postgres" + strconv.Itoa(major),
		BinDir: bin, Locales: offeredLocales(libc, major, source.hasICU(ctx)), Extensions: extensions,
	}, nil
}

// toolEnv is the whole environment of a tool: messages in English, so that they
// can be read by us, and no setting of the caller's that could redirect it.
