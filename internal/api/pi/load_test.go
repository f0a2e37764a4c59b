package pi

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"kurabe/internal/load"
)

const noon = 1_800_000_000 // a multiple of 3600

func TestSpan(t *testing.T) {
	a := API{Now: func() int64 { return noon }}
	seconds := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		from, to int64
		period   *int32
		want     span
		err      string
	}{
		"whole minutes":       {noon - 100, noon - 10, seconds(60), span{noon - 120, noon, 60}, ""},
		"seconds":             {noon - 10, noon, seconds(1), span{noon - 10, noon, 1}, ""},
		"chosen, an hour":     {noon - 3600, noon, nil, span{noon - 3600, noon, 60}, ""},
		"chosen, a day":       {noon - 86400, noon, nil, span{noon - 86400, noon, 300}, ""},
		"chosen, five minute": {noon - 300, noon, nil, span{noon - 300, noon, 1}, ""},
		"turned round":        {noon, noon - 10, nil, span{}, "EndTime"},
		"too early":           {noon - 9*86400, noon, nil, span{}, "7 days"},
		"odd period":          {noon - 60, noon, seconds(7), span{}, "PeriodInSeconds"},
		"seconds long ago":    {noon - 6*3600, noon, seconds(1), span{}, "3 hours"},
	} {
		from, to := time.Unix(c.from, 0), time.Unix(c.to, 0)
		got, err := a.spanOf(&from, &to, c.period)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", name, err, c.err)
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s: %+v %v, want %+v", name, got, err, c.want)
		}
	}
}

func TestPage(t *testing.T) {
	list := []int{0, 1, 2, 3, 4}
	most := int32(2)
	var all []int
	var token *string
	for pages := 0; ; pages++ {
		part, next, err := page(list, &most, token)
		if err != nil || pages > 3 {
			t.Fatal(pages, err)
		}
		all = append(all, part...)
		if token = next; token == nil {
			break
		}
	}
	if !reflect.DeepEqual(all, list) {
		t.Error(all)
	}
	for _, bad := range []string{"-1", "6", "x", ""} {
		if _, _, err := page(list, nil, &bad); err == nil {
			t.Errorf("the token %q is taken", bad)
		}
	}
}

func TestSums(t *testing.T) {
	a := load.Answer{Groups: []load.Group{
		{Values: []string{"a", "lock"}, Total: 5}, {Values: []string{"b", "cpu"}, Total: 4}, {Values: []string{"a", "cpu"}, Total: 3}, {Values: []string{"c", "io"}, Total: 1},
	}}
	if got := sums(a, 0, 1, 2); len(got) != 2 || got[0].Values[0] != "a" || got[0].Total != 8 || got[1].Total != 4 {
		t.Errorf("%+v", got)
	}
	if got := sums(a, 1, 2, 9); len(got) != 3 || got[0].Values[0] != "cpu" || got[0].Total != 7 {
		t.Errorf("%+v", got)
	}
}

func TestChoose(t *testing.T) {
	text := func(s string) *string { return &s }
	c, err := choose("GroupBy", &DimensionGroup{Group: text("db.sql"), Dimensions: []string{"db.sql.tokenized_id", "db.sql.statement"}})
	if err != nil || !reflect.DeepEqual(c.by, []load.Dimension{load.Tokenized, load.Statement}) || c.limit != limitDefault {
		t.Fatalf("%+v %v", c, err)
	}
	key := c.key([]string{"T", "S"}, map[string]load.Text{"S": {Statement: strings.Repeat("é", 400)}})
	if key["db.sql.tokenized_id"] != "T" || len(key["db.sql.statement"]) != statementShown {
		t.Errorf("%+v", key)
	}
	many := int32(26)
	for _, bad := range []DimensionGroup{{Group: text("db.color")}, {Group: text("db.user"), Dimensions: []string{"db.host.name"}}, {Group: text("db.user"), Limit: &many}} {
		if _, err := choose("GroupBy", &bad); err == nil || !strings.Contains(err.Error(), "GroupBy") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := conditions(map[string]string{"db.sql.statement": "x"}); err == nil {
		t.Error("load is filtered by a text that is not in it")
	}
	if got, err := conditions(map[string]string{"db.user.name": "x"}); err != nil || got[0].Dimension != load.User {
		t.Error(got, err)
	}
}
