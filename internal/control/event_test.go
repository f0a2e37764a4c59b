package control

import (
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

func TestEvents(t *testing.T) {
	c := newTestWorld(t)
	renamed := scopetest.Spec("new-name")
	scopetest.AddInstance(t, c.Scope, renamed)
	change := store.NewChange()
	add := func(ago time.Duration, sourceType, source string, id kurabe.InstanceID, message, category string) {
		change.AddEvent(kurabe.Event{At: scopetest.Now.Add(-ago), SourceType: sourceType, Source: source, SourceID: string(id), Message: message, Categories: []string{category}})
	}
	add(3*time.Hour, "db-instance", "old-name", renamed.ID, "long ago", "creation")
	add(30*time.Minute, "db-instance", "old-name", renamed.ID, "before the rename", "availability")
	add(25*time.Minute, "db-instance", "gone-before", "db-GONE", "renamed", "availability")
	add(20*time.Minute, "db-instance", "gone", "db-GONE", "deleted", "deletion")
	add(10*time.Minute, "db-parameter-group", "g", "", "changed", "configuration change")
	scopetest.Commit(t, c.Scope, change)
	for _, tc := range []struct {
		name   string
		filter EventFilter
		want   []string
		code   kurabe.Code
	}{
		{"the last hour", EventFilter{}, []string{"before the rename", "renamed", "deleted", "changed"}, ""},
		{"by today's name", EventFilter{SourceType: "db-instance", Source: "New-Name", Span: 4 * time.Hour}, []string{"long ago", "before the rename"}, ""},
		{"by the name of then", EventFilter{SourceType: "db-instance", Source: "old-name", Span: 4 * time.Hour}, nil, ""},
		{"of what is gone", EventFilter{SourceType: "db-instance", Source: "gone"}, []string{"renamed", "deleted"}, ""},
		{"by type", EventFilter{SourceType: "db-parameter-group"}, []string{"changed"}, ""},
		{"by category", EventFilter{Categories: []string{"deletion", "creation"}}, []string{"deleted"}, ""},
		{"between", EventFilter{From: scopetest.Now.Add(-4 * time.Hour), To: scopetest.Now.Add(-25 * time.Minute)}, []string{"long ago", "before the rename"}, ""},
		{"from, for a while", EventFilter{From: scopetest.Now.Add(-4 * time.Hour), Span: 2 * time.Hour}, []string{"long ago"}, ""},
		{"an hour up to", EventFilter{To: scopetest.Now.Add(-15 * time.Minute)}, []string{"before the rename", "renamed", "deleted"}, ""},
		{"a source without a type", EventFilter{Source: "gone"}, nil, kurabe.CodeInvalidParameterCombo},
		{"a wrong type", EventFilter{SourceType: "teapot"}, nil, kurabe.CodeInvalidParameterValue},
		{"backwards", EventFilter{From: scopetest.Now, To: scopetest.Now.Add(-time.Hour)}, nil, kurabe.CodeInvalidParameterCombo},
		{"too long", EventFilter{Span: 15 * 24 * time.Hour}, nil, kurabe.CodeInvalidParameterValue},
		{"all three", EventFilter{From: scopetest.Now.Add(-time.Hour), To: scopetest.Now, Span: time.Hour}, nil, kurabe.CodeInvalidParameterCombo},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, err := c.Events(tc.filter)
			scopetest.WantCode(t, err, tc.code, "")
			var got []string
			for _, e := range list {
				got = append(got, e.Message)
				if e.SourceID == string(renamed.ID) && (e.Source != "new-name" || c.SourceARN(e) != c.ARN("db", "new-name")) {
					t.Errorf("source %s", e.Source)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
