package postgres

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/wire/pg/scram"
)

func TestParseVersion(t *testing.T) {
	cases := []struct {
		name, line, version string
		major               int
	}{
		{"Debian", "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", "15.18", 15},
		{"beta", "postgres (PostgreSQL) 18beta2\n", "18beta2", 18},
		{"nonsense", "bash", "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			version, major, err := parseVersion(c.line)
			if version != c.version || major != c.major || (err != nil) != (c.version == "") {
				t.Errorf("got %s, %d, %v", version, major, err)
			}
		})
	}
}

func TestOfferedLocales(t *testing.T) {
	libc := utf8Locales("C\nC.utf8\nPOSIX\nja_JP.eucjp\nja_JP.utf8\nca_ES.UTF-8@valencia\n")
	if want := []string{"C.UTF-8", "ca_ES.UTF-8@valencia", "ja_JP.UTF-8"}; !slices.Equal(libc, want) {
		t.Errorf("got %v", libc)
	}
	for _, c := range []struct {
		name  string
		major int
		icu   bool
		want  bool
	}{{"15 with ICU", 15, true, true}, {"14", 14, true, false}, {"15 without", 15, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			got := offeredLocales(libc, c.major, c.icu)
			if got[0] != "C" || slices.Contains(got, "icu:ja-JP") != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// One list for the API and the driver: what passes there is made here.
func TestReserved(t *testing.T) {
	verifier, err := scram.Verifier("First-password-1")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"rdsadmin": true, "RDSADMIN": true, "rds_superuser": true, "pg_monitor": true, probeRolePrefix + "1": true,
		"current_role": true, "master": false, "postgres": false, "rds": false,
	} {
		i := sample("names", nil)
		i.Password.Verifier, i.MasterUsername, i.DatabaseName = verifier, "master", "shop"
		i.MasterUsername = name
		driver, api := checkNames(i), kurabe.CheckMasterUsername(kurabe.Postgres, name)
		if (driver != nil) != want || (api != nil) != want {
			t.Errorf("user %s: the driver says %v, the API %v", name, driver, api)
		}
	}
	for name, want := range map[string]bool{adminDatabase: true, "template1": true, "rds_shop": false, "public": false, "pg_shop": false} {
		i := sample("names", nil)
		i.Password.Verifier, i.MasterUsername, i.DatabaseName = verifier, "master", "shop"
		i.DatabaseName = name
		driver, api := checkNames(i), kurabe.CheckDatabaseName(kurabe.Postgres, name)
		if (driver != nil) != want || (api != nil) != want {
			t.Errorf("database %s: the driver says %v, the API %v", name, driver, api)
		}
	}
}

func TestLocksOut(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "1ms": true, "500us": true, "0.5s": true, "0": false, "1s": false, "30s": false, "1000": false, "x": false, "2min": false} {
		if locksOut(value) != want {
			t.Errorf("%s: %v", value, !want)
		}
	}
}
