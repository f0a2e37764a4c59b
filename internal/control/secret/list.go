package secret

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"kurabe"
)

// Filter is one of Secrets Manager's filters: a secret passes that one of the values matches.
type Filter struct {
	Key    string
	Values []string
}

// FilterKeys are all keys of filters.
var FilterKeys = []string{"description", "name", "tag-key", "tag-value", "primary-region", "owning-service", "all"}

// OwningService is the service that manages a secret, "" for the user's own.
func OwningService(secret kurabe.Secret) string {
	if secret.Master != nil {
		return "rds"
	}
	return ""
}

// Order is how a list of secrets is sorted.
type Order struct {
	By         string // created-date, last-accessed-date, last-changed-date or name
	Descending bool
}

// List returns the secrets that pass every filter.
func (s Secrets) List(filters []Filter, deleted bool, order Order) (list []kurabe.Secret) {
	for _, r := range s.View.Secrets() {
		if !deleted && !r.Value.DeletedAt.IsZero() {
			continue
		}
		if !slices.ContainsFunc(filters, func(f Filter) bool { return !f.passes(r.Value) }) {
			list = append(list, r.Value)
		}
	}
	slices.SortStableFunc(list, func(a, b kurabe.Secret) int {
		n := 0
		switch order.By {
		case "name":
			n = strings.Compare(a.Name, b.Name)
		case "last-accessed-date":
			n = a.AccessedAt.Compare(b.AccessedAt)
		case "last-changed-date":
			n = a.ChangedAt.Compare(b.ChangedAt)
		default:
			n = a.CreatedAt.Compare(b.CreatedAt)
		}
		if order.Descending {
			n = -n
		}
		return cmp.Or(n, strings.Compare(a.Name, b.Name))
	})
	return list
}

// passes says whether one of the values matches; one that begins with ! matches what it does not
// name.
func (f Filter) passes(secret kurabe.Secret) bool {
	texts, matches := f.texts(secret), hasPrefix
	if f.Key == "all" || f.Key == "description" {
		matches = hasWords
	}
	return slices.ContainsFunc(f.Values, func(value string) bool {
		value, not := strings.CutPrefix(value, "!")
		return slices.ContainsFunc(texts, func(text string) bool { return matches(text, value) != not })
	})
}

// texts are what a filter looks at.
func (f Filter) texts(secret kurabe.Secret) (texts []string) {
	tags := func(part func(kurabe.Tag) string) {
		for _, t := range secret.Tags {
			texts = append(texts, part(t))
		}
	}
	key, value := func(t kurabe.Tag) string { return t.Key }, func(t kurabe.Tag) string { return t.Value }
	switch f.Key {
	case "name":
		return []string{secret.Name}
	case "description":
		return []string{secret.Description}
	case "tag-key":
		tags(key)
	case "tag-value":
		tags(value)
	case "owning-service":
		return []string{OwningService(secret)}
	case "all":
		texts = []string{secret.Name, secret.Description}
		tags(key)
		tags(value)
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

func hasPrefix(text, value string) bool { return strings.HasPrefix(text, value) }

// wordEnds part words: characters of names, and the beginning of a capitalized word.
var wordEnds = regexp.MustCompile(`[\s/_+=.@-]+|([A-Z][a-z]+)`)

// hasWords says whether each word of a value begins a word of a text, in any case.
func hasWords(text, value string) bool {
	wanted := words(value)
	have := words(text)
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(w string) bool {
		return !slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, w) })
	})
}

func words(text string) []string {
	return strings.Fields(strings.ToLower(wordEnds.ReplaceAllString(text, " $1 ")))
}
