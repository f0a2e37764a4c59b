package drill

import (
	"strings"
	"testing"
	"time"

	"kurabe"
)

func TestParseSide(t *testing.T) {
	for text, want := range map[string]Order{
		"writer":                {Side: Writer},
		"both":                  {Side: Both},
		"reader":                {Side: Reader},
		"reader=3":              {Side: Reader, Server: ServerSelector{Number: 3}},
		"reader=us-east-1b":     {Side: Reader, Server: ServerSelector{Place: "us-east-1b"}},
		"standby=host-0a1b2c3d": {Side: Standby, Server: ServerSelector{Place: "host-0a1b2c3d"}},
		"other":                 {Side: "other"}, // Order.Check refuses it
		"":                      {},
	} {
		side, which, err := ParseSide("--kill", text)
		if err != nil || side != want.Side || which != want.Server {
			t.Errorf("%q: %q, %+v, %v", text, side, which, err)
		}
	}
	for text, says := range map[string]string{
		"writer=1":                           "use --kill writer",
		"both=2":                             "--kill reader=2",
		"other=2":                            "only reader and standby",
		"=2":                                 "only reader and standby",
		"reader=":                            "reader alone for any",
		"reader=0":                           "numbers begin with 1",
		"reader=02":                          "numbers begin with 1",
		"reader=-1":                          "must be a number",
		"reader=+1":                          "must be a number",
		"reader=12345678901234567890":        "numbers begin with 1",
		"reader=2=3":                         "must be a number",
		"reader= 2":                          "must be a number",
		"reader=a b":                         "must be a number",
		"reader=../x":                        "must be a number",
		"standby=" + strings.Repeat("x", 64): "must be a number",
	} {
		if _, which, err := ParseSide("--kill", text); err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "--kill ") {
			t.Errorf("%q: %+v, %v", text, which, err)
		}
	}
}

func FuzzParseSide(f *testing.F) {
	for _, text := range []string{"writer", "reader=2", "reader=us-east-1b", "standby=", "reader=\x00", "both=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		side, which, err := ParseSide("--freeze", text)
		if err != nil {
			return
		}
		again := string(side)
		if !which.any() {
			again += "=" + which.said()
		}
		if again != text {
			t.Errorf("%q is read as %q", text, again)
		}
	})
}

// A reader is chosen by its number, its zone or its host, and never the writer for it.
func TestWhichReader(t *testing.T) {
	crowded := ring() // two readers on one host
	crowded.Servers[2].Host = "h2"
	for name, c := range map[string]struct {
		look  Look
		which ServerSelector
		want  kurabe.InstanceID
		says  string
	}{
		"by number":            {ring(), ServerSelector{Number: 3}, "db-A~3", ""},
		"by zone":              {ring(), ServerSelector{Place: "b"}, "db-A~2", ""},
		"by host":              {ring(), ServerSelector{Place: "h3"}, "db-A~3", ""},
		"one of two on a host": {crowded, ServerSelector{Place: "c"}, "db-A~3", ""},
		"two on a host":        {crowded, ServerSelector{Place: "h2"}, "", "--kill reader=h2 matches several servers: 2 (zone b, host h2), 3 (zone c, host h2)"},
		"the writer":           {ring(), ServerSelector{Number: 1}, "", "--kill reader=1 is the writer at this moment (server 1); use --kill writer, or choose one of: 2 (zone b, host h2), 3"},
		"the writer's zone":    {ring(), ServerSelector{Place: "a"}, "", "is the writer"},
		"nobody":               {ring(), ServerSelector{Number: 4}, "", "--kill reader=4: no such reader; choose one of: 2"},
		"no such zone":         {ring(), ServerSelector{Place: "d"}, "", "no such reader"},
	} {
		o := Order{Action: Kill, Side: Reader, Server: c.which, Cluster: true}
		list, err := o.sides(c.look, "h1")
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || list != nil {
				t.Errorf("%s: %v, %v", name, list, err)
			}
			continue
		}
		if err != nil || len(list) != 1 || list[0].ID != c.want {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	for text, o := range map[string]Order{
		"kill the reader (server 3)":                           {Action: Kill, Side: Reader, Server: ServerSelector{Number: 3}},
		"freeze the standby (b) for 3s":                        {Action: Freeze, Side: Standby, Server: ServerSelector{Place: "b"}, For: 3 * time.Second},
		"cut the reader (server 2) off from the others for 3s": {Action: Cut, Side: Reader, Server: ServerSelector{Number: 2}, For: 3 * time.Second, Cluster: true},
	} {
		if got := o.String(); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
}
