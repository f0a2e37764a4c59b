package engine

import (
	"testing"

	"kurabe"
)

// A server whose version the packages have replaced is watched on, and started
// with the newest of its major; never with another major.
func TestReplacedVersion(t *testing.T) {
	version := func(v, family string) kurabe.EngineVersion {
		return kurabe.EngineVersion{Engine: kurabe.Postgres, Version: v, Family: family}
	}
	l := NewLifecycle(Config{}, []kurabe.EngineVersion{version("15.20", "postgres15"), version("15.19", "postgres15"), version("16.2", "postgres16")})
	for want, have := range map[string]string{"15.19": "15.19", "15.18": "15.20", "16.1": "16.2", "14.9": "", "1.5": ""} {
		if got := l.version(want); got.Version != have {
			t.Errorf("%s runs with %q, want %q", want, got.Version, have)
		}
	}
}

func TestNext(t *testing.T) {
	running := kurabe.Assignment{Goal: kurabe.GoalRunning, Boot: 1, Password: kurabe.Password{Seq: 1}}
	made := Observation{Home: true, Remains: true, Data: true, SettingsCurrent: true, CertificateCurrent: true, LimitsGroup: true, Fingerprint: "f",
		Applied: Applied{Master: true, PasswordSeq: 1, PasswordNoted: true, LimitsSet: true}}
	up := made
	up.Record, up.Running, up.Process, up.Boot = true, true, "p", 1
	up.Applied.Process, up.Applied.Ready, up.Applied.Probed, up.Applied.Loaded = "p", true, true, "f"
	with := func(o Observation, change func(*Observation)) Observation { change(&o); return o }
	for _, c := range []struct {
		name string
		a    kurabe.Assignment
		o    Observation
		want []StepName
	}{
		{"true already", running, up, nil},
		{"new", running, Observation{LimitsMissing: true}, []StepName{StepMakeHome, StepCopyTemplate, StepIssueCertificate, StepWriteSettings, StepSetLimits, StepStart, StepWaitReady, StepEnsureMaster, StepProbe}},
		{"new from a snapshot", kurabe.Assignment{Goal: kurabe.GoalRunning, Boot: 1, Origin: &kurabe.Origin{Snapshot: "snap-a"}}, Observation{Home: true, LimitsGroup: true, CertificateCurrent: true, SettingsCurrent: true, Applied: Applied{LimitsSet: true}}, []StepName{StepRestoreSnapshot, StepStart, StepWaitReady, StepEnsureMaster, StepProbe}},
		{"restored long ago", kurabe.Assignment{Goal: kurabe.GoalRunning, Boot: 1, Password: kurabe.Password{Seq: 1}, Origin: &kurabe.Origin{Snapshot: "snap-a"}}, up, nil},
		{"crashed", running, with(made, func(o *Observation) { o.Record = true }), []StepName{StepNoteCrash, StepStart, StepWaitReady, StepProbe}},
		{"ended before it was ready", running, with(made, func(o *Observation) { o.Record, o.Stillborn = true, true }), []StepName{StepWaitReady, StepStart, StepWaitReady, StepProbe}},
		{"crashed with survivors", running, with(made, func(o *Observation) { o.Record, o.Survivors = true, true }), []StepName{StepNoteCrash, StepEndSurvivors, StepStart, StepWaitReady, StepProbe}},
		{"restart comes before new settings", kurabe.Assignment{Goal: kurabe.GoalRunning, Boot: 2, Password: kurabe.Password{Seq: 1}}, with(up, func(o *Observation) { o.SettingsCurrent = false }), []StepName{StepStop, StepWriteSettings, StepStart, StepWaitReady, StepProbe}},
		{"another account, running", running, with(up, func(o *Observation) { o.OtherAccount = true }), nil},
		{"another account, ended", running, with(made, func(o *Observation) { o.Record, o.OtherAccount = true, true }), []StepName{StepNoteCrash, StepHandOver, StepStart, StepWaitReady, StepProbe}},
		{"another account, stopped", kurabe.Assignment{Goal: kurabe.GoalStopped}, with(made, func(o *Observation) { o.OtherAccount = true }), nil},
		{"dynamic settings", running, with(up, func(o *Observation) { o.SettingsCurrent = false }), []StepName{StepWriteSettings, StepReload}},
		{"written and not loaded", running, with(up, func(o *Observation) { o.Fingerprint = "g" }), []StepName{StepReload}},
		{"new password", kurabe.Assignment{Goal: kurabe.GoalRunning, Boot: 1, Password: kurabe.Password{Seq: 2}}, up, []StepName{StepSetPassword}},
		{"a password that the data does not name yet", running, with(up, func(o *Observation) { o.Applied.PasswordNoted = false }), []StepName{StepSetPassword}},
		{"note of an earlier process", running, with(up, func(o *Observation) { o.Applied.Process = "old" }), []StepName{StepWaitReady, StepReload, StepProbe}},
		{"stop", kurabe.Assignment{Goal: kurabe.GoalStopped}, up, []StepName{StepStop}},
		{"stopped", kurabe.Assignment{Goal: kurabe.GoalStopped}, made, nil},
		{"absent", kurabe.Assignment{Goal: kurabe.GoalAbsent}, up, []StepName{StepKill, StepRemoveLimits, StepRemoveHome}},
		{"absent with a half-made home", kurabe.Assignment{Goal: kurabe.GoalAbsent}, Observation{Remains: true}, []StepName{StepRemoveHome}},
		{"gone", kurabe.Assignment{Goal: kurabe.GoalAbsent}, Observation{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Next(c.a, c.o)
			if len(got) != len(c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
			for n := range got {
				if got[n] != c.want[n] {
					t.Fatalf("%v, want %v", got, c.want)
				}
			}
		})
	}
}
