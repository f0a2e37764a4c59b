package kurabe

import (
	"strings"
	"testing"
)

func TestFoldIdentifier(t *testing.T) {
	for in, want := range map[string]string{"Shop": "shop", "a": "a", "a-b-1": "a-b-1", strings.Repeat("a", 63): strings.Repeat("a", 63)} {
		if got, err := FoldIdentifier("DBInstanceIdentifier", in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "1a", "-a", "a-", "a--b", "a_b", "a.b", "ä", strings.Repeat("a", 64), "a\n"} {
		_, err := FoldIdentifier("DBInstanceIdentifier", bad)
		if CodeOf(err) != CodeInvalidParameterValue || !strings.Contains(err.Error(), "DBInstanceIdentifier") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMasterNames(t *testing.T) {
	for _, c := range []struct {
		engine EngineName
		user   string
		ok     bool
	}{
		{Postgres, "boss", true}, {Postgres, "admin", false}, {Postgres, "rdsadmin", false}, {Postgres, "PG_x", false},
		{Postgres, "1x", false}, {Postgres, "a b", false}, {Postgres, `a"b`, false}, {Postgres, strings.Repeat("a", 64), false},
		{MariaDB, "admin", true}, {MariaDB, "root", false}, {MariaDB, strings.Repeat("a", 17), false}, {MariaDB, "a'b", false},
		{Postgres, "rdsprobe_x", false}, {Postgres, "current_role", false}, {MariaDB, "rdsprobe_x", false}, {MariaDB, "RDSmember_1", false}, {MariaDB, "rdsapp", true},
	} {
		if err := CheckMasterUsername(c.engine, c.user); (err == nil) != c.ok {
			t.Errorf("%s %q: %v", c.engine, c.user, err)
		}
	}
}

func TestMasterPassword(t *testing.T) {
	for _, c := range []struct {
		engine   EngineName
		password string
		ok       bool
	}{
		{Postgres, "12345678", true}, {Postgres, "1234567", false}, {Postgres, strings.Repeat("x", 129), false},
		{MariaDB, strings.Repeat("x", 41), true}, {MariaDB, strings.Repeat("x", 42), false},
		{Postgres, "with space", false}, {Postgres, "with/slash", false}, {Postgres, "with@sign", false}, {Postgres, `with"quote`, false}, {Postgres, "пароль123", false},
	} {
		err := CheckMasterPassword(c.engine, c.password)
		if (err == nil) != c.ok {
			t.Errorf("%s %q: %v", c.engine, c.password, err)
		}
		if err != nil && len(c.password) > 7 && strings.Contains(err.Error(), c.password) {
			t.Errorf("the message tells the password: %v", err)
		}
	}
}

func TestStorage(t *testing.T) {
	for _, c := range []struct {
		name string
		in   InstanceSettings
		code Code
		iops int
	}{
		{"local", InstanceSettings{StorageType: "local", StorageGiB: 20}, "", 0},
		{"local has no iops", InstanceSettings{StorageType: "local", StorageGiB: 20, IOPS: 1000}, CodeInvalidParameterCombo, 0},
		{"gp3 small has its base", InstanceSettings{StorageType: "gp3", StorageGiB: 20}, "", 3000},
		{"gp3 small cannot have more", InstanceSettings{StorageType: "gp3", StorageGiB: 20, IOPS: 4000}, CodeInvalidParameterCombo, 0},
		{"gp3 large", InstanceSettings{StorageType: "gp3", StorageGiB: 400, IOPS: 13000}, "", 13000},
		{"io1 needs iops", InstanceSettings{StorageType: "io1", StorageGiB: 100}, CodeInvalidParameterCombo, 0},
		{"io1", InstanceSettings{StorageType: "io1", StorageGiB: 120, IOPS: 6000}, "", 6000},
		{"io1 ratio", InstanceSettings{StorageType: "io1", StorageGiB: 100, IOPS: 6000}, CodeInvalidParameterCombo, 0},
		{"io1 too small", InstanceSettings{StorageType: "io1", StorageGiB: 20, IOPS: 1000}, CodeInvalidParameterValue, 0},
		{"unknown type", InstanceSettings{StorageType: "magnetic", StorageGiB: 20}, CodeStorageTypeNotSupported, 0},
		{"throughput is gp3's", InstanceSettings{StorageType: "gp2", StorageGiB: 20, ThroughputMiB: 100}, CodeInvalidParameterCombo, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.in
			err := s.CompleteStorage(Postgres)
			if CodeOf(err) != c.code || err == nil && s.IOPS != c.iops {
				t.Fatalf("%v, IOPS %d", err, s.IOPS)
			}
			if l := s.Limits(); err == nil && (l.WriteIOPS > 0) != (c.in.StorageType != "local") {
				t.Fatalf("%+v", l)
			}
		})
	}
}

func TestClassUnfit(t *testing.T) {
	h := HostReport{CPUs: 2, MemoryBytes: 16 * GiB, Levers: []Lever{{Name: "cpu", Available: true}, {Name: "memory", Detail: "needs root"}}}
	for name, want := range map[string]string{
		"db.t3.micro": "db.local.micro", "db.local.micro": "", "db.m5.xlarge": "vCPUs", "db.r5.xlarge": "of memory",
	} {
		c, ok := FindClass(name)
		if why := c.Unfit(h); !ok || (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("Shop-1")
	f.Fuzz(func(t *testing.T, s string) {
		if folded, err := FoldIdentifier("X", s); err == nil {
			if again, err := FoldIdentifier("X", folded); err != nil || again != folded {
				t.Fatalf("%q folds to %q, which folds to %q, %v", s, folded, again, err)
			}
		}
		for _, e := range []EngineName{Postgres, MariaDB} {
			if CheckMasterUsername(e, s) == nil && strings.ContainsAny(s, "'\"`\\\x00\n ;") {
				t.Fatalf("%q is taken for a user name", s)
			}
			if CheckDatabaseName(e, s) == nil && strings.ContainsAny(s, "'\"`\\\x00\n ;") {
				t.Fatalf("%q is taken for a database name", s)
			}
		}
	})
}

func TestCheckMonitoring(t *testing.T) {
	const role = "arn:aws:iam::123456789012:role/monitoring"
	for m, want := range map[Monitoring]Code{
		{}: "", {1, role}: "", {60, role}: "", {2, role}: CodeInvalidParameterValue, {-1, ""}: CodeInvalidParameterValue,
		{60, ""}: CodeInvalidParameterCombo, {0, role}: CodeInvalidParameterCombo, {5, "monitoring"}: CodeInvalidParameterValue,
	} {
		if got := CodeOf(CheckMonitoring(m)); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}
