package hostlink_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// A host in other hands says as much as it can. The state takes a part of it, and goes on to
// take what others say.
func TestAttackHostFillsTheState(t *testing.T) {
	f := fresh(t)
	f.joined(t, "h2")
	f.now.Store(0)
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-1"}, 0).
		PutAssignment(kurabe.Assignment{Host: "h2", Instance: "db-2"}, 0).Commit(t.Context(), f.kv); err != nil {
		t.Fatal(err)
	}
	h1, h2 := f.agent(t, "h1"), f.agent(t, "h2")
	const most = 1200 // reports of 90 KB: 100 MB
	large := kurabe.InstanceReport{Host: "h1", Instance: "db-1", LastCrash: strings.Repeat("x", 90<<10)}
	said := 0
	for ; said < most && h1.PutReport(t.Context(), large) == nil; said++ {
	}
	if said == most {
		t.Error("the host was never stopped")
	}
	if err := h1.PutReport(t.Context(), large); errors.Is(err, hostlink.ErrRefused) {
		t.Errorf("the host is told not to try again: %v", err)
	}
	if _, err := h1.Alive(t.Context(), hostlink.Alive{}); err != nil {
		t.Errorf("the host cannot say that it is there: %v", err)
	}
	if err := h2.PutReport(t.Context(), kurabe.InstanceReport{Host: "h2", Instance: "db-2"}); err != nil {
		t.Errorf("another host: %v", err)
	}
	f.now.Store(int64(time.Minute))
	if err := h1.PutReport(t.Context(), kurabe.InstanceReport{Host: "h1", Instance: "db-1"}); err != nil {
		t.Errorf("the host a minute later: %v", err)
	}
}

// Of each engine version that a host says it has there is a record, and nothing removes it
// before the host.
func TestAttackHostInventsVersions(t *testing.T) {
	f := fresh(t)
	h1 := f.agent(t, "h1")
	catalog := func(n int) kurabe.Catalog {
		return kurabe.Catalog{Engine: kurabe.Postgres, Version: fmt.Sprintf("15.%d", n), Family: "postgres15"}
	}
	const most = 200
	said := 0
	for ; said < most && h1.PutCatalog(t.Context(), "h1", catalog(said)) == nil; said++ {
	}
	if said == most {
		t.Error("the host was never stopped")
	}
	if err := h1.PutCatalog(t.Context(), "h1", catalog(0)); err != nil {
		t.Errorf("one that is there, once more: %v", err)
	}
}

// What names a record is a part of its key: it leads nowhere else, and no call that does not
// exist or is no JSON does anything.
func TestAttackHostNames(t *testing.T) {
	f := fresh(t)
	f.joined(t, "h2")
	ctx := t.Context()
	given := kurabe.InstanceReport{Host: "h2", Instance: "db-1"}
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h2", Instance: "db-1"}, 0).PutReport(given).Commit(ctx, f.kv); err != nil {
		t.Fatal(err)
	}
	before, _, err := f.kv.List(ctx, store.Root)
	if err != nil {
		t.Fatal(err)
	}
	h1 := f.agent(t, "h1")
	for _, id := range []string{"db-1", "../h2/db-1", "../../h2/db-1", "/h2/db-1", "h2/db-1", "", ".", "..", "db-1/../../h2/db-1", "db-1\x00", strings.Repeat("x", 1<<16)} {
		for name, err := range map[string]error{
			"report":          h1.PutReport(ctx, kurabe.InstanceReport{Host: "h1", Instance: kurabe.InstanceID(id)}),
			"snapshot report": h1.PutReport(ctx, kurabe.SnapshotReport{Host: "h1", Snapshot: kurabe.SnapshotID(id)}),
			"catalog":         h1.PutCatalog(ctx, "h1", kurabe.Catalog{Engine: "../../h2/catalog/postgres", Version: id}),
		} {
			if err == nil {
				t.Errorf("%s of %.40q is taken", name, id)
			}
		}
		_ = h1.DropReport(ctx, "h1", kurabe.InstanceID(id).Ref())
		_ = h1.DropReport(ctx, "h1", kurabe.SnapshotID(id).Ref())
		_ = h1.PutLogs(ctx, kurabe.LogReport{Host: "h1", Logs: []kurabe.InstanceLog{{Instance: kurabe.InstanceID(id)}}})
	}
	after, _, err := f.kv.List(ctx, store.Root)
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	for _, e := range after {
		if strings.Contains(e.Key, "h1") && strings.Contains(e.Key, "log") {
			logs++ // an empty report of its own
		}
	}
	if len(after)-logs != len(before) {
		t.Errorf("%d records are there, %d were", len(after)-logs, len(before))
	}
	for _, e := range before {
		if now, err := f.kv.Get(ctx, e.Key); err != nil || now.ModRevision != e.ModRevision {
			t.Errorf("%s was written: %v", e.Key, err)
		}
	}
}

