package my

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func TestOKRoundTrips(t *testing.T) {
	changes := AppendText([]byte{byte(ChangedVariable)}, AppendText(AppendText(nil, []byte("sql_mode")), []byte("ANSI")))
	changes = AppendText(append(changes, byte(ChangedSchema)), AppendText(nil, []byte("depot")))
	changes = AppendText(append(changes, byte(ChangedState)), []byte{0})
	want := OK{Mark: MarkOK, AffectedRows: 70_000, InsertID: 1 << 40, Status: Autocommit | StateChanged, Warnings: 3, Info: []byte("Rows matched: 1"), Changes: changes}
	got, err := ReadOK(want.Append(nil, true), true)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	plain, err := ReadOK(want.Append(nil, false), false)
	if err != nil || plain.Status&StateChanged != 0 || plain.Changes != nil || !bytes.Equal(plain.Info, want.Info) || plain.InsertID != want.InsertID {
		t.Errorf("%+v, %v", plain, err)
	}
	var told []string
	for c := ReadChanges(got.Changes); ; {
		kind, name, value, ok := c.Next()
		if !ok {
			break
		}
		told = append(told, string(rune('0'+kind))+string(name)+"="+string(value))
	}
	if !reflect.DeepEqual(told, []string{"0sql_mode=ANSI", "1=depot", "2="}) {
		t.Errorf("%q", told)
	}
}

func TestErrorRoundTrips(t *testing.T) {
	want := &Error{Number: 1213, State: "40001", Message: "Deadlock found"}
	var got *Error
	if !errors.As(ReadError(want.Append(nil)), &got) || *got != *want {
		t.Errorf("%+v", got)
	}
}

func TestLenenc(t *testing.T) {
	for _, n := range []uint64{0, 250, 251, 1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, 1 << 63} {
		r := Reader{Rest: AppendLenenc(nil, n)}
		if got := r.Lenenc(); got != n || r.Bad || len(r.Rest) > 0 {
			t.Errorf("%d became %d", n, got)
		}
	}
	for _, p := range [][]byte{nil, {0xfb}, {0xff}, {0xfc, 1}, {0xfe, 1, 2, 3}} {
		if r := (Reader{Rest: p}); r.Lenenc() != 0 || !r.Bad {
			t.Errorf("%x is taken", p)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	ok := OK{Status: StateChanged, Info: []byte("x"), Changes: []byte{0, 4, 1, 'a', 1, 'b'}}
	f.Add(ok.Append(nil, true))
	f.Fuzz(func(t *testing.T, p []byte) {
		ok, err := ReadOK(p, true)
		if err == nil {
			again, err := ReadOK(ok.Append(nil, true), true)
			if err != nil || again.InsertID != ok.InsertID || !bytes.Equal(again.Changes, ok.Changes) && ok.Status&StateChanged != 0 {
				t.Errorf("%+v became %+v, %v", ok, again, err)
			}
		}
		c := ReadChanges(p)
		for range len(p) + 1 {
			if _, _, _, more := c.Next(); !more {
				return
			}
		}
		t.Error("more changes than bytes")
	})
}
