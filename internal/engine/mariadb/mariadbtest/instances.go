package mariadbtest

import (
	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/proc"
)

// Instance is a server without a group.
func Instance(settings map[string]string) engine.Instance {
	return engine.Instance{
		Assignment: kurabe.Assignment{
			Instance: "db-AAAAAAAAAAAAAAAAAAAAAAAAAA", Name: "shop", Engine: kurabe.MariaDB, Version: "10.11.19",
			Address: "127.66.0.7", Port: 3306, MasterUsername: "admin", Locale: "utf8mb4", Settings: settings,
			Password: kurabe.Password{Seq: 1, Verifier: "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"},
		},
		Home: engine.Home{Dir: "/var/lib/kurabe/homes/db-A"}, SeenDir: "/run/kurabe/a",
		Version: kurabe.EngineVersion{Version: "10.11.19", BinDir: "/nowhere/sbin"},
		User:    &proc.Credential{UID: 102, GID: 105},
	}
}

// Member is a server of a group of two.
func Member(number int, role kurabe.Role) engine.Instance {
	i := Instance(nil)
	owner := i.Instance
	i.Instance, i.Role = owner.Member(number), &role
	if number > 1 {
		i.ListensAt = "127.66.0.8"
	}
	return i
}

// Writer is the primary of a group of two, whose commits wait for these.
func Writer(wait ...kurabe.InstanceID) engine.Instance {
	id := Instance(nil).Instance
	return Member(1, kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{id.Member(2)}, WaitFor: wait})
}

// Follower is its standby.
func Follower() engine.Instance {
	id := Instance(nil).Instance
	return Member(2, kurabe.Role{Epoch: 3, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: id, Address: "127.66.0.7", Port: 3306}})
}
