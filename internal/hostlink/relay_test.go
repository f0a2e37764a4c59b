package hostlink_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/hostread"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// The questions of the tests. In a hang the host says that it began, and that it ended.
var (
	echo = hostread.Kind[string, string]{Name: "echo", Class: hostread.Failover}
	hang = hostread.Kind[string, string]{Name: "hang", Class: hostread.Logs}
)

var hangs = struct{ began, ended chan struct{} }{make(chan struct{}, 1000), make(chan struct{}, 1000)}

// readsOf answers echo and hang.
func readsOf(host kurabe.HostID) *hostread.Handlers {
	h := hostread.NewHandlers(host)
	hostread.Handle(h, echo, func(_ context.Context, q string) (string, error) {
		switch q {
		case "for users":
			return "", kurabe.Errorf(kurabe.CodeLogFileNotFound, "no file")
		case "for us":
			return "", errors.New("the disk is broken")
		}
		return q, nil
	})
	hostread.Handle(h, hang, func(ctx context.Context, q string) (string, error) {
		hangs.began <- struct{}{}
		<-ctx.Done()
		hangs.ended <- struct{}{}
		return "", ctx.Err()
	})
	return h
}

// asks are what a server asks; it is no host of the tests itself.
func asks(f *far) hostread.Hosts {
	return hostread.Hosts{Here: hostread.NewHandlers("asker"), Far: f.server.Carry}
}

// answering is a host h1 that answers, and reaches all servers but those at barred addresses.
func answering(t *testing.T, f *far, barred ...string) {
	t.Helper()
	identity := f.party(t, pki.Party{Kind: pki.PartyAgent, ID: "h1"})
	link := hostlink.NewRemote(hostlink.RemoteConfig{
		Server: f.addr, Roots: f.roots, Identity: func() *tls.Certificate { return identity }, Reads: readsOf("h1"), Log: quiet(),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			for _, one := range barred {
				if one == address {
					return nil, errors.New("no way there")
				}
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	})
	settle(t, link)
}

// awaitEcho waits until a way to h1 is open.
func awaitEcho(t *testing.T, from hostread.Hosts) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := hostread.Ask(t.Context(), from, "h1", echo, ""); err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func newServers(t *testing.T, n int) *haServers {
	t.Helper()
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newHAServers(t, n, store.NewMemory(), ca)
	s.all[0].joined(t, "h1")
	return s
}

// ways are how a server may reach a host.
var ways = map[string]func(*testing.T) hostread.Hosts{
	"here": func(*testing.T) hostread.Hosts { return hostread.Hosts{Here: readsOf("h1")} },
	"another host": func(t *testing.T) hostread.Hosts {
		f := fresh(t)
		answering(t, f)
		return asks(f)
	},
	"another of three servers, without a planner": func(t *testing.T) hostread.Hosts {
		s := newServers(t, 3)
		answering(t, s.all[0])
		// With a planner that cannot be asked the way is open only once it is straight.
		s.elect(t, -1)
		awaitEcho(t, asks(s.all[1]))
		return asks(s.all[1])
	},
	"by way of the planner's": func(t *testing.T) hostread.Hosts {
		s := newServers(t, 2)
		answering(t, s.all[0], s.all[1].addr)
		return asks(s.all[1])
	},
}

// A host answers in the same way, wherever it is asked.
func TestAsk(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			from := way(t)
			awaitEcho(t, from)
			large := strings.Repeat("a line of a log\n\x01\"ä", 60_000)
			for _, q := range []string{"hello", "", large} {
				if a, err := hostread.Ask(t.Context(), from, "h1", echo, q); err != nil || a != q {
					t.Errorf("%.20q: %d bytes, %v", q, len(a), err)
				}
			}
			if _, err := hostread.Ask(t.Context(), from, "h1", echo, "for users"); kurabe.CodeOf(err) != kurabe.CodeLogFileNotFound || err.Error() != "no file" {
				t.Errorf("an error for users: %v", err)
			}
			if _, err := hostread.Ask(t.Context(), from, "h1", echo, "for us"); err == nil || !strings.Contains(err.Error(), "the disk is broken") {
				t.Errorf("an error for us: %v", err)
			}
			if name != "here" {
				if _, err := hostread.Ask(t.Context(), from, "h2", echo, ""); kurabe.CodeOf(err) != kurabe.CodeUnavailable {
					t.Errorf("a host that is not there: %v", err)
				}
			}
			began := time.Now()
			const n = 200
			for range n {
				if _, err := hostread.Ask(t.Context(), from, "h1", echo, "x"); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%v for a question", time.Since(began)/n)
			cancelled(t, from)
		})
	}
}

