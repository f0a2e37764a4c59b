package replica

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/mariadbtest"
	"kurabe/internal/pki"
)

func TestAccountsOfMembers(t *testing.T) {
	i := mariadbtest.Writer()
	i.Home = engine.Home{Dir: t.TempDir()}
	authority, err := pki.Open(filepath.Join(i.Home.Dir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(i.Home.TLSDir(), 0o700), os.WriteFile(filepath.Join(i.Home.TLSDir(), door.AuthorityFile), authority.PEM(), 0o600)); err != nil {
		t.Fatal(err)
	}
	first, err := accountSQL(i)
	if err != nil {
		t.Fatal(err)
	}
	again, err := accountSQL(i)
	if err != nil || !slices.Equal(first, again) {
		t.Errorf("another password for each time: %v", err)
	}
	password, err := readLookPassword(i.Home)
	text := strings.Join(first, ";\n") + ";\n"
	if err != nil || len(password.Reveal()) != 32 || strings.Contains(text, password.Reveal()) {
		t.Errorf("the password is in the statements, or is none: %v", err)
	}
	if info, err := os.Stat(lookFile(i.Home)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	verifier, err := door.Verifier(password)
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Golden(t, "members.sql", strings.ReplaceAll(text, verifier, "*VERIFIER"))
	i.Role.Followers = nil
	if none, err := accountSQL(i); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}
