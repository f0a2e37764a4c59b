package secret

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// mustSecrets returns the use cases over a store in memory, whose clock stands at now.
func mustSecrets(t *testing.T, now *time.Time) Secrets {
	t.Helper()
	kv := store.NewMemory()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { view.Run(ctx); close(ended) }() // ends with ctx only
	t.Cleanup(func() { cancel(); <-ended })
	if err := view.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return Secrets{
		Scope:  scope.New(scope.Scope{KV: kv, View: view, Region: "us-east-1", Account: "000000000000", Now: func() time.Time { return *now }}),
		Sealer: NewSealer([32]byte{7}),
	}
}

func token(n string) string { return strings.Repeat("t", tokenMin-len(n)) + n }

// stages is what each version has, oldest first.
func stages(s kurabe.Secret) string {
	var out []string
	for _, v := range s.Versions {
		out = append(out, strings.TrimLeft(string(v.ID), "t")+":"+strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(v.Stages)), "+"), "AWS", ""))
	}
	return strings.Join(out, " ")
}

func text(v string) *Value { return &Value{Secret: logkey.Secret(v)} }

func TestStagesMoveAsAWSMovesThem(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	s, ctx := mustSecrets(t, &now), t.Context()
	made, version, err := s.Create(ctx, New{Name: "app/db"})
	if err != nil || version != "" || len(made.Versions) != 0 {
		t.Fatalf("%+v, %q, %v", made, version, err)
	}
	if _, err := s.Read(ctx, "app/db", "", ""); kurabe.CodeOf(err) != kurabe.CodeResourceNotFound || !strings.Contains(err.Error(), "staging label: AWSCURRENT") {
		t.Errorf("a secret without a value: %v", err)
	}
	put := func(n string, stages ...string) {
		t.Helper()
		if _, _, err := s.Edit(ctx, "app/db", Edit{Token: token(n), Value: text("v" + n), Stages: stages}); err != nil {
			t.Fatalf("put %s: %v", n, err)
		}
	}
	move := func(stage, from, to string) error {
		id := func(n string) kurabe.SecretVersionID {
			if n == "" {
				return ""
			}
			return kurabe.SecretVersionID(token(n))
		}
		_, err := s.Restage(ctx, made.ARN, stage, id(from), id(to))
		return err
	}
	want := func(w string) {
		t.Helper()
		r, err := s.Find("app/db")
		if err != nil || stages(r.Value) != w {
			t.Errorf("stages %q, %v; want %q", stages(r.Value), err, w)
		}
	}
	put("1", "mine") // the first one is current in any case
	want("1:CURRENT+mine")
	put("2", kurabe.StageCurrent)
	want("1:PREVIOUS+mine 2:CURRENT")
	put("3", kurabe.StagePending)
	want("1:PREVIOUS+mine 2:CURRENT 3:PENDING")
	put("4", kurabe.StageCurrent)
	want("1:mine 2:PREVIOUS 3:PENDING 4:CURRENT")
	put("5", kurabe.StageCurrent, "mine")
	want("1: 2: 3:PENDING 4:PREVIOUS 5:CURRENT+mine")
	for name, err := range map[string]error{
		"current from nowhere": move(kurabe.StageCurrent, "", "3"), "current to nowhere": move(kurabe.StageCurrent, "5", ""), "from one that has it not": move("mine", "4", "3"),
		"nothing": move("mine", "", ""), "an unknown version": move("mine", "5", "9"),
	} {
		if kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := move(kurabe.StageCurrent, "5", "3"); err != nil {
		t.Error(err)
	}
	want("1: 2: 3:CURRENT+PENDING 4: 5:PREVIOUS+mine")
	if err := move(kurabe.StageCurrent, "3", "5"); err != nil { // and back
		t.Error(err)
	}
	want("1: 2: 3:PENDING+PREVIOUS 4: 5:CURRENT+mine")
	if err := move(kurabe.StagePending, "3", ""); err != nil {
		t.Error(err)
	}
	want("1: 2: 3:PREVIOUS 4: 5:CURRENT+mine")
	readsOf(t, s, now)
}

// readsOf reads versions by their ids and the current one, and sees that the day is noted.
func readsOf(t *testing.T, s Secrets, now time.Time) {
	t.Helper()
	ctx := t.Context()
	for id, value := range map[kurabe.SecretVersionID]string{kurabe.SecretVersionID(token("1")): "v1", "": "v5"} {
		o, err := s.Read(ctx, "app/db", id, "")
		if err != nil || o.Value.Secret.Reveal() != value || !o.Version.AccessedAt.IsZero() {
			t.Errorf("%q: %v", id, err)
		}
	}
	if r, _ := s.Find("app/db"); !r.Value.AccessedAt.Equal(now.Truncate(24 * time.Hour)) {
		t.Errorf("accessed at %v", r.Value.AccessedAt)
	}
}

func TestTokensRepeatOneRequestOnly(t *testing.T) {
	now := time.Now()
	s, ctx := mustSecrets(t, &now), t.Context()
	n := New{Name: "a", Token: token("1"), Value: text("one")}
	first, _, err := s.Create(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	if again, version, err := s.Create(ctx, n); err != nil || again.ARN != first.ARN || string(version) != n.Token {
		t.Errorf("the same request: %v, %v", again.ARN, err)
	}
	for name, err := range map[string]error{
		"another token": second(s.Create(ctx, New{Name: "a", Token: token("2"), Value: text("one")})),
		"another value": second(s.Create(ctx, New{Name: "a", Token: token("1"), Value: text("two")})),
		"as bytes":      second(s.Edit(ctx, "a", Edit{Token: token("1"), Value: &Value{Secret: "one", Binary: true}})),
		"put":           second(s.Edit(ctx, "a", Edit{Token: token("1"), Value: text("two")})),
	} {
		if kurabe.CodeOf(err) != kurabe.CodeInstanceExists || strings.Contains(err.Error(), "two") {
			t.Errorf("%s: %v", name, err)
		}
	}
	before, _ := s.Find("a")
	if _, _, err := s.Edit(ctx, "a", Edit{Token: token("1"), Value: text("one"), Stages: []string{"other"}}); err != nil {
		t.Error(err)
	}
	if after, _ := s.Find("a"); after.ModRevision != before.ModRevision {
		t.Error("a repeated request has written")
	}
}

func second(_ kurabe.Secret, _ kurabe.SecretVersionID, err error) error { return err }

func TestDeletionAndRestore(t *testing.T) {
	now := time.Now()
	s, ctx := mustSecrets(t, &now), t.Context()
	made, _, err := s.Create(ctx, New{Name: "a", Value: text("one")})
	if err != nil {
		t.Fatal(err)
	}
	days := int64(7)
	if gone, err := s.Delete(ctx, "a", &days, false); err != nil || !gone.DeleteAfter.Equal(now.Add(7*24*time.Hour)) {
		t.Fatalf("%v, %v", gone.DeleteAfter, err)
	}
	for name, err := range map[string]error{
		"read":   second(kurabe.Secret{}, "", func() error { _, err := s.Read(ctx, "a", "", ""); return err }()),
		"put":    second(s.Edit(ctx, "a", Edit{Value: text("two")})),
		"create": second(s.Create(ctx, New{Name: "a"})),
		"tag":    s.Tag(ctx, "a", []kurabe.Tag{{Key: "k"}}),
	} {
		if kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState {
			t.Errorf("%s of a secret that is being deleted: %v", name, err)
		}
	}
	if _, err := s.Restore(ctx, "a"); err != nil {
		t.Error(err)
	}
	if o, err := s.Read(ctx, made.ARN[:len(made.ARN)-7], "", ""); err != nil || o.Value.Secret.Reveal() != "one" {
		t.Errorf("after the restore, by a partial ARN: %v", err)
	}
	if _, err := s.Delete(ctx, "a", nil, true); err != nil {
		t.Error(err)
	}
	if entries, _, err := s.KV.List(ctx, store.Root+"secret"); err != nil || len(entries) != 0 {
		t.Errorf("%d records are left, %v", len(entries), err)
	}
	if _, err := s.Delete(ctx, "a", nil, true); err != nil {
		t.Errorf("forced, of one that is not there: %v", err)
	}
	if again, _, err := s.Create(ctx, New{Name: "a"}); err != nil || again.ARN == made.ARN {
		t.Errorf("another one of the name: %v, %v", again.ARN == made.ARN, err)
	}
}

// The largest value fits into a record, and the versions of a secret do not grow without a bound.
func TestBounds(t *testing.T) {
	now := time.Now()
	s, ctx := mustSecrets(t, &now), t.Context()
	large := strings.Repeat("\u0001", valueBytesMax)
	if _, _, err := s.Create(ctx, New{Name: "a", Value: text(large)}); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Read(ctx, "a", "", ""); err != nil || o.Value.Secret.Reveal() != large {
		t.Errorf("the largest value: %v", err)
	}
	if _, _, err := s.Edit(ctx, "a", Edit{Value: text(large + "x")}); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
		t.Errorf("one byte more: %v", err)
	}
	for n := range kurabe.SecretVersionsMax + 5 {
		if _, _, err := s.Edit(ctx, "a", Edit{Value: text("v"), Stages: []string{kurabe.StageCurrent}}); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	r, _ := s.Find("a")
	values, _, err := s.KV.List(ctx, store.Root+"secret-value/")
	if _, bytes := s.View.SecretBytes(); err != nil || len(values) != kurabe.SecretVersionsMax || len(r.Value.Versions) != len(values) || bytes > 100*50 {
		t.Errorf("%d values, %d versions, %d bytes, %v", len(values), len(r.Value.Versions), bytes, err)
	}
	tags := []kurabe.Tag{}
	for n := range tagsMax {
		tags = append(tags, kurabe.Tag{Key: strings.Repeat("\U0001F600", 126) + string(rune('a'+n%26)) + string(rune('a'+n/26)), Value: strings.Repeat("\U0001F600", 256)})
	}
	if err := s.Tag(ctx, "a", tags); err != nil && kurabe.CodeOf(err) != kurabe.CodeInstanceQuota {
		t.Errorf("tags that fill the record: %v", err)
	}
}

func TestRandomPassword(t *testing.T) {
	for name, c := range map[string]struct {
		form PasswordForm
		has  []string
		not  string
	}{
		"usual":      {PasswordForm{Length: 32}, []string{lowercase, uppercase, digits, punctuation}, " "},
		"shortest":   {PasswordForm{Length: 4}, []string{lowercase, uppercase, digits, punctuation}, " "},
		"excluded":   {PasswordForm{Length: 300, Exclude: "abc" + digits}, []string{lowercase, punctuation}, "abc" + digits},
		"space":      {PasswordForm{Length: 1000, Space: true}, []string{" ", lowercase, uppercase, digits, punctuation}, ""},
		"digits":     {PasswordForm{Length: 300, NoLowercase: true, NoUppercase: true, NoPunctuation: true}, []string{digits}, letters + punctuation},
		"not of all": {PasswordForm{Length: 1, AnyOfTypes: true}, nil, " "},
	} {
		for range 50 {
			got, err := RandomPassword(c.form)
			if err != nil || len(got.Reveal()) != c.form.Length || strings.ContainsAny(got.Reveal(), c.not) && c.not != "" {
				t.Fatalf("%s: %q, %v", name, got.Reveal(), err)
			}
			for _, of := range c.has {
				if !strings.ContainsAny(got.Reveal(), of) {
					t.Fatalf("%s: %q has none of %q", name, got.Reveal(), of)
				}
			}
		}
	}
	for _, f := range []PasswordForm{{}, {Length: 3}, {Length: PasswordLengthMax + 1}, {Length: 8, NoLowercase: true, NoUppercase: true, NoPunctuation: true, NoNumbers: true}} {
		if _, err := RandomPassword(f); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// A state that was restored without the key of the service tells of it, and takes new values.
func TestAnotherKey(t *testing.T) {
	now := time.Now()
	s, ctx := mustSecrets(t, &now), t.Context()
	if _, _, err := s.Create(ctx, New{Name: "a", Value: text("one")}); err != nil || s.Foreign() != 0 {
		t.Fatal(s.Foreign(), err)
	}
	s.Sealer = NewSealer([32]byte{8})
	if _, err := s.Read(ctx, "a", "", ""); kurabe.CodeOf(err) != kurabe.CodeSecretSealed || !strings.Contains(err.Error(), "DATA/pki/ca.key") || s.Foreign() != 1 {
		t.Errorf("%d versions, %v", s.Foreign(), err)
	}
	if _, _, err := s.Edit(ctx, "a", Edit{Value: text("two"), Stages: []string{kurabe.StageCurrent}}); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Read(ctx, "a", "", ""); err != nil || o.Value.Secret.Reveal() != "two" {
		t.Errorf("a new value: %v", err)
	}
}