// cancelled asks more than the host has slots for; the last is told so at once. When the askers
// go away the handlers end, and others are answered.
func cancelled(t *testing.T, from hostread.Hosts) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	const slots = 16
	for range slots {
		go hostread.Ask(ctx, from, "h1", hang, "")
		await(t, "a question does not come", hangs.began)
	}
	if _, err := hostread.Ask(t.Context(), from, "h1", hang, ""); kurabe.CodeOf(err) != kurabe.CodeThrottled {
		t.Errorf("the 17th question: %v", err)
	}
	if _, err := hostread.Ask(t.Context(), from, "h1", echo, ""); err != nil {
		t.Errorf("another class: %v", err)
	}
	cancel()
	for range slots {
		await(t, "a handler goes on", hangs.ended)
	}
	again, end := context.WithCancel(t.Context())
	go hostread.Ask(again, from, "h1", hang, "")
	await(t, "its slot is not free", hangs.began)
	end()
	await(t, "a handler goes on", hangs.ended)
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
}

// A copy of a host's machine, which has its certificate and not its place, is asked nothing.
func TestCopyIsAskedNothing(t *testing.T) {
	s := newServers(t, 2)
	answering(t, s.all[0])
	awaitEcho(t, asks(s.all[1]))
	client := s.all[1].client(t, pki.Party{Kind: pki.PartyAgent, ID: "h1"})
	for _, life := range []string{"another", ""} {
		q, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.all[1].addr+"/link/v1/questions", nil)
		q.Header.Set("Kurabe-Life", life)
		a, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if ok := a.StatusCode == http.StatusOK; ok != (life == "") {
			t.Errorf("life %q: %s", life, a.Status)
		}
	}
}

// client is one that shows a certificate.
func (f *far) client(t *testing.T, p pki.Party) *http.Client {
	t.Helper()
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*f.party(t, p)}}}}
}

// A host of the version before reads questions with its assignments, answers each once by a
// call, and knows neither other streams nor an end of a question.
func TestOlderHost(t *testing.T) {
	s := newServers(t, 2)
	f := s.all[0]
	client := f.client(t, pki.Party{Kind: pki.PartyAgent, ID: "h1"})
	a, err := client.Get("https://" + f.addr + "/link/v1/assignments")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	go func() { // ends with the body
		for lines := json.NewDecoder(a.Body); ; {
			var m struct {
				Question *struct {
					ID, Kind string
					Body     json.RawMessage
				}
			}
			if lines.Decode(&m) != nil {
				return
			}
			if q := m.Question; q != nil {
				said, _ := json.Marshal(struct {
					ID    string
					Error *struct{} `json:",omitempty"`
					Body  json.RawMessage
				}{ID: q.ID, Body: q.Body})
				if a, err := client.Post("https://"+f.addr+"/link/v1/call/answer", "", bytes.NewReader(said)); err == nil {
					a.Body.Close()
				}
			}
		}
	}()
	for i, f := range s.all {
		awaitEcho(t, asks(f))
		if a, err := hostread.Ask(t.Context(), asks(f), "h1", echo, "hello"); err != nil || a != "hello" {
			t.Errorf("asked at server %d: %q, %v", i, a, err)
		}
	}
}

// A server of the version before asks with assignments alone, hears an answer by a call, and has
// no stream of questions.
func TestOlderServer(t *testing.T) {
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := newFar(t, store.NewMemory(), ca)
	answers := make(chan string, 1)
	older := http.NewServeMux()
	older.HandleFunc("GET /link/v1/assignments", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"Update":{"Full":true}}`)
		fmt.Fprintln(w, `{"Question":{"ID":"q1","Kind":"echo","Body":"hello"}}`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	older.HandleFunc("POST /link/v1/call/answer", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintln(w, "{}")
		answers <- string(body)
	})
	identity, err := ca.ServerIdentity("host-s", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{identity}, ClientAuth: tls.RequestClientCert})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go http.Serve(l, older) // ends with the listener
	f.addr = l.Addr().String()
	answering(t, f)
	select {
	case a := <-answers:
		var old struct {
			ID    string
			Error *struct{ Message string }
			Body  string
		}
		if err := json.Unmarshal([]byte(a), &old); err != nil || old.ID != "q1" || old.Error != nil || old.Body != "hello" {
			t.Errorf("%s: %v", a, err)
		}
	case <-time.After(time.Minute):
		t.Fatal("no answer")
	}
}
