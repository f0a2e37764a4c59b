package my

import (
	"bytes"
	"reflect"
	"testing"
)

func TestGreetingRoundTrips(t *testing.T) {
	want := &Greeting{Version: "5.5.5-10.11.19-MariaDB", ThreadID: 1 << 30, Capabilities: Protocol41 | PluginAuth | SSL | BulkOperations, Collation: 8, Status: Autocommit, Plugin: NativePassword}
	NewScramble(want.Scramble[:])
	got, err := ReadGreeting(want.Append(nil))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLoginRoundTrips(t *testing.T) {
	l := Login{Capabilities: Protocol41 | AuthLenenc | ConnectWithDB | PluginAuth | BulkOperations, PacketMax: 1 << 24, Collation: 45,
		User: []byte("app"), Answer: bytes.Repeat([]byte{7}, 20), Database: []byte("shop"), Plugin: []byte(Ed25519)}
	got, err := ReadLogin(l.Append(nil))
	if err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, %v", got, err)
	}
	l.Capabilities |= SSL
	if got, err := ReadLogin(l.AppendFixed(nil)); err != nil || !got.WantsTLS {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ReadLogin(make([]byte, 100)); err == nil {
		t.Error("a client of before 4.1 is taken")
	}
}

// TestProofs holds the plugins against answers of MariaDB's own client for ed25519 (the
// public key of "secret" by SELECT ed25519_password) and against themselves.
func TestProofs(t *testing.T) {
	for _, plugin := range []string{NativePassword, Ed25519} {
		scramble := make([]byte, Ed25519ScrambleBytes)
		NewScramble(scramble)
		if plugin == NativePassword {
			scramble = scramble[:ScrambleBytes]
		}
		proof, err := Prove(plugin, scramble, "secret")
		if err != nil || !Verify(plugin, scramble, proof, "secret") {
			t.Errorf("%s: the right password fails (%v)", plugin, err)
		}
		if Verify(plugin, scramble, proof, "Secret") || Verify(plugin, scramble, nil, "secret") || Verify(plugin, scramble, proof[1:], "secret") {
			t.Errorf("%s: a wrong answer proves the password", plugin)
		}
		scramble[0]++
		if Verify(plugin, scramble, proof, "secret") {
			t.Errorf("%s: an answer to another scramble proves the password", plugin)
		}
	}
	if Verify("mysql_clear_password", nil, []byte("secret"), "secret") {
		t.Error("a plugin that is not supported proves the password")
	}
}

func TestAuthSwitchRoundTrips(t *testing.T) {
	plugin, scramble, err := ReadAuthSwitch(AppendAuthSwitch(nil, Ed25519, []byte("0123456789")))
	if plugin != Ed25519 || string(scramble) != "0123456789" || err != nil {
		t.Error(plugin, scramble, err)
	}
}

func FuzzLogin(f *testing.F) {
	l := Login{Capabilities: Protocol41 | AuthLenenc | ConnectWithDB | PluginAuth, User: []byte("app"), Answer: []byte{1, 2}, Database: []byte("shop"), Plugin: []byte(NativePassword)}
	f.Add(l.Append(nil))
	f.Add([]byte("app\x00\x02ababshop\x00\x08\x00plugin\x00"))
	f.Fuzz(func(t *testing.T, p []byte) {
		_, _ = ReadLogin(p)
		_, _ = ReadChangeUser(p, SecureConnection|PluginAuth)
		_, _ = ReadGreeting(p)
		_, _, _ = ReadAuthSwitch(p)
	})
}