// raw speaks to the server as no agent does.
func (f *far) raw(t *testing.T, identity *tls.Certificate, method, path string, body io.Reader) int {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if identity != nil {
		config.Certificates = []tls.Certificate{*identity}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 20 * time.Second}
	q, err := http.NewRequestWithContext(t.Context(), method, "https://"+f.addr+path, body)
	if err != nil {
		t.Fatal(err)
	}
	a, err := client.Do(q)
	if err != nil {
		return 0 // the connection was ended
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, 1<<20))
	return a.StatusCode
}

func TestAttackLinkByHand(t *testing.T) {
	f := fresh(t)
	agent := f.party(t, pki.Party{Kind: pki.PartyAgent, ID: "h1"})
	for name, c := range map[string]struct {
		identity     *tls.Certificate
		method, path string
		body         io.Reader
	}{
		"a stranger asks for assignments":       {nil, "GET", "/link/v1/assignments", nil},
		"a stranger calls":                      {nil, "POST", "/link/v1/call/put-host", strings.NewReader("{}")},
		"a stranger asks for the keys":          {nil, "POST", "/link/v1/enter", strings.NewReader("{}")},
		"a stranger asks a host":                {nil, "POST", "/link/v1/ask", strings.NewReader("{}")},
		"an agent asks for the keys":            {agent, "POST", "/link/v1/enter", strings.NewReader("{}")},
		"an agent asks another host":            {agent, "POST", "/link/v1/ask", strings.NewReader(`{"Host":"h2","Kind":"log"}`)},
		"a call that does not exist":            {agent, "POST", "/link/v1/call/put-spec", strings.NewReader("{}")},
		"a call that is a path":                 {agent, "POST", "/link/v1/call/..%2f..%2fenter", strings.NewReader("{}")},
		"a call that is no JSON":                {agent, "POST", "/link/v1/call/put-host", strings.NewReader("<xml/>")},
		"a call without an end":                 {agent, "POST", "/link/v1/call/put-host", strings.NewReader(`{"Host":"` + strings.Repeat("x", 9<<20))},
		"a call that does not tell its length":  {agent, "POST", "/link/v1/call/put-host", io.MultiReader(strings.NewReader(`{"Host":"h1"}`))},
		"a stranger joins with a large request": {nil, "POST", "/link/v1/join", strings.NewReader(`{"Secret":"` + strings.Repeat("x", 1<<20) + `"}`)},
		"a stranger joins with no token":        {nil, "POST", "/link/v1/join", strings.NewReader("{}")},
	} {
		if status := f.raw(t, c.identity, c.method, c.path, c.body); status == http.StatusOK {
			t.Errorf("%s: it is done", name)
		}
	}
	if status := f.raw(t, agent, "POST", "/link/v1/call/put-host", strings.NewReader(`{"Host":"h1"}`)); status != http.StatusOK {
		t.Errorf("the host itself: %d", status)
	}
}
