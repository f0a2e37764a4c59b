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
	"strings"

	"kurabe"
	"kurabe/internal/engine/postgres/tree"
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
	source := tree.Source{
		Bin:   filepath.Join(d.libDir, strconv.Itoa(major), "bin"),
		Lib:   filepath.Join(d.libDir, strconv.Itoa(major), "lib"),
		Share: filepath.Join(d.shareDir, strconv.Itoa(major)),
		Major: major,
	}
	out, err := proc.Run(ctx, proc.Tool{
		Name: "postgres --version", Argv: []string{filepath.Join(source.Bin, "postgres"), "--version"}, Env: scratch.Env(), Dir: "/",
	})
	if err != nil {
		return kurabe.EngineVersion{}, err
	}
	version, _, err := parseVersion(string(out))
	if err != nil {
		return kurabe.EngineVersion{}, err
	}
	extensions, err := source.Extensions()
	if err != nil {
		return kurabe.EngineVersion{}, err
	}
	extensions = append(extensions, tree.TopologyExtension)
	slices.Sort(extensions)
	bin, err := tree.Ensure(d.root, version, source)
	if err != nil {
		return kurabe.EngineVersion{}, fmt.Errorf("make the private tree: %w", err)
	}
	return kurabe.EngineVersion{
		Engine: kurabe.Postgres, Version: version, Family: "postgres" + strconv.Itoa(major),
		BinDir: bin, Locales: offeredLocales(libc, major, hasICU(ctx, source.Bin)), Extensions: extensions,
	}, nil
}

// toolEnv is the whole environment of a tool: messages in English, so that they
// can be read by us, and no setting of the caller's that could redirect it.

const (
	// defaultLocale sorts by code point: the same on every machine for ever, and
	// right for Japanese as for anything else that has no one alphabet. An index
	// never goes bad because the C library was upgraded.
	defaultLocale = "C"

	icuPrefix   = "icu:"
	icuMajorMin = 15 // a cluster's own locale can be ICU's since PostgreSQL 15
)

// icuLocales are the ICU locales on offer. ICU accepts any name (it falls back
// to the root collation), so this is a choice, not an inventory.
var icuLocales = []string{
	"und", "ar", "cs-CZ", "da-DK", "de-DE", "el-GR", "en-GB", "en-US", "es-ES", "fi-FI", "fr-FR", "he-IL",
	"hi-IN", "hu-HU", "it-IT", "ja-JP", "ko-KR", "nb-NO", "nl-NL", "pl-PL", "pt-BR", "pt-PT", "ro-RO",
	"ru-RU", "sv-SE", "th-TH", "tr-TR", "uk-UA", "vi-VN", "zh-Hans-CN", "zh-Hant-TW",
}

// libcLocales lists the UTF-8 locales of the C library. A host without the
// locale command offers none but C.
func libcLocales(ctx context.Context) []string {
	out, err := proc.Run(ctx, proc.Tool{Name: "locale -a", Argv: []string{"/usr/bin/locale", "-a"}, Env: scratch.Env(), Dir: "/"})
	if err != nil {
		return nil
	}
	return utf8Locales(string(out))
}

// utf8Locales picks the UTF-8 locales and spells them the way people do: glibc
// lists "ja_JP.utf8" for what initdb knows as "ja_JP.UTF-8" as well.
func utf8Locales(list string) []string {
	var found []string
	for name := range strings.FieldsSeq(list) {
		base, codeset, ok := strings.Cut(name, ".")
		codeset, modifier, has := strings.Cut(codeset, "@")
		if !ok || strings.ReplaceAll(strings.ToLower(codeset), "-", "") != "utf8" {
			continue
		}
		name = base + ".UTF-8"
		if has {
			name += "@" + modifier
		}
		found = append(found, name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// offeredLocales are the CharacterSetName values, default first.
func offeredLocales(libc []string, major int, icu bool) []string {
	offered := append([]string{defaultLocale}, libc...)
	if icu && major >= icuMajorMin {
		for _, name := range icuLocales {
			offered = append(offered, icuPrefix+name)
		}
	}
	return offered
}

// hasICU asks the installed build, not the version: it is a compile option.
func hasICU(ctx context.Context, binDir string) bool {
	out, err := proc.Run(ctx, proc.Tool{
		Name: "pg_config", Argv: []string{filepath.Join(binDir, "pg_config"), "--configure"}, Env: scratch.Env(), Dir: "/",
	})
	return err == nil && strings.Contains(string(out), "--with-icu")
}

// localeArgs are initdb's arguments for a locale on offer. Under ICU the
// character classes still come from the C library; C.UTF-8 knows them all
// without sorting by any country's rules.
func localeArgs(locale string) []string {
	if name, ok := strings.CutPrefix(locale, icuPrefix); ok {
		return []string{"--locale-provider=icu", "--icu-locale=" + name, "--locale=C", "--lc-ctype=C.UTF-8"}
	}
	if locale == "" {
		locale = defaultLocale
	}
	return []string{"--locale=" + locale}
}
