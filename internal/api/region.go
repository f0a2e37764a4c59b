package api

import (
	"reflect"
	"slices"
	"strings"
)

// regions makes the resources of one region those of every region that clients name. It is for
// a service that nobody has given a region: a client that is set to eu-west-1 compares the ARNs
// that it gets with those that it has made itself.
//
// Inside there is one region. ARNs are translated at the door: those of a request to the one
// region, those of the answer to that which the request was signed for. Tags are the users' and
// pass as they are.
type regions struct {
	own, account string
}

// verbatim are the structs whose texts are the users'.
var verbatim = []string{"Tag", "InputLogEvent", "OutputLogEvent", "FilteredLogEvent", "ResultField"}

// verbatimField is the member of any struct whose text is the user's.
const verbatimField = "SecretString"

// arnParts are "arn", partition, service, region, account and the rest.
const arnParts = 6

// named are the services whose resources have ARNs here.
var named = []string{"rds", "cloudwatch", "sns", "logs", "secretsmanager"}

// inward returns an ARN of any region as one of ours; other text passes.
func (g regions) inward(text string) string {
	parts := strings.SplitN(text, ":", arnParts)
	if len(parts) != arnParts || parts[0] != "arn" || !slices.Contains(named, parts[2]) || parts[4] != g.account || parts[3] == "" {
		return text
	}
	return "arn:aws:" + parts[2] + ":" + g.own + ":" + g.account + ":" + parts[5]
}

// outward returns a text with our ARNs as those of another region.
func (g regions) outward(text, region string) string {
	if region == "" || region == g.own || !strings.Contains(text, "arn:aws:") {
		return text
	}
	for _, service := range named {
		before, after := "arn:aws:"+service+":", ":"+g.account+":"
		text = strings.ReplaceAll(text, before+g.own+after, before+region+after)
	}
	return text
}

// each runs an edit on every text of a value, which is a pointer to an input or output of an
// action. Texts are replaced, never changed: others may hold them too.
func each(v reflect.Value, edit func(string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Elem().Kind() != reflect.String {
			each(v.Elem(), edit)
			return
		}
		if had := v.Elem().String(); v.CanSet() && edit(had) != had {
			next := reflect.New(v.Type().Elem())
			next.Elem().SetString(edit(had))
			v.Set(next)
		}
	case reflect.String:
		if had := v.String(); v.CanSet() && edit(had) != had {
			v.SetString(edit(had))
		}
	case reflect.Slice:
		for n := range v.Len() {
			each(v.Index(n), edit)
		}
	case reflect.Map: // by ARN, where its values are structs; one of texts is the users', as tags are
		if v.Type().Elem().Kind() != reflect.Struct || v.IsNil() {
			return
		}
		next := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(entries.Value())
			each(value, edit)
			next.SetMapIndex(reflect.ValueOf(edit(entries.Key().String())), value)
		}
		v.Set(next)
	case reflect.Struct:
		if slices.Contains(verbatim, v.Type().Name()) {
			return
		}
		for n := range v.NumField() {
			if f := v.Type().Field(n); f.IsExported() && f.Name != verbatimField {
				each(v.Field(n), edit)
			}
		}
	}
}

// translate edits every text of an input or output.
func translate(value any, edit func(string) string) { each(reflect.ValueOf(value), edit) }
